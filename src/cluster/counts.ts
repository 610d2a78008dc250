// All numbers that a service counts, in one object that lives as long as the process, so that counters never start
// again while Prometheus watches.

import { ClusterCounts } from "./cluster_counts.ts";
import { GatewayCounts } from "../process/counts/gateway_counts.ts";
import { StreamCounts } from "../process/streams.ts";
import { RequestCounts } from "../process/counts/request_counts.ts";
import { RuntimeCounts } from "../process/counts/runtime_counts.ts";
import { WebhookCounts } from "../process/counts/webhook_counts.ts";

/** The sweeps by name. */
export const SWEEP_NAMES = [
  "due",
  "store",
  "history",
  "erasures",
  "prompt_logs",
  "refusals",
  "messages",
  "idempotency",
  "daily_use",
  "stripe",
] as const;

export type SweepName = (typeof SWEEP_NAMES)[number];

/** How the runs of a sweep ended. */
export interface SweepTally {
  finished: number;
  failed: number;
  /** Rows that the runs settled, moved or removed. */
  rows: number;
  /** The moment of the last run that finished, in seconds of the Unix clock; 0 before the first. */
  finishedAtSeconds: number;
}

/** The numbers of a service. */
export class Counts {
  readonly requests = new RequestCounts();
  readonly runtime = new RuntimeCounts();
  readonly cluster = new ClusterCounts();
  readonly gateway = new GatewayCounts();
  readonly webhooks = new WebhookCounts();
  readonly streams = new StreamCounts();
  readonly sweeps = Object.fromEntries(
    SWEEP_NAMES.map((name) => [name, { finished: 0, failed: 0, rows: 0, finishedAtSeconds: 0 }]),
  ) as Record<SweepName, SweepTally>;
  /** How often this process joined. */
  termsBegun = 0;
  /** How often a fault ended its term. */
  termsLost = 0;
}
