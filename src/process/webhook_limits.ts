// The bounds of webhooks, like those in limits.ts.

/** Bounds of webhook endpoints. */
export const WEBHOOK_LIMITS = {
  /** Endpoints of one app. */
  ofAppMax: 20,
  urlLengthMax: 2_000,
  descriptionLengthMax: 500,
  /** Types and prefixes listed by one endpoint. */
  eventsMax: 50,
  secretBytes: 32,
  /** How long a previous secret still signs, in real time. */
  oldSecretMs: 24 * 3_600_000,
  /** Secrets that sign at a time. */
  secretsMax: 2,
  /** Pending messages that are counted; an endpoint that is down may have a million. */
  pendingCountMax: 10_000,
} as const;

/** Bounds of the delivery of webhook messages. */
export const SENDER_LIMITS = {
  /** How long an attempt may take. */
  answerMs: 15_000,
  /** Bytes of an answer that are read. */
  answerBytesMax: 16 * 1024,
  /** Bytes of it that are kept ... */
  answerKeptBytes: 1024,
  /** ... of so many attempts at a message, the newest ones. */
  attemptsKept: 20,
  /** Messages that one call sends again. */
  sentAgainMax: 10_000,
  /** Idle connections kept to one address ... */
  idleConnectionsMax: 8,
  /** ... for this long. */
  idleConnectionMs: 30_000,
  /** Messages in flight to one endpoint. */
  inFlightMax: 8,
  /** Messages in flight to all endpoints; above this each endpoint may still have one. */
  allInFlightMax: 1_000,
  /** How often recorded messages are flushed into the tables. */
  flushEveryMs: 200,
  /** Lanes, or messages without a user, read by one query. */
  lookRows: 64,
  /** Lanes of one endpoint remembered because they have something new; above this all of its lanes are scanned. */
  rememberedMax: 10_000,
  /** The pause after a fault of this service. */
  pauseMs: 1_000,
  /** The longest time between two looks for retries. */
  lookEveryMs: 60_000,
  /** Messages released by one transaction when their endpoint is enabled. */
  hurryRows: 500,
  /** Outcomes written by one transaction. */
  outcomesMax: 500,
  /** How long delivered messages are kept, by the realm's clock ... */
  deliveredKeptMs: 7 * 24 * 3_600_000,
  /** ... and messages that were given up. */
  failedKeptMs: 30 * 24 * 3_600_000,
  /** How long a count of pending messages stays valid. */
  countEveryMs: 5_000,
} as const;
