// Counters of the delivery of webhook messages, over all terms of the process.

/** How an attempt ended: with a 2xx, with another status, without an answer. */
export type AttemptEnd = "delivered" | "refused" | "unanswered";

/** Counts of one process. */
export class WebhookCounts {
  readonly attempts: Record<AttemptEnd, number> = { delivered: 0, refused: 0, unanswered: 0 };
  /** Messages delivered. */
  delivered = 0;
  /** Messages given up. */
  failed = 0;
  /** Endpoints disabled, because they answered 410 or only failed. */
  disabled = 0;
}
