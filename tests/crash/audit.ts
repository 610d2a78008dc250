// The auditor: compares what the clients know with what the service answers and with what its tables hold. A list
// of faults is the result, so that a test shows all of them at once.

import type { Database } from "../../src/storage/database.ts";
import type { Call, FirstAnswer, Hold, Record } from "./record.ts";
import { guardFaults } from "./guards.ts";
import type { Load } from "./load.ts";
import { GUARDED_USER, type Stage, TIGHT_QUOTA, TIGHT_USER, WIDE_USERS, WITNESS_USER } from "./stage.ts";
import { pause } from "./program.ts";
import { answerOf, Wire } from "./wire.ts";

/** How often a read is asked that is answered 503, as a client does. */
const READ_TRIES = 3;
const FEED_PAGES = 10;
const FEED_PAGE = 100;
/** Of the newest events that the pages hold, this many must be the newest that were acknowledged. */
const FEED_ACKED = 300;

/** First answers that are asked for again: the newest, and as many others. */
const ANSWERS_AGAIN = 20;
/** The clients' realm: users of other apps are none of their business. */
const REALM = `(select realm from users where id = '${TIGHT_USER}')`;
const OF_REALM = `user_key in (select key from users where realm = ${REALM})`;

type Line = [
  ...[plan: string, group: string, start: number, end: number | null, unit: string, taken: string],
  left?: unknown,
  kind?: string,
];

interface ReservationRow {
  readonly id: string;
  readonly user_key: number;
  readonly status: string;
  readonly metadata: string;
  readonly lines: string;
  /** The hold of the caller, for the part of a user above. */
  readonly part_of: string | null;
}

interface EventRow {
  readonly id: string;
  readonly user_key: number;
  readonly match_status: string;
  readonly metadata: string;
  readonly reservation_id: string | null;
  readonly lines: string;
  /** What it took from users above: of each its number, its lines and more. */
  readonly levels: string | null;
}

/** Everything that can be looked at while the process serves: by HTTP, and on a server by SQL. No client is at work. */
export async function auditServing(stage: Stage, load: Load, origin: string): Promise<string[]> {
  await load.finish(origin);
  const faults = await auditAnswers(load, origin, stage.secretKey);
  if (stage.isEmbedded) return [...faults, ...guardFaults(load.record)];
  const usage = await stage.withDatabase((database) => auditUsage(database, origin, stage.secretKey));
  return [...faults, ...usage, ...await auditStopped(stage, load)];
}

/** The tables: of a server at any time, of the embedded store when its process has ended. */
export function auditStopped(stage: Stage, load: Load): Promise<string[]> {
  return stage.withDatabase((database) => auditTables(load.record, database));
}

/** By HTTP: the feed, the counters, and holds that must still be known. */
export async function auditAnswers(load: Load, origin: string, secretKey: string): Promise<string[]> {
  const wire = new Wire(origin);
  const get = async (path: string) => {
    for (let tries = 1;; tries++) {
      const call = { method: "GET", path: `/api/v1${path}`, bearer: secretKey };
      const { status, body } = answerOf(await wire.call(call));
      if (status === 200) return body.data;
      // The first read may find out that its connection was ended.
      if (status !== 503 || tries === READ_TRIES) {
        throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
      }
      await pause(1_000);
    }
  };
  const faults: string[] = [];
  try {
    for (const hold of load.knownHolds().slice(0, 5)) await load.commit(origin, hold);
    // Reading the feed waits until the tables have this too.
    await load.releaseAll(origin, GUARDED_USER);
    for (const hold of [...load.record.holds.values()].filter(isCommitted).slice(-3)) {
      const body = { reservationId: hold.id };
      const again = answerOf(
        await wire.call({ method: "POST", path: "/api/v1/commit", bearer: secretKey, body }),
      );
      if (again.status !== 409) faults.push(`${hold.id} was committed and a commit answers ${again.status}`);
    }
    const feed: string[] = [];
    for (let page = 0; page < FEED_PAGES; page++) {
      const { events } = await get(`/events?limit=${FEED_PAGE}&offset=${page * FEED_PAGE}`);
      feed.push(...events.map((event: { id: string }) => event.id));
    }
    const seen = new Set(feed);
    if (seen.size !== feed.length) faults.push(`The feed lists ${feed.length - seen.size} events twice`);
    for (const id of load.record.eventIds.slice(-FEED_ACKED)) {
      if (!seen.has(id)) faults.push(`The feed lacks ${id}`);
    }
    faults.push(...await auditFirstAnswers(load.record, wire));
    const tight = await get(`/usage?userId=${TIGHT_USER}`);
    if (tight.counters[0].count > TIGHT_QUOTA) faults.push(`${TIGHT_USER} is past quota in usage`);
    const { counters } = await get(`/usage?userId=${GUARDED_USER}`);
    const open = counters.find((counter: { groupId: string }) => counter.groupId === "lg_open");
    if (open.count !== 0) faults.push(`${open.count} are in flight, and no hold is open`);
  } finally {
    wire.close();
  }
  return faults;
}

