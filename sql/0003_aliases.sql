-- Aliases and merges: one user with several ids. An alias is a row of users that points at its canonical user; every
-- row that decisions read moves with the merge, history follows in the background.

alter table users add column merged_into bigint;
comment on column users.merged_into is 'The canonical user that this id is an alias of; one hop.';
create index users_merged on users (merged_into) where merged_into is not null;

alter table credit_balances add column overage numeric not null default 0 check (overage >= 0);
comment on column credit_balances.overage is 'What two merged copies had used beyond the grant; refunds reduce it first.';

create table merges (
  id text collate "C" primary key,
  realm integer not null,
  from_key bigint not null,
  to_key bigint not null,
  report text not null,
  history_keys text not null,
  at_ms bigint not null
);
comment on table merges is 'Reports of merges, by the user that became an alias.';
create index merges_from on merges (from_key);
create index merges_to on merges (to_key);

create table history_moves (
  user_key bigint primary key,
  at_ms bigint not null
);
comment on table history_moves is 'Aliases whose history rows are still filed under their own number; reads look at both.';
