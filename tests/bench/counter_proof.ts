// Proves after a replay that no usage was lost or counted twice: for every user the counter that GET /v1/usage
// answers, the counter in its table and the sum of the user's recorded events are one number.

import type { Database } from "../../src/storage/database.ts";

/** The sum of the events of one user's limit group, and its counter in the table. */
interface Sums {
  readonly user_id: string;
  readonly group_id: string;
  readonly events: number;
  readonly taken: string;
  readonly counted: string | null;
}

/** What was proved. */
export interface Proof {
  readonly users: number;
  readonly counters: number;
  readonly openHolds: number;
  /** By limit group. */
  readonly totals: Readonly<
    Record<string, { readonly taken: number; readonly events: number; readonly largest: number }>
  >;
  readonly differences: readonly string[];
}

/** Asks the service for a user's counters. */
export type UsageOf = (userId: string) => Promise<{ groupId: string; count: number }[]>;

// An event's lines are JSON: [[planId, groupId, windowStart, windowEnd, unit, taken], ...].
const SUMS = `
  with lines as (
    select e.user_key, e.id, line ->> 0 as plan_id, line ->> 1 as group_id, (line ->> 2)::bigint as start_ms,
      (line ->> 5)::numeric as taken
    from events e cross join lateral jsonb_array_elements(e.lines::jsonb) line
    where e.match_status = 'matched'
  )
  select u.id as user_id, l.group_id, count(*)::int as events, sum(l.taken)::text as taken,
    (select c.count::text from counters c where c.user_key = l.user_key and c.plan_id = l.plan_id
       and c.group_id = l.group_id and c.window_start_ms = l.start_ms) as counted
  from lines l join users u on u.key = l.user_key
  where u.id like $1
  group by u.id, l.user_key, l.plan_id, l.group_id, l.start_ms
  order by u.id, l.group_id`;

/** Compares the three for every user whose id starts with a prefix. Every change must have been drained. */
export async function proveCounters(database: Database, prefix: string, usageOf: UsageOf): Promise<Proof> {
  const pattern = `${prefix.replaceAll("_", "\\_")}%`;
  const rows = await database.query<Sums>(SUMS, [pattern]);
  const [held] = await database.query<{ holds: number }>(
    `select count(*)::int as holds from reservations r join users u on u.key = r.user_key
     where r.status = 'held' and u.id like $1`,
    [pattern],
  );
  const totals: Record<string, { taken: number; events: number; largest: number }> = {};
  const differences: string[] = [];
  const users = Map.groupBy(rows, (row) => row.user_id);
  for (const [userId, sums] of users) {
    const usage = new Map((await usageOf(userId)).map(({ groupId, count }) => [groupId, count]));
    for (const { group_id: group, events, taken, counted } of sums) {
      const sum = Number(taken);
      if (Number(counted) !== sum || usage.get(group) !== sum) {
        differences.push(`${userId} ${group}: events ${taken}, table ${counted}, usage ${usage.get(group)}`);
      }
      const total = totals[group] ??= { taken: 0, events: 0, largest: 0 };
      total.taken = Math.round((total.taken + sum) * 1e6) / 1e6;
      total.events += events;
      total.largest = Math.max(total.largest, sum);
    }
  }
  return { users: users.size, counters: rows.length, openHolds: held?.holds ?? -1, totals, differences };
}
