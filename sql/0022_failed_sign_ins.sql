-- Wrong tokens, added up by address and minute, so that strangers cannot make the audit log grow without end. Rows are
-- removed after 90 days.

create table failed_sign_ins (
  minute_ms bigint not null,
  address text collate "C" not null,
  -- In the order of the audit log's ids: its pages show these rows in between.
  id text collate "C" not null unique,
  via text collate "C" not null check (via in ('console', 'api')),
  count bigint not null check (count > 0),
  primary key (minute_ms, address)
);
comment on table failed_sign_ins is
  'Wrong tokens of console and admin API: a row for each address and minute, with their number.';
