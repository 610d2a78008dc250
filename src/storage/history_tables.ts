// Where a user's history stands: the tables that a merge moves in the background and that an erasure empties in steps,
// and the ids of reservations, which are found by their first owner whoever they belong to now.

import { ID_PREFIX, type UserKey } from "domain/ids.ts";

/** Tables whose rows may be many for one user, with their primary key. */
export const HISTORY = [
  { table: "events", key: "id" },
  { table: "event_logs", key: "event_id" },
  { table: "subscription_events", key: "id" },
  { table: "credit_ledger", key: "id" },
  { table: "generations", key: "id" },
] as const;

/** The bounds, both exclusive, between which the ids of a user's reservations lie. */
export function reservationIdsOf(owner: UserKey): [after: string, before: string] {
  const prefix = `${ID_PREFIX.reservation}${owner.toString(36)}`;
  // "`" follows "_" in the collation of ids.
  return [`${prefix}_`, `${prefix}\``];
}
