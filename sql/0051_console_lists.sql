-- Pages of the console with a million users: people by the beginning of their email, and the users below a user by id.

-- Of an email the first 255 characters: a row of an index has at most 2,704 bytes.
create index people_email
  on people (realm, left(lower(substring(properties from '"\$?email":"([^"\\]+)"') collate "C"), 255))
  where merged_into is null;

drop index users_parent;
create index users_parent on users (parent_key, id) where parent_key is not null;

comment on column failed_requests.key_id is
  'Of the keys of users the word users; of an unknown key its first 12 characters.';
comment on column failed_requests.hour_ms is
  'The begin of the UTC hour, in real time; of the UTC day for the status 429.';
