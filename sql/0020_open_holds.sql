-- Open holds stand apart from settled ones. A reserve writes a row and one index entry where it wrote two, and the shorter
-- of the two: an open hold is found by its user and the moment at which it was made, and its id needs no index until it is
-- settled. What is settled moves to the other table of the two by itself, so statements go on naming "reservations". Holds
-- come and go in a small table of their own, which is quick to clean, and the large one is hardly ever changed.

alter table reservations rename to settled_reservations;
alter index reservations_pkey rename to settled_reservations_pkey;
alter index reservations_prompt rename to settled_reservations_prompt;

create table reservations (like settled_reservations including defaults including constraints including comments)
  partition by list (status);
comment on table reservations is 'Holds and what became of them; lines (JSON) say what was taken from which counter.';

-- Columns of a fixed width come first: behind texts they would have to be aligned, which takes eight bytes a row.
create table open_reservations (
  user_key bigint not null,
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  settled_at_ms bigint,
  price_row int,
  per_unit boolean not null,
  told_cents boolean not null default false,
  id text collate "C" not null,
  status text not null,
  event text not null,
  metadata text,
  quantity numeric,
  count numeric,
  amounts text not null,
  lines text not null,
  credits text not null default '[]',
  prompt text,
  constraint reservations_status_check check (status in ('held', 'committed', 'released', 'expired')),
  constraint reservations_check check ((status = 'held') = (settled_at_ms is null))
) with (fillfactor = 85);
comment on table open_reservations is 'Open holds. Each has a unique id, which no index repeats: the journal writes a row once.';
alter table reservations attach partition open_reservations for values in ('held');

with held as (delete from settled_reservations where status = 'held' returning *)
insert into reservations select * from held;
create index open_reservations_user on open_reservations (user_key, created_at_ms);
-- For drains of members of the version before, which find a hold by its id: the first member of this one drops it.
create unique index open_reservations_id on open_reservations (id);

drop index reservations_held;
alter table settled_reservations set (fillfactor = 100);
alter table reservations attach partition settled_reservations for values in ('committed', 'released', 'expired');
comment on table settled_reservations is 'What became of holds. A late commit and the end of a prompt change a row, hardly anything else.';
