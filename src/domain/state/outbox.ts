// The outbox of a realm: the enabled webhooks, which receive its messages.

/** An enabled webhook. */
export interface Listener {
  readonly webhookId: string;
  /** Types, prefixes that end in ".*", or "*". */
  readonly events: readonly string[];
}

/** The webhooks of a realm. */
export interface Outbox {
  readonly appId: string;
  readonly mode: "live" | "test";
  readonly listeners: readonly Listener[];
}
