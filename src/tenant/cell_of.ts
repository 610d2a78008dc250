// The cell of a workspace: a function of its id alone, so it never changes and is the same in every process.

import { createHash } from "node:crypto";
import { CELLS } from "../../actors/doors.ts";

/** The cell of a workspace: the first four bytes of SHA-256 of its id, modulo the number of cells. */
export function cellOf(workspaceId: string): number {
  return createHash("sha256").update(workspaceId).digest().readUInt32BE(0) % CELLS;
}
