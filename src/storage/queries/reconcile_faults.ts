// What the proof of the books finds beside wrong sums, as queries for a range of users: holds that exist twice, open things
// that are due too late, invalid marks, messages without a webhook. Each returns user_key, user_id, kind and text.

import { NOTIFIED } from "../../domain/state/credit.ts";

export type FaultKind =
  | "hold"
  | "due"
  | "alerted"
  | "entered"
  | "notified"
  | "message"
  | "included"
  | "refunded"
  | "share"
  | "overage"
  | "run"
  | "daily_use"
  | "summary"
  | "top_up";

/** SQL of the condition that a column is above the first parameter and up to the second. */
export function inRange(column: string): string {
  return `${column} > $1::bigint and ${column} <= $2::bigint`;
}

/**
 * SQL of the rows of canonical users in a range: their own, and those still stored under the number of an alias.
 *
 * @param columns without user_key, which comes first
 */
export function owned(table: string, columns: string, where = "true"): string {
  return `(
    select t.user_key, ${columns} from ${table} t
    where ${where} and ${inRange("t.user_key")}
      and not exists (select from users a where a.key = t.user_key and a.merged_into is not null)
    union all
    select a.merged_into, ${columns} from users a join ${table} t on t.user_key = a.key
    where ${where} and a.merged_into is not null and ${inRange("a.merged_into")}
  ) of_${table}`;
}

/**
 * SQL of a table with `owner` and `line`: the lines of events of other users that name a user of the range among their levels,
 * as JSON: [[userKey, lines, credits, uncovered], ...].
 */
export const LINES_OF_LEVELS = `(
    select coalesce(u.merged_into, u.key) as owner, level -> 1 as lines
    from events e cross join lateral jsonb_array_elements(e.levels::jsonb) level
    join users u on u.key = (level ->> 0)::bigint
    where e.level_keys is not null and e.level_keys && array(
      select key from users where ${inRange("key")}
      union all select key from users where ${inRange("merged_into")}
    )
  ) part cross join lateral jsonb_array_elements(part.lines) line`;

// Open holds: no index makes their ids unique, and a drain finds them by their user. So this proves that each is stored
// once, and under a canonical user. The `offset 0` makes the planner look up settled ones by id, one after another.

const HOLDS = `
  select user_key, (select id from users where key = part.user_key) as user_id, 'hold' as kind,
    'open hold ' || to_json(id)::text || ': ' || fault as text
  from (
    select user_key, id, 'it is in the tables twice' as fault from reservations h
    where status = 'held' and ${inRange("user_key")}
      and exists (select from reservations s where s.id = h.id and s.status <> 'held' offset 0)
    union
    select min(user_key), id, 'it is in the tables twice' from reservations
    where status = 'held' and ${inRange("user_key")} group by id having count(*) > 1
    union
    select user_key, h.id, 'its user is an alias' from reservations h join users u on u.key = user_key
    where status = 'held' and ${inRange("user_key")} and u.merged_into is not null
  ) part
  order by user_key, id, fault`;

// What is open falls due: sweeps would not settle a user that is due later or never. One line per user is enough.

const DUE = `
  select distinct on (user_key) user_key, id as user_id, 'due' as kind,
    coalesce('due at ' || due_at_ms || ' ms', 'never due') || ', but ' || what || ' ' || to_json(part.of_id)::text ||
    ' at ' || at_ms || ' ms' as text
  from (
    select user_key, 'a hold lapses:' as what, id as of_id, expires_at_ms as at_ms from reservations
      where status = 'held' and ${inRange("user_key")}
    union all
    select user_key, 'a subscription ends:', id, ends_at_ms from subscriptions
      where not ended and ends_at_ms is not null and ${inRange("user_key")}
    union all
    select user_key, 'a trial ends:', id, trial_ends_at_ms from subscriptions
      where not ended and trial_ends_at_ms is not null and ${inRange("user_key")}
    union all
    select user_key, 'a trial at its provider ends:', id, provider_trial_ends_at_ms from subscriptions
      where not ended and provider_trial_ends_at_ms is not null and ${inRange("user_key")}
    union all
    select user_key, 'a subscription changes its plan:', id, scheduled_at_ms from subscriptions
      where not ended and scheduled_at_ms is not null and ${inRange("user_key")}
    union all
    select user_key, 'credits expire:', id, expires_at_ms from credit_balances
      where expires_at_ms is not null and revoked_at_ms is null and (told & ${NOTIFIED.expired}) = 0 and (remaining > 0 or held > 0)
        and included is null
        and ${inRange("user_key")}
    union all
    select user_key, 'overage is reported:', group_id, due_at_ms from overage_windows
      where due_at_ms is not null and ${inRange("user_key")}
  ) part
  join users on key = user_key
  where due_at_ms is null or due_at_ms > at_ms
  order by user_key, at_ms, of_id`;

