// Proves for every canonical user that the books add up: counters, shares, sold overage, runs and credit balances are the
// sums of holds, events and ledger; sums by day are those of events; what is open falls due in time and has a user; each
// window has what its plan includes once, each paid top-up its grant, each refund its revoke, each message its webhook.
// It reads one snapshot, walks through the users by key in steps, and sums in SQL, so memory holds only a page of drifts.
//
// counters.cost_cents is left out: a plan change moves or clears cost without a record, so events cannot prove it.

import { arrayText, type Database, type Session } from "../database.ts";
import type { Millis } from "../../domain/values/period.ts";
import { RECONCILE_LIMITS } from "../../process/limits.ts";
import { hasMovedCells, movedUsers } from "../nodes/moved_cells.ts";
import { type FaultKind, FAULTS, inRange, LINES_OF_LEVELS, owned } from "./reconcile_faults.ts";
import { DAILY } from "./reconcile_daily.ts";
import { REPORTED_OVERAGE, SOLD } from "./reconcile_overage.ts";
import { RUNS } from "./reconcile_runs.ts";
import { TOP_UP_FAULTS } from "./reconcile_top_ups.ts";
import { SHARES } from "./reconcile_shares.ts";
import { SUMMARIES } from "./reconcile_summaries.ts";

type DriftKind =
  | "count"
  | "remaining"
  | "held"
  | "unknown_balance"
  | "unknown_user"
  | FaultKind;

/** A difference that the proof found. */
export interface Drift {
  readonly kind: DriftKind;
  readonly userKey: number;
  /** Null if the user's row is missing. */
  readonly userId: string | null;
  /** The difference in one line, without the user. */
  readonly text: string;
}

/** The number of rows that were examined. */
export interface ReconcileSummary {
  readonly users: number;
  readonly counters: number;
  readonly balances: number;
  /** Open holds. */
  readonly holds: number;
  readonly events: number;
  /** Journal batches that are not in the tables yet, and so not part of the proof. */
  readonly undrainedBatches: number;
  readonly drifts: number;
}

/** The lowest key: rows without a user may have any key, so the steps cover all keys. */
const KEY_MIN = Number.MIN_SAFE_INTEGER;
const KEY_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Proves the whole database. Reports each drift at once, in the order of users within a step.
 *
 * @param now the time in live mode; the clock of a test realm may be ahead of it
 */
export function reconcile(
  database: Database,
  onDrift: (drift: Drift) => void,
  stepUsersMax: number = RECONCILE_LIMITS.stepUsersMax,
  now: Millis = Date.now(),
): Promise<ReconcileSummary> {
  return prove(database, onDrift, (session) => steps(session, stepUsersMax), now);
}

/** The summary of a proof of some users. */
export interface SampleSummary extends ReconcileSummary {
  /** Whether these are all users. */
  readonly isWhole: boolean;
}

/**
 * Proves a bounded number of users with neighbouring keys; all users, if there are not more.
 *
 * @param place where among the keys of users the sample starts, from 0 to below 1
 */
export async function reconcileSample(
  database: Database,
  onDrift: (drift: Drift) => void,
  place: number,
  usersMax: number = RECONCILE_LIMITS.sampleUsersMax,
): Promise<SampleSummary> {
  let isWhole = false;
  const summary = await prove(database, onDrift, async function* (session) {
    await session.query(`set local statement_timeout = ${RECONCILE_LIMITS.sampleMs}`);
    const range = await sampleRange(session, place, usersMax);
    isWhole = range === null;
    yield range ?? [KEY_MIN, KEY_MAX];
  }, Date.now());
  return { ...summary, isWhole };
}

/** Finds the keys of a sample; null if it covers all users. */
async function sampleRange(session: Session, place: number, usersMax: number): Promise<KeyRange | null> {
  const [bounds] = await session.query<{ first: number | null; last: number | null; more: number }>(
    `select min(key) as first, max(key) as last,
       (select count(*) from (select from users limit $1::int + 1) counted) as more
     from users`,
    [usersMax],
  );
  if (bounds === undefined || bounds.first === null || bounds.last === null) return null;
  if (bounds.more <= usersMax) return null;
  const from = bounds.first - 1 + Math.floor(place * (bounds.last - bounds.first + 1));
  const [step] = await session.query<{ last: number | null }>(
    `select max(key) as last from (select key from users where key > $1::bigint order by key limit $2::int) step`,
    [from, usersMax],
  );
  return [from, step?.last ?? bounds.last];
}

