// The drain's SQL: one transaction writes appended batches into the tables, each row once with its last value, and deletes
// their journal rows. A batch reaches the tables exactly once, whatever crashes: the journal rows are deleted first and
// counted, so a batch that another process has already replayed stops the transaction before it writes anything.
//
// A drain may be spread over time (pace.ts): then it works in pieces, each with so few rows that an append, which waits for
// everything before it in the write-ahead log, does not wait long.
//
// The drain works on the text in the journal. Rows that are new in these batches are copied straight into their table. New
// values of older rows go through a temporary table into an upsert.

import { arrayText, type Param, type Session, yieldToLoop } from "../database.ts";
import { Pace } from "./pace.ts";
import type { Found, TableSpec } from "../rows/columns.ts";
import { APPENDED, CHANGE_HEAD, FIRST_TABLE, TABLES } from "../rows/tables.ts";

/** A batch for the drain: encoded changes, one per line. */
export interface DrainBatch {
  readonly seq: number;
  readonly payload: string;
}

/** The lines of one table: those of new rows and those of new values, without their heads. */
interface TableWork {
  readonly spec: TableSpec;
  readonly appends: string[];
  readonly puts: string[];
}

/** Rows of one piece: about 100 kB of log with the indexes of the largest rows. */
const PIECE_ROWS = 250;
/** Lines handled at a time, before other work of the event loop gets a turn. */
const SLICE_LINES = 1000;
/** The part of a drain's time that reading its batches may take, up to 1. */
const READING = 0.25;

/**
 * Makes the planner look rows up by their keys. It has no statistics of a temporary table, and plans are cached: without
 * this it could read whole tables, or keep a plan from the time when a table was small.
 */
const BY_INDEX = `select set_config(name, 'off', true) from unnest(
  '{enable_seqscan,enable_bitmapscan,enable_hashjoin,enable_mergejoin,jit}'::text[]) as names(name)`;

/** Fails where the role may not make temporary tables; makes the one that nearly every drain uses. */
export async function prepareDrain(session: Session, staged: Set<string>): Promise<void> {
  await stage(session, "users");
  staged.add("users");
}

/**
 * Moves batches from the journal into the tables, within the caller's transaction.
 *
 * @param batches in order of seq
 * @param staged names of tables that have a temporary table in this session; grows. The caller clears it where the
 *   transaction fails, which takes along what it made.
 */
export async function drainBatches(
  session: Session,
  batches: readonly DrainBatch[],
  staged: Set<string>,
  pace: Pace = new Pace(0),
): Promise<void> {
  const work = await coalesce(batches, pace);
  await session.query(BY_INDEX);
  const removed = await session.query(
    "delete from journal where seq = any($1::text::bigint[]) returning seq",
    [arrayText(batches.map(({ seq }) => seq))],
  );
  if (removed.length !== batches.length) {
    throw new Error(`Cannot drain: ${removed.length} of ${batches.length} journal rows are left`);
  }
  const pieceRows = pace.isSpread ? PIECE_ROWS : Infinity;
  const pieces = work.reduce(
    (sum, { appends, puts }) => sum + piecesOf(appends, pieceRows) + piecesOf(puts, pieceRows),
    0,
  );
  let written = 0;
  const rest = () => pace.rest(READING + (1 - READING) * ++written / pieces);
  for (const { spec, appends, puts } of work) {
    for (let from = 0; from < appends.length; from += pieceRows) {
      const piece = pieceRows === Infinity ? appends : appends.slice(from, from + pieceRows);
      await session.copy(spec.name, spec.columns, chunksOf(piece));
      await rest();
    }
    if (puts.length === 0) continue;
    if (!staged.has(spec.name)) await stage(session, spec.name);
    staged.add(spec.name);
    await writeValues(session, spec, puts, piecesOf(puts, pieceRows), rest);
  }
}

/** Makes the temporary table for values of a table: not before it is needed, since each commit empties all that there are. */
async function stage(session: Session, name: string): Promise<void> {
  await session.query(
    `create temp table if not exists staged_${name} (like ${name} including defaults) on commit delete rows`,
  );
}

function piecesOf(lines: readonly string[], pieceRows: number): number {
  return lines.length === 0 ? 0 : Math.max(1, Math.ceil(lines.length / pieceRows));
}