/** A keyed call that was answered gets that answer again, to the letter. */
async function auditFirstAnswers({ firstAnswers }: Record, wire: Wire): Promise<string[]> {
  const all = [...firstAnswers.values()];
  const older = Array.from(
    { length: Math.min(ANSWERS_AGAIN, all.length) },
    () => all[Math.floor(Math.random() * all.length)] as FirstAnswer,
  );
  const faults: string[] = [];
  for (const { request, status, body } of [...all.slice(-ANSWERS_AGAIN), ...older]) {
    const again = answerOf(await wire.call(request));
    const isSame = again.status === status && JSON.stringify(again.body) === body;
    if (isSame && again.headers.get("idempotent-replayed") === "true") continue;
    const told = `${status} ${body} and now ${again.status} ${JSON.stringify(again.body)}`;
    faults.push(`The first answer of ${request.idempotencyKey} was ${told}`);
  }
  return faults;
}

/** Counters by HTTP against those of the tables. */
export async function auditUsage(database: Database, origin: string, secretKey: string): Promise<string[]> {
  const faults: string[] = [];
  const wire = new Wire(origin);
  const rows = await database.query<{ id: string; count: string }>(
    `select u.id, c.count::text as count from users u join counters c on c.user_key = u.key where realm = ${REALM}`,
  );
  const counts = new Map(rows.map(({ id, count }) => [id, Number(count)]));
  for (const userId of [TIGHT_USER, WITNESS_USER, ...WIDE_USERS]) {
    const path = `/api/v1/usage?userId=${userId}`;
    const usage = answerOf(await wire.call({ method: "GET", path, bearer: secretKey })).body.data;
    const told = usage.counters[0].count;
    if (told !== (counts.get(userId) ?? 0)) {
      faults.push(`${userId}: usage ${told}, table ${counts.get(userId)}`);
    }
  }
  wire.close();
  return faults;
}

/** By SQL: every row against every call. The service must have drained and no client may be at work. */
export async function auditTables(record: Record, database: Database): Promise<string[]> {
  const rows = await database.query<ReservationRow>(`select * from reservations where ${OF_REALM}`);
  const reservations = rows.filter((row) => row.part_of === null);
  const events = await database.query<EventRow>(`select * from events where ${OF_REALM}`);
  const settled = Map.groupBy(
    events.filter((row) => row.reservation_id !== null),
    (row) => row.reservation_id,
  );
  return [
    ...record.faults,
    ...guardFaults(record),
    ...checkCalls(record, "reserve", reservations),
    ...checkCalls(record, "track", events.filter((row) => row.reservation_id === null)),
    ...[...record.holds.values()].flatMap((hold) =>
      checkHold(hold, reservations, settled.get(hold.id) ?? [])
    ),
    ...checkSettled(reservations, settled),
    ...checkParts(rows, reservations),
    ...await checkCounters(database, rows, events),
    ...await checkRest(record, database, events),
    ...await checkCaptures(record, database),
  ].slice(0, 40);
}

