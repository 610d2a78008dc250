-- Data for others: keys that only read, and views for tools that read the database. The views have no prompts, no people and
-- no free metadata. They are made where the service's role may create a schema; elsewhere everything but them works.

alter table keys drop constraint keys_class_check;
alter table keys add constraint keys_class_check check (class in ('secret', 'public', 'reader'));

do $$
begin
  create schema if not exists holdfast;

  create view holdfast.users as
  select r.app_id, r.mode, u.id as user_id, c.id as canonical_user_id, p.id as parent_user_id,
    c.held_plan_id as plan_id
  from users u join realms r using (realm)
    join users c on c.key = coalesce(u.merged_into, u.key)
    left join users p on p.key = c.parent_key
  where not u.erasing and not c.erasing;
  comment on view holdfast.users is 'Every id that was used; ids of one user have one canonical_user_id.';

  create view holdfast.subscriptions as
  select r.app_id, r.mode, c.id as user_id, s.id as subscription_id, s.plan_id, s.provider, s.external_id, s.quantity,
    to_timestamp(s.started_at_ms / 1000.0) as started_at, to_timestamp(s.ends_at_ms / 1000.0) as ends_at,
    to_timestamp(s.trial_ends_at_ms / 1000.0) as trial_ends_at, s.ended
  from subscriptions s join users u on u.key = s.user_key join realms r using (realm)
    join users c on c.key = coalesce(u.merged_into, u.key)
  where not u.erasing and not c.erasing;
  comment on view holdfast.subscriptions is 'Subscriptions of each user, ended ones included.';

  create view holdfast.usage_windows as
  select r.app_id, r.mode, u.id as user_id, n.plan_id, n.group_id, coalesce(n.kind, 'window') as kind,
    to_timestamp(n.window_start_ms / 1000.0) as window_start, to_timestamp(n.window_end_ms / 1000.0) as window_end,
    n.count, n.cost_cents
  from counters n join users u on u.key = n.user_key join realms r using (realm)
  where not u.erasing;
  comment on view holdfast.usage_windows is 'What each user used and holds of each limit group, by window.';

  create view holdfast.events as
  select r.app_id, r.mode, c.id as user_id, e.id as event_id, e.type as event, e.quantity, e.cost_cents,
    e.match_status as status, to_timestamp(e.created_at_ms / 1000.0) as created_at, e.reservation_id, e.run_id,
    e.reason, e.error_code
  from events e join users u on u.key = e.user_key join realms r on r.realm = e.realm
    join users c on c.key = coalesce(u.merged_into, u.key)
  where not u.erasing and not c.erasing;
  comment on view holdfast.events is 'Metered events, without prompts, responses and metadata.';

  create view holdfast.credit_ledger as
  select r.app_id, r.mode, c.id as user_id, l.id as entry_id, l.balance_id, l.pack_id, b.unit, l.delta, l.reason,
    l.event_id, l.reservation_id, to_timestamp(l.at_ms / 1000.0) as occurred_at
  from credit_ledger l join users u on u.key = l.user_key join realms r using (realm)
    join users c on c.key = coalesce(u.merged_into, u.key)
    left join credit_balances b on b.id = l.balance_id
  where not u.erasing and not c.erasing;
  comment on view holdfast.credit_ledger is 'Every movement of every credit balance.';

  create view holdfast.refusals as
  select r.app_id, r.mode, f.user_id, f.event, f.reasons, f.refused_by, f.count,
    to_timestamp(f.hour_ms / 1000.0) as hour, to_timestamp(f.first_at_ms / 1000.0) as first_at,
    to_timestamp(f.last_at_ms / 1000.0) as last_at
  from refusals f join realms r using (realm)
    left join users u on u.realm = f.realm and u.id = f.user_id
  where u.erasing is not true;
  comment on view holdfast.refusals is 'Refused calls by user, event, reasons and UTC hour, for 90 days.';

  create view holdfast.accounts as
  select r.app_id, r.mode, p.id as user_id, u.id as child_user_id
  from users u join realms r using (realm) join users p on p.key = u.parent_key
  where u.merged_into is null and not u.erasing and not p.erasing;
  comment on view holdfast.accounts is 'Who is directly below whom.';
exception when insufficient_privilege then
  raise notice 'the views of the schema holdfast are not made: the role may not create a schema';
end
$$;
