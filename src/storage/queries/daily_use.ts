// Usage by day, from the sums that src/operations/sweeps/daily_use.ts maintains. The cost of a read does not grow with the
// number of events, users or event types: it reads the leaders of each day by index, then the rows of those shown.

import { larger, numberOf, parseAmount } from "../../domain/values/amount.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";
import { SHOWN, shownKey } from "./feed.ts";

/** What the parts of a day are: event types, users, models, plans or hours. */
type DailyPart = "event" | "user" | "model" | "plan" | "hour";

/** The number by which parts lead; parts without it are no leaders. */
type DailyMeasure = "events" | "cost_cents" | "blocked";

/** A range of days, both ends included, counted from 1970-01-01. */
interface DailyUseQuery {
  readonly realm: number;
  readonly from: number;
  readonly to: number;
  readonly by: DailyPart;
  readonly measure: DailyMeasure;
  /** The most parts; absent for ten. */
  readonly partsMax?: number;
  /** Only this user's usage; null for all users. */
  readonly userId: string | null;
  /** Users to add to `userId`; absent for none. */
  readonly members?: readonly UserKey[];
}

/** Usage of one day. */
interface Use {
  readonly events: number;
  readonly blocked: number;
  readonly costCents: number;
  readonly costCredits: number;
}

/** What a part is a part of; null where the parts are others, and for the part of events without a model or plan. */
interface PartName {
  readonly event: string | null;
  readonly userId: string | null;
  readonly model: string | null;
  readonly planId: string | null;
  /** An hour of the day, from 0 to 23 in UTC. */
  readonly hour: number | null;
  /** Whether it is the part of events whose model and plan were not kept. */
  readonly isUnknown?: true;
}

/** The part of an event type, a user, a model or a plan. */
interface PartOfUse extends Use, PartName {
  readonly quantity: number;
  /** Events of models without a price; known by model and by plan alone. */
  readonly unpriced?: number;
}

/** A day with its parts, in the order of their measure over all days, most first. */
export interface DayOfUse extends Use {
  readonly day: number;
  /** The users with events or blocked events; null where it is not known. */
  readonly users: number | null;
  readonly parts: readonly PartOfUse[];
}

/** The number of parts that are shown. */
const PARTS_MAX = 10;
const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour));
/** The number of leaders that are read of each day. */
const LEADERS_MAX = 20;

interface SumRow {
  readonly day: number;
  /** An event type, model or plan, or the key of a user as text. */
  readonly part: string;
  readonly events: number;
  readonly blocked: number;
  readonly quantity: string;
  readonly cost_cents: string;
  readonly cost_credits: string;
  readonly unpriced?: number;
}

/** The rows of an answer. */
interface Found {
  /** The sums of whole days. */
  readonly totals: readonly SumRow[];
  readonly rows: readonly SumRow[];
  /** The parts to show, in order. */
  readonly leaders: readonly string[];
  /** The sums of the events of each day whose model and plan are known. */
  readonly known: readonly SumRow[];
  /** The users of each day, as events; null where the days are of one user. */
  readonly users: readonly SumRow[] | null;
  readonly nameOf: (part: string) => PartName;
}

const NAMELESS: PartName = { event: null, userId: null, model: null, planId: null, hour: null };

/** Lists every day of a range, oldest first, with the leading parts. */
export async function listDailyUse(database: Database, query: DailyUseQuery): Promise<DayOfUse[]> {
  const { by, userId } = query;
  if (userId !== null) return await daysOfUser(database, query, userId);
  if (by === "user") return await daysOfUsers(database, query);
  const leaders = by === "hour" ? HOURS : await leadingParts(database, query);
  const [whole, rows] = await Promise.all([
    wholeDays(database, query),
    by === "hour" ? rowsOfHours(database, query) : rowsOfParts(database, query, leaders),
  ]);
  return daysOf(query, { ...whole, rows, leaders, nameOf: namer(by, null) });
}

/** Names parts other than users. An empty text is the part of events without a model or plan. */
function namer(by: Exclude<DailyPart, "user">, userId: string | null): Found["nameOf"] {
  if (by === "hour") return (part) => ({ ...NAMELESS, userId, hour: Number(part) });
  const member = by === "plan" ? "planId" : by;
  return (part) => ({ ...NAMELESS, userId, [member]: part === "" ? null : part });
}

