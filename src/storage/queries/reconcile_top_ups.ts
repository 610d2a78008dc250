// The proof of top-ups: each paid one has its payment and exactly one grant of its units, each grant of a top-up has a paid
// one, no payment pays two, those under way belong to a canonical user, and what a user has spent in a month is the sum of
// the top-ups that count in it.

import { inRange, owned } from "./reconcile_faults.ts";

const ROWS = owned(
  "top_ups",
  "t.id, t.status, t.amount, t.currency, t.month, t.terms, t.payment_intent_id, t.user_key as stored_key",
);

/** Wrong top-ups of a range of users: user_key, user_id, kind and text. */
export const TOP_UP_FAULTS = `
  select user_key, (select id from users where key = part.user_key) as user_id, 'top_up' as kind, text from (
    select user_key, 'top-up ' || to_json(of_top_ups.id)::text || ': it is ' || status || ', but ' || fault.what as text
    from ${ROWS} cross join lateral (
      select case
        when status in ('open', 'processing') and stored_key <> user_key then 'its user is an alias'
        when status <> 'paid' then case when grants.count > 0 then 'it has a grant' end
        when payment_intent_id is null then 'it has no payment'
        when grants.count <> 1 then grants.count || ' balances are its grant'
        when grants.units <> (terms::jsonb ->> 'units')::numeric
          then 'its grant is of ' || trim_scale(grants.units)
        when exists (
          select from top_ups o where o.user_key = stored_key and o.id <> of_top_ups.id and o.status = 'paid'
            and o.payment_intent_id = of_top_ups.payment_intent_id
        ) then 'its payment pays another one too'
      end as what
      from (
        select count(*) as count, sum(b.initial) as units from credit_balances b
        where b.user_key = of_top_ups.user_key and b.own_ref = of_top_ups.id
      ) grants
    ) fault where fault.what is not null
    union all
    select b.user_key, 'credit balance ' || to_json(b.id)::text || ': no paid top-up is ' || to_json(b.own_ref)::text
    from credit_balances b
    where b.origin = 'topup' and ${inRange("b.user_key")} and not exists (
      select from top_ups t where t.id = split_part(b.own_ref, ':', 1) and t.status = 'paid'
    )
    union all
    select u.key, 'spent in ' || (u.top_up::jsonb ->> 'month') || ': ' || spent.known || ' ' || spent.currency ||
      ', but its top-ups cost ' || spent.summed
    from users u cross join lateral (
      select currency, sum(known) as known, sum(summed) as summed from (
        select key as currency, value::numeric as known, 0 as summed
        from jsonb_each_text(u.top_up::jsonb -> 'spent')
        union all
        select t.currency, 0, t.amount from top_ups t
        where t.user_key in (select u.key union all select a.key from users a where a.merged_into = u.key)
          and t.month = u.top_up::jsonb ->> 'month' and t.status in ('open', 'processing', 'paid')
      ) each group by currency
    ) spent
    where u.top_up is not null and ${inRange("u.key")} and spent.known <> spent.summed
  ) part
  order by user_key, text`;
