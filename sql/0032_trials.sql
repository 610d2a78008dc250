-- Seats, trials and a change that is scheduled, each on the row of its subscription. A row also keeps which plans it had
-- on trial and since when it had each plan: rows of two merged users then say both of the one user, without a table more.

alter table subscriptions
  add column quantity integer not null default 1,
  add column trial_ends_at_ms bigint,
  add column then_plan_id text,
  add column trials text,
  add column scheduled_at_ms bigint,
  add column scheduled_plan_id text,
  add column first_held text;
comment on column subscriptions.quantity is 'Seats: the quotas of the plan are multiplied by it.';
comment on column subscriptions.trial_ends_at_ms is 'When the running trial ends; null for none.';
comment on column subscriptions.then_plan_id is 'The plan after the running trial; null: the subscription ends with it.';
comment on column subscriptions.trials is 'All plans that it had on trial (JSON list of ids); null for none.';
comment on column subscriptions.scheduled_at_ms is 'When it changes to scheduled_plan_id; null for no such change.';
comment on column subscriptions.first_held is
  'When it first had each of its plans (JSON): [[planId, ms], ...]; a plan that is missing began at started_at_ms.';
create index subscriptions_scheduled on subscriptions (scheduled_plan_id)
  where not ended and scheduled_plan_id is not null;
create index subscriptions_then on subscriptions (then_plan_id) where not ended and then_plan_id is not null;

alter table stripe_subscriptions add column item_ids text;
comment on column stripe_subscriptions.item_ids is
  'Its items that are add-ons, those that are gone included (JSON list of ids); null for none.';