/** Proves ranges of users in one snapshot. */
function prove(
  database: Database,
  onDrift: (drift: Drift) => void,
  rangesOf: (session: Session) => AsyncIterable<KeyRange>,
  now: Millis,
): Promise<ReconcileSummary> {
  return database.transaction(async (session) => {
    await session.query("set transaction isolation level repeatable read, read only");
    // The planner guesses a hundred lines per event, and would compile the query of every step for that.
    await session.query("set local jit = off");
    const sum = { users: 0, counters: 0, balances: 0, holds: 0, events: 0, undrainedBatches: 0, drifts: 0 };
    const tell = (drift: Drift) => {
      sum.drifts++;
      onDrift(drift);
    };
    const hasMoved = await hasMovedCells(session);
    for await (const range of rangesOf(session)) {
      const counts = await countRows(session, range);
      for (const name of ["users", "counters", "balances", "holds", "events"] as const) {
        sum[name] += counts[name];
      }
      await proveStaying(session, range, now, hasMoved, tell);
    }
    const [journal] = await session.query<{ batches: number }>("select count(*) as batches from journal");
    sum.undrainedBatches = journal?.batches ?? 0;
    return sum;
  });
}

/** Proves a range without users who are being erased, or were moved to another database by a split. */
async function proveStaying(
  session: Session,
  range: KeyRange,
  now: Millis,
  hasMoved: boolean,
  tell: (drift: Drift) => void,
): Promise<void> {
  const drifts: Drift[] = [];
  await proveRange(session, range, now, (drift) => drifts.push(drift));
  if (drifts.length === 0) return;
  const keys = [...new Set(drifts.map(({ userKey }) => userKey))];
  const erasing = await session.query<{ key: number }>(ERASING, [arrayText(keys)]);
  const leaving = new Set(erasing.map(({ key }) => key));
  if (hasMoved) { for (const key of await movedUsers(session, keys)) leaving.add(key); }
  for (const drift of drifts) if (!leaving.has(drift.userKey)) tell(drift);
}

const ERASING = `select u.key from users u left join users c on c.key = u.merged_into
  where u.key = any($1::text::bigint[]) and (u.erasing or c.erasing)`;

/** Keys above the first and up to the second. */
type KeyRange = readonly [number, number];

/** Yields ranges that cover every key, each with a bounded number of users. */
async function* steps(session: Session, stepUsersMax: number): AsyncIterable<KeyRange> {
  for (let from = KEY_MIN;;) {
    const [step] = await session.query<{ users: number; last: number | null }>(
      `select count(*) as users, max(key) as last
       from (select key from users where key > $1::bigint order by key limit $2::int) step`,
      [from, stepUsersMax],
    );
    const isLast = step === undefined || step.last === null || step.users < stepUsersMax;
    const to = isLast ? KEY_MAX : step.last as number;
    yield [from, to];
    if (isLast) return;
    from = to;
  }
}

type RowCounts = Pick<ReconcileSummary, "users" | "counters" | "balances" | "holds" | "events">;

async function countRows(session: Session, range: KeyRange): Promise<RowCounts> {
  const [counts] = await session.query<RowCounts>(COUNTS, range);
  return counts as RowCounts;
}

async function proveRange(
  session: Session,
  range: KeyRange,
  now: Millis,
  tell: (drift: Drift) => void,
): Promise<void> {
  await eachRow<OwnerlessRow>(session, OWNERLESS, range, (row) => tell(ownerlessDrift(row)));
  await eachRow<CounterSums>(session, counterSums(now), range, (row) => tell(counterDrift(row)));
  await eachRow<BalanceSums>(session, BALANCE_SUMS, range, (row) => balanceDrifts(row).forEach(tell));
  for (const sql of [...DAILY, SHARES, SOLD, REPORTED_OVERAGE, RUNS, ...FAULTS, TOP_UP_FAULTS, SUMMARIES]) {
    await eachRow<FaultRow>(session, sql, range, (row) => tell(faultDrift(row)));
  }
}

/** Runs a query for drifts in pages. If all sums are right, that is one query without a row. */
async function eachRow<Row>(
  session: Session,
  sql: string,
  range: KeyRange,
  use: (row: Row) => void,
): Promise<void> {
  for (let offset = 0;; offset += RECONCILE_LIMITS.pageDriftsMax) {
    const rows = await session.query<Row>(
      `${sql} limit ${RECONCILE_LIMITS.pageDriftsMax} offset $3::bigint`,
      [
        ...range,
        offset,
      ],
    );
    rows.forEach(use);
    if (rows.length < RECONCILE_LIMITS.pageDriftsMax) return;
  }
}

