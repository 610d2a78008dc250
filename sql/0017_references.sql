-- The references of callers: an order's or a ticket's id on a balance, a payment provider's on a subscription. Whoever
-- answers a customer has such an id in hand and nothing else.

create index credit_balances_reference on credit_balances (external_ref, realm) where external_ref is not null;
create index subscriptions_external on subscriptions (external_id) where external_id is not null;
