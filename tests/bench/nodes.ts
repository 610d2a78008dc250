// Two nodes on one database: what a reserve costs each node's threads when it reaches the owner directly and when it
// goes through a front, and what two owners answer together. On two cores the rates do not add up, so the table shows
// processor time for each request: where there are more cores, that is what adds up.

import postgres from "postgres";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { setUp, type StartedService, startService, subscribeAll } from "./contestants/holdfast.ts";
import type { LoadPlan } from "./load_plan.ts";
import type { Options } from "./options.ts";
import type { Cleanup } from "./processes.ts";
import { type ThreadTimes, threadTimes } from "./processor_time.ts";
import { generate } from "./schedule.ts";
import { makeScratch } from "./scratch.ts";
import { sleep } from "./service.ts";

const WARMUP_MS = 2_000;
const SEED = 20_260_101;
const SETTLE_MS = 60_000;

/** What one node spent on the requests of a run, in microseconds each. */
interface NodeCost extends ThreadTimes {
  readonly node: string;
}

/** One run: who was called for whose workspace, and what it took. */
export interface NodesRun {
  readonly calls: string;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  /** Microseconds of processor time a request, over all requests of the run. */
  readonly costs: readonly NodeCost[];
}

interface Load {
  readonly port: number;
  readonly key: string;
}

interface Stage {
  readonly options: Options;
  readonly cleanup: Cleanup;
  readonly databaseUrl: string;
  readonly adminToken: string;
  progress(text: string): void;
}

/** Runs all of it. */
export async function benchNodes(
  options: Options,
  cleanup: Cleanup,
  progress: (text: string) => void,
): Promise<NodesRun[]> {
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const adminToken = crypto.randomUUID();
  const stage: Stage = { options, cleanup, databaseUrl: scratch.url, adminToken, progress };
  const bench = { databaseUrl: scratch.url, cleanup };
  progress("starting an owner and a front");
  const owner = await startService(bench, adminToken);
  const front = await startService(bench, adminToken, { HOLDFAST_CELLS: "none" });
  const first = await makeApp(stage, owner.base);
  const nodes = { owner, front };
  const runs = [
    await run(stage, "owner directly", nodes, [{ port: portOf(owner), key: first.key }]),
    await run(stage, "by a front", nodes, [{ port: portOf(front), key: first.key }]),
    await run(stage, "owner directly", nodes, [{ port: portOf(owner), key: first.key }]),
    await run(stage, "by a front", nodes, [{ port: portOf(front), key: first.key }]),
  ];
  await front.child.stop();
  progress("starting a second owner");
  const second = await startService(bench, adminToken);
  const other = await appOfOther(stage, owner.base, first.workspaceId);
  const both = { owner, second };
  runs.push(
    await run(stage, "two owners, each its own half", both, [
      { port: portOf(owner), key: other.first },
      { port: portOf(second), key: other.second },
    ]),
    await run(stage, "two owners, each the other's half", both, [
      { port: portOf(owner), key: other.second },
      { port: portOf(second), key: other.first },
    ]),
  );
  return runs;
}

async function makeApp(stage: Stage, base: string) {
  const app = await setUp(base, stage.adminToken);
  stage.progress("subscribing users");
  await subscribeAll(base, app.key);
  return app;
}

/** Keys of two apps whose workspaces have different owners, once the cells have settled; the first owner's first. */
async function appOfOther(stage: Stage, base: string, known: string) {
  const sql = postgres(stage.databaseUrl, { max: 1, onnotice: () => {} });
  try {
    await settled(sql);
    const owners = new Map(
      (await sql`select cell, term from cells`).map(({ cell, term }) => [Number(cell), Number(term)]),
    );
    const oldest = Math.min(...owners.values());
    const found: Partial<Record<"first" | "second", string>> = {};
    while (found.first === undefined || found.second === undefined) {
      const app = await setUp(base, stage.adminToken);
      const side = owners.get(cellOf(app.workspaceId)) === oldest ? "first" : "second";
      if (app.workspaceId === known || found[side] !== undefined) continue;
      stage.progress("subscribing users");
      await subscribeAll(base, app.key);
      found[side] = app.key;
    }
    return found as Record<"first" | "second", string>;
  } finally {
    await sql.end();
  }
}

