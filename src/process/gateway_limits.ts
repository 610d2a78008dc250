// The bounds of the gateway, like those in limits.ts.

/** Bounds of the gateway. */
export const GATEWAY_LIMITS = {
  bodyBytesMax: 32 * 1024 * 1024,
  /** Brackets, braces and commas outside of strings: long conversations with tools have some 10,000. */
  structureMax: 200_000,
  /** Calls in flight in one process ... */
  callsMax: 10_000,
  /** ... and those of one app, so that a slow model under one leaves room for others. */
  callsOfAppMax: 5_000,
  /** How often open calls are checked: holds to prolong, stalled calls. */
  lookEveryMs: 1_000,
  /** An open hold is prolonged this often, or after a third of its time to live if that is shorter. */
  prolongEveryMs: 60_000,
  /** A call is ended when its server sends no bytes, or its reader takes none, for this long: the runtime has no timeout. */
  stillMs: 1_800_000,
  /** How long an answer is read on for its report after its caller has left, unless a setting says otherwise ... */
  readOnMs: 10_000,
  /** ... and for how many bytes, in how many calls at a time: each costs a connection to the model server. */
  readOnBytesMax: 4 * 1024 * 1024,
  readOnCallsMax: 500,
  /** How long a call without a hold, or the body of an error, may take, and its bytes: both are passed on as a whole. */
  plainMs: 60_000,
  plainBytesMax: 4 * 1024 * 1024,
  /** Bytes of a complete answer that are kept to read its usage. */
  answerBytesMax: 1024 * 1024,
  /** Bytes of one event of a stream that are kept to read its usage. */
  eventBytesMax: 64 * 1024,
  /** For longer ones, the last bytes, in which the usage is looked for. */
  tailBytes: 64 * 1024,
  /** Characters of a prompt or an answer that are passed to the log, which cuts them further. */
  loggedChars: 40_000,
  /** How long an answer waits for its settlement ... */
  settledMs: 2_000,
  /** ... which is retried for this long, with pauses up to this one. */
  settleForMs: 60_000,
  settlePauseMsMax: 2_000,
} as const;
