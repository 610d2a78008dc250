// Settled overage of a user by UTC hour: what was told, and what the running hour has so far.

import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";

/** The settled overage of a group in an hour of a window; amounts are text. */
export interface OverageRecord {
  readonly group_id: string;
  readonly unit: string;
  readonly hour_ms: Millis;
  readonly amount: string;
  /** All of the window, up to and with the hour. */
  readonly total: string;
}

/** Reads the hours of a user, told under any of its numbers, that begin within a span; oldest first. */
export function readOverage(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
  from: Millis,
  to: Millis,
): Promise<OverageRecord[]> {
  return database.query<OverageRecord>(
    `select group_id, unit, hour_ms, trim_scale(amount)::text as amount, trim_scale(total)::text as total from (
       select group_id, unit, window_start_ms, hour_ms, sum(amount) as amount,
         sum(sum(amount)) over (partition by group_id, unit, window_start_ms order by hour_ms) as total
       from (
         select group_id, unit, window_start_ms, hour_ms, amount from overage_hours
         where user_key = any($1::text::bigint[])
         union all
         select group_id, unit, window_start_ms, (due_at_ms - 1) / 3600000 * 3600000, pending from overage_windows
         where user_key = any($1::text::bigint[]) and due_at_ms is not null
       ) part
       group by group_id, unit, window_start_ms, hour_ms
     ) sums
     where hour_ms >= $2::bigint and hour_ms < $3::bigint
     order by hour_ms, group_id, unit, window_start_ms`,
    [arrayText(keys), from, to],
  );
}
