// Sums by day: those of events up to the realm's mark. Those by plan and model have at most the events that name both: what
// an older process added up is not in them. An erasure under way has removed events, but not yet the sums.

import { owned } from "./reconcile_faults.ts";

/** SQL of an amount that blocked calls have none of. */
const used = (column: string) => `case when match_status = 'blocked' then 0 else coalesce(${column}, 0) end`;

/** SQL of cents, and credits if there are any, as text. */
const costText = (cents: string, credits: string) =>
  `trim_scale(${cents}) || ' cents' || coalesce(' and ' || trim_scale(nullif(${credits}, 0)) || ' credits', '')`;

/**
 * SQL of the users with wrong sums.
 *
 * @param events SQL of the events that are in the sums
 * @param isWrong SQL of when they are wrong
 */
function dailySums(
  { table, name, events, isWrong }: {
    readonly table: string;
    readonly name: string;
    readonly events: string;
    readonly isWrong: string;
  },
): string {
  return `
  select user_key, u.id as user_id, 'daily_use' as kind, '${name}: ' || kept || ' events for ' ||
    ${costText("kept_cents", "kept_credits")} || ', but there are ' || events || ' for ' ||
    ${costText("cents", "credits")} as text
  from (
    select user_key, sum(kept)::bigint as kept, sum(events)::bigint as events, sum(kept_cents) as kept_cents,
      sum(cents) as cents, sum(kept_credits) as kept_credits, sum(credits) as credits
    from (
      select user_key, events + blocked as kept, 0 as events, cost_cents as kept_cents, 0::numeric as cents,
        cost_credits as kept_credits, 0::numeric as credits
      from ${owned(table, "t.events, t.blocked, t.cost_cents, t.cost_credits")}
      union all
      select user_key, 0, 1, 0, ${used("cost_cents")}, 0, ${used("cost_credits")}
      from ${
    owned(
      "events",
      "t.realm, t.id, t.created_at_ms, t.match_status, t.cost_cents, t.cost_credits",
      `t.match_status <> 'released'${events}`,
    )
  }
      join daily_use_marks m on m.realm = of_events.realm and (created_at_ms, of_events.id) <= (m.at_ms, m.event_id)
    ) part group by user_key
  ) sums join users u on u.key = sums.user_key
  where ${isWrong}
  order by user_key`;
}

export const DAILY: readonly string[] = [
  dailySums({
    table: "daily_use_of_users",
    name: "sums by day",
    events: "",
    isWrong: "kept <> events or kept_cents <> cents or kept_credits <> credits",
  }),
  dailySums({
    table: "daily_use_parts_of_users",
    name: "sums by day, plan and model",
    events: " and t.plan_id is not null and t.model is not null",
    isWrong: "kept > events or kept_cents > cents or kept_credits > credits",
  }),
];
