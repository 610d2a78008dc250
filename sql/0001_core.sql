-- The metering core: who may call (workspaces, apps, keys, catalogs), whose usage is kept (realms, users and
-- their rows), and the journal through which every change of a user's rows reaches these tables.
--
-- Times of runtime rows are whole milliseconds since 1970-01-01T00:00:00Z in the clock of their realm (columns
-- ending in _ms). Amounts are exact decimals with up to six places. Free text that a caller sent is stored as
-- text, never as jsonb: what a caller may send is wider than what jsonb accepts.

create table workspaces (
  id text collate "C" primary key,
  name text not null,
  operation_cap numeric check (operation_cap >= 0),
  test_operation_cap numeric check (test_operation_cap >= 0),
  ai_budget_cents numeric check (ai_budget_cents >= 0),
  test_credit_balance_cap numeric check (test_credit_balance_cap >= 0),
  created_at_ms bigint not null
);
comment on table workspaces is 'Owners of apps; caps are per UTC month, null = no limit.';

create table apps (
  id text collate "C" primary key,
  workspace_id text collate "C" not null references workspaces,
  name text not null,
  identity_secret text not null,
  created_at_ms bigint not null
);
comment on table apps is 'Customer applications; identity_secret signs end-user tokens.';

create table keys (
  id text collate "C" primary key,
  app_id text collate "C" not null references apps,
  class text not null check (class in ('secret', 'public')),
  mode text not null check (mode in ('live', 'test')),
  hash text collate "C" not null unique,
  prefix text not null,
  created_at_ms bigint not null,
  revoked_at_ms bigint
);
comment on table keys is 'API keys: SHA-256 hashes and display prefixes, never the keys themselves.';
create index keys_app on keys (app_id);

create table catalogs (
  app_id text collate "C" primary key references apps,
  version integer not null check (version > 0),
  document text not null,
  plan_order text not null,
  applied_at_ms bigint not null
);
comment on table catalogs is 'The catalog document in force; plan_order lists every plan id ever added, oldest first.';

create table realms (
  realm integer primary key,
  app_id text collate "C" not null references apps,
  mode text not null check (mode in ('live', 'test')),
  clock_offset_ms bigint not null default 0 check (clock_offset_ms >= 0),
  unique (app_id, mode)
);
comment on table realms is 'One app in one mode: the space in which end-user ids are unique.';

create table users (
  key bigint primary key,
  realm integer not null,
  id text collate "C" not null,
  held_plan_id text collate "C",
  held_subscription_id text collate "C",
  held_anchor_ms bigint,
  held_started_at_ms bigint,
  held_until_ms bigint,
  due_at_ms bigint,
  unique (realm, id)
) with (fillfactor = 80);
comment on table users is 'End users by an internal number; the id a customer chose stands here and nowhere else.';
comment on column users.held_plan_id is 'The plan entered last; with the other held_ columns it says which usage a next plan continues.';
comment on column users.due_at_ms is 'Not later than the first moment at which a hold lapses or a subscription ends.';
create index users_due on users (realm, due_at_ms) where due_at_ms is not null;

create table subscriptions (
  id text collate "C" primary key,
  user_key bigint not null,
  plan_id text collate "C" not null,
  provider text,
  external_id text,
  started_at_ms bigint not null,
  ends_at_ms bigint,
  ended boolean not null,
  cycle_anchor_at_ms bigint,
  custom_limits text not null,
  check ((provider is null) = (external_id is null)),
  check (not ended or ends_at_ms is not null)
);
comment on table subscriptions is 'Subscription rows; a default row has neither provider nor external_id.';
create index subscriptions_user on subscriptions (user_key);
create index subscriptions_plan on subscriptions (plan_id) where not ended;

create table subscription_events (
  id text collate "C" primary key,
  user_key bigint not null,
  type text not null
    check (type in ('created', 'plan_changed', 'canceled', 'reactivated', 'ended', 'merged', 'promoted')),
  subscription_id text collate "C" not null,
  plan_id text collate "C" not null,
  previous_plan_id text collate "C",
  reason text,
  at_ms bigint not null
);
comment on table subscription_events is 'Subscription history; append-only.';
create index subscription_events_user on subscription_events (user_key, at_ms desc, id desc);

create table counters (
  user_key bigint not null,
  plan_id text collate "C" not null,
  group_id text collate "C" not null,
  window_start_ms bigint not null,
  window_end_ms bigint check (window_end_ms > window_start_ms),
  count numeric not null check (count >= 0),
  adjusted numeric not null,
  cost_cents numeric not null,
  primary key (user_key, plan_id, group_id, window_start_ms)
) with (fillfactor = 70);
comment on table counters is 'Usage of a limit group in a window: open holds + recorded events + adjusted.';

create table reservations (
  id text collate "C" primary key,
  user_key bigint not null,
  status text not null check (status in ('held', 'committed', 'released', 'expired')),
  event text not null,
  metadata text,
  quantity numeric,
  count numeric,
  amounts text not null,
  per_unit boolean not null,
  lines text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  settled_at_ms bigint,
  check ((status = 'held') = (settled_at_ms is null))
) with (fillfactor = 85);
comment on table reservations is 'Holds and what became of them; lines (JSON) say what was taken from which counter.';
create index reservations_held on reservations (user_key) where status = 'held';

create table events (
  id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  type text not null,
  quantity numeric not null,
  cost_cents numeric not null,
  match_status text not null
    check (match_status in ('matched', 'matched_credits_only', 'unmatched', 'blocked', 'no_subscription', 'released')),
  created_at_ms bigint not null,
  metadata text,
  reservation_id text collate "C",
  reason text,
  error_code text,
  lines text not null,
  uncovered text not null
);
comment on table events is 'Metering events, newest last; lines (JSON) say what each added to which counter.';
create index events_realm on events (realm, created_at_ms desc, id desc);
create index events_user on events (user_key, created_at_ms desc, id desc);
create index events_type on events (realm, type, created_at_ms desc, id desc);

create table idempotency (
  realm integer not null,
  key text collate "C" not null,
  request_hash text not null,
  status integer not null,
  body text not null,
  user_key bigint,
  at_ms bigint not null,
  primary key (realm, key)
);
comment on table idempotency is 'First answers by Idempotency-Key, kept 24 h of real time.';
create index idempotency_at on idempotency (at_ms);

create table operations (
  workspace_id text collate "C" not null,
  mode text not null check (mode in ('live', 'test')),
  month text not null,
  used bigint not null check (used >= 0),
  primary key (workspace_id, mode, month)
);
comment on table operations is 'Metering operations used, by UTC month (YYYY-MM).';

create table journal (
  seq bigint primary key,
  payload text not null
);
comment on table journal is 'Batches of changes that are durable but not yet in the tables above; drained in order of seq.';
alter table journal alter column payload set storage external;

create table lease (
  one boolean primary key default true check (one),
  term bigint not null
);
comment on table lease is 'Counts the terms of the writer; seq of the journal grows over all terms, so no two terms share one.';
