-- Credits as a unit with a rate card. A hold keeps the rate of its reserve, as it keeps its price row, and an event keeps
-- what it cost in credits beside what it cost in cents.

alter table credit_balances drop constraint credit_balances_unit_check;
alter table credit_balances add constraint credit_balances_unit_check
  check (unit in ('count', 'tokens', 'seconds', 'cents', 'credits'));

alter table catalogs add column rate_rows text;
comment on column catalogs.rate_rows is
  'Every rate that the app''s catalogs ever had (JSON list), each at its number; null for none.';

alter table reservations add column rate text;
comment on column reservations.rate is
  'The rate of the reserve: number, or number,cost of the held tokens (a whole number of 1e-18 credits); null for none.';

alter table events add column cost_credits numeric;
comment on column events.cost_credits is 'What it cost in credits; null where no rate and no caller said it.';
comment on column events.run_amounts is
  'What it counts in its run (JSON): [count,tokens,seconds,cents], and credits unless they are 0; null for nothing.';

alter table daily_use add column cost_credits numeric not null default 0;
alter table daily_use_of_users add column cost_credits numeric not null default 0;
comment on column daily_use.cost_credits is 'What the events cost in credits.';
