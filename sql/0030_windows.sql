-- Windows that are no calendar windows: sessions, and the slots of rates.

alter table counters add column kind text check (kind in ('session', 'rate'));
comment on column counters.kind is
  'session: a window that began with the first call; rate: a slot of a rate. Null for calendar windows and closed sessions.';

-- Slots of rates are removed once they no longer count.
create index counters_rates on counters (window_end_ms) where kind = 'rate';
