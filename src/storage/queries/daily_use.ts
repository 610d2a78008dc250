// Usage by day, from the sums that src/operations/sweeps/daily_use.ts maintains. The cost of a read does not grow with the
// number of events, users or event types: it reads the leaders of each day by index, then the rows of those shown.

import { numberOf, parseAmount } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";
import { SHOWN, shownKey } from "./feed.ts";

/** A range of days, both ends included, counted from 1970-01-01. */
export interface DailyUseQuery {
  readonly realm: number;
  readonly from: number;
  readonly to: number;
  readonly by: "event" | "user";
  /** Only this user's usage; null for all users. */
  readonly userId: string | null;
}

/** Usage of one day. */
export interface Use {
  readonly events: number;
  readonly blocked: number;
  readonly costCents: number;
  readonly costCredits: number;
}

/** The part of an event type or of a user. */
export interface PartOfUse extends Use {
  readonly event: string | null;
  readonly userId: string | null;
  readonly quantity: number;
}

/** A day with its parts, in the order of their events over all days, most first. */
export interface DayOfUse extends Use {
  readonly day: number;
  readonly parts: readonly PartOfUse[];
}

/** The number of event types, or users, that are shown. */
const PARTS_MAX = 10;
/** The number of leaders that are read of each day. */
const LEADERS_MAX = 20;

interface SumRow {
  readonly day: number;
  /** An event type, or the key of a user as text; empty for the sum of all. */
  readonly part: string;
  readonly events: number;
  readonly blocked: number;
  readonly quantity: string;
  readonly cost_cents: string;
  readonly cost_credits: string;
}

/** Lists every day of a range, oldest first, with the leading parts. */
export async function listDailyUse(database: Database, query: DailyUseQuery): Promise<DayOfUse[]> {
  const { by, userId } = query;
  if (userId !== null) return await daysOfUser(database, query, userId);
  if (by === "event") {
    const types = await leadingTypes(database, query);
    const rows = await rowsOfTypes(database, query, types);
    return daysOf(query, rows, types, (type) => ({ event: type, userId: null }));
  }
  const users = await leadingUsers(database, query);
  const names = new Map(users.map(({ key, id }) => [String(key), id]));
  const [totals, rows] = await Promise.all([
    rowsOfTypes(database, query, []),
    rowsOfUsers(database, query, users.map(({ key }) => key)),
  ]);
  return daysOf(query, [...totals, ...rows], [...names.keys()], (key) => ({
    event: null,
    userId: names.get(key) as string,
  }));
}

async function daysOfUser(database: Database, query: DailyUseQuery, userId: string): Promise<DayOfUse[]> {
  const key = await shownKey(database, query.realm, userId);
  if (key === null) return daysOf(query, [], [], () => ({ event: null, userId }));
  const totals = await rowsOfUsers(database, query, [key]);
  const whole = totals.map((row) => ({ ...row, part: "" }));
  if (query.by === "user") {
    return daysOf(query, [...whole, ...totals], [String(key)], () => ({ event: null, userId }));
  }
  const rows = await rowsOfUserByType(database, query, key);
  const types = new Map<string, number>();
  for (const { part, events } of rows) types.set(part, (types.get(part) ?? 0) + events);
  const leaders = [...types].sort(([, one], [, other]) => other - one).map(([type]) => type);
  return daysOf(query, [...whole, ...rows], leaders, (type) => ({ event: type, userId }));
}

/** SQL of the days of a range, its first and last day being $1 and $2. */
const DAYS = "generate_series($1::int, $2::int) as days(day)";
const SUMS = `sum(d.events)::bigint as events, sum(d.blocked)::bigint as blocked,
  sum(d.quantity) as quantity, sum(d.cost_cents) as cost_cents,
  sum(d.cost_credits) as cost_credits`;

async function leadingTypes(database: Database, { realm, from, to }: DailyUseQuery): Promise<string[]> {
  const rows = await database.query<{ type: string }>(
    `select leaders.type from ${DAYS} cross join lateral (
       select type, events from daily_use where realm = $3::int and day = days.day and type <> ''
       order by events desc limit ${LEADERS_MAX}
     ) leaders group by leaders.type order by sum(leaders.events) desc, leaders.type limit ${PARTS_MAX}`,
    [from, to, realm],
  );
  return rows.map(({ type }) => type);
}

