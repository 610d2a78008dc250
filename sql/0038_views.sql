-- Credits of events, and what was sold past quotas, for tools that read the database. As with the views themselves, a
-- database whose role may create no schema has none.

do $$
begin
  if to_regclass('holdfast.events') is null then
    return;
  end if;

  create or replace view holdfast.events as
  select r.app_id, r.mode, c.id as user_id, e.id as event_id, e.type as event, e.quantity, e.cost_cents,
    e.match_status as status, to_timestamp(e.created_at_ms / 1000.0) as created_at, e.reservation_id, e.run_id,
    e.reason, e.error_code, e.cost_credits
  from events e join users u on u.key = e.user_key join realms r on r.realm = e.realm
    join users c on c.key = coalesce(u.merged_into, u.key)
  where not u.erasing and not c.erasing;

  create or replace view holdfast.usage_windows as
  select r.app_id, r.mode, u.id as user_id, n.plan_id, n.group_id, coalesce(n.kind, 'window') as kind,
    to_timestamp(n.window_start_ms / 1000.0) as window_start, to_timestamp(n.window_end_ms / 1000.0) as window_end,
    n.count, n.cost_cents, n.overage
  from counters n join users u on u.key = n.user_key join realms r using (realm)
  where not u.erasing;
end
$$;
