// Which scenarios run in which order, and one measured run. The echo runs first and once more at the end of each
// round, because every ratio stands on it: the two together show how much the machine drifted meanwhile.
import { type Contestant, type Running } from "./contestant.ts";
import { type DrainReport, DrainWatch } from "./drain_watch.ts";
import { type LoadPlan, type LoadReport, type Spread } from "./load_plan.ts";
import { Child, type Cleanup } from "./processes.ts";

const WARMUP_MS = 2000;
const SEED = 20_260_101;

/** One line of work: a contestant, its users, and whether it settles what it reserves. */
export interface Scenario {
  contestant: string;
  users: Spread;
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
  for (const { name: contestant, commits } of contestants) {
    for (const pair of commits ? [false, true] : [false]) {
      scenarios.push({ contestant, users: "spread", pair }, { contestant, users: "hot", pair });
    }
  }
  if (contestants.length > 1 && contestants.some((each) => each.name === "echo")) {
    scenarios.push({ contestant: "echo", users: "spread", pair: false });
    scenarios.push({ contestant: "echo", users: "hot", pair: false });
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