// Marks of alerts that were sent: percents on counters, and a sum of three bits on balances. Beside them what a plan change
// left on a counter: a block fills at most up to its quota, and a reset is within the window.

const PERCENTS = "[0-9]+(\\.[0-9]+)?(e-[0-9]+)?";

const MARKS = `
  select user_key, (select id from users where key = part.user_key) as user_id, kind, text from (
    select user_key, 'alerted' as kind, 'counter ' || to_json(group_id)::text || ' of plan ' ||
      to_json(plan_id)::text || ' from ' || window_start_ms || ' ms: alerted ' || to_json(alerted)::text ||
      ', but these are percents up to 100, or 0 for the pace, none twice' as text
    from counters
    where alerted is not null and ${inRange("user_key")} and not case
      when alerted ~ '^${PERCENTS}(,${PERCENTS})*$' then (
        select bool_and(percent::numeric <= 100)
          and count(*) = count(distinct percent::numeric)
        from unnest(string_to_array(alerted, ',')) percent)
      else false
    end
    union all
    select user_key, 'entered', 'counter ' || to_json(group_id)::text || ' of plan ' || to_json(plan_id)::text ||
      ' from ' || window_start_ms || ' ms: ' || fault
    from counters cross join lateral (values
      (alerted_quota < 0 or (alerted_quota is not null and alerted is null),
        'alerted_quota ' || alerted_quota || ', but that is at least 0 and beside alerted'),
      ((block_filler is null) <> (block_up_to is null) or block_filler < 0 or block_up_to <= 0,
        'block_filler ' || coalesce(block_filler::text, 'null') || ', block_up_to ' ||
        coalesce(block_up_to::text, 'null') || ', but these are both null, or at least 0 and above 0'),
      (reset_at_ms < window_start_ms or reset_at_ms >= window_end_ms,
        'reset at ' || reset_at_ms || ' ms, which is outside its window')
    ) as looked(is_fault, fault)
    where is_fault and ${inRange("user_key")}
    union all
    select user_key, 'notified', 'credit balance ' || to_json(id)::text || ': notified ' || told || case
        when told between 0 and 7 then ', which says that it expired, but it never does'
        else ', but that is a sum of 1, 2 and 4'
      end
    from credit_balances
    where (told not between 0 and 7 or ((told & ${NOTIFIED.expired}) <> 0 and expires_at_ms is null)) and ${
  inRange("user_key")
}
  ) part
  order by user_key, kind, text`;

// What plans include: each window and each rollover is given once, so no reference of our own stands twice. A balance has a
// window of a plan exactly where its origin is a plan or a rollover.

const INCLUDED = `
  select user_key, (select id from users where key = part.user_key) as user_id, 'included' as kind, text from (
    select user_key, count(*) || ' credit balances have the reference of our own ' || to_json(own_ref)::text as text
    from credit_balances where own_ref is not null and ${inRange("user_key")}
    group by user_key, own_ref having count(*) > 1
    union all
    select user_key, 'credit balance ' || to_json(id)::text || ': origin ' || coalesce(origin, 'null') || ', but it has ' ||
      case when included is null then 'no window of a plan' else 'a window of a plan' end
    from credit_balances
    where (coalesce(origin, '') in ('plan', 'rollover')) <> (included is not null) and ${inRange("user_key")}
  ) part
  order by user_key, text`;

