// Sums for a list of users: the cost of 30 days from the sums by day, and the refusals of 7 days from their counts by hour.
// No index has these sums. An order by them is made of leaders: of each day those who cost most, of each hour those who were
// refused most. It is exact among the leaders, and for all users where every day and hour has fewer of them than the bound.

import type { UserKey } from "../../domain/values/ids.ts";
import { numberOf, parseAmount } from "../../domain/values/amount.ts";
import type { Millis } from "../../domain/values/period.ts";
import { USER_LIST_LIMITS } from "../../process/user_list_limits.ts";
import { arrayText, type Database } from "../database.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Days of the cost, today included. */
const COST_DAYS = 30;
const REFUSAL_MS = 7 * DAY_MS;

type Reader = Pick<Database, "query">;

/** Sums of users by their numbers; users with 0 are absent. */
export type Sums = ReadonlyMap<UserKey, number>;

/** The users with the largest sums. */
export interface Leaders {
  readonly sums: Sums;
  /** Whether these are all users with a sum. */
  readonly isComplete: boolean;
}

/** The moment after which refusals count. */
export function refusalsSince(now: Millis): Millis {
  return now - REFUSAL_MS;
}

/** SQL of the numbers of users ($1) and of their aliases, with their ids. */
const OWNERS = `(select key, key as canonical, id from users where key = any($1::text::bigint[])
  union all select key, merged_into, id from users where merged_into = any($1::text::bigint[])) as owners`;

/** Sums up the cost of users in cents over 30 days. */
export async function costsOf(reader: Reader, keys: readonly UserKey[], now: Millis): Promise<Sums> {
  const today = Math.floor(now / DAY_MS);
  const rows = await reader.query<{ key: UserKey; sum: string }>(
    `select owners.canonical as key, sum(d.cost_cents)::text as sum from ${OWNERS} cross join lateral (
       select cost_cents from daily_use_of_users
       where user_key = owners.key and day between $2::int and $3::int and cost_cents > 0 offset 0
     ) d group by 1`,
    [arrayText(keys), today - COST_DAYS + 1, today],
  );
  return new Map(rows.map(({ key, sum }) => [key, numberOf(parseAmount(sum))]));
}

/** Counts the refusals of users over 7 days. */
export async function refusalsOf(
  reader: Reader,
  realm: number,
  keys: readonly UserKey[],
  now: Millis,
): Promise<Sums> {
  const rows = await reader.query<{ key: UserKey; sum: number }>(
    `select owners.canonical as key, sum(r.count)::bigint as sum from ${OWNERS} cross join lateral (
       select count from refusals
       where realm = $2::int and user_id >= owners.id and user_id <= owners.id and last_at_ms > $3::bigint offset 0
     ) r group by 1`,
    [arrayText(keys), realm, refusalsSince(now)],
  );
  return new Map(rows.map(({ key, sum }) => [key, sum]));
}

/** Finds the users who cost most. */
export async function costLeaders(reader: Reader, realm: number, now: Millis): Promise<Leaders> {
  const today = Math.floor(now / DAY_MS);
  const max = USER_LIST_LIMITS.costLeadersMax;
  const found = await reader.query<{ span: number; key: UserKey }>(
    `select days.day as span, coalesce(u.merged_into, u.key) as key
     from generate_series($2::int, $3::int) as days(day) cross join lateral (
       select user_key from daily_use_of_users where realm = $1::int and day = days.day and cost_cents > 0
       order by cost_cents desc limit ${max}
     ) most join users u on u.key = most.user_key`,
    [realm, today - COST_DAYS + 1, today],
  );
  return { sums: await costsOf(reader, namedOf(found), now), isComplete: isBelow(found, max) };
}

/** Finds the users who were refused most. */
export async function refusalLeaders(reader: Reader, realm: number, now: Millis): Promise<Leaders> {
  const since = refusalsSince(now);
  const max = USER_LIST_LIMITS.refusalLeadersMax;
  const found = await reader.query<{ span: number; key: UserKey | null }>(
    `select hours.hour as span, coalesce(u.merged_into, u.key) as key
     from generate_series($2::bigint, $3::bigint, ${HOUR_MS}) as hours(hour) cross join lateral (
       select user_id from refusals where realm = $1::int and hour_ms = hours.hour order by count desc limit ${max}
     ) most left join users u on u.realm = $1::int and u.id = most.user_id`,
    [realm, since - since % HOUR_MS, now],
  );
  const sums = await refusalsOf(reader, realm, namedOf(found), now);
  return { sums, isComplete: isBelow(found, max) };
}

function namedOf(found: readonly { readonly key: UserKey | null }[]): UserKey[] {
  return [...new Set(found.flatMap(({ key }) => key ?? []))];
}

/** Whether every day or hour has fewer rows than were read of it. */
function isBelow(found: readonly { readonly span: number }[], max: number): boolean {
  const rows = new Map<number, number>();
  for (const { span } of found) rows.set(span, (rows.get(span) ?? 0) + 1);
  return rows.values().every((count) => count < max);
}
