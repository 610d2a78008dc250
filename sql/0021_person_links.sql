-- Who linked two ids of people. A public key is in every page, so its link is one of its own kind: the anonymous id stays
-- a person by itself, and only the named id reaches the other. Links of earlier versions have no row.

create table person_links (
  realm integer not null,
  from_id text collate "C" not null,
  into_id text collate "C" not null,
  made_by text not null check (made_by in ('secret_key', 'end_user_token', 'public_key')),
  at_ms bigint not null,
  primary key (realm, from_id, into_id)
);
comment on table person_links is 'Links of two ids that identify and alias made, and by which right.';
comment on column person_links.made_by is
  'public_key: consents, erasure and export go from into_id to from_id and never back; otherwise both are one person.';
create index person_links_into on person_links (realm, into_id);
