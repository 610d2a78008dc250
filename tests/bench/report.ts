// From runs to numbers for people and programs: medians over repeated runs, ratios, the aligned table and the JSON
// document. This file measures nothing.
import { type CallCost, callsIn } from "./call_cost.ts";
import { type CallReport, isPair, type Spread } from "./load_plan.ts";
import type { LogRow } from "./log_bytes.ts";
import { logTable } from "./log_table.ts";
import type { Measured, MeasuredWithCost, Scenario } from "./schedule.ts";
import { type DrainReport } from "./service_watch.ts";
import { type SustainedRow, sustainedRows, sustainedTable, sustainedTargets } from "./sustained.ts";
import { type Bound, type Target, targetLine } from "./targets.ts";
import { aligned, number } from "./text_table.ts";

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
  p999Ms: number;
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
  sustained: SustainedRow[];
  logBytes: LogRow[];
  /** The largest difference between two echo runs, as a share of the fastest: how quiet the machine was. */
  echoDrift: number | null;
  targets: Target[];
  absent: { contestant: string; outcome: "skipped" | "failed"; reason: string }[];
}

/** Builds rows, drain and targets from all runs, those of the table and the sustained ones. */
export function summarize(
  runs: MeasuredWithCost[],
  sustainedRuns: Measured[],
): Pick<Report, "rows" | "drain" | "sustained" | "echoDrift" | "targets"> {
  const rows = ratios(rowsOf(runs));
  const sustained = sustainedRows(sustainedRuns);
  return {
    rows,
    sustained,
    drain: drainRows([...runs, ...sustainedRuns]),
    echoDrift: echoDrift(runs),
    targets: [...targets(rows), ...sustainedTargets(sustained)],
  };
}

const BY_CREDITS = "reserve by credits";
const HALF = "reserve, half load";
/** A reserve of a user that must be loaded first. */
export const COLD = "cold reserve";
/** A reserve of members of one account below an organisation, and of as many users without a parent. */
export const AT_DEPTH = "reserve at depth 3";
const OF_THOUSAND = "reserve of 1000 users";

/** What a scenario calls, in words. */
export function callsOf({ calls, users, paidBy, isHalf }: Scenario): string {
  if (isHalf) return HALF;
  if (users === "cold") return COLD;
  if (users === "members") return AT_DEPTH;
  if (users === "thousand") return OF_THOUSAND;
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

function rowsOf(runs: MeasuredWithCost[]): Row[] {
  const rows: Row[] = [];
  for (const same of grouped(runs)) {
    const [run] = same as [MeasuredWithCost];
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

function grouped(runs: MeasuredWithCost[]): MeasuredWithCost[][] {
  return [...Map.groupBy(runs, (run) => `${run.contestant} ${callsOf(run)} ${run.users}`).values()];
}

function rowOf(
  which: Pick<Row, "contestant" | "calls" | "users">,
  same: MeasuredWithCost[],
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
    p999Ms: median(reports.map((report) => report.p999Ms)),
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

/** The contestants that have a drain. */
const SERVICES = ["holdfast", "embedded"];

function drainRows(runs: Measured[]): DrainRow[] {
  return runs.filter((run) => SERVICES.includes(run.contestant)).map((run) => ({
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
    if (calls === AT_DEPTH) {
      const flat = rows.find((other) => other.calls === OF_THOUSAND);
      add("members of one account to users alone", users, row.requestsPerSecond / rateOf(flat), {
        atLeast: 0.6,
      });
      const answering = row.cost.answering / (flat?.cost.answering ?? NaN);
      add("the answering thread's time on a path of 3 to that on a user alone", users, answering, {
        atMost: 1.5,
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
  }
  return found;
}

function rateOf(row: Row | undefined): number {
  return row?.requestsPerSecond ?? NaN;
}

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
  ];
  const add = (part: string[]) => part.length > 0 && lines.push(...part, "");
  if (report.rows.length > 0) {
    add(aligned([HEAD, ...report.rows.map(cells)]));
    add(costTable(report.rows));
  }
  add(sustainedTable(report.sustained));
  add(logTable(report.logBytes));
  for (const { contestant, outcome, reason } of report.absent) {
    lines.push(`${outcome}: ${contestant}: ${reason}`);
  }
  lines.push(...report.drain.map(drainLine));
  if (report.echoDrift !== null) {
    lines.push(
      `echo runs differ by ${(report.echoDrift * 100).toFixed(1)} %${report.echoDrift > 0.15 ? NOISY : ""}`,
    );
  }
  lines.push(...report.targets.map(targetLine));
  return lines.join("\n");
}

const HEAD = [
  "contestant",
  "calls",
  "users",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "p99.9 ms",
  "x echo",
  "x transaction",
  "failed",
];

const NOISY = ": something else is using this machine; the ratios are not to be trusted";

function cells(row: Row): string[] {
  const failed = Object.entries(row.failures).map(([kind, count]) => `${count} ${kind}`).join(", ");
  return [
    row.contestant,
    row.calls,
    row.users,
    number(row.requestsPerSecond),
    row.p50Ms.toFixed(2),
    row.p99Ms.toFixed(2),
    row.p999Ms.toFixed(2),
    row.ratioToEcho?.toFixed(3) ?? "-",
    row.ratioToTransaction?.toFixed(2) ?? "-",
    failed === "" ? "0" : failed,
  ];
}

/** What the calls cost; the two calls of a pair stand together in the row above them. */
function costTable(rows: Row[]): string[] {
  const whole = rows.filter(({ calls }) => !calls.startsWith(" "));
  return [
    "microseconds of processor time a call; of a batch an event",
    ...aligned([COST_HEAD, ...whole.map(costCells)]),
  ];
}

const COST_HEAD = ["contestant", "calls", "users", "answering thread", "other threads", "PostgreSQL"];

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