/** Waits until no cell has moved for a while. */
async function settled(sql: postgres.Sql): Promise<void> {
  const until = Date.now() + SETTLE_MS;
  let last = "";
  while (Date.now() < until) {
    const now = JSON.stringify(await sql`select cell, term from cells order by cell`);
    const owners = await sql`select distinct term from cells`;
    if (now === last && owners.length === 2) return;
    last = now;
    await sleep(3_000);
  }
  throw new Error("The cells keep moving");
}

async function run(
  { options, cleanup, progress }: Stage,
  calls: string,
  nodes: Readonly<Record<string, StartedService>>,
  loads: readonly Load[],
): Promise<NodesRun> {
  const connections = Math.max(1, Math.round(options.connections / loads.length));
  const plans = loads.map(({ port, key }): LoadPlan => ({
    port,
    connections,
    warmupMs: WARMUP_MS,
    measureMs: options.seconds * 1000,
    users: "spread",
    paidBy: "plan",
    calls: "reserve",
    rate: null,
    firstCold: 0,
    authorization: `Bearer ${key}`,
    seed: SEED,
  }));
  // The generators report what they measured after warming up; processor time is read around both.
  const before = await timesOf(nodes);
  const startedAt = performance.now();
  const reports = await Promise.all(plans.map((plan) => generate(plan, options.generator, cleanup)));
  const lastedS = (performance.now() - startedAt) / 1000;
  const after = await timesOf(nodes);
  const all = reports.map((report) => report.all);
  const rate = sumOf(all, ({ requestsPerSecond }) => requestsPerSecond);
  // A run's start and end lie outside of the measured time, and the load goes on at the same rate through the warm-up.
  const requests = rate * Math.min(lastedS, options.seconds + WARMUP_MS / 1000);
  const costs = Object.keys(nodes).map((node): NodeCost => ({
    node,
    answering: (after[node]!.answering - before[node]!.answering) * 1000 / requests,
    others: (after[node]!.others - before[node]!.others) * 1000 / requests,
  }));
  progress(`${calls}: ${Math.round(rate)} requests/s`);
  return {
    calls,
    requestsPerSecond: rate,
    p50Ms: Math.max(...all.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...all.map(({ p99Ms }) => p99Ms)),
    failed: sumOf(reports, ({ failures }) => sumOf(Object.values(failures), (count) => count)),
    costs,
  };
}

async function timesOf(
  nodes: Readonly<Record<string, StartedService>>,
): Promise<Record<string, ThreadTimes>> {
  const times: Record<string, ThreadTimes> = {};
  for (const [name, { child }] of Object.entries(nodes)) times[name] = await threadTimes(child.pid);
  return times;
}

function sumOf<Of>(all: readonly Of[], part: (one: Of) => number): number {
  return all.reduce((sum, one) => sum + part(one), 0);
}

function portOf({ base }: StartedService): number {
  return Number(new URL(base).port);
}

/** The runs as a table. */
export function nodesTable(runs: readonly NodesRun[]): string {
  const lines = runs.map(({ calls, requestsPerSecond, p50Ms, p99Ms, failed, costs }) => {
    const spent = costs.map(({ node, answering, others }) =>
      `${node} ${answering.toFixed(1)} + ${others.toFixed(1)}`
    );
    return `${calls.padEnd(34)} ${Math.round(requestsPerSecond).toString().padStart(8)}  ${
      p50Ms.toFixed(2).padStart(7)
    }  ${p99Ms.toFixed(2).padStart(7)}  ${String(failed).padStart(6)}  ${spent.join(", ")}`;
  });
  const head = `${"reserve, spread users".padEnd(34)} ${"calls/s".padStart(8)}  ${"p50 ms".padStart(7)}  ${
    "p99 ms".padStart(7)
  }  ${"failed".padStart(6)}  microseconds a call: answering thread + other threads`;
  return [head, ...lines].join("\n");
}
