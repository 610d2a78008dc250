-- Open holds stand apart from settled ones: in a table of their own, where they are found by their user and the time at
-- which they were made. So a reserve writes a row and one short index entry, where it wrote an entry for the id and another
-- one for the user. What is settled moves to the other table by itself, and statements go on naming "reservations". Holds
-- come and go in a small table, which is quick to clean, and the large one hardly ever has anything to clean.

alter table reservations rename to settled_reservations;
alter index reservations_pkey rename to settled_reservations_pkey;
alter index reservations_prompt rename to settled_reservations_prompt;

create table reservations (like settled_reservations including defaults including constraints including comments)
  partition by list (status);
comment on table reservations is 'Holds and what became of them; lines (JSON) say what was taken from which counter.';

create table open_reservations partition of reservations for values in ('held') with (fillfactor = 85);
comment on table open_reservations is 'Open holds. Their ids are unique, which no index repeats: a batch of the journal reaches the tables once.';

with held as (delete from settled_reservations where status = 'held' returning *)
insert into open_reservations select * from held;
create index open_reservations_user on open_reservations (user_key, created_at_ms);
-- For drains of members of the version before, which find a hold by its id: the first member of this one drops it.
create unique index open_reservations_id on open_reservations (id);

drop index reservations_held;
alter table settled_reservations set (fillfactor = 100);
alter table reservations attach partition settled_reservations for values in ('committed', 'released', 'expired');
comment on table settled_reservations is 'What became of holds. A late commit and the end of a prompt change a row, hardly anything else.';
