-- The last attempts to deliver a message, for the people who look for why an endpoint fails.

alter table webhook_messages add column recent_attempts text[];
comment on column webhook_messages.recent_attempts is
  'The newest 20 attempts as JSON, the newest first: when, the status, the error, how long it took, and the first 1 KiB of the answer.';
create index webhook_messages_failing on webhook_messages (webhook_id, id desc)
  where status <> 'delivered' and attempts > 0;
