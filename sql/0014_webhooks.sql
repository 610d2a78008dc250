-- Webhooks: a customer's addresses, and what each is told. A message is a row that the decision writes which it tells of;
-- its attempts and their outcome are columns that only the sender writes. Counters and balances remember what was told
-- already, whether or not anybody listened.

alter table counters add column alerted text;
comment on column counters.alerted is
  'Percents of the quota that fired as alerts in this window, comma-separated; null for none.';

alter table credit_balances add column told int not null default 0;
comment on column credit_balances.told is
  'What webhooks were told of the balance: 1 that little is left, 2 that nothing is, 4 that it expired.';
-- Credits that expired before this version are old news. The others fall due when they expire.
update credit_balances b set told = 4 from realms r
  where r.realm = b.realm
    and b.expires_at_ms <= (extract(epoch from clock_timestamp()) * 1000)::bigint + r.clock_offset_ms;
update users u set due_at_ms = least(u.due_at_ms, b.expires_at_ms)
  from (select user_key, min(expires_at_ms) as expires_at_ms from credit_balances
        where told = 0 and revoked_at_ms is null and expires_at_ms is not null and (remaining > 0 or held > 0)
        group by user_key) b
  where b.user_key = u.key;

create table webhooks (
  id text collate "C" primary key,
  app_id text collate "C" not null references apps,
  mode text collate "C" not null check (mode in ('live', 'test')),
  url text not null,
  events text not null,
  description text,
  disabled boolean not null,
  secrets text not null,
  created_at_ms bigint not null,
  removed boolean not null default false,
  changed_in bigint not null,
  last_success_at_ms bigint,
  failing_since_ms bigint
);
create index webhooks_changed on webhooks (changed_in);
comment on table webhooks is
  'Addresses that are told what happens. A removed one keeps its row without url and secrets, so that every member reads that it is gone.';
comment on column webhooks.events is 'Types that it wants (JSON list): whole types, prefixes that end in .*, or *.';
comment on column webhooks.secrets is
  'JSON list of {"secret", "validUntil"}, the newest first: validUntil is real time in milliseconds, null for the secret in force.';
comment on column webhooks.last_success_at_ms is 'Real time of the last delivery; only the sender writes it.';
comment on column webhooks.failing_since_ms is
  'Real time of the first failure since the last delivery, or since it was enabled; null while there is none.';

create table webhook_messages (
  id text collate "C" primary key,
  webhook_id text collate "C" not null,
  user_key bigint,
  realm int not null,
  type text collate "C" not null,
  body text not null,
  created_at_ms bigint not null,
  status text collate "C" not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts int not null default 0,
  failures int not null default 0,
  next_attempt_at_ms bigint not null default 0,
  last_status int,
  last_error text,
  ended_at_ms bigint,
  check ((status = 'pending') = (ended_at_ms is null))
);
comment on table webhook_messages is
  'The outbox: a message for one webhook. Ids grow in the order of the turns; a user''s messages go out in that order.';
comment on column webhook_messages.user_key is 'Whose order it is delivered in; null for messages outside every order.';
comment on column webhook_messages.body is 'The body as it is sent, the same bytes at each attempt.';
comment on column webhook_messages.created_at_ms is 'On the realm''s clock.';
comment on column webhook_messages.failures is
  'Attempts of the schedule that failed; one that somebody asked for counts as an attempt alone.';
comment on column webhook_messages.next_attempt_at_ms is 'Real time; 0 for at once.';
comment on column webhook_messages.ended_at_ms is
  'On the realm''s clock: when it was delivered or given up; null while it is pending.';
create index webhook_messages_of_webhook on webhook_messages (webhook_id, id desc);
create index webhook_messages_by_status on webhook_messages (webhook_id, status, id desc);
create index webhook_messages_pending on webhook_messages (webhook_id, user_key, id) where status = 'pending';
create index webhook_messages_of_user on webhook_messages (user_key) where user_key is not null;
create index webhook_messages_retried on webhook_messages (webhook_id, next_attempt_at_ms)
  where status = 'pending' and failures > 0;
create index webhook_messages_ended on webhook_messages (realm, status, ended_at_ms) where status <> 'pending';
