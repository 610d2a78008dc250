// Bytes of write-ahead log for each call: a counted number of calls, and what the server wrote to its log from their start
// until the drain had nothing left. The extension pg_walinspect (of PostgreSQL's own contrib) shows each record's
// transaction, table and size, so that journal, drain, records and images of pages are counted apart, and other databases
// on the same server do no harm. Without it, or without the right to use it, only the total is known.
import postgres from "postgres";
import type { Running } from "./contestant.ts";
import { isPair, type Spread } from "./load_plan.ts";
import type { Cleanup } from "./processes.ts";
import { measure, type Scenario } from "./schedule.ts";
import type { Scratch } from "./scratch.ts";

const FLUSHED_WITHIN_MS = 10_000;
const DRAINED_WITHIN_MS = 60_000;
const LOOK_MS = 50;

/** Who wrote: appends to the journal, drains, or the rest (beats, sweeps, what no transaction did). */
export type Writer = "append" | "drain" | "other";

/** Records of one kind that one kind of transaction wrote about one relation. */
export interface LogPart {
  writer: Writer;
  /** A table, an index, or "counters toast"; null for what is about none, as a commit. */
  relation: string | null;
  /** The table that it belongs to; null with the relation. */
  table: string | null;
  /** As the server names it: "Heap HOT_UPDATE", "Btree INSERT_LEAF", "Transaction COMMIT". */
  kind: string;
  records: number;
  /** Bytes with the images of pages that the records carry. */
  bytes: number;
  imageBytes: number;
}

/** What one scenario wrote. */
export interface LogRow {
  calls: "reserve" | "reserve + commit";
  users: Spread;
  /** Calls, or pairs, that were answered. */
  counted: number;
  /** Bytes of log between start and end, of the whole server. */
  serverBytes: number;
  /** Null where the server does not tell. */
  parts: LogPart[] | null;
}

/** What is needed to measure. */
export interface LogStage {
  readonly scratch: Scratch;
  readonly running: Running;
  readonly cleanup: Cleanup;
  readonly connections: number;
  readonly seconds: number;
  readonly users: readonly Spread[];
  progress(text: string): void;
}

/** Measures reserves and pairs, for each kind of users. */
export async function measureLog(stage: LogStage): Promise<LogRow[]> {
  const sql = postgres(stage.scratch.url, { max: 1, onnotice: () => {} });
  stage.cleanup.add("close the connection that reads the log", () => sql.end({ timeout: 2 }));
  const canInspect = await prepare(sql, stage.progress);
  const rows: LogRow[] = [];
  for (const users of stage.users) {
    for (const calls of ["reserve", "pair"] as const) {
      const scenario: Scenario = { contestant: "holdfast", calls, users, paidBy: "plan", isHalf: false };
      rows.push(await measureOne(stage, sql, scenario, canInspect));
    }
  }
  return rows;
}

/** Lets this session read the log and keeps the server from removing it; false where it may not. */
async function prepare(sql: postgres.Sql, progress: LogStage["progress"]): Promise<boolean> {
  try {
    await sql`create extension if not exists pg_walinspect`;
    const [right] = await sql`
      select has_function_privilege('pg_get_wal_records_info(pg_lsn, pg_lsn)', 'execute') as may`;
    if (right?.may !== true) throw new Error("no right to use pg_walinspect");
    // Ends with the session, or with the first statement of it that fails.
    await sql`select pg_create_physical_replication_slot(${`holdfast_bench_${Deno.pid}`}, true, true)`;
    return true;
  } catch (error) {
    progress(`the log can't be looked into: ${error instanceof Error ? error.message : error}`);
    return false;
  }
}

