// What calls cost that are sent together: reserves by the client of a thousand callers in one process, beside single requests
// on 64 connections, and beside Redis asked by a client that pipelines by itself, which syncs before it answers. Single
// requests come from the same callers and the same client, which then sends each call by itself, and from our load
// generator, which sends bytes that it built before and reads no answer: nothing a caller could do costs less. In turn, on
// one machine. `deno task bench:together` prints a table; whatever it made is undone at the end.
import { parseArgs } from "node:util";
import { type CallCost, watchCost } from "./call_cost.ts";
import type { CallersPlan, CallersReport } from "./callers.ts";
import type { Running } from "./contestant.ts";
import { holdfast } from "./contestants/holdfast.ts";
import { startRedisServer } from "./contestants/redis.ts";
import type { CallReport } from "./load_plan.ts";
import { Child, type Cleanup, messageOf, withCleanup } from "./processes.ts";
import { measureWithCost } from "./schedule.ts";
import { makeScratch } from "./scratch.ts";
import { type Target, targetLine } from "./targets.ts";
import { aligned, number } from "./text_table.ts";

const USAGE = `deno task bench:together [options]
  --seconds N       measured seconds of each load (10), after 2 s of warm-up
  --rounds N        repeat all loads, interleaved, and take medians (3)
  --callers N       callers in one process (1000)
  --connections N   kept-alive connections of single requests (64)
  --database URL    default: DATABASE_URL, else postgres@127.0.0.1:5432`;

const WARMUP_MS = 2_000;
const SEED = 20_260_101;
const TIMES_SINGLE = 3;
const ANSWERING_US = 14;

interface Options {
  readonly seconds: number;
  readonly rounds: number;
  readonly callers: number;
  readonly connections: number;
  readonly databaseUrl: string;
}

const LOADS = [
  "single requests",
  "single, generator",
  "together",
  "redis, pipelined",
  "lone caller",
] as const;
type Load = typeof LOADS[number];

interface Run {
  readonly load: Load;
  readonly report: CallReport;
  /** Null for Redis. */
  readonly cost: CallCost | null;
  readonly failed: number;
}

function readOptions(args: string[]): Options | null {
  const text = { type: "string" } as const;
  const options = { seconds: text, rounds: text, callers: text, connections: text, database: text };
  const { values } = parseArgs({ args, options: { ...options, help: { type: "boolean", short: "h" } } });
  if (values.help === true) {
    console.log(USAGE);
    return null;
  }
  return {
    seconds: Number(values.seconds ?? 10),
    rounds: Number(values.rounds ?? 3),
    callers: Number(values.callers ?? 1000),
    connections: Number(values.connections ?? 64),
    databaseUrl: values.database ?? Deno.env.get("DATABASE_URL") ??
      "postgres://postgres@127.0.0.1:5432/postgres",
  };
}

