-- Fewer bytes of write-ahead log for each call. A batch of the journal repeats the same few names in every line, so the
-- server compresses it where it can do so fast; a compressed batch stays in its row. And an update of a counter stays in its
-- page: between two drains every row of a page may get a new version, so half of the page is left free for them.

do $$ begin
  if exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)) then
    alter table journal alter column payload set storage main;
    alter table journal alter column payload set compression lz4;
  end if;
end $$;
alter table counters set (fillfactor = 45);
