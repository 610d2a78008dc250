// From runs to numbers for people and programs: medians over repeated runs, ratios, the aligned table and the JSON
// document. Nothing here measures.
import { type CallCost, callsIn } from "./call_cost.ts";
import { type DrainReport } from "./drain_watch.ts";
import { type CallReport, isPair, type Spread } from "./load_plan.ts";
import type { Measured, Scenario } from "./schedule.ts";

/** Facts about where the numbers come from. */
export interface Machine {
  cores: number;
  cpu: string;
  memoryGiB: number;
  os: string;
  deno: string;
  postgres: string;
  synchronousCommit: string;
  fsync: string;
}

/** One line of the table. */
export interface Row {
  contestant: string;
  /** As callsOf names them, or one of the two calls of a pair. */
  calls: string;
  users: Spread;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  ratioToEcho: number | null;
  ratioToTransaction: number | null;
  failures: Record<string, number>;
  /** Medians; of a pair's calls together. */
  cost: CallCost;
  /** Requests a second of each run that the median was taken from. */
  runs: number[];
}

/** The drain while and after one row's load. */
export interface DrainRow {
  calls: string;
  users: Spread;
  drain: DrainReport | null;
}

/** Everything that a run of the benchmark says. */
export interface Report {
  machine: Machine;
  options: { seconds: number; rounds: number; connections: number };
  rows: Row[];
  drain: DrainRow[];
  /** The largest difference between two echo runs, as a share of the fastest: how quiet the machine was. */
  echoDrift: number | null;
  targets: ({ what: string; users: Spread; value: number; met: boolean } & Bound)[];
  absent: { contestant: string; outcome: "skipped" | "failed"; reason: string }[];
}

/** Builds rows, drain and targets from all runs. */
export function summarize(runs: Measured[]): Pick<Report, "rows" | "drain" | "echoDrift" | "targets"> {
  const rows = ratios(rowsOf(runs));
  return { rows, drain: drainRows(runs), echoDrift: echoDrift(runs), targets: targets(rows) };
}

const BY_CREDITS = "reserve by credits";
const HALF = "reserve, half load";
/** A reserve of a user that must be loaded first. */
export const COLD = "cold reserve";

/** What a scenario calls, in words. */
export function callsOf({ calls, users, paidBy, isHalf }: Scenario): string {
  if (isHalf) return HALF;
  if (users === "cold") return COLD;
  if (paidBy === "credits") return BY_CREDITS;
  return PAIRS[calls] ?? calls;
}

const OF_AMOUNTS = "reserve + commit of amounts";
const WITH_USAGE = "reserve + commit with usage";
/** Its figures are events, not requests. */
const BATCH = "track by batches of 100";
const PAIRS: Readonly<Record<string, string>> = {
  "batch": BATCH,
  "pair": "reserve + commit",
  "pair of amounts": OF_AMOUNTS,
  "pair with usage": WITH_USAGE,
};

function rowsOf(runs: Measured[]): Row[] {
  const rows: Row[] = [];
  for (const same of grouped(runs)) {
    const [run] = same as [Measured];
    const { contestant, users } = run;
    const row = (calls: string, pick: (run: Measured) => CallReport | null) =>
      rows.push(rowOf({ contestant, calls, users }, same, pick));
    row(callsOf(run), ({ load, calls }) => callsEach(load.all, callsIn(calls)));
    if (!isPair(run.calls)) continue;
    row("  its reserve", ({ load }) => load.first);
    row("  its commit", ({ load }) => load.commit);
  }
  return rows;
}

/** What requests of several calls each did, call by call. */
function callsEach(report: CallReport, calls: number): CallReport {
  const { requests, requestsPerSecond } = report;
  return { ...report, requests: requests * calls, requestsPerSecond: requestsPerSecond * calls };
}

function grouped(runs: Measured[]): Measured[][] {
  return [...Map.groupBy(runs, (run) => `${run.contestant} ${callsOf(run)} ${run.users}`).values()];
}

