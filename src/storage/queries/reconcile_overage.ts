// The proof of overage: what the counters of a group sold past its quota is what open holds and events took as overage (a merge
// moves it between windows), and what a window settled is that of its events, reported or pending.

import { inRange, LINES_OF_LEVELS, owned } from "./reconcile_faults.ts";

/** SQL of the overage of lines, by counter: (user_key, plan_id, group_id, start_ms, holds, events). */
function linesOf(table: string, inHolds: 0 | 1): string {
  const [hold, event] = inHolds === 1 ? ["line ->> 8", "'0'"] : ["'0'", "line ->> 8"];
  const where = inHolds === 1 ? "t.status = 'held'" : "t.lines <> '[]'";
  return `
    select user_key, line ->> 0 as plan_id, line ->> 1 as group_id, (line ->> 2)::bigint as start_ms,
      (${hold})::numeric as holds, (${event})::numeric as events
    from ${owned(table, "t.lines", where)}
    cross join lateral jsonb_array_elements(lines::jsonb) line where line ->> 8 is not null`;
}

/** SQL of the same of events of users below, and of events that were erased. */
const OF_LEVELS = `
  select owner, line ->> 0, line ->> 1, (line ->> 2)::bigint, 0::numeric, (line ->> 8)::numeric
  from ${LINES_OF_LEVELS} where line ->> 8 is not null and ${inRange("owner")}
  union all
  select user_key, plan_id, group_id, window_start_ms, 0, overage
  from ${owned("erased_charges", "t.plan_id, t.group_id, t.window_start_ms, t.overage", "t.overage <> 0")}`;

/** Groups whose counters' overage is not that of their holds and events: user_key, user_id, kind and text. */
export const SOLD = `
  select user_key, (select id from users where key = sums.user_key) as user_id, 'overage' as kind,
    'group ' || to_json(group_id)::text || ' of plan ' || to_json(plan_id)::text || ': overage ' ||
    trim_scale(overage) || ', but open holds ' || trim_scale(holds) || ' + events ' || trim_scale(events) as text
  from (
    select user_key, plan_id, group_id, sum(overage) as overage, sum(holds) as holds, sum(events) as events
    from (
      select user_key, plan_id, group_id, overage, 0::numeric as holds, 0::numeric as events
      from ${owned("counters", "t.plan_id, t.group_id, t.overage", "t.overage is not null")}
      union all
      select user_key, plan_id, group_id, 0, holds, events from (
        ${linesOf("reservations", 1)} union all ${linesOf("events", 0)} union all ${OF_LEVELS}
      ) lines
    ) part group by user_key, plan_id, group_id
  ) sums
  where overage <> holds + events
  order by user_key, plan_id, group_id`;

/** Windows whose settled overage is not that of their events, or not the sum of what is reported and what is pending. */
export const REPORTED_OVERAGE = `
  select user_key, (select id from users where key = sums.user_key) as user_id, 'overage' as kind,
    'overage of ' || to_json(group_id)::text || ' from ' || start_ms || ' ms: total ' || trim_scale(total) ||
    ', but events ' || trim_scale(events) || ', and reported ' || trim_scale(reported) || ' + pending ' || trim_scale(pending) as text
  from (
    select user_key, group_id, start_ms, sum(total) as total, sum(pending) as pending, sum(reported) as reported, sum(events) as events
    from (
      select user_key, group_id, window_start_ms as start_ms, total, pending, 0::numeric as reported, 0::numeric as events
      from ${owned("overage_windows", "t.group_id, t.window_start_ms, t.total, t.pending")}
      union all
      select user_key, group_id, window_start_ms, 0, 0, amount, 0
      from ${owned("overage_hours", "t.group_id, t.window_start_ms, t.amount")}
      union all
      select user_key, group_id, start_ms, 0, 0, 0, events from (
        ${linesOf("events", 0)} union all ${OF_LEVELS}
      ) lines
    ) part group by user_key, group_id, start_ms
  ) sums
  where total <> events or total <> reported + pending
  order by user_key, group_id, start_ms`;
