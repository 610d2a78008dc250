// What a replay shows: progress on standard error while it runs (a bar on a terminal, a line now and then elsewhere)
// and the closing summary, as tables for people or one JSON document for programs.

import type { Histogram } from "./histogram.ts";
import type { Tally } from "./replay_run.ts";
import { numberText, safeText } from "../../src/cli/table.ts";
import { aligned } from "./text_table.ts";

/** The summary as programs get it. */
export interface ReplaySummary {
  readonly file: string;
  readonly users: number;
  readonly isComplete: boolean;
  readonly rows: number;
  readonly sent: number;
  readonly allowed: number;
  readonly refused: number;
  readonly refusedByReason: Readonly<Record<string, number>>;
  readonly committed: number;
  readonly failed: number;
  readonly failedByCode: Readonly<Record<string, number>>;
  readonly failureMessages: Readonly<Record<string, string>>;
  readonly retried: number;
  readonly tokens: { readonly reserved: number; readonly committed: number };
  readonly durationMs: number;
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** How far a request was sent after its moment at most; null at full speed. */
  readonly lagMaxMs: number | null;
  readonly latency: { readonly reserve: LatencySummary | null; readonly commit: LatencySummary | null };
}

/** Percentiles of latencies, in milliseconds. */
interface LatencySummary {
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

const BAR_WIDTH = 30;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 5_000;

/** The summary of a tally. */
export function summarize(
  tally: Tally,
  about: { readonly file: string; readonly users: number; readonly rows: number; readonly isPaced: boolean },
): ReplaySummary {
  const { durationMs } = tally;
  return {
    file: about.file,
    users: about.users,
    isComplete: tally.sent === about.rows,
    rows: about.rows,
    sent: tally.sent,
    allowed: tally.allowed,
    refused: tally.refused,
    refusedByReason: Object.fromEntries(tally.refusedByReason),
    committed: tally.committed,
    failed: tally.failed,
    failedByCode: Object.fromEntries(tally.failedByCode),
    failureMessages: Object.fromEntries(tally.failureMessages),
    retried: tally.retried,
    tokens: { reserved: tally.reservedTokens, committed: tally.committedTokens },
    durationMs: Math.round(durationMs),
    requests: tally.calls,
    requestsPerSecond: perSecond(tally.calls, durationMs),
    lagMaxMs: about.isPaced ? Math.round(tally.lagMaxMs) : null,
    latency: { reserve: latencyOf(tally.reserveLatency), commit: latencyOf(tally.commitLatency) },
  };
}

function latencyOf(measured: Histogram): LatencySummary | null {
  if (measured.count === 0) return null;
  return {
    p50Ms: measured.percentileMs(0.5),
    p90Ms: measured.percentileMs(0.9),
    p99Ms: measured.percentileMs(0.99),
    maxMs: measured.maxMs,
  };
}

/** The summary as people read it. */
export function summaryText(summary: ReplaySummary): string {
  const state = summary.isComplete ? "Replayed" : "Stopped after";
  const title =
    `${state} ${numberText(summary.sent)} of ${numberText(summary.rows)} requests of ${summary.file}` +
    ` for ${numberText(summary.users)} users in ${numberText(summary.durationMs / 1000)} s`;
  const counts: [string, number][] = [
    ["Sent", summary.sent],
    ["Allowed", summary.allowed],
    ["Refused", summary.refused],
    ...named("Refused: ", summary.refusedByReason),
    ["Committed", summary.committed],
    ["Failed", summary.failed],
    ...named("Failed: ", summary.failedByCode),
    ["Retried", summary.retried],
    ["Tokens reserved", summary.tokens.reserved],
    ["Tokens committed", summary.tokens.committed],
    ["HTTP requests", summary.requests],
    ["HTTP requests a second", summary.requestsPerSecond],
  ];
  if (summary.lagMaxMs !== null) counts.push(["Behind time at most, ms", summary.lagMaxMs]);
  const latency = (["reserve", "commit"] as const).map((name) => {
    const measured = summary.latency[name];
    if (measured === null) return [name, "-", "-", "-", "-"];
    return [name, ...[measured.p50Ms, measured.p90Ms, measured.p99Ms, measured.maxMs].map(numberText)];
  });
  const parts = [
    title,
    tableText([["COUNT", "VALUE"], ...counts.map(([name, count]) => [name, numberText(count)])]),
    tableText([["LATENCY, MS", "P50", "P90", "P99", "MAX"], ...latency]),
  ];
  const failures = Object.entries(summary.failureMessages);
  if (failures.length > 0) parts.push(tableText([["FAILED", "FIRST MESSAGE"], ...failures], 2));
  return parts.join("\n\n");
}

/** A table. Its first columns are text, the others numbers. */
function tableText(rows: readonly (readonly string[])[], textColumns = 1): string {
  return aligned(rows.map((row) => row.map(safeText)), textColumns).join("\n");
}

/** Shows progress until it is ended. */
export function showProgress(tally: Tally, rows: number): { end(): void } {
  const encoder = new TextEncoder();
  const write = (text: string) => void Deno.stderr.writeSync(encoder.encode(text));
  const isBar = Deno.stderr.isTerminal();
  const timer = setInterval(() => {
    if (isBar) write(`\r\x1b[K${barText(tally, rows)}`);
    else write(`${progressText(tally, rows)}\n`);
  }, isBar ? BAR_EVERY_MS : LINE_EVERY_MS);
  return {
    end: () => {
      clearInterval(timer);
      if (isBar) write("\r\x1b[K");
    },
  };
}

function barText(tally: Tally, rows: number): string {
  const filled = Math.floor((rows === 0 ? 1 : tally.sent / rows) * BAR_WIDTH);
  return `[${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}] ${progressText(tally, rows)}`;
}

function progressText(tally: Tally, rows: number): string {
  const share = Math.floor(rows === 0 ? 100 : (tally.sent / rows) * 100);
  const rate = numberText(Math.round(perSecond(tally.calls, tally.durationMs)));
  const trouble = tally.failed === 0 ? "" : `, ${numberText(tally.failed)} failed`;
  return `${share}%, ${numberText(tally.sent)} of ${numberText(rows)} sent, ${rate} requests/s${trouble}`;
}

function named(title: string, counts: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(counts).sort(([, left], [, right]) => right - left)
    .map(([name, count]) => [title + safeText(name), count]);
}

function perSecond(count: number, ms: number): number {
  return ms > 0 ? Math.round((count / ms) * 10_000) / 10 : 0;
}
