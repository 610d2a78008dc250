-- Shares: how much a member used of a limit group of a user above it, in one window. A row of the member: it is loaded,
-- written and removed with the member. Its account lists the members by use, most first, so the id is stored here too.

create table shares (
  user_key bigint not null,
  account_key bigint not null,
  group_id text collate "C" not null,
  unit text not null,
  window_start_ms bigint not null,
  window_end_ms bigint check (window_end_ms > window_start_ms),
  since_ms bigint not null,
  count numeric not null check (count >= 0),
  cost_cents numeric not null,
  user_id text collate "C" not null,
  primary key (user_key, account_key, group_id, unit, window_start_ms)
) with (fillfactor = 70);
comment on table shares is 'What a member used of a limit group of an account in a window: open holds + counted events.';
comment on column shares.since_ms is 'The reset of the account from which on it counts; 0 for none.';
create index shares_most on shares (account_key, group_id, unit, window_start_ms, since_ms, count desc, user_id)
  where count > 0 or cost_cents > 0;

alter table reservations add column shares text;
comment on column reservations.shares is
  'What it took of shares (JSON): [[accountKey, groupId, unit, windowStart, windowEnd, since, "taken"], ...]; null for nothing.';
alter table events add column shares text;
comment on column events.shares is 'What it took of shares, as in reservations; null for nothing.';

alter table users add column share_resets text;
comment on column users.share_resets is
  'When plan changes reset the shares of members (JSON): [[accountKey, groupId, windowStart, windowEnd, at], ...].';
