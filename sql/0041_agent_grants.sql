-- What people of the role agent grant: the units of each UTC day, which a cap bounds.

create table agent_grants (
  who text collate "C" not null,
  day int not null,
  units numeric not null check (units >= 0),
  primary key (who, day)
);
comment on table agent_grants is 'Units of credits that each agent granted on a UTC day, over all apps.';
comment on column agent_grants.day is 'Days since 1970-01-01, in real time.';
