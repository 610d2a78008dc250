-- How many history rows the background moved for a merge. A repeated alias call reports them once the move is over;
-- before, it could only report what had moved within the first call.

alter table merges add column moved_events bigint not null default 0;
alter table merges add column moved_event_logs bigint not null default 0;
alter table merges add column moved_subscription_events bigint not null default 0;
alter table merges add column moved_credit_ledger bigint not null default 0;
alter table merges add column moved_generations bigint not null default 0;
alter table merges add column moved_reservations bigint not null default 0;
comment on column merges.moved_events is 'Rows that the background moved after the call; likewise the other moved_ columns.';
comment on column merges.moved_reservations is 'All reservations of the ending user, open ones included, counted when the move was over; 0 before.';
