-- A split moves cells of one store to a new one, which begins as a standby of it. The row of a cell says which store serves
-- it. The new store is a copy, so it has the same rows: what it may serve is what the old store handed over to it before.
--
-- `store` is set once and never back: from that commit on this database serves the cell no more, and any copy of this
-- database that lacks the commit does not serve it under another number.

alter table cells
  add column store integer check (store between 0 and 63),
  add column moves_to integer check (moves_to between 0 and 63);
comment on column cells.store is 'The number of the store that serves the cell; null while no store was ever split off.';
comment on column cells.moves_to is 'The number of the store that the owner is to hand the cell over to; null for none.';

-- A store that is split off is planned; then released, when every cell was handed over to it and every process knows; then
-- open, when it has taken its own identity.
alter table stores
  add column state text not null default 'open' check (state in ('planned', 'released', 'open'));
comment on column stores.state is 'Whether the store serves. One that is split off is planned, released, then open.';
