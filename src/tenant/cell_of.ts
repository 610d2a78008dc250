// The cell of a workspace: the same for ever and in every member, whoever owns the cell at the time (rule 20 of the
// cluster's design).

import { createHash } from "node:crypto";
import { CELLS } from "../../actors/doors.ts";

/** The cell of a workspace: the first four bytes of SHA-256 of its id, modulo the number of cells. */
export function cellOf(workspaceId: string): number {
  return createHash("sha256").update(workspaceId).digest().readUInt32BE(0) % CELLS;
}