function rowOf(
  which: Pick<Row, "contestant" | "calls" | "users">,
  same: Measured[],
  pick: (run: Measured) => CallReport | null,
): Row {
  const reports = same.map(pick).filter((report) => report !== null);
  const failures: Record<string, number> = {};
  for (const [kind, count] of same.flatMap((run) => Object.entries(run.load.failures))) {
    failures[kind] = (failures[kind] ?? 0) + count;
  }
  return {
    ...which,
    requestsPerSecond: median(reports.map((report) => report.requestsPerSecond)),
    p50Ms: median(reports.map((report) => report.p50Ms)),
    p99Ms: median(reports.map((report) => report.p99Ms)),
    ratioToEcho: null,
    ratioToTransaction: null,
    failures,
    cost: {
      answering: median(same.map(({ cost }) => cost.answering)),
      others: median(same.map(({ cost }) => cost.others)),
      postgres: median(same.map(({ cost }) => cost.postgres)),
    },
    runs: reports.map((report) => Math.round(report.requestsPerSecond)),
  };
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}

/** The plain reserves that others are compared with. Cold users are spread ones to those who know no cold ones. */
function plainOf(rows: Row[], contestant: string, users: Spread): Row | undefined {
  const like = users === "cold" ? "spread" : users;
  return rows.find((row) => row.contestant === contestant && row.calls === "reserve" && row.users === like);
}

function ratios(rows: Row[]): Row[] {
  const base = (contestant: string, users: Spread) =>
    plainOf(rows, contestant, users)?.requestsPerSecond ?? 0;
  return rows.map((row) => {
    const echo = base("echo", row.users);
    const transaction = base("transaction", row.users);
    return {
      ...row,
      ratioToEcho: echo > 0 ? row.requestsPerSecond / echo : null,
      ratioToTransaction: transaction > 0 ? row.requestsPerSecond / transaction : null,
    };
  });
}

function drainRows(runs: Measured[]): DrainRow[] {
  return runs.filter((run) => run.contestant === "holdfast").map((run) => ({
    calls: callsOf(run),
    users: run.users,
    drain: run.drain,
  }));
}

function echoDrift(runs: Measured[]): number | null {
  const speeds = runs.filter((run) => run.contestant === "echo" && !run.isHalf)
    .map((run) => run.load.first.requestsPerSecond);
  if (speeds.length < 2) return null;
  const fastest = Math.max(...speeds);
  return (fastest - Math.min(...speeds)) / fastest;
}

/** What the project asks of itself; a figure that could not be measured is left out. */
function targets(rows: Row[]): Report["targets"] {
  const found: Report["targets"] = [];
  const add = (what: string, users: Spread, value: number | null, bound: Bound) => {
    if (value === null || !Number.isFinite(value)) return;
    const met = "atLeast" in bound ? value >= bound.atLeast : value <= bound.atMost;
    found.push({ what, users, value, ...bound, met });
  };
  for (const row of rows) {
    if (row.contestant !== "holdfast") continue;
    const { calls, users, ratioToEcho } = row;
    const toEcho = TO_ECHO[calls];
    if (toEcho !== undefined) add(`${calls} to echo`, users, ratioToEcho, { atLeast: toEcho });
    if (calls === "reserve") {
      const redis = plainOf(rows, "redis", users)?.requestsPerSecond ?? NaN;
      add("reserve to transaction", users, row.ratioToTransaction, { atLeast: 10 });
      add("reserve to redis", users, row.requestsPerSecond / redis, { atLeast: 1 });
    }
    if (calls === BY_CREDITS) {
      const byPlan = plainOf(rows, "holdfast", users)?.requestsPerSecond ?? NaN;
      add("reserve by credits to reserve by the plan", users, row.requestsPerSecond / byPlan, {
        atLeast: 0.8,
      });
    }
    if (calls === WITH_USAGE) {
      const without = rows.find((other) => other.calls === OF_AMOUNTS && other.users === users);
      add("a usage to the same amounts", users, row.requestsPerSecond / (without?.requestsPerSecond ?? NaN), {
        atLeast: 0.95,
      });
    }
    if (calls === BATCH) {
      const single = rows.find((other) => other.calls === "track" && other.users === users);
      add(
        "events by batches to single ones",
        users,
        row.requestsPerSecond / (single?.requestsPerSecond ?? NaN),
        {
          atLeast: 5,
        },
      );
      add(
        "the answering thread's time on a single track to that on an event of a batch",
        users,
        (single?.cost.answering ?? NaN) / row.cost.answering,
        { atLeast: 5 },
      );
    }
    if (calls === HALF) {
      const echo = rows.find((other) => other.contestant === "echo" && other.calls === HALF);
      add("p99 to that of echo, each at half its load", users, row.p99Ms / (echo?.p99Ms ?? NaN), {
        atMost: 3,
      });
    }
  }
  return found;
}

