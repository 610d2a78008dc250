-- A hold keeps the price row that it was made under, whatever the catalog says when it is committed. The rows that an
-- app's catalogs ever had are numbered by their place in a list, and a hold stores the number. Catalogs of before have
-- no list: their numbers are the places in the document in force.

alter table catalogs add column price_rows text;
comment on column catalogs.price_rows is 'Every price row that the app''s catalogs ever had (JSON list), each at its number.';

alter table reservations add column price_row int;
comment on column reservations.price_row is 'The number of the price row; -1 for none, null for holds made before rows were kept.';
alter table reservations add column told_cents boolean not null default false;
comment on column reservations.told_cents is 'Whether the caller named the cents of the hold.';
