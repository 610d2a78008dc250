-- Where a balance comes from beside a grant: a plan that includes a pack, what rolled over of it, or a top-up. Our own
-- references have a column of their own, so that they never meet those of callers. A balance of a plan keeps the window
-- in which it counts, because its expiry moves when the plan is left and found again.

alter table credit_balances
  add column origin text check (origin in ('plan', 'rollover', 'topup')),
  add column own_ref text collate "C",
  add column included text,
  add column window_end_ms bigint;
comment on column credit_balances.origin is 'Who granted it beside callers and operators; null for these.';
comment on column credit_balances.own_ref is 'The reference of what made it, where that is not a caller.';
comment on column credit_balances.included is
  'Of a plan''s credits and rollovers (JSON): [planId, subscriptionId, isAddOn, windowStartMs, state, rollsUntilMs].';
comment on column credit_balances.window_end_ms is
  'The end of the window that they were included in; null for a lifetime, and where included is null.';
create index credit_balances_own on credit_balances (user_key, own_ref) where own_ref is not null;

alter table subscriptions
  add column trial_credits text,
  add column provider_trial_ends_at_ms bigint;
comment on column subscriptions.trial_credits is
  'In which window a trial of each plan included credits (JSON): [[planId, ms], ...]; null for none.';
comment on column subscriptions.provider_trial_ends_at_ms is
  'When the trial at the payment provider ends; null where none runs.';
