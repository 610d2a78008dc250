-- Use by day, for charts. A chart that counted events would read all of them; these sums are as many rows as there are
-- kinds of events, or users, on a day. A sweep adds new events up beside the calls, so no call pays for them.

create table daily_use (
  realm integer not null,
  day integer not null,
  type text collate "C" not null,
  events bigint not null check (events >= 0),
  blocked bigint not null check (blocked >= 0),
  quantity numeric not null,
  cost_cents numeric not null,
  primary key (realm, day, type)
) with (fillfactor = 70);
create index daily_use_leaders on daily_use (realm, day, events desc);
comment on table daily_use is
  'Sums of a day''s events by type; the type of no characters is the sum over all.';
comment on column daily_use.day is 'Days since 1970-01-01 on the realm''s clock, UTC.';
comment on column daily_use.events is 'Without blocked and released ones, as quantity and cost_cents are.';

create table daily_use_of_users (
  user_key bigint not null,
  day integer not null,
  type text collate "C" not null,
  realm integer not null,
  events bigint not null check (events >= 0),
  blocked bigint not null check (blocked >= 0),
  quantity numeric not null,
  cost_cents numeric not null,
  primary key (user_key, day, type)
) with (fillfactor = 70);
create index daily_use_of_users_leaders on daily_use_of_users (realm, day, events desc);
comment on table daily_use_of_users is
  'The same sums by user. A merge leaves them under the number of the alias: reads add up all numbers of a user.';

create table daily_use_marks (
  realm integer primary key,
  at_ms bigint not null,
  event_id text collate "C" not null
);
comment on table daily_use_marks is
  'The last event of each realm that is in the sums by day, in the order of time and id. Whoever changes sums locks its row.';
