// Runs: the count of a limit is the sum of open holds and counted events of the run's calls and of those of runs within it,
// as far as the limit's pattern covers them; `held` is the part of the holds. A hold and an event say in which run they
// count, and with which amounts. Retention keeps the runs within a run as long as that one, so the sums are complete.

import { inRange, owned } from "./reconcile_faults.ts";

/** SQL of the place of a unit in stored amounts: [count,tokens,seconds,cents], and credits unless they are 0. */
const PLACE = "array_position(array['count', 'tokens', 'seconds', 'cents', 'credits'], l ->> 1) - 1";

/** SQL of the calls of runs, once for each run that they count in. */
const CALLS = `
  select target, event, amounts::jsonb as amounts, is_hold from (
    select t.run_id, t.event, t.amounts, true as is_hold from reservations t
    where t.status = 'held' and t.run_id is not null and ${inRange("t.user_key")}
    union all
    select run_id, type, run_amounts, false
    from ${owned("events", "t.run_id, t.type, t.run_amounts", "t.run_amounts is not null")}
  ) call join runs r on r.id = call.run_id
  cross join lateral unnest(array[r.id] || coalesce(string_to_array(r.around, ','), '{}')) as target`;

/** SQL of whether a limit's pattern covers a call. */
const COVERS =
  `case when right(l ->> 2, 1) = '*' then starts_with(c.event, left(l ->> 2, -1)) else c.event = l ->> 2 end`;

export const RUNS = `
  with calls as materialized (${CALLS}), mine as materialized (
    select * from ${owned("runs", "t.id, t.limits, t.open_holds")}
  )
  select user_key, (select id from users where key = part.user_key) as user_id, 'run' as kind, text from (
    select user_key, id, 'run ' || to_json(id)::text || ': limit ' || to_json(limit_id)::text || ': count ' ||
      trim_scale(count) || ', held ' || trim_scale(held) || ', but open holds ' || trim_scale(holds) || ' + events ' ||
      trim_scale(events) as text
    from (
      select r.user_key, r.id, l ->> 0 as limit_id, (l ->> 4)::numeric as count, (l ->> 5)::numeric as held,
        coalesce(sum((c.amounts ->> (${PLACE}))::numeric) filter (where c.is_hold), 0) as holds,
        coalesce(sum((c.amounts ->> (${PLACE}))::numeric) filter (where not c.is_hold), 0) as events
      from mine r cross join lateral jsonb_array_elements(r.limits::jsonb) l
      left join calls c on c.target = r.id and ${COVERS}
      group by r.user_key, r.id, l
    ) sums
    where count <> holds + events or held <> holds
    union all
    select user_key, id, 'run ' || to_json(id)::text || ': ' || open_holds || ' open holds, but there are ' || there
    from (
      select r.user_key, r.id, r.open_holds,
        (select count(*) from calls c where c.target = r.id and c.is_hold) as there
      from mine r
    ) holds
    where open_holds <> there
  ) part
  order by user_key, id, text`;
