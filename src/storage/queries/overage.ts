// Settled overage of a user by UTC hour: what was reported, and what the running hour has so far.

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

/** A user's own cap of a group, as text. */
export interface CapRecord {
  readonly group_id: string;
  readonly max: string;
}

/** The users behind some ids of a realm: all of their numbers, when the first was sold something, and their caps. */
export async function soldTo(
  database: Pick<Database, "query">,
  realm: number,
  ids: readonly string[],
): Promise<{ keys: UserKey[]; first: Millis | null; caps: readonly CapRecord[] }> {
  const users = await database.query<{ key: UserKey; spend_caps: string | null }>(
    `with canonical as (
       select coalesce(merged_into, key) as key from users where realm = $1::int and id = any($2::text::text[])
     )
     select key, spend_caps from users where key in (select key from canonical)
     union select key, spend_caps from users where merged_into in (select key from canonical)`,
    [realm, arrayText(ids)],
  );
  const keys = users.map(({ key }) => key);
  const [row] = await database.query<{ first: Millis | null }>(
    `select min(at) as first from (
       select min(hour_ms) as at from overage_hours where user_key = any($1::text::bigint[])
       union all
       select min(due_at_ms) - 3600000 from overage_windows where user_key = any($1::text::bigint[])
     ) found`,
    [arrayText(keys)],
  );
  const caps = users.flatMap(({ spend_caps: text }) => Object.entries(JSON.parse(text ?? "{}")))
    .map(([groupId, max]) => ({ group_id: groupId, max: String(max) }));
  return { keys, first: row?.first ?? null, caps };
}

/** SQL of an end after all others. */
const NEVER = "9223372036854775807";

/** Reads the hours of a user, reported under any of its numbers, that begin within a span; oldest first. */
export function readOverage(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
  from: Millis,
  to: Millis,
): Promise<OverageRecord[]> {
  return database.query<OverageRecord>(
    `select group_id, unit, hour_ms, trim_scale(amount)::text as amount, trim_scale(total)::text as total from (
       select group_id, unit, window_start_ms, end_ms, hour_ms, sum(amount) as amount,
         sum(sum(amount)) over (partition by group_id, unit, window_start_ms, end_ms order by hour_ms) as total
       from (
         select h.group_id, h.unit, h.window_start_ms, coalesce(h.window_end_ms, (
           select nullif(max(coalesce(w.window_end_ms, ${NEVER})), ${NEVER}) from overage_windows w
           where w.user_key = any($1::text::bigint[]) and w.group_id = h.group_id and w.unit = h.unit
             and w.window_start_ms = h.window_start_ms
         ), 0) as end_ms, h.hour_ms, h.amount
         from overage_hours h where h.user_key = any($1::text::bigint[])
         union all
         select group_id, unit, window_start_ms, coalesce(window_end_ms, 0),
           (due_at_ms - 1) / 3600000 * 3600000, pending
         from overage_windows where user_key = any($1::text::bigint[]) and due_at_ms is not null
       ) part
       group by group_id, unit, window_start_ms, end_ms, hour_ms
     ) sums
     where hour_ms >= $2::bigint and hour_ms < $3::bigint
     order by hour_ms, group_id, unit, window_start_ms, end_ms`,
    [arrayText(keys), from, to],
  );
}
