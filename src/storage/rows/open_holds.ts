// How open holds are read: by their user and the time at which they were made, the one index that their table has.

/**
 * SQL of the open holds of the users in $1. Each user is asked for as a range. Open holds come and go so fast that
 * what the planner knows of them is mostly out of date, and it would read them all for a few users.
 *
 * @param rest an order that begins with user_key and a limit, for each user; a plain `offset 0` keeps the planner from
 * joining users and holds in another way
 */
export function openHoldsOf(columns: string, rest = "offset 0"): string {
  return `select found.* from unnest($1::text::bigint[]) as owner(key) cross join lateral (
      select ${columns} from open_reservations where user_key >= owner.key and user_key <= owner.key ${rest}
    ) as found`;
}