const COUNTS = `select
  (select count(*) from users where ${inRange("key")}) as users,
  (select count(*) from counters where ${inRange("user_key")}) as counters,
  (select count(*) from credit_balances where ${inRange("user_key")}) as balances,
  (select count(*) from reservations where status = 'held' and ${inRange("user_key")}) as holds,
  (select count(*) from events where ${inRange("user_key")}) as events`;

/** The owner of a returned row; amounts are text. */
interface OwnedRow {
  readonly user_key: number;
  readonly user_id: string | null;
}

// Open holds, balances and messages of a user that does not exist.

interface OwnerlessRow {
  readonly user_key: number;
  readonly what: string;
  readonly id: string;
}

const OWNERLESS = `
  select user_key, what, id from (
    select user_key, 'open hold' as what, id from reservations
      where status = 'held' and ${inRange("user_key")}
    union all
    select user_key, 'credit balance', id from credit_balances where ${inRange("user_key")}
    union all
    select user_key, 'message', id from webhook_messages where ${inRange("user_key")}
  ) part
  where not exists (select from users where key = part.user_key)
  order by user_key, what, id`;

function ownerlessDrift({ user_key: userKey, what, id }: OwnerlessRow): Drift {
  return {
    kind: "unknown_user",
    userKey,
    userId: null,
    text: `${what} ${quoted(id)}: there is no such user`,
  };
}

/** SQL of the end of a line's slot of a rate; null for any other line. */
const SLOT_END = "case line ->> 7 when 'rate' then (line ->> 3)::bigint end";

// Counters: count = open holds + events + adjusted. Summing all parts by counter needs no join, and also finds lines of a
// counter without a row; these must add up to zero.

interface CounterSums extends OwnedRow {
  readonly plan_id: string;
  readonly group_id: string;
  readonly start_ms: number;
  readonly has_row: boolean;
  readonly count: string;
  readonly adjusted: string;
  readonly holds: string;
  readonly events: string;
  readonly proved: string;
}

/** SQL that leaves out lines of concurrency limits, which have no counter. */
const COUNTED = "line ->> 7 is distinct from 'concurrency'";

/** SQL of lines, which are JSON: [[planId, groupId, windowStart, windowEnd, unit, "taken", left, kind], ...]. */
function linesOf(table: string, inHolds: 0 | 1): string {
  const [hold, event] = inHolds === 1 ? ["line ->> 5", "'0'"] : ["'0'", "line ->> 5"];
  return `
    select user_key, line ->> 0, line ->> 1, (line ->> 2)::bigint, ${SLOT_END}, 0, 0, 0, (${hold})::numeric,
      (${event})::numeric
    from ${owned(table, "t.lines", `t.lines <> '[]'${inHolds === 1 ? " and t.status = 'held'" : ""}`)}
    cross join lateral jsonb_array_elements(lines::jsonb) line where ${COUNTED}`;
}

/** SQL of the lines of events of users below. */
const LEVEL_LINES = `
  select owner, line ->> 0, line ->> 1, (line ->> 2)::bigint, ${SLOT_END}, 0, 0, 0, 0::numeric, (line ->> 5)::numeric
  from ${LINES_OF_LEVELS} where ${inRange("owner")}`;

/**
 * SQL of the sums of counters. Slots of rates are proved while they count: after that nothing changes them. A counter may be
 * of a slot that ended and of a later window that began with it; it is proved as long as both count.
 */
const counterSums = (now: Millis) => `
  select user_key, (select id from users where key = sums.user_key) as user_id, plan_id, group_id, start_ms,
    has_row, trim_scale(count)::text as count, trim_scale(adjusted)::text as adjusted,
    trim_scale(holds)::text as holds, trim_scale(events)::text as events,
    trim_scale(holds + events + adjusted)::text as proved
  from (
    select user_key, plan_id, group_id, start_ms, min(slot_end_ms) as slot_end_ms,
      sum(row_count) > 0 as has_row, sum(count) as count,
      sum(adjusted) as adjusted, sum(holds) as holds, sum(events) as events
    from (
      select user_key, plan_id, group_id, window_start_ms as start_ms,
        case kind when 'rate' then window_end_ms end as slot_end_ms, 1 as row_count, count, adjusted,
        0::numeric as holds, 0::numeric as events
      from ${
  owned("counters", "t.plan_id, t.group_id, t.window_start_ms, t.window_end_ms, t.kind, t.count, t.adjusted")
}
      union all ${linesOf("reservations", 1)}
      union all ${linesOf("events", 0)}
      union all ${LEVEL_LINES}
      union all
      select user_key, plan_id, group_id, window_start_ms, null, 0, 0, 0, 0::numeric, amount
      from ${owned("erased_charges", "t.plan_id, t.group_id, t.window_start_ms, t.amount")}
    ) part
    group by user_key, plan_id, group_id, start_ms
  ) sums
  where count is distinct from holds + events + adjusted and (slot_end_ms is null or slot_end_ms > ${now} + (
    select clock_offset_ms from users u join realms r using (realm) where u.key = sums.user_key))
  order by user_key, plan_id, group_id, start_ms`;

