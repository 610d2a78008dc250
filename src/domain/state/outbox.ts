// Where the messages of a realm go: the webhooks that take some at the moment, as a decision knows them.

/** A webhook that takes messages at the moment. */
export interface Listener {
  readonly webhookId: string;
  /** Types, prefixes that end in ".*", or "*". */
  readonly events: readonly string[];
}

/** Where a realm's messages go. */
export interface Outbox {
  readonly appId: string;
  readonly mode: "live" | "test";
  readonly listeners: readonly Listener[];
}
