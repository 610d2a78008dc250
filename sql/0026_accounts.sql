-- Users in a tree: a user may have one parent, and a call counts at every user of its path. A hold of such a call has a part
-- at each user above that takes part: a reservation of that user, with lines and credits of its own, which lapses at the
-- same moment and is settled with the caller's. An event says what it took above, so that counters add up there too.

alter table users add column parent_key bigint;
comment on column users.parent_key is 'The user directly above; an alias there means its canonical user.';
alter table users add column member_limits text;
comment on column users.member_limits is 'The most that the user may use of groups above (JSON): {"groupId": "quota", ...}.';
create index users_parent on users (parent_key) where parent_key is not null;

alter table reservations add column parts text;
comment on column reservations.parts is 'The ids of the parts at users above, nearest first, separated by commas.';
alter table reservations add column part_of text collate "C";
comment on column reservations.part_of is 'Of a part: the reservation of the caller that it is settled with.';

alter table events add column levels text;
comment on column events.levels is 'What it took above (JSON): [[userKey, lines, credits, uncovered], ...]; null for nothing.';
alter table events add column level_keys bigint[];
comment on column events.level_keys is 'The users of levels, to find events by them; null for none.';
create index events_levels on events using gin (level_keys) where level_keys is not null;

alter table refusals add column refused_by text[];
comment on column refusals.refused_by is 'Of users with a parent: the ids of the users that refused such a call.';
create index refusals_refused_by on refusals using gin (refused_by) where refused_by is not null;

alter table webhook_messages add column caused_by bigint;
comment on column webhook_messages.caused_by is 'The user whose call caused it, where its body names that user beside its own.';
create index webhook_messages_caused_by on webhook_messages (caused_by) where caused_by is not null;

create table erased_charges (
  user_key bigint not null,
  plan_id text collate "C" not null,
  group_id text collate "C" not null,
  window_start_ms bigint not null,
  amount numeric not null,
  primary key (user_key, plan_id, group_id, window_start_ms)
);
comment on table erased_charges is 'What erased users below used of a counter: the counter keeps the amount, without their events.';
