-- Stripe: the secret that signs its messages, and what is kept of them so that their order does not matter. Everything but
-- the secret is written under the fence of the cell, before anything is done to a user.

create table stripe_connections (
  app_id text collate "C" not null references apps,
  mode text collate "C" not null check (mode in ('live', 'test')),
  webhook_secret text not null,
  set_at_ms bigint not null,
  removed boolean not null,
  changed_in bigint not null,
  last_event_id text,
  last_type text,
  last_at_ms bigint,
  last_reason text,
  primary key (app_id, mode)
);
create index stripe_connections_changed on stripe_connections (changed_in);
comment on table stripe_connections is
  'Endpoint secrets of Stripe. A removed one keeps its row without the secret, so that every member reads that it is gone.';
comment on column stripe_connections.last_at_ms is
  'Real time at which the last message with a good signature came; only its receiver writes the last_ columns.';
comment on column stripe_connections.last_reason is 'Why that message changed nothing; null where it did something.';

create table stripe_subscriptions (
  realm int not null,
  id text collate "C" not null,
  user_id text collate "C",
  created_ms bigint not null,
  rank smallint not null,
  is_final boolean not null,
  event_ids text not null,
  left_user_ids text not null,
  primary key (realm, id)
);
comment on table stripe_subscriptions is 'The message by which each subscription of Stripe goes.';
comment on column stripe_subscriptions.user_id is 'As the message named it, which may be an alias by now.';
comment on column stripe_subscriptions.created_ms is 'When Stripe made the event.';
comment on column stripe_subscriptions.event_ids is 'Events of that moment and rank (JSON list), the one in force last.';
comment on column stripe_subscriptions.left_user_ids is
  'Users whom it belonged to before and with whom it may not have ended yet (JSON list); empty but for a message that was cut off.';
create index stripe_subscriptions_left on stripe_subscriptions (realm) where left_user_ids <> '[]';
create index stripe_subscriptions_user on stripe_subscriptions (user_id, realm) where user_id is not null;

create table stripe_purchases (
  realm int not null,
  external_ref text collate "C" not null,
  source text collate "C" not null,
  pack_id text collate "C" not null,
  quantity bigint not null check (quantity > 0),
  user_id text collate "C",
  subscription_id text collate "C",
  primary key (realm, external_ref)
);
comment on table stripe_purchases is 'Paid grants: sessions and lines of invoices.';
comment on column stripe_purchases.source is 'The session or invoice that was paid.';
comment on column stripe_purchases.user_id is 'Null while only a message about its subscription could tell.';
create index stripe_purchases_source on stripe_purchases (realm, source);
create index stripe_purchases_waiting on stripe_purchases (realm, subscription_id) where user_id is null;
create index stripe_purchases_user on stripe_purchases (user_id, realm) where user_id is not null;

create table stripe_payments (
  realm int not null,
  payment text collate "C" not null,
  source text collate "C" not null,
  at_ms bigint not null,
  primary key (realm, payment, source)
);
comment on table stripe_payments is 'By which payments and charges a session or invoice was paid.';
create index stripe_payments_source on stripe_payments (realm, source);
create index stripe_payments_time on stripe_payments (realm, at_ms);

create table stripe_refunds (
  realm int not null,
  payment text collate "C" not null,
  at_ms bigint not null,
  primary key (realm, payment)
);
create index stripe_refunds_time on stripe_refunds (realm, at_ms);
comment on table stripe_refunds is 'Payments, charges and invoices that were refunded in full.';
