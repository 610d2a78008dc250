// Runs: tasks with limits of their own. A call counts in its run and in the runs around it, with its whole amounts; a run
// only refuses.

import { fromNumber, type Micros, toNumber, ZERO } from "./decimal.ts";
import { type Input, type ModelReply, refusal, success, type Unit, type WireData } from "./document.ts";
import type { Amounts } from "./rules.ts";
import { iso, isoOrNull, type RunRow, type User, type World } from "./state.ts";

const DEFAULT_TTL_SECONDS = 3600;
const DEPTH_MAX = 4;
const KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/** What calls with a run need of it. */
type CallRuns = { ok: true; runs: RunRow[] } | { ok: false; reply: ModelReply };

export function createRun(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const outer = runsOf(world, user, input["parentRunId"], now);
  if (!outer.ok) return outer.reply;
  const around = outer.runs;
  if (around.length >= DEPTH_MAX) return refusal("invalid_request");
  const ttlSeconds = typeof input["ttlSeconds"] === "number" ? input["ttlSeconds"] : DEFAULT_TTL_SECONDS;
  const limits = (input["limits"] as { unit: Unit; quota: number; event?: string }[]).map((limit, place) => ({
    limitId: `limit_${place + 1}`,
    unit: limit.unit,
    event: limit.event ?? "*",
    quota: fromNumber(limit.quota),
    count: ZERO,
    held: ZERO,
  }));
  const run = world.name<RunRow>("run_", {
    user,
    around,
    limits,
    name: typeof input["name"] === "string" ? input["name"] : null,
    createdAt: now,
    expiresAt: Math.min(now + Math.round(ttlSeconds * 1000), ...around.map(endOf)),
    endedAt: null,
    reason: null,
  });
  world.runs.push(run);
  return success(runAnswer(run, now));
}

export function endRun(world: World, input: Input, now: number): ModelReply {
  const run = world.runs.find(({ id }) => id === input["runId"]);
  if (run === undefined || isForgotten(run, now)) return refusal("not_found");
  if (hasEnded(run, now)) return refusal("run_ended");
  const reason = typeof input["reason"] === "string" ? [...input["reason"]].slice(0, 500).join("") : null;
  for (const each of world.runs) {
    if ((each !== run && !each.around.includes(run)) || hasEnded(each, now)) continue;
    each.endedAt = now;
    each.reason = reason;
    if (each !== run) world.note("runs: an inner run ends with the outer one");
  }
  return success(runAnswer(run, now));
}

export function getRun(world: World, input: Input, now: number): ModelReply {
  const run = world.runs.find(({ id }) => id === input["runId"]);
  if (run === undefined || isForgotten(run, now)) return refusal("not_found");
  return success({ ...runAnswer(run, now), metadata: null });
}

export function listRuns(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const found = world.runs.filter((run) =>
    run.user === user && !isForgotten(run, now) &&
    (input["status"] === undefined || (input["status"] === "ended") === hasEnded(run, now))
  ).toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
  // Cursors are the system's own: workloads ask for whole lists.
  return success({
    runs: found.slice(0, 100).map((run) => ({ ...runAnswer(run, now), metadata: null })),
    cursor: found.length > 100 ? "«a cursor»" : null,
  });
}

/** The run of a call and those around it, innermost first; none without an id. */
export function runsOf(world: World, user: User, runId: unknown, now: number): CallRuns {
  if (runId === undefined) return { ok: true, runs: [] };
  const run = world.runs.find((each) => each.id === runId && each.user === user);
  if (run === undefined || isForgotten(run, now)) return { ok: false, reply: refusal("not_found") };
  const runs = [run, ...run.around];
  if (runs.some((each) => hasEnded(each, now))) {
    world.note("runs: a call with an ended run");
    return { ok: false, reply: refusal("run_ended") };
  }
  return { ok: true, runs };
}

/** A run that refuses a call, and why. */
export interface Refusing {
  run: RunRow;
  reason: "run_limit_reached" | "unpriced_model";
}

/** The runs that refuse a call, innermost first. */
export function refusingRuns(
  runs: RunRow[],
  call: { event: string; amounts: Amounts; lacksPrice: boolean },
): Refusing[] {
  return runs.flatMap((run): Refusing[] => {
    const limits = run.limits.filter((limit) => covers(limit.event, call.event));
    if (call.lacksPrice && limits.some(({ unit }) => unit === "cents")) {
      return [{ run, reason: "unpriced_model" }];
    }
    const isFull = limits.some(({ unit, quota, count }) => {
      const need = call.amounts[unit];
      return need === ZERO ? count >= quota : count + need > quota;
    });
    return isFull ? [{ run, reason: "run_limit_reached" }] : [];
  });
}

/** Adds to the counts of runs what a call takes, or takes off what it gives back. */
export function addToRuns(
  runs: RunRow[],
  event: string,
  change: { count: (unit: Unit) => Micros; held: (unit: Unit) => Micros },
): void {
  for (const limit of runs.flatMap(({ limits }) => limits)) {
    if (!covers(limit.event, event)) continue;
    limit.count += change.count(limit.unit);
    limit.held += change.held(limit.unit);
  }
}

/** Counts an event in its runs. */
export function countInRuns(runs: RunRow[], event: string, amounts: Amounts): void {
  addToRuns(runs, event, { count: (unit) => amounts[unit], held: () => ZERO });
}

/** Whether any of the runs counts this unit of an event. */
export function runsCount(runs: RunRow[], unit: string, event: string): boolean {
  return runs.some(({ limits }) => limits.some((each) => each.unit === unit && covers(each.event, event)));
}

/** The runs of a call as its answer has them, and who refuses it. */
export function runsAnswer(runs: RunRow[], refusedBy: string[] | null): WireData {
  if (runs.length === 0) return {};
  return {
    runs: runs.map(({ id, limits }) => ({ runId: id, limits: limits.map(limitAnswer) })),
    ...(refusedBy === null ? {} : { refusedBy }),
  };
}

function runAnswer(run: RunRow, now: number): WireData {
  const isOver = hasEnded(run, now);
  return {
    runId: run.id,
    userId: run.user.id,
    parentRunId: run.around[0]?.id ?? null,
    name: run.name,
    status: isOver ? "ended" : "active",
    createdAt: iso(run.createdAt),
    expiresAt: iso(run.expiresAt),
    endedAt: isoOrNull(isOver ? endOf(run) : null),
    reason: run.reason,
    limits: run.limits.map(limitAnswer),
  };
}

function limitAnswer({ limitId, unit, event, quota, count, held }: RunRow["limits"][number]): WireData {
  return { limitId, unit, event, quota: toNumber(quota), count: toNumber(count), held: toNumber(held) };
}

function endOf({ endedAt, expiresAt }: RunRow): number {
  return endedAt ?? expiresAt;
}

function hasEnded(run: RunRow, now: number): boolean {
  return endOf(run) <= now;
}

function isForgotten(run: RunRow, now: number): boolean {
  return now > endOf(run) + KEPT_MS;
}

function covers(pattern: string, event: string): boolean {
  return pattern.endsWith("*") ? event.startsWith(pattern.slice(0, -1)) : pattern === event;
}
