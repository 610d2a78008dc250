// Where a user's history stands: the tables that a merge moves in the background and that an erasure empties in steps,
// and the ids of reservations, which are found by their first owner whoever they belong to now.

import { ID_PREFIX, type UserKey } from "../../domain/ids.ts";

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

/**
 * SQL of the primary keys of some history rows of the users in $1. Owners are ranges in the order of an index: the
 * planner, which knows that an owner of a tenth of all rows is soon met in the heap, would else read that from its start
 * for every step, past all that is gone. To be used as an array: a list of unknown length would be joined to the whole
 * table.
 */
export function someRowsOf({ table, key }: (typeof HISTORY)[number], limit: string, lock = ""): string {
  return `select found.${key} from unnest($1::text::bigint[]) as owner(key) cross join lateral (
      select ${key} from ${table} where user_key >= owner.key and user_key <= owner.key
      order by user_key limit ${limit} ${lock}
    ) as found limit ${limit}`;
}

/** SQL of the ids of some settled reservations between two ids, $1 and $2. */
export function someSettled(limit: string): string {
  return `select id from reservations where id > $1 and id < $2 and status <> 'held' order by id limit ${limit}`;
}