type Bound = { readonly atLeast: number } | { readonly atMost: number };

/** The least share of the echo that each of Holdfast's calls is to reach. */
const TO_ECHO: Readonly<Record<string, number>> = {
  reserve: 0.45,
  // Calls a second, two a pair.
  "reserve + commit": 0.4,
  "can-use": 0.6,
  usage: 0.6,
  [COLD]: 0.15,
};

/** The report as text for a terminal. */
export function table(report: Report): string {
  const { machine, options } = report;
  const lines = [
    `${machine.cores} cores (${machine.cpu}), ${machine.memoryGiB} GiB, ${machine.os}, Deno ${machine.deno}, ` +
    `PostgreSQL ${machine.postgres}, synchronous_commit=${machine.synchronousCommit}, fsync=${machine.fsync}; ` +
    `${options.connections} connections, ${options.rounds} x ${options.seconds} s`,
    "",
    ...aligned([
      ["contestant", "calls", "users", "requests/s", "p50 ms", "p99 ms", "x echo", "x transaction", "failed"],
      ...report.rows.map(cells),
    ]),
    "",
    "microseconds of processor time a call; of a batch an event",
    ...aligned([
      ["contestant", "calls", "users", "answering thread", "other threads", "PostgreSQL"],
      // The two calls of a pair stand together in the row above them.
      ...report.rows.filter(({ calls }) => !calls.startsWith(" ")).map(costCells),
    ]),
    "",
  ];
  for (const { contestant, outcome, reason } of report.absent) {
    lines.push(`${outcome}: ${contestant}: ${reason}`);
  }
  lines.push(...report.drain.map(drainLine));
  if (report.echoDrift !== null) {
    lines.push(
      `echo runs differ by ${(report.echoDrift * 100).toFixed(1)} %${report.echoDrift > 0.15 ? NOISY : ""}`,
    );
  }
  for (const target of report.targets) {
    const { what, users, value, met } = target;
    const bound = "atLeast" in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`;
    lines.push(`target ${met ? "met" : "MISSED"}: ${what}, ${users}: ${value.toFixed(2)} (${bound})`);
  }
  return lines.join("\n");
}

const NOISY = ": something else is using this machine; the ratios are not to be trusted";

function cells(row: Row): string[] {
  const failed = Object.entries(row.failures).map(([kind, count]) => `${count} ${kind}`).join(", ");
  return [
    row.contestant,
    row.calls,
    row.users,
    Math.round(row.requestsPerSecond).toLocaleString("en-US"),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.ratioToEcho?.toFixed(3) ?? "-",
    row.ratioToTransaction?.toFixed(2) ?? "-",
    failed === "" ? "0" : failed,
  ];
}

function costCells({ contestant, calls, users, cost }: Row): string[] {
  const parts = [cost.answering, cost.others, cost.postgres];
  return [contestant, calls, users, ...parts.map((micros) => micros.toFixed(1))];
}

function drainLine({ calls, users, drain }: DrainRow): string {
  if (drain === null) return `drain, ${calls}, ${users}: n/a`;
  const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const emptied = drain.secondsToEmpty === null
    ? "not empty within a minute"
    : `empty ${drain.secondsToEmpty.toFixed(1)} s later`;
  return `drain, ${calls}, ${users}: backlog at most ${drain.maxChanges} changes, ${
    mebibytes(drain.maxBytes)
  }; ` +
    `at the end ${drain.endChanges}, ${mebibytes(drain.endBytes)}; ${emptied}`;
}

const TEXT_COLUMNS = 3;

function aligned(rows: string[][]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row.map((cell, column) =>
      column < TEXT_COLUMNS ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)
    ).join("  ").trimEnd()
  );
}
