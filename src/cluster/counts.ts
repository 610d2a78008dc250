// All counters of a service, in one object that lives as long as the process, so that Prometheus never sees a counter
// start again.

import { ClusterCounts } from "./cluster_counts.ts";
import { BODY_COUNTS, WRONG_TOKEN_COUNTS } from "../process/counts/sent_counts.ts";
import { GatewayCounts } from "../process/counts/gateway_counts.ts";
import { DownloadCounts } from "../process/downloads.ts";
import { StreamCounts } from "../process/streams.ts";
import { RequestCounts } from "../process/counts/request_counts.ts";
import { RuntimeCounts } from "../process/counts/runtime_counts.ts";
import { StripeCounts } from "../process/counts/stripe_counts.ts";
import { WebhookCounts } from "../process/counts/webhook_counts.ts";

/** The sweeps by name. */
const SWEEP_NAMES = [
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
  "stripe_retry",
  "failed_sign_ins",
  "failed_requests",
  "moved",
  "key_uses",
  "runs",
  "rates",
] as const;

export type SweepName = (typeof SWEEP_NAMES)[number];

/** The results of a sweep's runs. */
interface SweepTally {
  finished: number;
  failed: number;
  /** Rows that all runs together settled, moved or removed. */
  rows: number;
  /** When the last run finished, in Unix seconds; 0 before the first. */
  finishedAtSeconds: number;
}

/** The counters of a service. Those of what comes in are of the process, which may have several services. */
export class Counts {
  readonly requests: RequestCounts;
  readonly runtime = new RuntimeCounts();
  readonly cluster = new ClusterCounts();
  readonly gateway: GatewayCounts;
  readonly bodies = BODY_COUNTS;
  readonly wrongTokens = WRONG_TOKEN_COUNTS;
  readonly webhooks = new WebhookCounts();
  readonly stripe = new StripeCounts();
  readonly streams: StreamCounts;
  readonly downloads: DownloadCounts;
  readonly sweeps = Object.fromEntries(
    SWEEP_NAMES.map((name) => [name, { finished: 0, failed: 0, rows: 0, finishedAtSeconds: 0 }]),
  ) as Record<SweepName, SweepTally>;
  /** How often this process began a term. */
  termsBegun = 0;
  /** How often a fault ended a term. */
  termsLost = 0;

  /** @param beside the counters of another service of the process; null for the first */
  constructor(beside: Counts | null = null) {
    this.requests = beside?.requests ?? new RequestCounts();
    this.gateway = beside?.gateway ?? new GatewayCounts();
    this.streams = beside?.streams ?? new StreamCounts();
    this.downloads = beside?.downloads ?? new DownloadCounts();
  }
}
