// Every bound of the service in one place, with its unit in its name. At a bound a call is answered with `unavailable` 503
// and Retry-After, or with an error code of its own; the process never crashes.

/** Bounds of the actor runtime. */
export const RUNTIME_LIMITS = {
  /** Above this many actors in memory idle ones are removed; at twice as many no new user is loaded. */
  actorsMax: 50_000,
  /** Actors examined to find an idle one to remove. */
  roomSteps: 8,
  /** An actor without a turn for this long is removed. */
  actorIdleMs: 300_000,
  /** How often idle actors are looked for. */
  passivateEveryMs: 5_000,
  /** Turns that may wait in one user's mailbox. */
  mailboxTurnsMax: 10_000,
  /** Open holds of one user. */
  openHoldsMax: 1_000_000,
  /** Users loaded by one query. */
  loadUsersMax: 500,
  /** Users waiting to be loaded. */
  loadQueueMax: 20_000,
  /** Changes in one journal batch; one turn's changes are never split. */
  batchChangesMax: 2_000,
  /** Batches in flight to the journal. */
  appendsInFlightMax: 4,
  /** Changes that make a batch worth an append beside others in flight. */
  batchWorthChanges: 32,
  /** Changes waiting for the next batches before new turns are refused. */
  waitingChangesMax: 100_000,
  /** Changes appended and not yet drained before appends wait. */
  backlogChangesMax: 250_000,
  /** Characters of journal appended and not yet drained before appends wait. */
  backlogBytesMax: 128 * 1024 * 1024,
  /** Changes written into the tables by one transaction. */
  drainChangesMax: 80_000,
  /** The same where appends and drains share one connection. */
  drainAloneChangesMax: 2_000,
  /** Target length of a background drain, so that its write-ahead log does not delay appends. */
  drainSpreadMs: 1_500,
  /** A drain starts at this many changes of backlog ... */
  drainFromChanges: 60_000,
  /** ... or when the oldest batch is this old. */
  drainAfterMs: 2_000,
} as const;

/** Bounds of watches: calls that wait until a user's usage changes. */
export const WATCH_LIMITS = {
  /** How long such a call waits before it answers that nothing has changed. */
  waitMs: 60_000,
  /** The shortest time between two readings of one user. */
  readEveryMs: 100,
  /** How often time, catalogs and moved cells are checked. */
  lookEveryMs: 250,
} as const;

/** Bounds of streams: answers that continue while something changes. */
export const STREAM_LIMITS = {
  /** Open streams of a process. */
  openMax: 10_000,
  /** The shortest time between two states of a stream. */
  stateEveryMs: 250,
  /** How often keys, tokens and other reasons to end a stream are checked. */
  lookEveryMs: 250,
  /** How often a stream sends a comment to show that it is alive. */
  commentEveryMs: 15_000,
  /** A reader that has read nothing for this long counts as gone. */
  readerGoneMs: 60_000,
  /** How long a stream looks for the owner of its user before it ends. */
  ownerGoneMs: 10_000,
  /** The pause before the next attempt. */
  askAgainMs: 500,
} as const;

/** Bounds of a process's lease: its right to write and to answer. */
export const LEASE_LIMITS = {
  /** How often a process that cannot join yet tries again. */
  tryEveryMs: 500,
  /** The interval of the heartbeat, which also reads the version of the registry. */
  beatEveryMs: 1_000,
  /** A process with a last heartbeat of this age answers no calls ... */
  validMs: 3_000,
  /** ... and the server ends a session after this much silence, which frees its cells. */
  sessionIdleMs: 8_000,
  /** A transaction of a dead process that keeps rows locked for this long is ended by the process that waits for it. */
  staleDrainMs: 2_000,
} as const;

/** Bounds of moving cells from one process to another. */
export const CELL_LIMITS = {
  /** How long a call waits at a closed door, and how long it looks for the owner of its cell. */
  doorWaitMs: 2_000,
  /** A hand-over is given up when its last calls take longer than this; the door opens again. */
  closedMs: 1_500,
  /** A cell is handed over only to a process of this age ... */
  settledMs: 5_000,
  /** ... with a last heartbeat of at most this age. */
  freshMs: 1_500,
  /** A process that cannot reach an owner for this long is not ready. */
  unreachableMs: 5_000,
  /** The shortest time between two reads of the owners. */
  lookEveryMs: 25,
} as const;

/** Bounds of changes of the registry. */
export const REGISTRY_LIMITS = {
  /** How long a change waits for every process to confirm it. */
  confirmMs: 10_000,
  /** How often it checks. */
  lookEveryMs: 20,
} as const;

