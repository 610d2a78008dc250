// Processes with one, two and four databases, beside one that names its database by DATABASE_URL: what a reserve costs each
// in processor time, and what it costs without calls. The load is the same, spread evenly over the databases. Rounds
// alternate, and on a machine with other work only the ratios say something.

import { setUp, type StartedService, startService, subscribeAll } from "./contestants/holdfast.ts";
import { type LoadPlan, MEMBERS } from "./load_plan.ts";
import type { Options } from "./options.ts";
import type { Cleanup } from "./processes.ts";
import { outputOf, type ThreadTimes, threadTimes } from "./processor_time.ts";
import { generate } from "./schedule.ts";
import { makeScratch } from "./scratch.ts";
import { sleep } from "./service.ts";
import { aligned } from "./text_table.ts";

const WARMUP_MS = 2_000;
/** What a load left behind is drained by then. */
const DRAINED_MS = 3_000;
/** How long a process without calls is looked at. */
const IDLE_MS = 10_000;
const SEED = 20_260_101;
/** How many databases; 0 for one that DATABASE_URL names. */
const COUNTS = [0, 1, 2, 4] as const;

interface Variant {
  readonly databases: number;
  readonly name: string;
  readonly service: StartedService;
  /** One of each database. */
  readonly keys: readonly string[];
  readonly idleMb: number;
  /** Milliseconds of processor time a second without calls. */
  readonly idleMs: number;
  /** Microseconds of processor time a call, one for each round. */
  readonly costs: ThreadTimes[];
  failed: number;
}

/** Runs all of it; answers a table. */
export async function benchStores(
  options: Options,
  cleanup: Cleanup,
  progress: (text: string) => void,
): Promise<string> {
  const variants: Variant[] = [];
  for (const databases of COUNTS) variants.push(await start(databases, options, cleanup, progress));
  // Before the first round the engine has not optimised everything.
  for (let round = 0; round <= options.rounds; round++) {
    // Each is the first of a round as often as any other.
    const turn = variants.map((_, place) => variants[(place + round) % variants.length] as Variant);
    for (const variant of turn) await measure(variant, options, cleanup, progress);
    if (round === 0) { for (const { costs } of variants) costs.length = 0; }
  }
  return tableOf(
    await Promise.all(variants.map(async (variant) => ({
      ...variant,
      loadedMb: await megabytesOf(variant.service.child.pid),
    }))),
  );
}

async function start(
  databases: number,
  { databaseUrl }: Options,
  cleanup: Cleanup,
  progress: (text: string) => void,
): Promise<Variant> {
  const count = Math.max(1, databases);
  const urls: string[] = [];
  for (let place = 0; place < count; place++) {
    urls.push((await makeScratch(databaseUrl, cleanup, `_${databases}_${place}`)).url);
  }
  const list = urls.map((url, place) => `eu${place}=${url}`).join(",");
  const adminToken = crypto.randomUUID();
  const [first = ""] = urls;
  const service = databases === 0
    ? await startService({ databaseUrl: first, cleanup }, adminToken)
    : await startService({ databaseUrl: "", cleanup }, adminToken, { HOLDFAST_DATABASES: list });
  await sleep(DRAINED_MS);
  const idleMb = await megabytesOf(service.child.pid);
  const name = databases === 0 ? "DATABASE_URL" : `HOLDFAST_DATABASES, ${databases}`;
  progress(`${name}: subscribing users`);
  const keys: string[] = [];
  // A workspace goes to the database with the fewest.
  for (let place = 0; place < count; place++) {
    const { key } = await setUp(service.base, adminToken);
    await subscribeAll(service.base, key, MEMBERS);
    keys.push(key);
  }
  await sleep(DRAINED_MS);
  const before = await threadTimes(service.child.pid);
  await sleep(IDLE_MS);
  const idleMs = sumOf(await threadTimes(service.child.pid)) - sumOf(before);
  return {
    ...{ databases, name, service, keys, idleMb, costs: [], failed: 0 },
    idleMs: idleMs * 1000 / IDLE_MS,
  };
}

async function measure(
  variant: Variant,
  options: Options,
  cleanup: Cleanup,
  progress: (text: string) => void,
): Promise<void> {
  const { name, service, keys, costs } = variant;
  const plans = keys.map((key): LoadPlan => ({
    port: Number(new URL(service.base).port),
    connections: Math.round(options.connections / keys.length),
    warmupMs: WARMUP_MS,
    measureMs: options.seconds * 1000,
    users: "thousand",
    paidBy: "plan",
    calls: "reserve",
    rate: null,
    firstCold: 0,
    authorization: `Bearer ${key}`,
    seed: SEED,
  }));
  const startedAt = performance.now();
  const before = await threadTimes(service.child.pid);
  const callsBefore = await callsOf(service);
  const reports = await Promise.all(plans.map((plan) => generate(plan, options.generator, cleanup)));
  await sleep(DRAINED_MS);
  const after = await threadTimes(service.child.pid);
  const lastedS = (performance.now() - startedAt) / 1000;
  const calls = await callsOf(service) - callsBefore;
  const answering = (after.answering - before.answering - variant.idleMs * lastedS) * 1000 / calls;
  const others = (after.others - before.others) * 1000 / calls;
  costs.push({ answering, others });
  variant.failed += reports.flatMap(({ failures }) => Object.values(failures)).reduce((a, b) => a + b, 0);
  progress(`${name}: ${calls} calls, ${answering.toFixed(1)} + ${others.toFixed(1)} us each`);
}

/** How many reserves a process has answered. */
async function callsOf({ base }: StartedService): Promise<number> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const counts = text.matchAll(/^holdfast_requests_total\{([^}]*)\} (\d+)$/gm);
  return [...counts].filter(([, labels]) => labels?.includes('"/api/v1/reserve"') === true)
    .reduce((sum, [, , count]) => sum + Number(count), 0);
}

/** The resident memory of a process. */
async function megabytesOf(pid: number): Promise<number> {
  return Number(await outputOf("ps", ["-o", "rss=", "-p", String(pid)])) / 1024;
}

function tableOf(variants: readonly (Variant & { readonly loadedMb: number })[]): string {
  const sumsOf = ({ costs }: Variant) => costs.map(sumOf);
  const alone = variants[0] as Variant;
  const rows = variants.map((variant) => {
    const { name, costs, idleMb, idleMs, loadedMb, failed } = variant;
    // Of one round each, since the machine may be slower in another.
    const ratios = sumsOf(variant).map((sum, round) => sum / (sumsOf(alone)[round] as number));
    return [
      name,
      median(costs.map(({ answering }) => answering)).toFixed(1),
      median(costs.map(({ others }) => others)).toFixed(1),
      median(sumsOf(variant)).toFixed(1),
      median(ratios).toFixed(3),
      idleMs.toFixed(0),
      idleMb.toFixed(0),
      loadedMb.toFixed(0),
      String(failed),
    ];
  });
  const head = [
    "process",
    "answering us",
    "others us",
    "sum us",
    "ratio",
    "idle ms/s",
    "idle MB",
    "loaded MB",
    "failed",
  ];
  return aligned([head, ...rows], 1).join("\n");
}

function sumOf({ answering, others }: ThreadTimes): number {
  return answering + others;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]] as [number, number];
  return (low + high) / 2;
}
