// Ids that may be used once, across all processes: the session of a sign-out, a form that writes.

import type { Millis } from "../domain/values/period.ts";
import type { Database } from "../storage/database.ts";
import { forgetSpent, isSpent, spend } from "../storage/stores/console_store.ts";
import { type AuditWorld, NO_CELLS } from "./audit.ts";

/**
 * Marks an id as used.
 *
 * @param until when the id can no longer be presented, in real time
 * @returns false where it was used before
 */
export function spendId(
  { inCell, clock }: Omit<AuditWorld, "ids">,
  id: string,
  until: Millis,
): Promise<boolean> {
  return inCell(NO_CELLS, (session) => spend(session, id, until, clock.now()));
}

/** Makes an id usable again, after a write that did not happen. */
export function takeBackId({ inCell }: Pick<AuditWorld, "inCell">, id: string): Promise<void> {
  return inCell(NO_CELLS, (session) => forgetSpent(session, id));
}

/** Whether an id was used. */
export function isSpentId(
  { database }: { readonly database: Pick<Database, "query"> },
  id: string,
): Promise<boolean> {
  return isSpent(database, id);
}
