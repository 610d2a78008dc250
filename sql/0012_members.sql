-- Many processes on one database. Each process is a member: it has a term, one session that writes the journal, and one
-- range of the journal. The workspaces are divided into 64 cells, and each cell has one owner at a time.
--
-- Nothing here is read by the version before. That version takes the lock of the lease for itself alone, and every
-- member holds the same lock shared, so the two never serve together.

create table members (
  term bigint primary key,
  address text,
  share integer not null check (share >= 0),
  fingerprints text not null,
  registry_version bigint not null,
  started_at timestamptz not null,
  seen_at timestamptz not null,
  ended_at timestamptz
);
comment on table members is 'Processes that serve this database, or did. A row goes a day after its process, unless a cell still names it.';
comment on column members.term is 'The member''s number. Its range of the journal is term * 2^33 + 1 to (term + 1) * 2^33.';
comment on column members.address is 'Where other members connect to, as "host:port"; null on the embedded store.';
comment on column members.share is 'How much of the cells it takes; 0 for a front and for one that is about to stop.';
comment on column members.fingerprints is 'JSON: keyed hashes of the settings in which members must agree, by their names.';
comment on column members.registry_version is 'The version of the registry that is in force in this member; -1 before it has read one.';
comment on column members.seen_at is 'When the server wrote its last beat. It answers nothing 3 s after that unless there was another.';
comment on column members.ended_at is 'When it ended in good order, or when another member saw that its process was gone.';

create table cells (
  cell integer primary key check (cell between 0 and 63),
  term bigint,
  clock_ms bigint not null default 0,
  side text
);
insert into cells (cell) select * from generate_series(0, 63);
comment on table cells is 'The owners of the cells. The cell of a workspace is the first four bytes of SHA-256 of its id, modulo 64.';
comment on column cells.term is 'The member whose range of the journal may hold changes of this cell; null when it was handed over in order.';
comment on column cells.clock_ms is 'The owner''s clock when it handed the cell over: no later owner''s clock begins before it.';
comment on column cells.side is 'JSON: what an owner had in memory alone and hands on, such as the buckets of rate limits; null for nothing.';

create table registry (
  one boolean primary key default true check (one),
  version bigint not null,
  cluster_id text not null,
  secret text not null
);
insert into registry (version, cluster_id, secret)
  values (0, gen_random_uuid()::text, gen_random_uuid()::text || gen_random_uuid()::text);
comment on table registry is 'The version of workspaces, apps, keys and catalogs: each change raises it and holds its row until the commit.';
comment on column registry.secret is 'Members prove to each other that they know it.';

alter table workspaces add column changed_in bigint not null default 0;
comment on column workspaces.changed_in is 'The version of the registry that wrote this row last.';
alter table apps add column changed_in bigint not null default 0;
comment on column apps.changed_in is 'The version of the registry that wrote this row last.';
alter table keys add column changed_in bigint not null default 0;
comment on column keys.changed_in is 'The version of the registry that wrote this row last.';
alter table catalogs add column changed_in bigint not null default 0;
comment on column catalogs.changed_in is 'The version of the registry that wrote this row last.';

-- Members take the numbers of new users from here, a block at a time. A database that has users or a journal sets it
-- after a replay of everything, before its first member serves.
create sequence user_keys increment by 1000;
alter table lease add column keys_in_sequence boolean not null default false;
comment on column lease.keys_in_sequence is 'Whether user_keys is past every user''s number.';
insert into lease (term, keys_in_sequence) select 0, true
  where not exists (select 1 from users) and not exists (select 1 from journal) and not exists (select 1 from lease);
