// What counts once, in whichever process it comes: the end of a session, a form that writes.

import type { Millis } from "../domain/values/period.ts";
import type { Database } from "../storage/database.ts";
import { forgetSpent, isSpent, spend } from "../storage/stores/console_store.ts";
import { type AuditWorld, NO_CELLS } from "./audit.ts";

/**
 * Spends an id.
 *
 * @param until when nobody can bring it any more, in real time
 * @returns false for one that is spent already
 */
export function spendId(
  { inCell, clock }: Omit<AuditWorld, "ids">,
  id: string,
  until: Millis,
): Promise<boolean> {
  return inCell(NO_CELLS, (session) => spend(session, id, until, clock.now()));
}

/** Takes an id back that was spent for nothing. */
export function takeBackId({ inCell }: Pick<AuditWorld, "inCell">, id: string): Promise<void> {
  return inCell(NO_CELLS, (session) => forgetSpent(session, id));
}

/** Whether an id was spent. */
export function isSpentId(
  { database }: { readonly database: Pick<Database, "query"> },
  id: string,
): Promise<boolean> {
  return isSpent(database, id);
}
