-- Two reads that grew with the tables. A page of a user's events of one type read every row of the user where the type
-- is rare: the type now stands beside the id in the index of a user's events, so such a page reads that index alone. It
-- is a wider entry of an index that was there, since each further index of events is paid by every call. And an
-- erasure, in whose last step nobody else is served, read all first answers to find those of one user and those of
-- nobody; only calls that send a key pay for their index.

drop index events_user;
create index events_user on events (user_key, created_at_ms desc, id desc) include (type);
create index idempotency_user on idempotency (user_key);