async function daysOfUsers(database: Database, query: DailyUseQuery): Promise<DayOfUse[]> {
  const users = await leadingUsers(database, query);
  const names = new Map(users.map(({ key, id }) => [String(key), id]));
  const [whole, rows] = await Promise.all([
    wholeDays(database, query),
    rowsOfUsers(database, query, users.map(({ key }) => key)),
  ]);
  const nameOf = (key: string) => ({ ...NAMELESS, userId: names.get(key) as string });
  return daysOf(query, { ...whole, rows, leaders: [...names.keys()], nameOf });
}

const NONE = { known: [], users: null } as const;

async function daysOfUser(database: Database, query: DailyUseQuery, userId: string): Promise<DayOfUse[]> {
  const { by, measure } = query;
  const key = await shownKey(database, query.realm, userId);
  const nameOf = by === "user" ? () => ({ ...NAMELESS, userId }) : namer(by, userId);
  if (key === null) return daysOf(query, { ...NONE, totals: [], rows: [], leaders: [], nameOf });
  const keys = [key, ...query.members ?? []];
  const totals = await sumsOfUsers(database, query, keys, String(key));
  if (by === "user") {
    return daysOf(query, { ...NONE, totals, rows: totals, leaders: [String(key)], nameOf });
  }
  const [rows, known] = by === "event"
    ? [await rowsOfUserByType(database, query, keys), []]
    : await Promise.all([
      rowsOfUserByPart(database, query, keys, COLUMN[by]),
      rowsOfUserByPart(database, query, keys, "''"),
    ]);
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(row.part, (sums.get(row.part) ?? 0) + Number(row[measure]));
  const leaders = by === "hour" ? HOURS : [...sums].filter(([, sum]) => measure === "events" || sum > 0)
    .sort(([, one], [, other]) => other - one).slice(0, query.partsMax ?? PARTS_MAX).map(([part]) => part);
  return daysOf(query, { ...NONE, totals, rows, leaders, known, nameOf });
}

/** SQL of the days of a range, its first and last day being $1 and $2. */
const DAYS = "generate_series($1::int, $2::int) as days(day)";
const SUMS = `sum(d.events)::bigint as events, sum(d.blocked)::bigint as blocked,
  sum(d.quantity) as quantity, sum(d.cost_cents) as cost_cents,
  sum(d.cost_credits) as cost_credits`;

/** SQL that leaves out rows without the measure. Its partial indexes need it word by word. */
const HAS: Readonly<Record<DailyMeasure, string>> = {
  events: "",
  cost_cents: " and cost_cents > 0",
  blocked: " and blocked > 0",
};

/** SQL of the sums of all users by event type, by plan or by model. */
function partsTable(
  by: DailyPart,
): { readonly table: string; readonly part: string; readonly where: string } {
  if (by === "event") {
    return { table: "daily_use", part: "type", where: "realm = $3::int and day = days.day" };
  }
  const where = `realm = $3::int and day = days.day and kind = '${by}'`;
  return { table: "daily_use_parts", part: "part", where };
}

async function leadingParts(database: Database, query: DailyUseQuery): Promise<string[]> {
  const { realm, from, to, by, measure, partsMax = PARTS_MAX } = query;
  const { table, part, where } = partsTable(by);
  // The sum of all types is one of the table's rows.
  const isPart = by === "event" ? " and type <> ''" : "";
  const rows = await database.query<{ part: string }>(
    `select leaders.part from ${DAYS} cross join lateral (
       select ${part} as part, ${measure} as measured from ${table} where ${where}${isPart}${HAS[measure]}
       order by ${measure} desc limit ${Math.max(LEADERS_MAX, partsMax)}
     ) leaders group by leaders.part order by sum(leaders.measured) desc, leaders.part limit ${partsMax}`,
    [from, to, realm],
  );
  return rows.map((row) => row.part);
}