async function measureOne(
  { scratch, running, cleanup, connections, seconds, progress }: LogStage,
  sql: postgres.Sql,
  scenario: Scenario,
  canInspect: boolean,
): Promise<LogRow> {
  const { calls, users } = scenario;
  await untilDrained(sql);
  // From here on the first change of each page writes an image of it.
  await scratch.checkpoint();
  const from = await position(sql);
  const wanted = { connections, seconds, generator: "own", warmupMs: 0 } as const;
  const { load, drain } = await measure(scenario, running, [], wanted, cleanup);
  if (load.firstFailure !== null) throw new Error(`a call failed: ${load.firstFailure}`);
  if (drain?.secondsToEmpty === null) throw new Error("the drain did not end");
  const to = await flushedPosition(sql);
  const [size] = await sql`select pg_wal_lsn_diff(${to}, ${from})::float8 as bytes`;
  const row: LogRow = {
    calls: isPair(calls) ? "reserve + commit" : "reserve",
    users,
    counted: isPair(calls) ? load.answered.commit : load.answered.first,
    serverBytes: size?.bytes,
    parts: canInspect ? await partsOf(sql, from, to) : null,
  };
  progress(`log of ${row.counted} x ${row.calls}, ${users}: ${(row.serverBytes / 2 ** 20).toFixed(1)} MiB`);
  return row;
}

/** Waits until the drain has written what came before. */
async function untilDrained(sql: postgres.Sql): Promise<void> {
  for (let waited = 0; waited < DRAINED_WITHIN_MS; waited += LOOK_MS) {
    const [left] = await sql`select from journal limit 1`;
    if (left === undefined) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error("the journal does not get empty");
}

async function position(sql: postgres.Sql): Promise<string> {
  const [row] = await sql`select pg_current_wal_insert_lsn()::text as at`;
  return row?.at;
}

/** The position now, once the server has flushed the log up to it: no reader gets further. */
async function flushedPosition(sql: postgres.Sql): Promise<string> {
  const at = await position(sql);
  for (let waited = 0; waited < FLUSHED_WITHIN_MS; waited += LOOK_MS) {
    const [row] = await sql`select pg_current_wal_flush_lsn() >= ${at}::pg_lsn as flushed`;
    if (row?.flushed === true) return at;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error("the server does not flush its log");
}

/**
 * The records of this database. A record about a page names the page's relation; one without is this database's where its
 * transaction is. A transaction that inserts into the journal is an append, and a transaction that deletes from it a drain.
 */
async function partsOf(sql: postgres.Sql, from: string, to: string): Promise<LogPart[]> {
  const rows = await sql`
    with records as materialized (
      select xid::text::bigint as xid, resource_manager || ' ' || record_type as kind, record_length as bytes,
        fpi_length as image_bytes, (regexp_match(block_ref, 'rel \\d+/(\\d+)/(\\d+)'))::oid[] as file
      from pg_get_wal_records_info(${from}::pg_lsn, ${to}::pg_lsn)
    ), here as materialized (
      select xid, kind, bytes, image_bytes, file[2] as file from records
      where file[1] = (select oid from pg_database where datname = current_database())
    ), writers as (
      select xid, case when bool_or(kind like 'Heap DELETE%') then 'drain' else 'append' end as writer
      from here
      where xid <> 0 and file = pg_relation_filenode('journal') and kind ~ '^Heap (DELETE|INSERT)'
      group by xid
    ), counted as (
      select xid, kind, file, bytes, image_bytes from here
      union all
      select xid, kind, null, bytes, image_bytes from records
      where file is null and xid <> 0 and xid in (select xid from here)
    ), relations as (
      select pg_relation_filenode(c.oid) as file,
        coalesce(t.relname, tt.relname, i.relname, c.relname) as "table",
        case when t.oid is not null then t.relname || ' toast' when tt.oid is not null then tt.relname || ' toast index'
          else c.relname end as relation
      from pg_class c
      left join pg_index x on x.indexrelid = c.oid
      left join pg_class i on i.oid = x.indrelid
      left join pg_class t on t.reltoastrelid = c.oid
      left join pg_class tt on tt.reltoastrelid = x.indrelid
      where c.relkind in ('r', 'i', 't', 'S', 'm')
    )
    select coalesce(w.writer, 'other') as writer, r.relation, r.table, c.kind, count(*)::float8 as records,
      sum(c.bytes)::float8 as bytes, sum(c.image_bytes)::float8 as "imageBytes"
    from counted c left join writers w using (xid) left join relations r using (file)
    group by 1, 2, 3, 4 order by bytes desc`;
  return rows.map((row) => ({ ...row }) as LogPart);
}
