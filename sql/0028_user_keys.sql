-- Keys of users: each acts for one user alone. Its text names the user's realm and the key's id, so that no registry has to
-- know it; the owner of the workspace's cell checks its hash in the user's turn.

create table end_user_keys (
  id text collate "C" primary key,
  user_key bigint not null,
  name text,
  prefix text not null,
  hash text not null,
  created_at_ms bigint not null,
  expires_at_ms bigint,
  last_used_at_ms bigint,
  revoked_at_ms bigint
);
create index end_user_keys_owner on end_user_keys (user_key);
comment on table end_user_keys is 'Keys of users. Times are real time, also in test mode.';
comment on column end_user_keys.hash is 'SHA-256 of the secret part, in hex; empty once the key is revoked.';
comment on column end_user_keys.last_used_at_ms is 'The first use of the last day (UTC) with any; null before the first.';