function rowsOfParts(
  database: Database,
  { realm, from, to, by }: DailyUseQuery,
  parts: readonly string[],
): Promise<SumRow[]> {
  const { table, part, where } = partsTable(by);
  const unpriced = by === "event" ? "" : ", found.unpriced";
  // Looks up row by row: the planner would compare all rows of the days with the list.
  return database.query<SumRow>(
    `select days.day, named.part, found.events, found.blocked, found.quantity, found.cost_cents,
       found.cost_credits${unpriced}
     from ${DAYS} cross join unnest($4::text::text[]) as named(part) cross join lateral (
       select * from ${table} where ${where} and ${part} = named.part limit 1
     ) found`,
    [from, to, realm, arrayText(parts)],
  );
}

function rowsOfHours(database: Database, { realm, from, to }: DailyUseQuery): Promise<SumRow[]> {
  return database.query<SumRow>(
    `select found.* from ${DAYS} cross join lateral (
       select day, part, events, blocked, quantity, cost_cents, cost_credits, unpriced from daily_use_parts
       where realm = $3::int and day = days.day and kind = 'hour'
     ) found`,
    [from, to, realm],
  );
}

/** Reads the sums of whole days and those of their known events, in one statement: between two, events may be added. */
async function wholeDays(
  database: Database,
  { realm, from, to }: DailyUseQuery,
): Promise<Pick<Found, "totals" | "known" | "users">> {
  const sums = "day, events, blocked, quantity, cost_cents, cost_credits";
  const of = "where realm = $3::int and day between $1::int and $2::int";
  const rows = await database.query<SumRow>(
    `select '' as part, ${sums} from daily_use ${of} and type = ''
     union all select kind, ${sums} from daily_use_parts ${of} and kind in ('known', 'users') and part = ''`,
    [from, to, realm],
  );
  const rowsOf = (kind: string) => rows.filter(({ part }) => part === kind);
  return { totals: rowsOf(""), known: rowsOf("known"), users: rowsOf("users") };
}

/** Lists the leading users, without users who are hidden from the feed. */
async function leadingUsers(
  database: Database,
  { realm, from, to, measure }: DailyUseQuery,
): Promise<{ key: UserKey; id: string }[]> {
  return await database.query<{ key: UserKey; id: string }>(
    `select key, (select id from users where users.key = leaders.key) as id from (
       select (select c.key from users u join users c on c.key = coalesce(u.merged_into, u.key)
           where u.key = busy.user_key and ${SHOWN}) as key, sum(busy.measured) as measured
       from ${DAYS} cross join lateral (
         select user_key, ${measure} as measured from daily_use_of_users
         where realm = $3::int and day = days.day${HAS[measure]}
         order by ${measure} desc limit ${LEADERS_MAX}
       ) busy group by 1
     ) leaders where key is not null order by measured desc, key limit ${PARTS_MAX}`,
    [from, to, realm],
  );
}

/** SQL of the numbers of users ($3) and of their aliases. */
const OWNERS = `(select own.key, own.key as canonical from unnest($3::text::bigint[]) as own(key)
  union all select a.key, a.merged_into from users a where a.merged_into = any($3::text::bigint[])) as owners`;

const ofOwner = (table: string) =>
  `cross join lateral (
  select * from ${table} where user_key = owners.key and day between $1::int and $2::int) d`;

function rowsOfUsers(
  database: Database,
  { from, to }: DailyUseQuery,
  keys: readonly UserKey[],
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `select d.day, owners.canonical::text as part, ${SUMS} from ${OWNERS} ${ofOwner("daily_use_of_users")}
     group by d.day, owners.canonical`,
    [from, to, arrayText(keys)],
  );
}

/** @param part what the sums of all these users are the part of */
function sumsOfUsers(
  database: Database,
  { from, to }: DailyUseQuery,
  keys: readonly UserKey[],
  part: string,
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `select d.day, $4 as part, ${SUMS} from ${OWNERS} ${ofOwner("daily_use_of_users")} group by d.day`,
    [from, to, arrayText(keys), part],
  );
}

