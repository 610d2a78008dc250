// Sustained load: reserves for a minute, at full speed and at half of it, where a short run would end
// before the store's own work (drains, checkpoints) is felt. It owns the order of these runs, their rows, their targets
// and their table.
import type { Bound, Target } from "./targets.ts";
import { aligned, number } from "./text_table.ts";
import type { Spread } from "./load_plan.ts";
import type { Measured, Scenario } from "./schedule.ts";

/** The contestants that are loaded for long. */
export const COMPARED: readonly string[] = ["echo", "redis", "holdfast", "embedded"];

/** How much of the time that the others are loaded is enough for the echo, which keeps nothing. */
const ECHO_SECONDS = 10;
/** Seconds at the start that the rest is compared with. */
const FIRST_SECONDS = 10;

/** As fast as answers come, or half of that. */
export type Load = "full" | "half";

/** What is asked of sustained runs. */
export interface SustainedOptions {
  readonly seconds: number;
  readonly users: readonly Spread[];
  readonly loads: readonly Load[];
  /** Requests a second of half loads; null for half of what the contestant's full load came to. */
  readonly rate: number | null;
}

/** A planned run. */
export interface SustainedPlan {
  readonly scenario: Scenario;
  readonly seconds: number;
}

/** Runs in their order: contestants that are compared stand next to each other. */
export function sustainedPlans(contestants: readonly string[], options: SustainedOptions): SustainedPlan[] {
  const { seconds, users, loads, rate } = options;
  const plans: SustainedPlan[] = [];
  for (const spread of users) {
    for (const load of ["full", "half"] as const) {
      // Without a rate a half load is half of a full one.
      if (!loads.includes(load) && (load === "half" || rate !== null)) continue;
      for (const contestant of contestants) {
        const scenario: Scenario = {
          contestant,
          calls: "reserve",
          users: spread,
          paidBy: "plan",
          isHalf: load === "half",
        };
        const isEcho = contestant === "echo" && load === "full";
        plans.push({ scenario, seconds: isEcho ? Math.min(seconds, ECHO_SECONDS) : seconds });
      }
    }
  }
  return plans;
}

/** The rate of a run: null for as fast as it goes, else half of what this contestant's full load came to. */
export function sustainedRate(
  { scenario }: SustainedPlan,
  before: readonly Measured[],
  options: SustainedOptions,
): number | null {
  if (!scenario.isHalf) return null;
  const full = before.find((run) => !run.isHalf && sameOf(run, scenario));
  const rate = options.rate ?? (full === undefined ? null : full.load.first.requestsPerSecond / 2);
  if (rate === null) throw new Error("the full load that this is half of failed");
  return rate;
}

function sameOf(one: Scenario, other: Scenario): boolean {
  return one.contestant === other.contestant && one.users === other.users;
}

/** One line of the table of sustained runs. */
export interface SustainedRow {
  contestant: string;
  load: Load;
  users: Spread;
  seconds: number;
  /** Requests a second: over all of it, its first ten seconds, the rest at the median, and its lowest second. */
  requestsPerSecond: number;
  firstSeconds: number;
  restMedian: number | null;
  lowest: number;
  p50Ms: number;
  p99Ms: number;
  p999Ms: number;
  maxMs: number;
  /** How long the generator itself stood still at most: no latency below it says anything of the contestant. */
  longestPauseMs: number | null;
  failures: Record<string, number>;
  bySecond: number[];
  store: Measured["store"];
  drain: Measured["drain"];
}

/** The rows of finished runs. */
export function sustainedRows(runs: readonly Measured[]): SustainedRow[] {
  return runs.map((run) => {
    const { contestant, users, isHalf, load, store, drain } = run;
    const { seconds, bySecond, failures, longestPauseMs } = load;
    const rest = bySecond.slice(FIRST_SECONDS).toSorted((a, b) => a - b);
    const { requestsPerSecond, p50Ms, p99Ms, p999Ms, maxMs } = load.first;
    const first = bySecond.slice(0, FIRST_SECONDS);
    return {
      contestant,
      load: isHalf ? "half" : "full",
      users,
      seconds: Math.round(seconds),
      requestsPerSecond,
      firstSeconds: first.reduce((sum, count) => sum + count, 0) / Math.max(1, first.length),
      restMedian: rest[rest.length >> 1] ?? null,
      lowest: Math.min(...bySecond),
      p50Ms,
      p99Ms,
      p999Ms,
      maxMs,
      longestPauseMs,
      failures,
      bySecond,
      store,
      drain,
    };
  });
}

/** What the project asks of itself under sustained load; a figure that could not be measured is left out. */
export function sustainedTargets(rows: readonly SustainedRow[]): Target[] {
  const targets: Target[] = [];
  const add = (what: string, users: Spread, value: number, bound: Bound) => {
    if (!Number.isFinite(value)) return;
    const met = "atLeast" in bound ? value >= bound.atLeast : value <= bound.atMost;
    targets.push({ what, users, value, ...bound, met });
  };
  const of = (contestant: string, { users, load }: SustainedRow) =>
    rows.find((row) => row.contestant === contestant && row.users === users && row.load === load);
  for (const row of rows) {
    if (row.contestant !== "holdfast" && row.contestant !== "embedded") continue;
    if (row.load === "half") {
      const echo = of("echo", row);
      add("p99 to that of echo, each at half its load", row.users, row.p99Ms / (echo?.p99Ms ?? NaN), {
        atMost: 3,
      });
      add("p99.9 to that of echo, each at half its load", row.users, row.p999Ms / (echo?.p999Ms ?? NaN), {
        atMost: 10,
      });
      continue;
    }
    const redis = of("redis", row);
    if (row.restMedian !== null) {
      const share = row.requestsPerSecond / row.firstSeconds;
      add(`all of ${row.seconds} s to its first ten`, row.users, share, { atLeast: 0.95 });
    }
    const toRedis = row.requestsPerSecond / (redis?.requestsPerSecond ?? NaN);
    add(`${row.seconds} s of reserves to redis`, row.users, toRedis, { atLeast: 1 });
  }
  return targets;
}

/** The rows as text: one table, and the backlogs. */
export function sustainedTable(rows: readonly SustainedRow[]): string[] {
  if (rows.length === 0) return [];
  const head = ["reserves", "load", "users", "s", "requests/s", "first 10 s", "then median", "lowest"];
  head.push(
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "our pause ms",
    "longest append ms",
    "appends s",
    "longest drain ms",
  );
  return aligned([[...head, "failed"], ...rows.map(cells)]);
}

function cells(row: SustainedRow): string[] {
  const { store } = row;
  const failed = Object.entries(row.failures).map(([kind, count]) => `${count} ${kind}`).join(", ");
  return [
    row.contestant,
    row.load,
    row.users,
    String(row.seconds),
    number(row.requestsPerSecond),
    number(row.firstSeconds),
    row.restMedian === null ? "-" : number(row.restMedian),
    number(row.lowest),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.p999Ms.toFixed(2),
    row.maxMs.toFixed(1),
    row.longestPauseMs?.toFixed(1) ?? "-",
    store?.appends.longestMs?.toFixed(1) ?? "-",
    store?.appends.sumSeconds.toFixed(1) ?? "-",
    store?.drains.longestMs?.toFixed(0) ?? "-",
    failed === "" ? "0" : failed,
  ];
}
