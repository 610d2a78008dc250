// What the sender of webhooks counts, over all terms of the process.

/** How an attempt ended: with a 2xx, with another status, without an answer. */
export type AttemptEnd = "delivered" | "refused" | "unanswered";

/** Counts of one process. */
export class WebhookCounts {
  readonly attempts: Record<AttemptEnd, number> = { delivered: 0, refused: 0, unanswered: 0 };
  /** Messages that were delivered. */
  delivered = 0;
  /** Messages that were given up. */
  failed = 0;
  /** Webhooks that were disabled, since they said so or only failed. */
  disabled = 0;
}
