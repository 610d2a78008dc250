-- Credit packs: balances that users hold beside their plan, and the ledger of every movement. A balance keeps the
-- terms of its grant; whether it is active, depleted, expired or revoked follows from its amounts and times, so no
-- row has to change when a moment passes.

create table credit_balances (
  id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  pack_id text collate "C" not null,
  pack_name text not null,
  pack_item_id text collate "C",
  kind text not null check (kind in ('per_type', 'generic')),
  unit text not null check (unit in ('count', 'tokens', 'seconds', 'cents')),
  matches text not null,
  priority double precision not null,
  initial numeric not null check (initial > 0),
  granted_at_ms bigint not null,
  expires_at_ms bigint,
  external_ref text collate "C",
  source text not null check (source in ('purchase', 'grant', 'refund', 'manual')),
  notes text,
  remaining numeric not null check (remaining >= 0),
  held numeric not null check (held >= 0),
  revoked_amount numeric not null check (revoked_amount >= 0),
  revoked_at_ms bigint,
  check (revoked_at_ms is null or remaining = 0)
) with (fillfactor = 70);
comment on table credit_balances is 'Credits of a user by grant and pack item, with the terms of the grant.';
comment on column credit_balances.remaining is 'Always the sum of the balance''s deltas in credit_ledger.';
comment on column credit_balances.held is 'What open holds have taken; not part of remaining.';
comment on column credit_balances.revoked_amount is 'What revoking took, refunds after it included.';
create index credit_balances_user on credit_balances (user_key);
create index credit_balances_ref on credit_balances (user_key, external_ref) where external_ref is not null;
create index credit_balances_pack on credit_balances (realm, pack_id) where revoked_at_ms is null;

create table credit_ledger (
  id text collate "C" primary key,
  user_key bigint not null,
  balance_id text collate "C" not null,
  pack_id text collate "C" not null,
  delta numeric not null,
  reason text not null check (reason in ('event_committed', 'reservation_held', 'reservation_released',
    'reservation_expired', 'grant', 'admin_adjust', 'merged_from_alias', 'merge_dedupe')),
  event_id text collate "C",
  reservation_id text collate "C",
  notes text,
  at_ms bigint not null
);
comment on table credit_ledger is 'Every movement of every balance; append-only.';
create index credit_ledger_user on credit_ledger (user_key, at_ms desc, id desc);
create index credit_ledger_balance on credit_ledger (balance_id, at_ms desc, id desc);

create table credit_issues (
  realm integer primary key,
  issued bigint not null check (issued >= 0)
);
comment on table credit_issues is 'Balances ever issued in a realm; the sandbox cap counts them.';

alter table reservations add column credits text not null default '[]';
comment on column reservations.credits is 'What was taken from which balance (JSON).';
