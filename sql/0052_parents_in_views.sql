-- A user below an alias is below the user that the alias became. The views named the alias, which has no usage of its own.
-- As with the views themselves, a database whose role may create no schema has none.

do $$
begin
  if to_regclass('holdfast.users') is null then
    return;
  end if;

  create or replace view holdfast.users as
  select r.app_id, r.mode, u.id as user_id, c.id as canonical_user_id, p.id as parent_user_id,
    c.held_plan_id as plan_id
  from users u join realms r using (realm)
    join users c on c.key = coalesce(u.merged_into, u.key)
    left join users n on n.key = c.parent_key
    left join users p on p.key = coalesce(n.merged_into, n.key)
  where not u.erasing and not c.erasing;

  create or replace view holdfast.accounts as
  select r.app_id, r.mode, p.id as user_id, u.id as child_user_id
  from users u join realms r using (realm)
    join users n on n.key = u.parent_key
    join users p on p.key = coalesce(n.merged_into, n.key)
  where u.merged_into is null and not u.erasing and not p.erasing;
end
$$;