/** Lets callers ask in a process of their own. */
async function ask(plan: CallersPlan, cleanup: Cleanup): Promise<CallersReport> {
  const program = new URL("callers.ts", import.meta.url).pathname;
  const flags = ["--lock=tests/deno.lock", "--quiet", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env"];
  const child = Child.start(cleanup, "callers", "deno", ["run", ...flags, program]);
  try {
    return JSON.parse(await child.exchange(JSON.stringify(plan), plan.warmupMs + plan.measureMs + 30_000));
  } finally {
    await child.stop();
  }
}

interface Stage {
  readonly options: Options;
  readonly cleanup: Cleanup;
  readonly service: Running;
  readonly redisPort: number;
  readonly databaseUrl: string;
}

async function measure(load: Load, stage: Stage): Promise<Run> {
  const { options, cleanup, service, databaseUrl } = stage;
  const { seconds, connections } = options;
  if (load === "single, generator") {
    const scenario = { contestant: "holdfast", calls: "reserve", users: "spread", paidBy: "plan" } as const;
    const wanted = { connections, seconds, generator: "own", databaseUrl } as const;
    const run = await measureWithCost({ ...scenario, isHalf: false }, service, [], wanted, cleanup);
    const failed = Object.values(run.load.failures).reduce((sum, count) => sum + count, 0);
    return { load, report: run.load.all, cost: run.cost, failed };
  }
  const plan: CallersPlan = {
    asked: load === "redis, pipelined" ? "redis" : "holdfast",
    connections: load === "single requests" ? connections : null,
    port: load === "redis, pipelined" ? stage.redisPort : service.port,
    authorization: service.authorization,
    callers: load === "lone caller" ? 1 : options.callers,
    warmupMs: WARMUP_MS,
    measureMs: seconds * 1000,
    seed: SEED,
  };
  if (plan.asked === "redis") {
    const { report, failed } = await ask(plan, cleanup);
    return { load, report, cost: null, failed };
  }
  const costOf = await watchCost(service.pid, databaseUrl);
  const { report, failed, answered } = await ask(plan, cleanup);
  // What the load left behind is drained by then.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  return { load, report, cost: await costOf(answered, 1000), failed };
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;
}

function table(runs: readonly Run[]): string {
  const of = (load: Load, value: (run: Run) => number) =>
    median(runs.filter((run) => run.load === load).map(value));
  const micros = (load: Load, part: keyof CallCost) => {
    const value = of(load, ({ cost }) => cost?.[part] ?? NaN);
    return Number.isNaN(value) ? "n/a" : value.toFixed(1);
  };
  const head = [
    "load",
    "reserves/s",
    "p50 ms",
    "p99 ms",
    "answering us",
    "others us",
    "postgres us",
    "failed",
  ];
  const rows = LOADS.map((load) => [
    load,
    number(of(load, ({ report }) => report.requestsPerSecond)),
    of(load, ({ report }) => report.p50Ms).toFixed(2),
    of(load, ({ report }) => report.p99Ms).toFixed(2),
    micros(load, "answering"),
    micros(load, "others"),
    micros(load, "postgres"),
    number(of(load, ({ failed }) => failed)),
  ]);
  const rate = (load: Load) => of(load, ({ report }) => report.requestsPerSecond);
  const atLeast = (what: string, value: number, bound: number): Target => {
    return { what, users: "spread", value, atLeast: bound, met: value >= bound };
  };
  const answering = of("together", ({ cost }) => cost?.answering ?? NaN);
  const targets: Target[] = [
    atLeast("together / single requests", rate("together") / rate("single requests"), TIMES_SINGLE),
    atLeast("together / single, generator", rate("together") / rate("single, generator"), TIMES_SINGLE),
    atLeast("together / redis, pipelined", rate("together") / rate("redis, pipelined"), 1),
    {
      what: "us of the answering thread, together",
      users: "spread",
      value: answering,
      atMost: ANSWERING_US,
      met: answering <= ANSWERING_US,
    },
  ];
  return [...aligned([head, ...rows], 1), ...targets.map(targetLine)].join("\n");
}

async function bench(options: Options, cleanup: Cleanup): Promise<string> {
  const progress = (text: string) => console.error(`bench: ${text}`);
  const scratch = await makeScratch(options.databaseUrl, cleanup);
  const needs = { cold: false, members: false };
  const started = { databaseUrl: scratch.url, needs, cleanup, progress };
  const service = await holdfast.start(started);
  const redisPort = await startRedisServer(started);
  const stage = { options, cleanup, service, redisPort, databaseUrl: scratch.url };
  const runs: Run[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const load of LOADS) {
      await scratch.checkpoint();
      const run = await measure(load, stage);
      runs.push(run);
      progress(`${load}: ${number(run.report.requestsPerSecond)} reserves/s`);
    }
  }
  return table(runs);
}

if (import.meta.main) {
  try {
    const options = readOptions(Deno.args);
    if (options !== null) console.log(await withCleanup((cleanup) => bench(options, cleanup)));
    Deno.exit(0);
  } catch (error) {
    console.error(`bench: ${messageOf(error)}`);
    Deno.exit(2);
  }
}
