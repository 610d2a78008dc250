-- API keys: a name, who created each, when it was last used, and until when a key that was rolled is valid.

alter table keys add column name text;
alter table keys add column created_by text collate "C";
alter table keys add column last_used_at_ms bigint;
alter table keys add column valid_until_ms bigint;
comment on column keys.created_by is 'The operator, or "admin" for the admin token; null for keys of earlier versions.';
comment on column keys.last_used_at_ms is 'Real time of a use in the minute of the last one; each process writes it once a minute.';
comment on column keys.valid_until_ms is 'Real time from which the key is invalid; null for a key without an end.';
