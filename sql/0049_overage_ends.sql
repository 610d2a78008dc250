-- Windows of overage that begin together and end at different times are windows of their own.

alter table overage_windows drop constraint overage_windows_pkey;
create unique index overage_windows_key
  on overage_windows (user_key, group_id, unit, window_start_ms, window_end_ms) nulls not distinct;

alter table overage_hours add column window_end_ms bigint;
comment on column overage_hours.window_end_ms is
  'The end of the window; 0 for a lifetime, null for rows of before, which are of the latest end of their start.';
alter table overage_hours drop constraint overage_hours_pkey;
create unique index overage_hours_key
  on overage_hours (user_key, group_id, unit, window_start_ms, hour_ms, at_ms, window_end_ms) nulls not distinct;
