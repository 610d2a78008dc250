// Replays a trace. A number of connections take the requests in the file's order. For each they wait until its moment,
// unless the replay runs at full speed, then reserve, and commit what was allowed. The tally counts every call once.

import { Histogram } from "./histogram.ts";
import { type CallOutcome, type CallSettings, post, sleep } from "./replay_client.ts";
import type { TraceRow } from "./trace.ts";

/** How a trace is replayed. */
export interface ReplayPlan extends CallSettings {
  readonly users: number;
  readonly prefix: string;
  readonly event: string;
  /** A multiple of real time; null for as fast as it goes. */
  readonly speed: number | null;
  readonly connections: number;
  /** A text that no other run has: it makes the idempotency keys of this one. */
  readonly runId: string;
}

/** What happened so far. */
export class Tally {
  #startedAt = performance.now();
  #endedAt: number | null = null;
  sent = 0;
  allowed = 0;
  refused = 0;
  committed = 0;
  retried = 0;
  reservedTokens = 0;
  committedTokens = 0;
  /** How far a request was sent after its moment at most. */
  lagMaxMs = 0;
  readonly refusedByReason = new Map<string, number>();
  readonly failedByCode = new Map<string, number>();
  /** The first message of each code, since a code alone seldom says what to do. */
  readonly failureMessages = new Map<string, string>();
  readonly reserveLatency = new Histogram();
  readonly commitLatency = new Histogram();
  /** Calls that got an answer, refusals and errors included. */
  calls = 0;

  get failed(): number {
    return this.failedByCode.values().reduce((sum, count) => sum + count, 0);
  }

  get durationMs(): number {
    return (this.#endedAt ?? performance.now()) - this.#startedAt;
  }

  start(): void {
    this.#startedAt = performance.now();
  }

  end(): void {
    this.#endedAt = performance.now();
  }

  fail(call: string, code: string, message: string): void {
    const name = `${call} ${code}`;
    count(this.failedByCode, name);
    if (!this.failureMessages.has(name)) this.failureMessages.set(name, message);
  }
}

interface ReserveData {
  readonly allowed: boolean;
  readonly reservationId?: string;
  readonly reasons?: readonly string[];
}

/** The user of a request: number i belongs to user (i mod N). */
export function userOf({ prefix, users }: Pick<ReplayPlan, "prefix" | "users">, index: number): string {
  return `${prefix}${index % users}`;
}

/** Puts every user of the replay on a plan; answers the first refusal, if there is one. */
export async function subscribeUsers(
  plan: ReplayPlan,
  planId: string,
): Promise<{ userId: string; code: string; message: string } | null> {
  let next = 0;
  let refusal: { userId: string; code: string; message: string } | null = null;
  await onConnections(plan, async () => {
    while (next < plan.users && refusal === null && !plan.stop.aborted) {
      const index = next++;
      const userId = userOf(plan, index);
      const key = `${plan.runId}-subscribe-${index}`;
      const outcome = await post(plan, "/subscriptions", key, { userId, planId });
      if (!outcome.ok) refusal ??= { userId, code: outcome.code, message: outcome.message };
    }
  });
  return refusal;
}

/** Replays the requests; ends early, with everything in flight settled, when the plan's signal comes. */
export async function replay(plan: ReplayPlan, rows: AsyncGenerator<TraceRow>, tally: Tally): Promise<void> {
  let first: { atMs: number; sentAt: number } | null = null;
  tally.start();
  try {
    await onConnections(plan, async () => {
      // A generator hands out one row to each who asks, in the order of asking.
      for (let next = await rows.next(); next.done !== true; next = await rows.next()) {
        const row = next.value;
        if (plan.speed !== null) {
          first ??= { atMs: row.atMs, sentAt: performance.now() };
          const dueAt = first.sentAt + (row.atMs - first.atMs) / plan.speed;
          await sleep(dueAt - performance.now(), plan.stop);
          tally.lagMaxMs = Math.max(tally.lagMaxMs, plan.stop.aborted ? 0 : performance.now() - dueAt);
        }
        if (plan.stop.aborted) return;
        await sendRow(plan, row, tally);
      }
    });
  } finally {
    await rows.return(undefined);
    tally.end();
  }
}

/** Resolves when every connection has ended, even when one failed, so that nothing runs on after the summary. */
async function onConnections(plan: ReplayPlan, work: () => Promise<void>): Promise<void> {
  const ends = await Promise.allSettled(Array.from({ length: plan.connections }, work));
  const broken = ends.find((end) => end.status === "rejected");
  if (broken !== undefined) throw broken.reason;
}

async function sendRow(plan: ReplayPlan, row: TraceRow, tally: Tally): Promise<void> {
  tally.sent++;
  const body = { userId: userOf(plan, row.index), event: plan.event, inputTokens: row.contextTokens };
  const key = `${plan.runId}-${row.index}`;
  const reserved = await timed(
    tally,
    tally.reserveLatency,
    post<ReserveData>(plan, "/reserve", `${key}-reserve`, body),
  );
  if (!reserved.ok) return tally.fail("reserve", reserved.code, reserved.message);
  const { allowed, reservationId, reasons = [] } = reserved.data;
  if (!allowed || reservationId === undefined) {
    tally.refused++;
    for (const reason of reasons) count(tally.refusedByReason, reason);
    return;
  }
  tally.allowed++;
  tally.reservedTokens += row.contextTokens;
  const settlement = { reservationId, extra: { tokens: row.generatedTokens } };
  const committed = await timed(
    tally,
    tally.commitLatency,
    post(plan, "/commit", `${key}-commit`, settlement),
  );
  if (!committed.ok) return tally.fail("commit", committed.code, committed.message);
  tally.committed++;
  tally.committedTokens += row.contextTokens + row.generatedTokens;
}

/** Measures from the first send to the answer, waits for retries included, as a caller experiences it. */
async function timed<Data>(
  tally: Tally,
  latencies: Histogram,
  call: Promise<CallOutcome<Data>>,
): Promise<CallOutcome<Data>> {
  const startedAt = performance.now();
  const outcome = await call;
  latencies.record((performance.now() - startedAt) * 1000);
  tally.calls++;
  return outcome;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
