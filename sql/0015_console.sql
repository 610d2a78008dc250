-- The console: sessions that somebody ended by signing out, and the audit log of what people did.

create table ended_sessions (
  id text collate "C" primary key,
  until_ms bigint not null
);
comment on table ended_sessions is
  'Sessions of the console that were signed out; each is kept until its cookie would have expired.';
create index ended_sessions_until on ended_sessions (until_ms);

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
create index audit_of_user on audit (app_id, user_id, id desc);

-- The one trigger of this schema: no program with the service's rights can rewrite what was done. An erasure names
-- itself by a setting of its transaction; it replaces the id of a user and empties what was said about it.
create function audit_is_append_only() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and current_setting('holdfast.erasing', true) = 'on'
    and (new.id, new.at_ms, new.who, new.via, new.what) = (old.id, old.at_ms, old.who, old.via, old.what)
    and new.app_id is not distinct from old.app_id and new.mode is not distinct from old.mode
    and new.before is null and new.after is null then
    return new;
  end if;
  raise exception 'The audit log is append-only';
end $$;
create trigger audit_append_only before update or delete on audit
  for each row execute function audit_is_append_only();
create trigger audit_no_truncate before truncate on audit
  for each statement execute function audit_is_append_only();
