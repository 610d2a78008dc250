// Every sweep of the service: what is due of idle users, first answers that are past their time, and history that
// merges left to move. Each in bounded steps and counted; Deno.cron, the admin API and `deno task sweep` run the same code.

import { sweepRealm } from "../../actors/sweep.ts";
import { SWEEP_LIMITS } from "../process/limits.ts";
import { moveAllHistory } from "./history_move.ts";
import { sweepLogs } from "./log_retention.ts";
import type { SweepName } from "../observability/counts.ts";
import { runErasures } from "../privacy/erasure.ts";
import type { Serving } from "../service/service.ts";

/** What a run of all sweeps did, by kind. */
export interface SweepCounts {
  readonly expiredReservations: number;
  readonly endedSubscriptions: number;
  readonly idempotencyRecords: number;
  readonly historyRows: number;
  readonly promptLogs: number;
  readonly erasures: number;
}

/** Runs every sweep to its end. */
export async function sweepAll(serving: Serving): Promise<SweepCounts> {
  const due = await runSweep(serving, "due");
  const idempotencyRecords = await runSweep(serving, "idempotency");
  const historyRows = await runSweep(serving, "history");
  const promptLogs = await runSweep(serving, "prompt_logs");
  const erasures = await runSweep(serving, "erasures");
  return { ...due, idempotencyRecords, historyRows, promptLogs, erasures };
}

const SWEEPS = {
  due: sweepDue,
  store: ({ database }: Serving) => database.maintain(),
  history: moveAllHistory,
  erasures: runErasures,
  prompt_logs: sweepLogs,
  idempotency: sweepIdempotency,
} satisfies Record<SweepName, (serving: Serving) => Promise<unknown>>;

type SweepAnswer<Name extends SweepName> = Awaited<ReturnType<(typeof SWEEPS)[Name]>>;

/** Runs a sweep to its end and counts what became of it. */
export async function runSweep<Name extends SweepName>(
  serving: Serving,
  name: Name,
): Promise<SweepAnswer<Name>> {
  const tally = serving.counts.sweeps[name];
  try {
    const answer = await SWEEPS[name](serving);
    tally.finished += 1;
    tally.rows += rowsOf(answer);
    tally.finishedAtSeconds = serving.clock.now() / 1000;
    return answer as SweepAnswer<Name>;
  } catch (error) {
    tally.failed += 1;
    throw error;
  }
}

/** Rows of an answer: a count, counts by kind, or nothing to count. */
function rowsOf(answer: unknown): number {
  if (typeof answer === "number") return answer;
  if (typeof answer !== "object" || answer === null) return 0;
  return Object.values(answer).reduce((sum: number, count) => sum + Number(count), 0);
}

/** Settles lapsed holds, ended subscriptions and promotions of every realm. */
export async function sweepDue(
  { term, store, registry }: Serving,
): Promise<Pick<SweepCounts, "expiredReservations" | "endedSubscriptions">> {
  let expiredReservations = 0;
  let endedSubscriptions = 0;
  for (const realm of registry.realms.values()) {
    const { holds, subscriptions } = await sweepRealm(term, store, realm, () => term.isServing);
    expiredReservations += holds;
    endedSubscriptions += subscriptions;
  }
  return { expiredReservations, endedSubscriptions };
}

/** Removes first answers whose time is over; real time, whatever a test clock says. */
export async function sweepIdempotency({ term, database, clock }: Serving): Promise<number> {
  const before = clock.now() - SWEEP_LIMITS.idempotencyKeptMs;
  let removed = 0;
  while (term.isServing) {
    const rows = await database.query(
      `delete from idempotency where ctid in (
         select ctid from idempotency where at_ms <= $1::bigint order by at_ms limit $2::int)
       returning 1`,
      [before, SWEEP_LIMITS.stepRowsMax],
    );
    removed += rows.length;
    if (rows.length < SWEEP_LIMITS.stepRowsMax) break;
  }
  return removed;
}
