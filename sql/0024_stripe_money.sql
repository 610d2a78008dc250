-- Stripe: what was paid for, so that refunds and disputes can be held against it, and what was paid and not handled.

alter table stripe_purchases add column paid_amount bigint;
alter table stripe_purchases add column paid_currency text;
comment on column stripe_purchases.paid_amount is
  'What the whole session or invoice cost, in the smallest unit of its currency; null where no message said.';

alter table stripe_payments add column is_invoice boolean not null default false;
comment on column stripe_payments.is_invoice is 'Whether this is the invoice that a session made, and not a payment.';

alter table stripe_refunds add column charge text collate "C";
alter table stripe_refunds add column amount bigint;
alter table stripe_refunds add column currency text;
comment on column stripe_refunds.charge is 'The refunded charge, which may have a row under its own id and that of its payment.';

create table stripe_disputes (
  realm int not null,
  payment text collate "C" not null,
  dispute text collate "C" not null,
  amount bigint,
  currency text,
  is_withdrawn boolean not null,
  is_reinstated boolean not null,
  at_ms bigint not null,
  primary key (realm, payment, dispute)
);
create index stripe_disputes_time on stripe_disputes (realm, at_ms);
comment on table stripe_disputes is 'Disputes of payments and charges: whether their funds were withdrawn, and came back.';

create table stripe_unhandled (
  realm int not null,
  event_id text collate "C" not null,
  type text not null,
  object_id text not null,
  reason text not null,
  amount bigint,
  currency text,
  created_ms bigint not null,
  at_ms bigint not null,
  message text not null,
  links text not null,
  user_ids text not null,
  catalog_version int not null,
  primary key (realm, event_id)
);
create index stripe_unhandled_time on stripe_unhandled (realm, at_ms);
comment on table stripe_unhandled is 'Messages about something that was paid for and is not granted yet.';
comment on column stripe_unhandled.message is 'The message as it was read (JSON), to try it again.';
comment on column stripe_unhandled.links is 'The objects of Stripe that it names (JSON list): a message about one of them tries it again.';
comment on column stripe_unhandled.user_ids is 'The users that it names (JSON list), which may be aliases by now.';
comment on column stripe_unhandled.catalog_version is 'The version of the catalog with which it was tried last.';
