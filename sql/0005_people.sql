-- Analytics people: who a customer's distinct ids belong to, and what was captured of them. A merged person stays as a
-- pointer, so that no merge has to rewrite events. People who opted out are captured under a pseudonym, which stands
-- beside a keyed hash of their id and nothing else.

create table people (
  id text collate "C" primary key,
  realm integer not null,
  merged_into text collate "C" references people,
  properties text not null,
  identified_at_ms bigint,
  created_at_ms bigint not null,
  check (merged_into is null or properties = '{}')
) with (fillfactor = 80);
comment on table people is 'Analytics people with their properties (JSON).';
comment on column people.merged_into is 'The person that this one was merged into; one hop. Its events are that person''s.';
create index people_merged on people (merged_into) where merged_into is not null;

create table person_ids (
  realm integer not null,
  distinct_id text collate "C" not null,
  person_id text collate "C" not null references people,
  primary key (realm, distinct_id)
);
comment on table person_ids is 'The person that a distinct id belongs to, never a merged one.';
create index person_ids_person on person_ids (person_id);

create table analytics_events (
  id text collate "C" primary key,
  realm integer not null,
  person_id text collate "C" references people,
  pseudonym text collate "C",
  event text not null,
  properties text not null,
  at_ms bigint not null,
  check (person_id is null or pseudonym is null)
);
comment on table analytics_events is 'Captured events: of a person, under a pseudonym, or of nobody.';
create index analytics_events_person on analytics_events (person_id, at_ms desc, id desc)
  where person_id is not null;

create table pseudonyms (
  realm integer not null,
  id_hash text collate "C" not null,
  pseudonym text collate "C" not null,
  primary key (realm, id_hash)
);
comment on table pseudonyms is 'Random names of ids that opted out of analytics, by a keyed hash of the id; gone when they opt in.';