/** Keeps the last value of each row. A row that is new in these batches stays an append, even with later puts. */
async function coalesce(batches: readonly DrainBatch[], pace: Pace): Promise<TableWork[]> {
  const appends = TABLES.map(() => new Map<string, string>());
  const puts = TABLES.map(() => new Map<string, string>());
  let lines = 0;
  for (const [index, { payload }] of batches.entries()) {
    for (let start = 0; start < payload.length;) {
      const feed = payload.indexOf("\n", start);
      const end = feed < 0 ? payload.length : feed;
      const table = payload.charCodeAt(start) - FIRST_TABLE;
      const body = payload.slice(start + CHANGE_HEAD, end);
      const spec = TABLES[table] as TableSpec;
      const key = keyOf(spec, body);
      const fresh = appends[table] as Map<string, string>;
      const earlier = fresh.get(key);
      if (earlier !== undefined) fresh.set(key, spec.over?.(earlier, body) ?? body);
      else if (payload[start + 1] === APPENDED) fresh.set(key, body);
      else (puts[table] as Map<string, string>).set(key, body);
      start = end + 1;
      if (++lines % SLICE_LINES > 0) continue;
      await yieldToLoop();
      await pace.rest(READING * index / batches.length);
    }
  }
  return TABLES.map((spec, table) => ({
    spec,
    appends: [...(appends[table] as Map<string, string>).values()],
    puts: [...(puts[table] as Map<string, string>).values()],
  }));
}

/** The text of a row's key: its leading columns. */
function keyOf({ keyColumns }: TableSpec, body: string): string {
  let end = -1;
  for (let column = 0; column < keyColumns; column++) end = body.indexOf("\t", end + 1);
  return end < 0 ? body : body.slice(0, end);
}

function* chunksOf(lines: readonly string[]): Iterable<string> {
  for (let from = 0; from < lines.length; from += SLICE_LINES) {
    yield lines.slice(from, from + SLICE_LINES).join("\n") + "\n";
  }
}

/**
 * Writes new values of rows, and rows that are new. MERGE writes each row once, while `on conflict do update` would first
 * log a lock of the row. A piece is a range of pages of the temporary table, which is not logged.
 */
async function writeValues(
  session: Session,
  spec: TableSpec,
  lines: readonly string[],
  pieces: number,
  rest: () => Promise<void>,
): Promise<void> {
  const { name, columns, found } = spec;
  await session.copy(`staged_${name}`, columns, chunksOf(lines));
  const mayBeOfAlias = found !== undefined && lines.some(found.mayBeOfAlias);
  const range = pieces === 1 ? "" : " where ctid >= $1::text::tid and ctid < $2::text::tid";
  const statements = [...(mayBeOfAlias ? [takeOver(spec, found, range)] : []), merge(spec, range)];
  const write = async (bounds: readonly Param[]) => {
    for (const statement of statements) await session.query(statement, bounds);
    await rest();
  };
  if (pieces === 1) return await write([]);
  const [size] = await session.query<{ pages: number }>(
    `select (pg_relation_size('staged_${name}') / current_setting('block_size')::int)::int as pages`,
  );
  const pages = size?.pages ?? 0;
  const step = Math.max(1, Math.ceil(pages / pieces));
  for (let page = 0; page < pages; page += step) {
    await write([`(${page},0)`, `(${page + step},0)`]);
  }
}

/**
 * SQL that updates rows to their new values, and inserts rows that are new.
 *
 * @param range a condition on staged rows; "" for all
 */
function merge(spec: TableSpec, range: string): string {
  const { name, columns } = spec;
  const staged = range === "" ? `staged_${name}` : `(select * from staged_${name}${range})`;
  const fresh = columns.map((column) => `s.${column}`).join(", ");
  return `merge into ${name} t using ${staged} s on ${isSame(spec)}
     when matched then update set ${valuesOf(spec)}
     when not matched then insert (${columns.join(", ")}) values (${fresh})`;
}

/**
 * SQL that updates rows still stored under the number of an alias, and removes them from the staged rows. Users are
 * written before all other tables, so aliases that were made in the same batches are already known.
 */
function takeOver(spec: TableSpec, { user }: Found, range: string): string {
  const { name } = spec;
  return `with moved as (
       update ${name} t set ${valuesOf(spec)}
       from (select *, ctid as place from staged_${name}${range}) s join users a on a.merged_into = s.${user}
       where ${isSame(spec, "a.key")} returning s.place
     )
     delete from staged_${name} where ctid = any(array(select place from moved))`;
}

function valuesOf({ mutable, valueSql = {} }: TableSpec): string {
  return mutable.map((column) => `${column} = ${valueSql[column] ?? `s.${column}`}`).join(", ");
}

/**
 * SQL of the condition that the staged row `s` is a new value of the row `t`.
 *
 * @param alias SQL of the alias under which `t` is still stored; by default it is stored under its user
 */
function isSame({ columns, keyColumns, nullable, found }: TableSpec, alias?: string): string {
  const same = (column: string) => {
    const operator = nullable?.includes(column) === true ? "is not distinct from" : "=";
    return `t.${column} ${operator} s.${column}`;
  };
  const parts = columns.slice(0, keyColumns).map(same);
  if (found !== undefined) {
    parts.push(same(found.at), alias === undefined ? same(found.user) : `t.${found.user} = ${alias}`);
  }
  return parts.join(" and ");
}
