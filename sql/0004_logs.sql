-- Prompt logs, consent and erasure. Texts of prompts and answers stand in a table of their own, which retention
-- empties; what a user opted out of stands on the user's row, where every decision sees it.

alter table users add column opted_out integer not null default 0 check (opted_out between 0 and 7);
alter table users add column erasing boolean not null default false;
comment on column users.opted_out is 'Scopes as a sum: 1 analytics, 2 ai_personalization, 4 prompt_logging.';
comment on column users.erasing is 'An erasure was asked for: hidden from the feed until the job is done.';

alter table reservations add column prompt text;
comment on column reservations.prompt is 'Kept from reserve to settlement where prompts are logged; then it stands in event_logs.';

create table event_logs (
  event_id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  prompt text,
  response text,
  at_ms bigint not null
);
comment on table event_logs is 'Prompts and responses of events, as long as the app keeps them.';
create index event_logs_user on event_logs (user_key);
create index event_logs_at on event_logs (realm, at_ms);

create table consents (
  id text collate "C" primary key,
  realm integer not null,
  distinct_id text collate "C",
  id_hash text collate "C",
  action text not null check (action in ('opt_out', 'opt_in')),
  scope text not null check (scope in ('analytics', 'ai_personalization', 'all', 'prompt_logging')),
  at_ms bigint not null,
  check ((distinct_id is null) <> (id_hash is null))
);
comment on table consents is 'Audit entries of opting out and in; after an erasure a keyed hash stands in place of the id.';
create index consents_distinct on consents (realm, distinct_id);

create table erasure_jobs (
  id text collate "C" primary key,
  realm integer not null,
  status text not null check (status in ('queued', 'in_progress', 'completed', 'failed')),
  distinct_ids text,
  requested_at_ms bigint not null,
  started_at_ms bigint,
  completed_at_ms bigint,
  error_message text
);
comment on table erasure_jobs is 'Erasures; distinct_ids (JSON) is forgotten when the job is done.';
create index erasure_jobs_open on erasure_jobs (requested_at_ms) where status in ('queued', 'in_progress');
create index reservations_prompt on reservations (expires_at_ms) where prompt is not null;
