// What one call costs in processor time while a contestant is under load: of the thread that answers, of its other threads
// and of PostgreSQL. On few cores a rate says how well all of them share; this says what each of them does.

import postgres from "postgres";
import { BATCH_EVENTS, type Calls } from "./load_plan.ts";
import { processTimes, type ThreadTimes, threadTimes } from "./processor_time.ts";

/** Microseconds of processor time for a call; of a batch for each of its events. */
export interface CallCost extends ThreadTimes {
  /** The server's sessions on the benchmark's database. */
  readonly postgres: number;
}

/** How many calls, or events, one request is. */
export function callsIn(calls: Calls): number {
  return calls === "batch" ? BATCH_EVENTS : 1;
}

/**
 * Begins to watch a process and the sessions of a database.
 *
 * @returns what ends the watch, to be called when what the load left behind is drained: it takes the calls a second, which
 * hold for the warm-up too, and how long the load lasted
 */
export async function watchCost(
  pid: number,
  databaseUrl: string,
): Promise<(callsPerSecond: number, loadMs: number) => Promise<CallCost>> {
  const before = await timesOf(pid, databaseUrl);
  return async (callsPerSecond, loadMs) => {
    const after = await timesOf(pid, databaseUrl);
    const calls = callsPerSecond * loadMs / 1000;
    const microsOf = (part: keyof CallCost) => (after[part] - before[part]) * 1000 / calls;
    return {
      answering: microsOf("answering"),
      others: microsOf("others"),
      postgres: microsOf("postgres"),
    };
  };
}

/** Milliseconds that they have used since they started. */
async function timesOf(pid: number, databaseUrl: string): Promise<CallCost> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    const rows = await sql`
      select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
    const server = await processTimes(rows.map((row) => Number(row.pid)));
    return { ...await threadTimes(pid), postgres: server };
  } finally {
    await sql.end();
  }
}
