-- Lists of users: one summary row a user, and indexes for each order and filter of the list.

create table user_summaries (
  user_key bigint primary key,
  realm integer not null,
  group_id text collate "C",
  percent integer not null check (percent >= 0),
  until_ms bigint not null,
  seen_at_ms bigint
) with (fillfactor = 70);
comment on table user_summaries is 'What lists show of a user, as of its last turn. Its plan is in users.';
comment on column user_summaries.group_id is 'The fullest quota group of the primary plan; null for none.';
comment on column user_summaries.percent is '100 * count / quota of this group, rounded down. It reads 0 from until_ms on.';
comment on column user_summaries.until_ms is 'The end of the window; 8640000000000000 for no end, and where percent is 0.';
comment on column user_summaries.seen_at_ms is 'Start of the minute of the last metering call; null for none.';
create index user_summaries_fullest on user_summaries (realm, percent, until_ms, user_key) where percent > 0;
create index user_summaries_seen on user_summaries (realm, seen_at_ms, user_key) where seen_at_ms is not null;

create index users_plan on users (realm, held_plan_id, id)
  where held_plan_id is not null and held_until_ms is null and merged_into is null;

create index daily_use_of_users_cost on daily_use_of_users (realm, day, cost_cents desc) where cost_cents > 0;
create index refusals_most on refusals (realm, hour_ms, count desc);

create index people_identified on people (realm, id) where merged_into is null and properties <> '{}';

create index top_ups_customer on top_ups (realm, customer_id);
create index users_customer on users (realm, substring(top_up from '"customerId":"([^"]*)"')) where top_up is not null;

create table stripe_customers (
  realm integer not null,
  customer_id text collate "C" not null,
  user_id text collate "C" not null,
  primary key (realm, customer_id, user_id)
);
create index stripe_customers_user on stripe_customers (user_id, realm);
comment on table stripe_customers is 'Customers of Stripe and the users that their messages were about, who may be aliases by now.';
