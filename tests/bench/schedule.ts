// Which scenarios run in which order, and one measured run. The echo runs first and once more at the end of each
// round, because every ratio stands on it: the two together show how much the machine drifted meanwhile.
import { type Contestant, type Running } from "./contestant.ts";
import { type DrainReport, DrainWatch } from "./drain_watch.ts";
import { type LoadPlan, type LoadReport, type PaidBy, type Spread } from "./load_plan.ts";
import { Child, type Cleanup } from "./processes.ts";

const WARMUP_MS = 2000;
const SEED = 20_260_101;

/** One line of work: a contestant, its users, who pays, and whether it settles what it reserves. */
export interface Scenario {
  contestant: string;
  users: Spread;
  paidBy: PaidBy;
  pair: boolean;
}

/** One finished run of a scenario. */
export interface Measured extends Scenario {
  load: LoadReport;
  drain: DrainReport | null;
}

/** The scenarios of one round. */
export function roundOf(contestants: Contestant[]): Scenario[] {
  const scenarios: Scenario[] = [];
  const both = (contestant: string, paidBy: PaidBy, pair: boolean) => {
    for (const users of ["spread", "hot"] as const) scenarios.push({ contestant, users, paidBy, pair });
  };
  for (const { name, commits, spendsCredits } of contestants) {
    both(name, "plan", false);
    // Next to each other: the two are compared.
    if (spendsCredits === true) both(name, "credits", false);
    if (commits) both(name, "plan", true);
  }
  if (contestants.length > 1 && contestants.some((each) => each.name === "echo")) {
    both("echo", "plan", false);
  }
  return scenarios;
}

/** Warms a contestant up and measures it. */
export async function measure(
  scenario: Scenario,
  running: Running,
  wanted: { connections: number; seconds: number; generator: Generator },
  cleanup: Cleanup,
): Promise<Measured> {
  const plan: LoadPlan = {
    port: running.port,
    connections: wanted.connections,
    warmupMs: WARMUP_MS,
    measureMs: wanted.seconds * 1000,
    users: scenario.users,
    paidBy: scenario.paidBy,
    pair: scenario.pair,
    authorization: running.authorization,
    seed: SEED,
  };
  const watch = running.metricsUrl === undefined ? null : new DrainWatch(running.metricsUrl);
  try {
    const load = await generate(plan, wanted.generator, cleanup);
    return { ...scenario, load, drain: watch === null ? null : await watch.finish() };
  } catch (error) {
    watch?.abandon();
    throw error;
  }
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

async function generate(plan: LoadPlan, generator: Generator, cleanup: Cleanup): Promise<LoadReport> {
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
