-- Runs: the task of an agent, with limits that all of its calls share. A call counts in its run and in the runs around it.
-- A hold says in which run it counts, and an event also with which amounts, so that the counts can be proved. A run is kept
-- for 30 days after its end.

create table runs (
  id text collate "C" primary key,
  user_key bigint not null,
  realm integer not null,
  name text,
  metadata text,
  around text collate "C",
  limits text not null,
  open_holds integer not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  ended_at_ms bigint,
  reason text
);
comment on table runs is 'Tasks of agents, each with limits that its calls share.';
comment on column runs.user_key is 'The user; of an ended run it may be the alias that made it.';
comment on column runs.metadata is 'As JSON text, from the caller.';
comment on column runs.around is 'The ids of the runs around it, innermost first, separated by commas; null for an outermost run.';
comment on column runs.limits is 'Limits with their counts (JSON): [[limitId, unit, event, "quota", "count", "held"], ...].';
comment on column runs.open_holds is 'Open holds of its calls and of those of runs within it.';
comment on column runs.ended_at_ms is 'When a call ended it; null where none did, and it ends at expires_at_ms.';
create index runs_listed on runs (user_key, created_at_ms desc, id desc);
create index runs_open on runs (user_key, expires_at_ms) where ended_at_ms is null;
create index runs_held on runs (user_key) where open_holds > 0;
create index runs_kept on runs (realm, (coalesce(ended_at_ms, expires_at_ms)));

alter table reservations add column run_id text collate "C";
comment on column reservations.run_id is 'The run in which the call counts; null for none.';

alter table events add column run_id text collate "C";
comment on column events.run_id is 'The run of the call; null for none.';
alter table events add column run_amounts text;
comment on column events.run_amounts is 'What it counts in its run (JSON): [count,tokens,seconds,cents]; null for nothing.';
create index events_run on events (run_id, created_at_ms desc, id desc) where run_id is not null;
