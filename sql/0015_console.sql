-- The console: what it takes no second time, and the audit log of what people did.

create table spent (
  id text collate "C" primary key,
  until_ms bigint not null
);
comment on table spent is
  'What the console takes no second time: sessions that were signed out, and keys of forms that were sent. Each is kept until no session is left that could bring it.';
create index spent_until on spent (until_ms);

create table audit (
  id text collate "C" primary key,
  at_ms bigint not null,
  who text not null,
  via text collate "C" not null check (via in ('console', 'api')),
  what text collate "C" not null,
  app_id text collate "C",
  mode text collate "C",
  user_id text collate "C",
  before text,
  after text
);
comment on table audit is
  'What people did through console and admin API, sign-ins included. Rows are only added: the one change that the trigger lets through is an erasure.';
create index audit_of_app on audit (app_id, id desc);
create index audit_of_app_user on audit (app_id, user_id, id desc) where user_id is not null;
create index audit_of_user on audit (user_id, id desc) where user_id is not null;

create table audit_begun (
  id text collate "C" primary key,
  at_ms bigint not null,
  who text not null,
  via text collate "C" not null,
  what text collate "C" not null,
  app_id text collate "C",
  mode text collate "C",
  user_id text collate "C",
  erased boolean not null default false,
  -- By the clock of the database: those of processes differ.
  begun_ms bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint
);
comment on table audit_begun is
  'Writes that have begun: each becomes a row of the audit log when it ends, so that a crash in between leaves a trace.';

-- The one trigger of this schema: no statement of the service can rewrite what was done. An erasure names itself by a
-- setting of its transaction; it replaces the id of a user and empties what was said about it.
create function audit_is_append_only() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and current_setting('holdfast.erasing', true) = 'on'
    and (new.id, new.at_ms, new.who, new.via, new.what) = (old.id, old.at_ms, old.who, old.via, old.what)
    and new.app_id is not distinct from old.app_id and new.mode is not distinct from old.mode
    and old.user_id is not null and new.user_id is not null
    and new.before is null and new.after is null then
    return new;
  end if;
  raise exception 'The audit log is append-only';
end $$;
create trigger audit_append_only before update or delete on audit
  for each row execute function audit_is_append_only();
create trigger audit_no_truncate before truncate on audit
  for each statement execute function audit_is_append_only();
