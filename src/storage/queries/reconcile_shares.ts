// The proof of shares: the count is what open holds and events of the member took, since the last reset that the member's
// rows know of. What was taken before is no part of it. An erasure under way has removed events, but not yet the shares.

import { owned } from "./reconcile_faults.ts";

/** SQL of share lines, which are JSON: [[accountKey, groupId, unit, windowStart, windowEnd, since, "taken"], ...]. */
function sharesOf(table: string, inHolds: 0 | 1): string {
  const [hold, event] = inHolds === 1 ? ["line ->> 6", "'0'"] : ["'0'", "line ->> 6"];
  return `
    select user_key, (line ->> 0)::bigint, line ->> 1, line ->> 2, (line ->> 3)::bigint, (line ->> 5)::bigint,
      null::numeric, (${hold})::numeric, (${event})::numeric
    from ${owned(table, "t.shares", `t.shares is not null${inHolds === 1 ? " and t.status = 'held'" : ""}`)}
    cross join lateral jsonb_array_elements(shares::jsonb) line`;
}

/** Wrong shares of a range of users: user_key, user_id, kind and text. */
export const SHARES = `
  select user_key, (select id from users where key = sums.user_key) as user_id, 'share' as kind,
    'share of group ' || to_json(group_id)::text || ' of account ' || account_key || ' from ' || start_ms || ' ms: ' ||
    coalesce('count ' || trim_scale(count), 'there is no row') || ', but open holds ' || trim_scale(holds) ||
    ' + events ' || trim_scale(events) as text
  from (
    select user_key, account_key, group_id, unit, start_ms, since_ms, sum(count) as count, sum(holds) as holds,
      sum(events) as events,
      max(since_ms) over (partition by user_key, account_key, group_id, unit, start_ms) as newest_ms
    from (
      select user_key, account_key, group_id, unit, window_start_ms as start_ms, since_ms, count,
        0::numeric as holds, 0::numeric as events
      from ${owned("shares", "t.account_key, t.group_id, t.unit, t.window_start_ms, t.since_ms, t.count")}
      union all ${sharesOf("reservations", 1)}
      union all ${sharesOf("events", 0)}
    ) part
    group by user_key, account_key, group_id, unit, start_ms, since_ms
  ) sums
  where since_ms = newest_ms and coalesce(count, 0) <> holds + events
  order by user_key, account_key, group_id, unit, start_ms`;
