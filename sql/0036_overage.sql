-- Overage: what limit groups sell past their quotas.

alter table counters add column overage numeric check (overage > 0);
comment on column counters.overage is
  'The part of count that open holds and events took as overage, past the quota; null for none.';

alter table erased_charges add column overage numeric not null default 0;
comment on column erased_charges.overage is 'The part of amount that was overage.';

alter table users add column spend_caps text;
comment on column users.spend_caps is
  'The most that the user lets groups sell past their quotas (JSON): {"groupId": "max", ...}; null for no caps.';

create table overage_windows (
  user_key bigint not null,
  group_id text collate "C" not null,
  unit text not null,
  window_start_ms bigint not null,
  window_end_ms bigint check (window_end_ms > window_start_ms),
  total numeric not null check (total >= 0),
  pending numeric not null check (pending >= 0),
  due_at_ms bigint,
  told smallint not null,
  primary key (user_key, group_id, unit, window_start_ms)
) with (fillfactor = 70);
comment on table overage_windows is 'Settled overage of a limit group in a window, whatever plans had the group there.';
comment on column overage_windows.pending is 'The part of total that no message has told yet.';
comment on column overage_windows.due_at_ms is 'When pending is told; null for nothing to tell.';
comment on column overage_windows.told is 'Messages that were sent: 1 usage.overage_started + 2 usage.cap_reached.';

create table overage_hours (
  user_key bigint not null,
  group_id text collate "C" not null,
  unit text not null,
  window_start_ms bigint not null,
  hour_ms bigint not null,
  at_ms bigint not null,
  amount numeric not null check (amount > 0),
  primary key (user_key, group_id, unit, window_start_ms, hour_ms, at_ms)
);
comment on table overage_hours is
  'Settled overage as it was told, by the UTC hour of settling. What is told of an alias stays under its number.';