/** Bounds of requests. */
export const REQUEST_LIMITS = {
  bodyBytesMax: 1024 * 1024,
  /** Of a batch of events. */
  batchBytesMax: 8 * 1024 * 1024,
  batchEventsMax: 500,
  metadataBytesMax: 16 * 1024,
  idLengthMax: 200,
  eventLengthMax: 200,
  amountMax: 1e12,
  ttlSecondsMin: 10,
  ttlSecondsMax: 86_400,
  idempotencyKeyLengthMax: 200,
  feedLimitMax: 100,
  feedLimitDefault: 20,
  feedOffsetMax: 10_000,
  historyRowsMax: 50,
  holdsShownMax: 200,
  ledgerLimitMax: 500,
  ledgerLimitDefault: 50,
  customLimitsMax: 1_000,
  externalRefLengthMax: 200,
  notesLengthMax: 500,
  keysCachedMax: 10_000,
  /** Unknown members that the warnings of an answer name; the rest is a number. Protects the size of answers. */
  unknownMembersShownMax: 20,
  /** Characters of an unknown member's name that a warning repeats. */
  unknownMemberLengthMax: 64,
  /** The longest wait in a Retry-After. */
  retryAfterMaxS: 86_400,
} as const;

/** Bounds of Stripe's messages. */
export const STRIPE_LIMITS = {
  /** The maximum age of a signature. */
  toleranceS: 300,
  /** The shortest secret of an endpoint. */
  secretLengthMin: 12,
  /** How long payments and refunds without a purchase are kept, by the realm's clock. */
  strayKeptMs: 90 * 24 * 3_600_000,
} as const;

/** Bounds of request bodies that are still arriving. */
export const BODY_LIMITS = {
  /** A body has to arrive within one to two of these. */
  tickMs: 30_000,
  /** Bodies up to this size are small: only the number of connections bounds them. */
  smallBytesMax: 16 * 1024,
  /** Bytes of all larger bodies together. */
  largeBytesMax: 128 * 1024 * 1024,
} as const;

/** Bounds of sweeps. */
export const SWEEP_LIMITS = {
  /** Users settled, or rows removed, by one step. */
  stepRowsMax: 500,
  /** How long first answers are kept under their idempotency keys, in real time. */
  idempotencyKeptMs: 24 * 3_600_000,
} as const;

/** Bounds of the counts of refused calls. */
export const REFUSAL_LIMITS = {
  /** How often counts in memory are written ... */
  writeEveryMs: 3_000,
  /** ... or at once at this many rows. */
  writeFromRows: 2_000,
  /** Rows in memory; calls that need another row are not counted. */
  rowsMax: 10_000,
  /** How long rows are kept after their last call, by the realm's clock. */
  keptMs: 90 * 24 * 3_600_000,
} as const;

/** Bounds of adding events up by day. */
export const DAILY_USE_LIMITS = {
  /** Events added by one background step. */
  stepEventsMax: 5_000,
  /** Events added by a read before it answers. */
  readEventsMax: 1_000,
  /** The longest rest between two steps. */
  restMsMax: 1_000,
  /** Days of one answer. */
  daysMax: 92,
} as const;

/** Bounds of the process. */
export const PROCESS_LIMITS = {
  poolConnectionsMax: 6,
  /** Time for calls in flight to end after SIGTERM; the process ends within 20 s. */
  stopGraceMs: 10_000,
  /** Pause before a new attempt after the database connection was lost. */
  reconnectMs: 1_000,
} as const;

/** Bounds of compose. */
export const COMPOSE_LIMITS = {
  /** Time for all questions of one call to the model server. */
  deadlineMs: 60_000,
  /** Questions before a call fails. */
  attemptsMax: 2,
  /** Generations in flight. */
  callsMax: 500,
  /** Events in the data source `user_events`. */
  eventsMax: 50,
} as const;