// Messages: each is for a webhook of its user's app and mode, and its content matches its type. A removed webhook keeps its
// row.

const MESSAGES = `
  select user_key, user_id, 'message' as kind, 'message ' || to_json(id)::text || ': ' || fault as text from (
    select m.id, m.user_key, u.id as user_id, case
      when m.realm <> u.realm then 'realm ' || m.realm || ', but its user is of realm ' || u.realm
      when not exists (
        select from webhooks w join realms r on r.app_id = w.app_id and r.mode = w.mode
        where w.id = m.webhook_id and r.realm = m.realm
      ) then 'its app and mode have no webhook ' || to_json(m.webhook_id)::text
      when not starts_with(m.body, '{"type":"' || m.type || '",')
        then 'type ' || to_json(m.type)::text || ', but its body begins ' || to_json(left(m.body, 50))::text
      when m.status = 'delivered' and m.attempts = 0 then 'delivered without an attempt'
    end as fault
    from webhook_messages m join users u on u.key = m.user_key
    where ${inRange("m.user_key")}
  ) part
  where fault is not null
  order by user_key, id`;

// Refunds of all payments of a purchase, and a dispute over all of it, revoke its credits. If a message was interrupted, this
// happens when Stripe sends it again, within three days: younger facts, by the clock of the store, are not faults yet. The
// user of a purchase may have become an alias; an erased user has no purchase.

const STRIPE_SENDS_MS = 4 * 24 * 3_600_000;
const OLD_ENOUGH = `<= extract(epoch from now()) * 1000 - ${STRIPE_SENDS_MS}`;

const REFUNDED = `
  select b.user_key, c.id as user_id, 'refunded' as kind, 'credit balance ' || to_json(b.id)::text ||
    ': its purchase ' || to_json(p.external_ref)::text || ' was ' || fault.what as text
  from users u join stripe_purchases p on p.realm = u.realm and p.user_id = u.id
  join users c on c.key = coalesce(u.merged_into, u.key)
  join credit_balances b on b.user_key = c.key and p.external_ref in (b.external_ref, b.own_ref) and b.pack_id = p.pack_id
  cross join lateral (
    select case
      when exists (
        select from stripe_refunds r where r.realm = p.realm and r.payment = p.source and r.at_ms ${OLD_ENOUGH}
      ) then 'refunded'
      when (
        select bool_and(r.at_ms is not null and greatest(r.at_ms, s.at_ms) ${OLD_ENOUGH})
        from stripe_payments s left join stripe_refunds r on r.realm = s.realm and r.payment = s.payment
        where s.realm = p.realm and s.source = p.source and not s.is_invoice
      ) and (
        select p.paid_amount is null or bool_or(one.currency is distinct from p.paid_currency)
          or sum(one.amount) >= p.paid_amount
        from (
          select distinct on (coalesce(r.charge, r.payment)) r.amount, r.currency
          from stripe_payments s join stripe_refunds r on r.realm = s.realm and r.payment = s.payment
          where s.realm = p.realm and s.source = p.source
        ) one
      ) then 'refunded'
      when exists (
        select from stripe_payments s join stripe_disputes d on d.realm = s.realm and d.payment = s.payment
        where s.realm = p.realm and s.source = p.source and greatest(d.at_ms, s.at_ms) ${OLD_ENOUGH}
          and d.is_withdrawn and not d.is_reinstated
          and d.currency = p.paid_currency and d.amount >= p.paid_amount
      ) then 'disputed'
    end as what
  ) fault
  where b.revoked_at_ms is null and ${inRange("u.key")} and fault.what is not null
    and b.granted_at_ms ${OLD_ENOUGH}
  order by b.user_key, b.id`;

/** The queries for faults, in the order in which they are reported. */
export const FAULTS: readonly string[] = [HOLDS, DUE, MARKS, INCLUDED, MESSAGES, REFUNDED];
