// The tables with a user's history: a merge moves their rows in the background, and an erasure removes them in steps. Also
// the ids of reservations, which contain the first owner even after a merge.

import { ID_PREFIX, type UserKey } from "../../domain/values/ids.ts";

/** Tables that may have many rows of one user, with their primary key and the name of their count in merge reports. */
export const HISTORY = [
  { table: "events", key: "id", count: "events" },
  { table: "event_logs", key: "event_id", count: "eventLogs" },
  { table: "subscription_events", key: "id", count: "subscriptionEvents" },
  { table: "credit_ledger", key: "id", count: "creditLedger" },
  { table: "generations", key: "id", count: "composeGenerations" },
] as const;

/** The bounds of the ids of reservations that a user made, both exclusive. */
export function reservationIdsOf(owner: UserKey): [after: string, before: string] {
  const prefix = `${ID_PREFIX.reservation}${owner.toString(36)}`;
  // "`" follows "_" in the collation of ids.
  return [`${prefix}_`, `${prefix}\``];
}

/**
 * SQL of the primary keys of some history rows of the users in $1. Each owner is read as a range of an index. For an owner
 * of a tenth of all rows the planner would otherwise scan the heap from its start, and each step would pass again over the
 * rows that earlier steps removed. Use the result as an array: a list of unknown length would be joined to the whole table.
 */
export function someRowsOf({ table, key }: (typeof HISTORY)[number], limit: string, lock = ""): string {
  return `select found.${key} from unnest($1::text::bigint[]) as owner(key) cross join lateral (
      select ${key} from ${table} where user_key >= owner.key and user_key <= owner.key
      order by user_key limit ${limit} ${lock}
    ) as found limit ${limit}`;
}

/** SQL of the ids of some settled reservations between the ids $1 and $2. */
export function someSettled(limit: string): string {
  return `select id from reservations where id > $1 and id < $2 and status <> 'held' order by id limit ${limit}`;
}
