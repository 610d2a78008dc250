// The proof of summaries: each is of a canonical user of its realm, its group is one of a plan in force, and a percent is of
// a counter that began before its window ends. The counter's own end may be earlier: a catalog that makes a period longer
// changes no counter. Quotas are in the catalog, so the percent itself is not proved here. A quota of 0 is at 100 without a
// counter.

import { inRange } from "./reconcile_faults.ts";

/** Wrong summaries of a range of users: user_key, user_id, kind and text. */
export const SUMMARIES = `
  select user_key, user_id, 'summary' as kind, 'summary: ' || fault as text from (
    select s.user_key, u.id as user_id, case
      when u.key is null then 'there is no such user'
      when s.realm <> u.realm then 'realm ' || s.realm || ', but its user is of realm ' || u.realm
      when u.merged_into is not null then case
        when s.group_id is not null or s.seen_at_ms is not null then 'its user is an alias' end
      when s.group_id is null and s.percent > 0 then s.percent || ' % of no group'
      when s.group_id is not null and (u.held_plan_id is null or u.held_until_ms is not null)
        then 'group ' || to_json(s.group_id)::text || ', but its user has no plan'
      when s.percent not in (0, 100) and not exists (
        select from counters c where c.user_key = s.user_key and c.plan_id = u.held_plan_id and c.group_id = s.group_id
          and (s.until_ms is null or c.window_start_ms < s.until_ms)
      ) then s.percent || ' % of ' || to_json(s.group_id)::text || ' until ' || s.until_ms || ' ms, but there is no counter'
    end as fault
    from user_summaries s left join users u on u.key = s.user_key
    where ${inRange("s.user_key")}
  ) part
  where fault is not null
  order by user_key`;