function rowsOfUserByType(
  database: Database,
  { from, to, measure }: DailyUseQuery,
  keys: readonly UserKey[],
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `with sums as materialized (
       select d.day, d.type as part, ${SUMS} from ${OWNERS} ${
      ofOwner("daily_use_of_users")
    } group by d.day, d.type
     )
     select * from sums where part in (
       select part from sums group by part order by sum(${measure}) desc, part limit ${PARTS_MAX})`,
    [from, to, arrayText(keys)],
  );
}

/** SQL of what a row of a user is a part of. */
const COLUMN = { plan: "d.plan_id", model: "d.model", hour: "d.hour::text" } as const;

/** @param part SQL of the part of a row */
function rowsOfUserByPart(
  database: Database,
  { from, to, measure }: DailyUseQuery,
  keys: readonly UserKey[],
  part: string,
): Promise<SumRow[]> {
  return database.query<SumRow>(
    `with sums as materialized (
       select d.day, ${part} as part, ${SUMS}, sum(d.unpriced)::bigint as unpriced
       from ${OWNERS} ${ofOwner("daily_use_parts_of_users")} group by 1, 2
     )
     select * from sums where part in (
       select part from sums group by part order by sum(${measure}) desc, part limit ${HOURS.length})`,
    [from, to, arrayText(keys)],
  );
}

/** Makes every day of the range, with its total and its parts in the given order; what is not known is the last part. */
function daysOf(
  { from, to, by, measure }: DailyUseQuery,
  { totals, rows, leaders, known, users, nameOf }: Found,
): DayOfUse[] {
  const [totalOf, knownOf, usersOf] = [byDay(totals), byDay(known), byDay(users ?? [])];
  const byPlace = new Map(rows.map((row) => [`${row.day} ${row.part}`, row]));
  return Array.from({ length: Math.max(to - from + 1, 0) }, (_, index) => {
    const day = from + index;
    const total = totalOf.get(day);
    const unknown = unknownOf(total, knownOf.get(day));
    const parts: PartOfUse[] = leaders.flatMap((part) => {
      const row = byPlace.get(`${day} ${part}`);
      if (row === undefined || (measure === "blocked" && row.blocked === 0)) return [];
      const quantity = numberOf(parseAmount(row.quantity));
      return [{ ...nameOf(part), ...useOf(row), ...unpricedOf(row), quantity }];
    });
    if (unknown !== null && by in COLUMN) parts.push(unknown);
    const counted = usersOf.get(day)?.events ?? 0;
    return { day, ...useOf(total), users: users === null || unknown !== null ? null : counted, parts };
  });
}

function byDay(rows: readonly SumRow[]): ReadonlyMap<number, SumRow> {
  return new Map(rows.map((row) => [row.day, row]));
}

function unpricedOf({ unpriced }: SumRow): { readonly unpriced?: number } {
  return unpriced === undefined ? {} : { unpriced };
}

/** What a day has beside the events whose model and plan are known; null for nothing. */
function unknownOf(total: SumRow | undefined, known: SumRow | undefined): PartOfUse | null {
  const events = (total?.events ?? 0) - (known?.events ?? 0);
  const blocked = (total?.blocked ?? 0) - (known?.blocked ?? 0);
  if (events <= 0 && blocked <= 0) return null;
  const left = (member: "quantity" | "cost_cents" | "cost_credits") =>
    numberOf(larger(parseAmount(total?.[member] ?? "0") - parseAmount(known?.[member] ?? "0"), 0n));
  return {
    ...NAMELESS,
    isUnknown: true,
    events: Math.max(0, events),
    blocked: Math.max(0, blocked),
    quantity: left("quantity"),
    costCents: left("cost_cents"),
    costCredits: left("cost_credits"),
    unpriced: 0,
  };
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
export async function firstUnadded(
  database: Pick<Database, "query">,
  realm: number,
): Promise<Millis | null> {
  const [row] = await database.query<{ at: Millis | null }>(
    `select (select e.created_at_ms from events e where e.realm = $1::int
         and (e.created_at_ms, e.id) > (coalesce(m.at_ms, -1), coalesce(m.event_id, ''))
       order by e.created_at_ms, e.id limit 1) as at
     from (select 1) one left join daily_use_marks m on m.realm = $1::int`,
    [realm],
  );
  return row?.at ?? null;
}