function rowsOfTypes(
  database: Database,
  { realm, from, to }: DailyUseQuery,
  types: readonly string[],
): Promise<SumRow[]> {
  // Looks up row by row: the planner would compare all rows of the days with the list.
  return database.query<SumRow>(
    `select days.day, found.type as part, found.events, found.blocked, found.quantity, found.cost_cents,
       found.cost_credits
     from ${DAYS} cross join unnest($4::text::text[]) as named(type) cross join lateral (
       select * from daily_use where realm = $3::int and day = days.day and type = named.type limit 1
     ) found`,
    [from, to, realm, arrayText(["", ...types])],
  );
}

/** Lists the leading users, without users who are hidden from the feed. */
async function leadingUsers(
  database: Database,
  { realm, from, to }: DailyUseQuery,
): Promise<{ key: UserKey; id: string }[]> {
  return await database.query<{ key: UserKey; id: string }>(
    `select key, (select id from users where users.key = leaders.key) as id from (
       select (select c.key from users u join users c on c.key = coalesce(u.merged_into, u.key)
           where u.key = busy.user_key and ${SHOWN}) as key, sum(busy.events) as events
       from ${DAYS} cross join lateral (
         select user_key, events from daily_use_of_users where realm = $3::int and day = days.day
         order by events desc limit ${LEADERS_MAX}
       ) busy group by 1
     ) leaders where key is not null order by events desc, key limit ${PARTS_MAX}`,
    [from, to, realm],
  );
}

/** SQL of the numbers of users ($3) and of their aliases. */
const OWNERS = `(select own.key, own.key as canonical from unnest($3::text::bigint[]) as own(key)
  union all select a.key, a.merged_into from users a where a.merged_into = any($3::text::bigint[])) as owners`;

const OF_OWNER = `cross join lateral (
  select * from daily_use_of_users where user_key = owners.key and day between $1::int and $2::int) d`;

function rowsOfUsers(
  database: Database,
  { from, to }: DailyUseQuery,
  keys: readonly UserKey[],
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `select d.day, owners.canonical::text as part, ${SUMS} from ${OWNERS} ${OF_OWNER}
     group by d.day, owners.canonical`,
    [from, to, arrayText(keys)],
  );
}

function rowsOfUserByType(
  database: Database,
  { from, to }: DailyUseQuery,
  key: UserKey,
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `with sums as materialized (
       select d.day, d.type as part, ${SUMS} from ${OWNERS} ${OF_OWNER} group by d.day, d.type
     )
     select * from sums where part in (
       select part from sums group by part order by sum(events) desc, part limit ${PARTS_MAX})`,
    [from, to, arrayText([key])],
  );
}

/** Makes every day of the range, with its total and its parts in the given order. */
function daysOf(
  { from, to }: DailyUseQuery,
  rows: readonly SumRow[],
  parts: readonly string[],
  named: (part: string) => Pick<PartOfUse, "event" | "userId">,
): DayOfUse[] {
  const byPlace = new Map(rows.map((row) => [`${row.day} ${row.part}`, row]));
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => {
    const day = from + index;
    return {
      day,
      ...useOf(byPlace.get(`${day} `)),
      parts: parts.flatMap((part) => {
        const row = byPlace.get(`${day} ${part}`);
        if (row === undefined) return [];
        return [{ ...named(part), ...useOf(row), quantity: numberOf(parseAmount(row.quantity)) }];
      }),
    };
  });
}

function useOf(row: SumRow | undefined): Use {
  return {
    events: row?.events ?? 0,
    blocked: row?.blocked ?? 0,
    costCents: row === undefined ? 0 : numberOf(parseAmount(row.cost_cents)),
    costCredits: row === undefined ? 0 : numberOf(parseAmount(row.cost_credits)),
  };
}

/** Reads the time of the first event that is not in the sums yet; null if all are. */
export async function firstUnadded(database: Database, realm: number): Promise<Millis | null> {
  const [row] = await database.query<{ at: Millis | null }>(
    `select (select e.created_at_ms from events e where e.realm = $1::int
         and (e.created_at_ms, e.id) > (coalesce(m.at_ms, -1), coalesce(m.event_id, ''))
       order by e.created_at_ms, e.id limit 1) as at
     from (select 1) one left join daily_use_marks m on m.realm = $1::int`,
    [realm],
  );
  return row?.at ?? null;
}
