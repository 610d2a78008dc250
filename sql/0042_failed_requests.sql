-- Failed requests: answers with a 4xx or 5xx status to callers with an API key. Requests of one key that are alike in
-- method, route, status and code are one row for each UTC hour, with a count and what the newest one sent.

create table failed_requests (
  id bigint generated always as identity primary key,
  app_id text collate "C" not null,
  mode text collate "C" not null,
  key_id text collate "C" not null,
  key_prefix text collate "C" not null,
  method text collate "C" not null,
  route text collate "C" not null,
  status int not null,
  code text collate "C" not null,
  hour_ms bigint not null,
  count bigint not null check (count > 0),
  first_at_ms bigint not null,
  last_at_ms bigint not null check (last_at_ms >= first_at_ms),
  request_ids text[] not null,
  path text,
  message text,
  user_id text collate "C",
  body text,
  unique (app_id, mode, key_id, method, route, status, code, hour_ms)
);
comment on table failed_requests is
  'Requests that failed, counted by key, route, status, code and hour; at most 10,000 rows an app, kept 7 days.';
comment on column failed_requests.app_id is 'Empty for an unknown key.';
comment on column failed_requests.key_id is 'Of a user''s key its own id; of an unknown key its first 12 characters.';
comment on column failed_requests.hour_ms is 'The begin of the UTC hour, in real time.';
comment on column failed_requests.request_ids is 'Those of the newest requests, the newest first.';
comment on column failed_requests.path is
  'Of the newest request, like message, user_id and body; null where an erasure came between the request and its row.';
comment on column failed_requests.body is 'The first 500 characters, without prompts, responses and free metadata.';
create index failed_requests_app on failed_requests (app_id, last_at_ms desc, id desc);
create index failed_requests_old on failed_requests (last_at_ms);
create index erasure_jobs_ended on erasure_jobs (realm, completed_at_ms);