/** Each call made at most one row; an acknowledged one exactly that which its answer named; a refused one none. */
function checkCalls(
  record: Record,
  kind: Call["kind"],
  rows: readonly { id: string; metadata: string }[],
): string[] {
  const faults: string[] = [];
  const made = Map.groupBy(rows, ({ metadata }) => JSON.parse(metadata).call as string);
  for (const [tag, twins] of made) {
    const call = record.calls.get(tag);
    if (call?.kind !== kind) faults.push(`A ${kind} that no client sent made ${twins[0]?.id}`);
    else if (twins.length > 1) faults.push(`${kind} ${tag} made ${twins.map(({ id }) => id).join(", ")}`);
    else if (call.fate === "refused") faults.push(`${kind} ${tag} was refused and made ${twins[0]?.id}`);
  }
  for (const call of record.calls.values()) {
    if (call.kind !== kind || call.fate !== "acked") continue;
    const id = made.get(call.tag)?.[0]?.id;
    if (id !== call.id) faults.push(`${kind} ${call.tag} was answered with ${call.id}, the table has ${id}`);
  }
  return faults;
}

const rowsById = new WeakMap<readonly ReservationRow[], Map<string, ReservationRow>>();

function rowOf(rows: readonly ReservationRow[], id: string): ReservationRow | undefined {
  let map = rowsById.get(rows);
  if (map === undefined) rowsById.set(rows, map = new Map(rows.map((row) => [row.id, row])));
  return map.get(id);
}

/** Checks that a hold has the state of its answered settlement, or a state that an unanswered one may have left. */
function checkHold(
  hold: Hold,
  reservations: readonly ReservationRow[],
  events: readonly EventRow[],
): string[] {
  const row = rowOf(reservations, hold.id);
  if (row === undefined) return [`${hold.id} is lost`];
  const acked = hold.settlements.find(({ fate }) => fate === "acked");
  const possible = acked === undefined
    ? [null, ...hold.settlements.filter(({ fate }) => fate === "unknown")]
    : [acked];
  const taken = takenOf(row);
  const fits = possible.some((settlement) => {
    if (settlement === null) return row.status === "held" && taken === hold.call.count && events.length === 0;
    const [event] = events;
    if (events.length !== 1 || event === undefined) return false;
    if (settlement.kind === "release") return row.status === "released" && event.match_status === "released";
    if (settlement.eventId !== null && settlement.eventId !== event.id) return false;
    const final = hold.call.count + settlement.extra;
    return row.status === "committed" && taken === final && takenOf(event) === final;
  });
  if (fits) return [];
  const known = JSON.stringify(hold.settlements);
  return [
    `${hold.id} of ${hold.call.count} is ${row.status} with ${taken} and ${events.length} events: ${known}`,
  ];
}

/** Checks that a settled row has one event, an open row has none, and no event is without a row. */
function checkSettled(
  reservations: readonly ReservationRow[],
  settled: ReadonlyMap<string | null, readonly EventRow[]>,
): string[] {
  const faults: string[] = [];
  for (const row of reservations) {
    const count = settled.get(row.id)?.length ?? 0;
    if (count !== (row.status === "held" ? 0 : 1)) {
      faults.push(`${row.id} is ${row.status} with ${count} events`);
    }
  }
  for (const id of settled.keys()) {
    if (rowOf(reservations, id as string) === undefined) faults.push(`Events of ${id}, which is lost`);
  }
  return faults;
}

/** Checks that the part of an account has the state of its member's hold, and takes as much. */
function checkParts(rows: readonly ReservationRow[], reservations: readonly ReservationRow[]): string[] {
  const parts = rows.filter((row) => row.part_of !== null);
  const faults = parts.flatMap((part) => {
    const hold = rowOf(reservations, part.part_of as string);
    const isSame = hold?.status === part.status && takenOf(hold) === takenOf(part);
    return isSame ? [] : [`${part.id} is a ${part.status} part of ${part.part_of}, which is ${hold?.status}`];
  });
  return parts.length === 0 && rows.length > 100
    ? [...faults, "No member of the account holds anything"]
    : faults;
}

