-- A catalog that test mode has for itself, and the documents that were in force before.

create table test_catalogs (
  app_id text collate "C" primary key references apps,
  version integer not null check (version > 0),
  document text not null,
  plan_order text not null,
  price_rows text not null,
  rate_rows text,
  removed boolean not null,
  applied_at_ms bigint not null,
  changed_in bigint not null
);
comment on table test_catalogs is 'The catalog in force for an app''s test mode alone. Without a row that is not removed, test mode uses the row of catalogs.';
comment on column test_catalogs.version is 'From the same sequence as those of catalogs.';
comment on column test_catalogs.price_rows is
  'As in catalogs, with the same numbers: the shorter of the two lists is the beginning of the longer one.';
comment on column test_catalogs.removed is
  'Whether it was promoted or dropped. The row stays for its version and numbers, without a document.';

create table catalog_versions (
  app_id text collate "C" not null references apps,
  version integer not null check (version > 0),
  mode text not null check (mode in ('live', 'test')),
  document text not null,
  changes text not null,
  who text,
  at_ms bigint not null,
  primary key (app_id, version)
);
comment on table catalog_versions is 'The newest 100 catalog documents of each app.';
comment on column catalog_versions.mode is 'test: applied to test mode alone.';
comment on column catalog_versions.changes is 'What it changed (JSON list), up to 100 changes.';
comment on column catalog_versions.who is 'The operator who applied it, or "api"; null for a version from before this table.';

insert into catalog_versions (app_id, version, mode, document, changes, at_ms)
  select app_id, version, 'live', document, '[]', applied_at_ms from catalogs;
