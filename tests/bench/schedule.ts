// Which scenarios run in which order, and one measured run. The echo runs first and once more at the end of each
// round, because every ratio stands on it: the two together show how much the machine drifted meanwhile.
import { type CallCost, callsIn, watchCost } from "./call_cost.ts";
import { type Contestant, type Running } from "./contestant.ts";
import { type DrainReport, ServiceWatch, type StoreReport } from "./service_watch.ts";
import type { Calls, LoadPlan, LoadReport, PaidBy, Spread } from "./load_plan.ts";
import { Child, type Cleanup } from "./processes.ts";

const WARMUP_MS = 2000;
const SEED = 20_260_101;

/** One line of work: a contestant, what is called, its users, who pays, and how hard. */
export interface Scenario {
  readonly contestant: string;
  readonly calls: Calls;
  readonly users: Spread;
  readonly paidBy: PaidBy;
  /** Whether the load is half of what the contestant answered when it was asked as fast as it could. */
  readonly isHalf: boolean;
}

/** One finished run of a scenario. */
export interface Measured extends Scenario {
  load: LoadReport;
  drain: DrainReport | null;
  store: StoreReport | null;
}

/** One finished run, and what its calls cost. */
export interface MeasuredWithCost extends Measured {
  cost: CallCost;
}

/** The scenarios of one round; those that are compared stand next to each other. */
export function roundOf(contestants: Contestant[]): Scenario[] {
  const scenarios: Scenario[] = [];
  const plain = { calls: "reserve", users: "spread", paidBy: "plan", isHalf: false } as const;
  const add = (contestant: string, parts: Partial<Scenario> = {}) =>
    scenarios.push({ contestant, ...plain, ...parts });
  const both = (contestant: string, parts: Partial<Scenario> = {}) => {
    for (const users of ["spread", "hot"] as const) add(contestant, { ...parts, users });
  };
  for (const { name, isService } of contestants) {
    both(name);
    if (name === "echo") add(name, { isHalf: true });
    if (isService !== true) continue;
    both(name, { paidBy: "credits" });
    both(name, { calls: "pair" });
    both(name, { calls: "pair of amounts" });
    both(name, { calls: "pair with usage" });
    both(name, { calls: "can-use" });
    both(name, { calls: "usage" });
    both(name, { calls: "track" });
    add(name, { calls: "batch" });
    add(name, { users: "thousand" });
    add(name, { users: "members" });
    add(name, { isHalf: true });
    // Last, since it leaves the store with a million rows to clean up after.
    add(name, { users: "cold" });
  }
  if (contestants.length > 1 && contestants.some((each) => each.name === "echo")) both("echo");
  return scenarios;
}

/** The rate of a half load, from the runs before; null for as fast as it goes. */
export function rateOf(scenario: Scenario, before: readonly Measured[]): number | null {
  if (!scenario.isHalf) return null;
  const whole = before.findLast((run) =>
    run.contestant === scenario.contestant && run.calls === scenario.calls && !run.isHalf &&
    run.users === scenario.users && run.paidBy === scenario.paidBy
  );
  return whole === undefined ? null : whole.load.first.requestsPerSecond / 2;
}

/** How a contestant is loaded. */
interface Wanted {
  readonly connections: number;
  readonly seconds: number;
  readonly generator: Generator;
  /** Requests a second, null for as fast as it goes; where it is left out, what the scenario says. */
  readonly rate?: number | null;
  readonly warmupMs?: number;
}

/** Warms a contestant up and measures it. */
export async function measure(
  scenario: Scenario,
  running: Omit<Running, "pid">,
  before: readonly Measured[],
  wanted: Wanted,
  cleanup: Cleanup,
): Promise<Measured> {
  const plan: LoadPlan = {
    port: running.port,
    connections: wanted.connections,
    warmupMs: wanted.warmupMs ?? WARMUP_MS,
    measureMs: wanted.seconds * 1000,
    users: scenario.users,
    paidBy: scenario.paidBy,
    calls: scenario.calls,
    rate: wanted.rate === undefined ? rateOf(scenario, before) : wanted.rate,
    firstCold: before.at(-1)?.load.nextCold ?? 0,
    authorization: running.authorization,
    seed: SEED,
  };
  const watch = running.metricsUrl === undefined ? null : new ServiceWatch(running.metricsUrl, plan.warmupMs);
  try {
    const load = await generate(plan, wanted.generator, cleanup);
    return { ...scenario, load, ...(watch === null ? { drain: null, store: null } : await watch.finish()) };
  } catch (error) {
    watch?.abandon();
    throw error;
  }
}

/** The same, and what a call costs its process and the sessions of the database at `databaseUrl`. */
export async function measureWithCost(
  scenario: Scenario,
  running: Running,
  before: readonly Measured[],
  wanted: Wanted & { readonly databaseUrl: string },
  cleanup: Cleanup,
): Promise<MeasuredWithCost> {
  const costOf = await watchCost(running.pid, wanted.databaseUrl);
  const run = await measure(scenario, running, before, wanted, cleanup);
  const calls = run.load.all.requestsPerSecond * callsIn(scenario.calls);
  const loadMs = (wanted.warmupMs ?? WARMUP_MS) + wanted.seconds * 1000;
  return { ...run, cost: await costOf(calls, loadMs) };
}

/** Who makes the load: our own program, or the library's. */
export type Generator = "own" | "autocannon";

const PROGRAMS: Record<Generator, { readonly file: string; readonly permissions: readonly string[] }> = {
  own: { file: "generator.ts", permissions: ["--allow-net=127.0.0.1"] },
  autocannon: {
    file: "library_generator.ts",
    permissions: ["--allow-net=127.0.0.1", "--allow-env", "--allow-read", "--allow-sys"],
  },
};

/** Runs the load generator on a plan. */
export async function generate(plan: LoadPlan, generator: Generator, cleanup: Cleanup): Promise<LoadReport> {
  const { file, permissions } = PROGRAMS[generator];
  const program = new URL(file, import.meta.url).pathname;
  const args = ["run", "--quiet", "--no-prompt", ...permissions, program];
  const child = Child.start(cleanup, "load generator", "deno", args);
  try {
    return JSON.parse(await child.exchange(JSON.stringify(plan), plan.warmupMs + plan.measureMs + 30_000));
  } finally {
    await child.stop();
  }
}