/** Bounds of the gateway. */
export const GATEWAY_LIMITS = {
  bodyBytesMax: 32 * 1024 * 1024,
  /** Calls in flight in one process. */
  callsMax: 10_000,
  /** How often open calls are checked: holds to prolong, stalled calls. */
  lookEveryMs: 1_000,
  /** An open hold is prolonged this often, or after a third of its time to live if that is shorter. */
  prolongEveryMs: 60_000,
  /**
   * A call is ended when its server sends no bytes, or its reader takes none, for this long. The runtime itself has no timeout
   * for a call in flight.
   */
  stillMs: 1_800_000,
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

/** Bounds of merges. */
export const MERGE_LIMITS = {
  /** History rows that move within the call, and in one background step. */
  historyRowsMax: 500,
  /** Such steps within a call: history is one, counts of refused calls may be more. */
  callStepsMax: 4,
  /** The longest rest of the background between two steps. */
  historyRestMsMax: 1_000,
  /** Pairs of one batch. */
  batchPairsMax: 500,
  /** Time after which a batch answers; the remaining pairs are not processed. */
  batchMs: 25_000,
} as const;

/** Bounds of `reconcile`, the proof over the whole database. */
export const RECONCILE_LIMITS = {
  /** Users summed by one query. */
  stepUsersMax: 500,
  /** Drifts read at a time. */
  pageDriftsMax: 1_000,
  /** Users of a sample. */
  sampleUsersMax: 200,
  /** Time for a statement of a sample, on a server: one user may have millions of events. */
  sampleMs: 5_000,
} as const;

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

/** Thresholds of the doctor. */
export const DOCTOR_LIMITS = {
  /** Difference between the clocks of process and database for a warning ... */
  skewWarnMs: 1_000,
  /** ... and for an error. */
  skewFailMs: 30_000,
  /** A round trip to the database that noticeably delays every answer. */
  roundTripWarnMs: 20,
  /** Size of the server's write-ahead log, and time between two checkpoints, at which these delay no calls ... */
  logMegabytes: 8_192,
  checkpointSeconds: 900,
  /** ... reported after more than this many checkpoints caused by a full log. */
  checkpointsMin: 10,
  /** Sweeps run every minute; rows due for longer than this show that they do not run. */
  overdueMs: 600_000,
  /** An erasure runs within minutes. */
  erasureWarnMs: 3_600_000,
  /** Model servers change their prices a few times a year. */
  pricesOldMs: 90 * 86_400_000,
  /** An endpoint that fails for longer, or a message that waits for longer, is reported. */
  webhookLateMs: 3_600_000,
  /** Rows counted at most, where the expected number is 0. */
  countMax: 1_000,
} as const;

/** Bounds of people, captures and exports. */
export const PEOPLE_LIMITS = {
  /** How far ahead of the realm's clock a captured event may be. */
  timestampAheadMs: 24 * 3_600_000,
  /** Properties of one person, as JSON. */
  personBytesMax: 64 * 1024,
  /** Rows that an export reads at a time. */
  exportPageRows: 1_000,
  /** Rows that an export holds in memory while it merges the events of several people into one order. */
  exportHeldRows: 4_000,
  /** How long a download link is valid, in real time. */
  exportValidMs: 24 * 3_600_000,
} as const;

/** Bounds of the channel between two processes, each for one channel, so that a slow peer does not affect others. */
export const CHANNEL_LIMITS = {
  /** Payload of one frame. */
  frameBytesMax: 16 * 1024 * 1024,
  /** Payload of a frame before both sides are authenticated. */
  helloBytesMax: 16 * 1024,
  /** Time from connecting until both sides are authenticated. */
  helloMs: 2_000,
  /** Connections that are not authenticated yet; one more closes the oldest. */
  unprovedMax: 64,
  /** Authenticated connections of processes that this one does not know yet. */
  unknownMax: 64,
  /** How long a frame collects calls and answers when the previous frame has only just left. */
  gatherMs: 1,
  /** The interval of pings on a channel ... */
  pingEveryMs: 500,
  /** ... which is closed after this many intervals without a byte from the peer. */
  silentPingsMax: 4,
  /** The first pause before another dial, which doubles ... */
  redialMs: 50,
  /** ... up to this one. After a channel that lived this long, the first pause is used again. */
  redialMsMax: 1_000,
  /** Calls waiting for their answer. */
  callsMax: 50_000,
  /** Characters of the calls waiting for their answer. */
  callCharsMax: 64 * 1024 * 1024,
  /** Requests waiting for the end of their answer. */
  requestsMax: 1_000,
  /** Bytes of the bodies of these requests. */
  requestBytesMax: 64 * 1024 * 1024,
  /** Bytes waiting to be written. */
  waitingBytesMax: 64 * 1024 * 1024,
  /** Bytes of one streamed answer that are in flight or not read yet. */
  streamBytesMax: 256 * 1024,
  /** Bytes of one piece of a streamed answer. */
  chunkBytesMax: 64 * 1024,
  /** Bytes of all streamed answers waiting to be written, above which their sources are not read. */
  streamsWaitingBytesMax: 1024 * 1024,
  /** Characters of calls or answers after which another frame begins. */
  batchChars: 1024 * 1024,
  /** Bytes written to the connection at a time. */
  writeBytesMax: 256 * 1024,
  /** Bytes of a connection's first read ... */
  firstReadBytes: 4 * 1024,
  /** ... and of later ones, when a peer sends much. */
  readBytes: 64 * 1024,
  /** Size of the buffer for partial frames that is reused. */
  keptBytesMax: 256 * 1024,
  /** Time for answers in flight when this process closes its channels. */
  leaveMs: 1_000,
} as const;

/** Bounds of the audit log. */
export const AUDIT_LIMITS = {
  /** Entries of one page. */
  pageMax: 200,
  pageDefault: 50,
  /** Values of one entry, and characters of each and of its name. */
  valuesMax: 20,
  valueLengthMax: 200,
  nameLengthMax: 64,
  /** After this time an unfinished write counts as ended with an unknown outcome. */
  begunMs: 3_600_000,
} as const;

/** Bounds of the delivery of webhook messages. */
export const SENDER_LIMITS = {
  /** How long an attempt may take. */
  answerMs: 15_000,
  /** Bytes of an answer that are read. */
  answerBytesMax: 16 * 1024,
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
