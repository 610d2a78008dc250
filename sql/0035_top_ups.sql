-- Top-ups: packs that users buy by themselves. The setting is a part of the user's row; each purchase has a row of its own.

alter table users add column top_up text;
comment on column users.top_up is
  'What the user buys by itself, with its waits and what was spent this month (JSON); null for none.';

create table top_ups (
  id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  status text not null,
  pack_id text not null,
  quantity bigint not null,
  amount bigint not null,
  currency text not null,
  terms text not null,
  customer_id text not null,
  payment_method_id text not null,
  payment_intent_id text,
  attempt integer not null,
  attempted_at_ms bigint,
  confirmed boolean not null,
  called_off boolean not null,
  reason text,
  month text not null,
  created_at_ms bigint not null,
  settled_at_ms bigint
);
create index top_ups_owner on top_ups (user_key, id);
create index top_ups_under_way on top_ups (realm, id) where status in ('open', 'processing');
comment on table top_ups is 'Packs that users bought by themselves, or could not.';
comment on column top_ups.status is 'open, processing, paid, failed or canceled.';
comment on column top_ups.amount is 'In the smallest unit of the currency.';
comment on column top_ups.terms is 'What it grants once it is paid (JSON).';
comment on column top_ups.attempt is 'The number of keys under which a PaymentIntent may have been created.';
comment on column top_ups.attempted_at_ms is 'Real time of the first use of the present key.';
comment on column top_ups.month is 'The real UTC month in which it counts, such as 2026-11.';