/** counter = open holds + events + adjusted, for every counter. */
async function checkCounters(
  database: Database,
  reservations: readonly ReservationRow[],
  events: readonly EventRow[],
): Promise<string[]> {
  const counters = await database.query<
    {
      user_key: number;
      plan_id: string;
      group_id: string;
      window_start_ms: number;
      window_end_ms: number | null;
      kind: string | null;
      count: string;
      adjusted: string;
    }
  >(`select * from counters where ${OF_REALM}`);
  // After the read: a slot that passes meanwhile may have its counter in it or not.
  const now = Date.now();
  const faults: string[] = [];
  const sums = new Map<string, number>();
  const add = (userKey: number, lines: string) => {
    for (const [plan, group, start, end, , taken, , kind] of JSON.parse(lines) as Line[]) {
      if (kind === "concurrency" || isPassedSlot(kind, end, now)) continue;
      const name = `${userKey} ${plan} ${group} ${start}`;
      sums.set(name, (sums.get(name) ?? 0) + Number(taken));
    }
  };
  for (const row of reservations) if (row.status === "held") add(row.user_key, row.lines);
  for (const row of events) {
    add(row.user_key, row.lines);
    for (const [userKey, lines] of JSON.parse(row.levels ?? "[]") as [number, Line[]][]) {
      add(userKey, JSON.stringify(lines));
    }
  }
  for (const row of counters) {
    if (isPassedSlot(row.kind, row.window_end_ms, now)) continue;
    const name = `${row.user_key} ${row.plan_id} ${row.group_id} ${row.window_start_ms}`;
    const sum = (sums.get(name) ?? 0) + Number(row.adjusted);
    if (sum !== Number(row.count)) faults.push(`Counter ${name} is ${row.count}, its parts are ${sum}`);
    if (row.plan_id === "plan_tight" && Number(row.count) > TIGHT_QUOTA) {
      faults.push(`Past quota: ${row.count}`);
    }
    sums.delete(name);
  }
  for (const [name, sum] of sums) if (sum !== 0) faults.push(`No counter ${name} for ${sum}`);
  return faults;
}

/** Whether it is the slot of a rate that has passed: the service removes those. */
function isPassedSlot(kind: string | null | undefined, end: number | null, now: number): boolean {
  return kind === "rate" && end !== null && end <= now;
}

/** Operations, first answers and the journal. */
async function checkRest(record: Record, database: Database, events: readonly EventRow[]): Promise<string[]> {
  const faults: string[] = [];
  const [operations] = await database.query<{ used: number }>(
    `select coalesce(sum(used), 0)::bigint as used from operations where mode = 'live' and workspace_id =
       (select workspace_id from realms join apps on apps.id = app_id where realm = ${REALM})`,
  );
  const counted = events.filter((row) => row.match_status === "matched").length;
  if (operations?.used !== counted) {
    faults.push(`${operations?.used} operations for ${counted} counted events`);
  }
  const keys = new Set(
    (await database.query<{ key: string }>(`select key from idempotency where realm = ${REALM}`)).map((row) =>
      row.key
    ),
  );
  for (const { idempotencyKey, fate } of record.calls.values()) {
    if (idempotencyKey !== null && fate === "acked" && !keys.has(idempotencyKey)) {
      faults.push(`The first answer of ${idempotencyKey} is lost`);
    }
  }
  const [journal] = await database.query<{ left: number }>("select count(*)::bigint as left from journal");
  if (journal?.left !== 0) faults.push(`${journal?.left} batches are left in the journal`);
  return faults;
}

/** A capture made one event at most, and an acknowledged one exactly one. */
async function checkCaptures({ captures }: Record, database: Database): Promise<string[]> {
  const rows = await database.query<{ event: string; count: number }>(
    `select event, count(*) as count from analytics_events where realm = ${REALM} group by event`,
  );
  const counts = new Map(rows.map(({ event, count }) => [event, Number(count)]));
  return [...captures].flatMap(([event, fate]) => {
    const count = counts.get(event) ?? 0;
    return count > 1 || fate === "acked" && count === 0
      ? [`${event} is ${fate} and has ${count} events`]
      : [];
  });
}

function isCommitted({ settlements }: Hold): boolean {
  return settlements.some(({ kind, fate }) => kind === "commit" && fate === "acked");
}

/** What was taken from the quota, which is the first group of each plan. */
function takenOf({ lines }: { readonly lines: string }): number {
  const [line] = JSON.parse(lines) as Line[];
  return Number(line?.[5] ?? 0);
}
