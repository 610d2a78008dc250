-- What an event counted, as a track would say it: by this it can be decided anew under another catalog.

alter table events add column work text;
comment on column events.work is
  'The members of a track that counts the same, separated by commas; null for events of older versions.';
