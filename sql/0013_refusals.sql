-- Who met a limit: refused calls of a user that are alike in event and reasons are one row for each hour, with a count.
-- Users are named by their ids and not by their numbers, since a refused call of somebody unknown makes no user.

create table refusals (
  id bigint generated always as identity primary key,
  realm integer not null,
  user_id text collate "C" not null,
  event text collate "C" not null,
  reasons text collate "C" not null,
  hour_ms bigint not null,
  group_ids text not null,
  count bigint not null check (count > 0),
  first_at_ms bigint not null,
  last_at_ms bigint not null check (last_at_ms >= first_at_ms),
  unique (realm, user_id, event, reasons, hour_ms)
);
comment on table refusals is 'Refused reserves, tracks and composes, counted by user, event, reasons and hour; kept 90 days.';
comment on column refusals.reasons is 'JSON list of the reasons or error codes.';
comment on column refusals.hour_ms is 'The begin of the UTC clock hour, in the clock of the realm.';
comment on column refusals.group_ids is 'JSON list: the limit groups that had no room for the newest call, in the plan''s order.';
create index refusals_realm on refusals (realm, last_at_ms desc, id desc);
create index refusals_user on refusals (realm, user_id, last_at_ms desc, id desc) include (event);
create index refusals_event on refusals (realm, event, last_at_ms desc, id desc);