function counterDrift(row: CounterSums): Drift {
  const name = `counter ${quoted(row.group_id)} of plan ${quoted(row.plan_id)} from ${row.start_ms} ms`;
  const parts = `open holds ${row.holds} + events ${row.events} + adjusted ${row.adjusted} = ${row.proved}`;
  const text = row.has_row
    ? `${name}: count ${row.count}, but ${parts}`
    : `${name}: there is no row, but ${parts}`;
  return { kind: "count", ...ownerOf(row), text };
}

// Balances: remaining = the ledger, held = the amounts that open holds took. The same summing also finds entries and credit
// lines of a balance that does not exist.

interface BalanceSums extends OwnedRow {
  readonly balance_id: string;
  readonly has_row: boolean;
  readonly remaining: string;
  readonly held: string;
  readonly entries: number;
  readonly ledger: string;
  readonly hold_lines: number;
  readonly taken: string;
}

/** SQL of the sums of balances. Credit lines are JSON: [[balanceId, unit, "taken"], ...]. */
const BALANCE_SUMS = `
  select user_key, (select id from users where key = sums.user_key) as user_id, balance_id, has_row,
    trim_scale(remaining)::text as remaining, trim_scale(held)::text as held,
    entries, trim_scale(ledger)::text as ledger, hold_lines, trim_scale(taken)::text as taken
  from (
    select user_key, balance_id, sum(row_count) > 0 as has_row, sum(remaining) as remaining, sum(held) as held,
      sum(entry_count) as entries, sum(delta) as ledger, sum(line_count) as hold_lines, sum(taken) as taken
    from (
      select user_key, id as balance_id, 1 as row_count, remaining, held, 0 as entry_count, 0::numeric as delta,
        0 as line_count, 0::numeric as taken
      from credit_balances where ${inRange("user_key")}
      union all
      select user_key, balance_id, 0, 0, 0, 1, delta, 0, 0
      from ${owned("credit_ledger", "t.balance_id, t.delta")}
      union all
      select user_key, line ->> 0, 0, 0, 0, 0, 0, 1, (line ->> 2)::numeric
      from reservations cross join lateral jsonb_array_elements(credits::jsonb) line
      where credits <> '[]' and status = 'held' and ${inRange("user_key")}
    ) part
    group by user_key, balance_id
  ) sums
  where not has_row or remaining is distinct from ledger or held is distinct from taken
  order by user_key, balance_id`;

function balanceDrifts(row: BalanceSums): Drift[] {
  const owner = ownerOf(row);
  const name = `credit balance ${quoted(row.balance_id)}`;
  if (!row.has_row) {
    const parts = `${row.entries} ledger rows (${row.ledger}) and ${row.hold_lines} lines of open holds ` +
      `(${row.taken}) name it`;
    return [{ kind: "unknown_balance", ...owner, text: `${name}: there is no row, but ${parts}` }];
  }
  const drifts: Drift[] = [];
  if (row.remaining !== row.ledger) {
    const text = `${name}: remaining ${row.remaining}, but its ledger sums to ${row.ledger}`;
    drifts.push({ kind: "remaining", ...owner, text });
  }
  if (row.held !== row.taken) {
    const text = `${name}: held ${row.held}, but open holds took ${row.taken}`;
    drifts.push({ kind: "held", ...owner, text });
  }
  return drifts;
}

/** A drift with a text made by SQL. */
interface FaultRow extends OwnedRow {
  readonly kind: FaultKind;
  readonly text: string;
}

function faultDrift({ kind, text, ...row }: FaultRow): Drift {
  return { kind, ...ownerOf(row), text };
}

function ownerOf({ user_key: userKey, user_id: userId }: OwnedRow): Pick<Drift, "userKey" | "userId"> {
  return { userKey, userId };
}

/** Quotes an id, with line breaks escaped. */
function quoted(id: string): string {
  return JSON.stringify(id);
}
