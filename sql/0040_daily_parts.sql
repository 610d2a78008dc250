-- Usage by day by model, plan and hour. A new event keeps both, so that the sweep that adds events up can tell them apart. What
-- an older process adds up is in the sums of daily_use alone: reads show the rest of a day as unknown.

alter table events add column plan_id text;
comment on column events.plan_id is
  'The primary plan of the user, or of the nearest account above with one, at the event; no characters for none, null for not known.';
alter table events add column model text;
comment on column events.model is
  'The id of the price row, or the model that the call names; no characters for none, null for not known.';
alter table events add column is_unpriced boolean;
comment on column events.is_unpriced is 'Whether the call names a model, and neither a row nor the caller a price.';
create index events_status on events (realm, match_status, created_at_ms desc, id desc) where match_status <> 'matched';

create table daily_use_parts (
  realm integer not null,
  day integer not null,
  kind text collate "C" not null check (kind in ('known', 'users', 'plan', 'model', 'hour')),
  part text collate "C" not null,
  events bigint not null check (events >= 0),
  blocked bigint not null check (blocked >= 0),
  unpriced bigint not null check (unpriced >= 0),
  quantity numeric not null,
  cost_cents numeric not null,
  cost_credits numeric not null,
  primary key (realm, day, kind, part)
) with (fillfactor = 70);
create index daily_use_parts_leaders on daily_use_parts (realm, day, kind, events desc);
create index daily_use_parts_cost on daily_use_parts (realm, day, kind, cost_cents desc) where cost_cents > 0;
create index daily_use_parts_blocked on daily_use_parts (realm, day, kind, blocked desc) where blocked > 0;
comment on table daily_use_parts is
  'Sums of a day''s events by plan, model and hour in UTC, no characters for none; of kind known all that have them; of kind users the events are the users with calls.';
comment on column daily_use_parts.unpriced is 'Events of models without a price, which are in events too.';

create table daily_use_parts_of_users (
  user_key bigint not null,
  day integer not null,
  plan_id text collate "C" not null,
  model text collate "C" not null,
  hour smallint not null check (hour between 0 and 23),
  realm integer not null,
  events bigint not null check (events >= 0),
  blocked bigint not null check (blocked >= 0),
  unpriced bigint not null check (unpriced >= 0),
  quantity numeric not null,
  cost_cents numeric not null,
  cost_credits numeric not null,
  primary key (user_key, day, plan_id, model, hour)
) with (fillfactor = 70);
comment on table daily_use_parts_of_users is 'The same sums by user, which an erasure takes off those of all users.';

create index daily_use_cost on daily_use (realm, day, cost_cents desc) where cost_cents > 0;
create index daily_use_blocked on daily_use (realm, day, blocked desc) where blocked > 0;
create index daily_use_of_users_blocked on daily_use_of_users (realm, day, blocked desc) where blocked > 0;
