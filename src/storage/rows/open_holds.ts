// SQL that reads open holds by user and time of creation, the only index of their table.

/**
 * SQL of the open holds of the users in $1. Each user is read as a range: open holds change so fast that the planner's
 * statistics are mostly stale, and it would read all holds for a few users.
 *
 * @param rest an order that begins with user_key, and a limit, for each user; the default `offset 0` only keeps the planner
 * from choosing another join
 */
export function openHoldsOf(columns: string, rest = "offset 0"): string {
  return `select found.* from unnest($1::text::bigint[]) as owner(key) cross join lateral (
      select ${columns} from open_reservations where user_key >= owner.key and user_key <= owner.key ${rest}
    ) as found`;
}
