-- Several databases behind one service. Each is a store with a number and a name. The number decides which realms and
-- which numbers of users the store gives out, so that no two stores ever give out the same one.
--
-- The row whose cluster_id is that of `registry` is this database's own. A database that was never one of several has no
-- row, and gives out the numbers of store 0. The other rows are the stores that this one was served with: a process that
-- does not know one of them must not serve here.

create table stores (
  number integer primary key check (number between 0 and 63),
  name text not null unique,
  cluster_id text not null unique
);
comment on table stores is 'The databases of this service. Rows are only added.';
comment on column stores.number is 'Realms of the store are from number * 2^25 + 1 on, numbers of its users from number * 2^47 + 1 on.';
comment on column stores.name is 'The name in HOLDFAST_DATABASES.';
comment on column stores.cluster_id is 'The cluster_id of the registry of that database.';
