// Every bound of the service in one place, with its unit in its name. At a bound the answer is `unavailable` 503 with
// Retry-After, or a documented refusal; never a crash.

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
  /** Appends in flight at a time. */
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
  /** How long such a call waits before it is answered without a change. */
  waitMs: 60_000,
  /** The shortest time between two readings of one user. */
  readEveryMs: 100,
  /** How often time, catalogs and moved cells are checked. */
  lookEveryMs: 250,
} as const;

/** Bounds of streams of usage. */
export const STREAM_LIMITS = {
  /** Open streams of a process. */
  openMax: 10_000,
  /** The shortest time between two states of a stream. */
  stateEveryMs: 250,
  /** How often keys, tokens and other conditions that end a stream are checked. */
  lookEveryMs: 250,
  /** How often a stream sends a comment to show that it lives. */
  commentEveryMs: 15_000,
  /** A reader that has taken nothing for this long is gone. */
  readerGoneMs: 60_000,
  /** How long a stream looks for the owner of its user before it ends. */
  ownerGoneMs: 10_000,
  /** The pause before it asks again. */
  askAgainMs: 500,
} as const;

/** Bounds of a node's right to write and to answer. */
export const LEASE_LIMITS = {
  /** How often a process that cannot join yet tries again. */
  tryEveryMs: 500,
  /** How often a node sends a heartbeat and reads the version of the registry. */
  beatEveryMs: 1_000,
  /** A node stops answering when its last heartbeat is this old ... */
  validMs: 3_000,
  /** ... and the server ends a session that was silent for this long, which frees its cells. */
  sessionIdleMs: 8_000,
  /** A transaction of a dead node that keeps rows locked for this long is ended by the node that waits for it. */
  staleDrainMs: 2_000,
} as const;

/** Bounds of moving cells between nodes. */
export const CELL_LIMITS = {
  /** How long a call waits during a hand-over, and how long it looks for the owner of its cell. */
  doorWaitMs: 2_000,
  /** A hand-over is dropped if its last calls take longer than this; the cell then accepts calls again. */
  closedMs: 1_500,
  /** A cell is handed over only to a node that has lived this long ... */
  settledMs: 5_000,
  /** ... with a last heartbeat at most this old. */
  freshMs: 1_500,
  /** A node is not ready if it cannot reach an owner for this long. */
  unreachableMs: 5_000,
  /** The shortest time between two reads of the owners. */
  lookEveryMs: 25,
} as const;

/** Bounds of changes of the registry. */
export const REGISTRY_LIMITS = {
  /** How long a change waits until every node has it in force. */
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
  /** The longest that a Retry-After asks to wait. */
  retryAfterMaxS: 86_400,
} as const;

/** Bounds of Stripe's messages. */
export const STRIPE_LIMITS = {
  /** How old a signature may be. */
  toleranceS: 300,
  /** The shortest secret of an endpoint. */
  secretLengthMin: 12,
  /** How long payments and refunds are kept that belong to no purchase, by the realm's clock. */
  strayKeptMs: 90 * 24 * 3_600_000,
} as const;

/** Bounds of request bodies that are still arriving. */
export const BODY_LIMITS = {
  /** A body has between one and two of these to arrive. */
  tickMs: 30_000,
  /** A body up to this size is small: only the connections bound the number of small ones. */
  smallBytesMax: 16 * 1024,
  /** Bytes in memory of all larger bodies together. */
  largeBytesMax: 128 * 1024 * 1024,
} as const;

/** Bounds of sweeps and of retention. */
export const SWEEP_LIMITS = {
  /** Users settled, or rows removed, by one step. */
  stepRowsMax: 500,
  /** How long first answers are kept under their idempotency keys, in real time. */
  idempotencyKeptMs: 24 * 3_600_000,
} as const;

/** Bounds of the counts of refused calls. */
export const REFUSAL_LIMITS = {
  /** How often what was counted in memory is written ... */
  writeEveryMs: 3_000,
  /** ... or at once when it has grown to this many rows. */
  writeFromRows: 2_000,
  /** Rows in memory; calls that would need another one are not counted. */
  rowsMax: 10_000,
  /** How long rows are kept after their last call, by the realm's clock. */
  keptMs: 90 * 24 * 3_600_000,
} as const;

/** Bounds of adding events up by day. */
export const DAILY_USE_LIMITS = {
  /** Events that a step of the background adds. */
  stepEventsMax: 5_000,
  /** Events that a read adds before it answers. */
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
  /** Time for all requests of one call to the model server. */
  deadlineMs: 60_000,
  /** Requests before a call fails. */
  attemptsMax: 2,
  /** Generations under way at a time. */
  callsMax: 500,
  /** Feed rows that the data source `user_events` holds. */
  eventsMax: 50,
} as const;

/** Bounds of the gateway. */
export const GATEWAY_LIMITS = {
  bodyBytesMax: 32 * 1024 * 1024,
  /** Calls under way at a time in one process. */
  callsMax: 10_000,
  /** How often open calls are checked: holds to prolong, calls that have stalled. */
  lookEveryMs: 1_000,
  /** An open hold is prolonged this often, or after a third of its time to live if that is shorter. */
  prolongEveryMs: 60_000,
  /**
   * A call is ended when its server sends nothing, or its reader takes nothing, for this long. Neither the runtime's
   * client nor its server has a timeout for a call under way.
   */
  stillMs: 1_800_000,
  /** Bytes of an answer without a stream that are kept until it is complete. */
  answerBytesMax: 1024 * 1024,
  /** Bytes of one event of a stream that are kept until it is complete. */
  eventBytesMax: 64 * 1024,
  /** The last bytes of longer answers and events, in which the usage report is searched. */
  tailBytes: 64 * 1024,
  /** Characters of a prompt or an answer that are handed to its log, which cuts them further. */
  loggedChars: 40_000,
  /** How long an answer waits for its settlement ... */
  settledMs: 2_000,
  /** ... which is tried again for this long, with pauses up to this one. */
  settleForMs: 60_000,
  settlePauseMsMax: 2_000,
} as const;

/** Bounds of merges. */
export const MERGE_LIMITS = {
  /** History rows that move within the call, and in one step of the background. */
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

/** Bounds of the proof over the whole database. */
export const RECONCILE_LIMITS = {
  /** Users summed by one query. */
  stepUsersMax: 500,
  /** Drifts read at a time. */
  pageDriftsMax: 1_000,
  /** Users of a sample. */
  sampleUsersMax: 200,
  /** Time for a statement of a sample, on a server: a user may have millions of events. */
  sampleMs: 5_000,
} as const;

/** Bounds of webhooks. */
export const WEBHOOK_LIMITS = {
  /** Webhooks of one app. */
  ofAppMax: 20,
  urlLengthMax: 2_000,
  descriptionLengthMax: 500,
  /** Types and prefixes that one webhook lists. */
  eventsMax: 50,
  secretBytes: 32,
  /** How long a replaced secret continues to sign, in real time. */
  oldSecretMs: 24 * 3_600_000,
  /** Secrets that sign at a time. */
  secretsMax: 2,
  /** Pending messages that are counted; a dead endpoint may have a million. */
  pendingCountMax: 10_000,
} as const;

/** Thresholds of the doctor. */
export const DOCTOR_LIMITS = {
  /** A difference between the clocks of process and database that deserves a warning ... */
  skewWarnMs: 1_000,
  /** ... and the difference that is a fault. */
  skewFailMs: 30_000,
  /** A round trip to the database that noticeably delays every answer. */
  roundTripWarnMs: 20,
  /** Settings of the server (maximum size of its log, time between checkpoints) with which checkpoints delay no calls ... */
  logMegabytes: 8_192,
  checkpointSeconds: 900,
  /** ... recommended once more checkpoints than this were forced by a full log. */
  checkpointsMin: 10,
  /** The sweeps run every minute; anything due for longer shows that they do not run. */
  overdueMs: 600_000,
  /** An erasure runs within minutes. */
  erasureWarnMs: 3_600_000,
  /** Model servers change their prices a few times a year. */
  pricesOldMs: 90 * 86_400_000,
  /** An endpoint that fails for longer, or a message that waits for longer, is reported. */
  webhookLateMs: 3_600_000,
  /** The most rows counted where there should be no rows. */
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

/** Bounds of the channel between two nodes. Each is per channel, so that a slow peer does not affect other peers. */
export const CHANNEL_LIMITS = {
  /** Payload of one frame. */
  frameBytesMax: 16 * 1024 * 1024,
  /** Payload of a frame before both sides have proved their identity. */
  helloBytesMax: 16 * 1024,
  /** Time from opening a connection until both sides have proved their identity. */
  helloMs: 2_000,
  /** Connections to this process that have proved nothing yet; a further one closes the oldest. */
  unprovedMax: 64,
  /** Proved connections of nodes that this process does not know yet. */
  unknownMax: 64,
  /** How long a frame gathers calls and answers after the previous frame was sent. */
  gatherMs: 1,
  /** How often a channel sends a ping ... */
  pingEveryMs: 500,
  /** ... and after how many of these intervals without data from the peer it is closed. */
  silentPingsMax: 4,
  /** The first pause before another dial, which doubles ... */
  redialMs: 50,
  /** ... up to this pause. After a channel that lived for as long, the first pause applies again. */
  redialMsMax: 1_000,
  /** Calls that wait for their answer. */
  callsMax: 50_000,
  /** Characters of the calls that wait for their answer. */
  callCharsMax: 64 * 1024 * 1024,
  /** Requests that wait for the end of their answer. */
  requestsMax: 1_000,
  /** Bytes of the bodies of these requests. */
  requestBytesMax: 64 * 1024 * 1024,
  /** Bytes that wait to be written. */
  waitingBytesMax: 64 * 1024 * 1024,
  /** Bytes of one streamed answer that are in flight or not read yet. */
  streamBytesMax: 256 * 1024,
  /** Bytes of one piece of a streamed answer. */
  chunkBytesMax: 64 * 1024,
  /** Bytes of all streamed answers that wait to be written before more is read from their sources. */
  streamsWaitingBytesMax: 1024 * 1024,
  /** Characters of calls or answers after which another frame begins. */
  batchChars: 1024 * 1024,
  /** Bytes handed to the connection at a time. */
  writeBytesMax: 256 * 1024,
  /** Bytes of a connection's first read ... */
  firstReadBytes: 4 * 1024,
  /** ... and of later reads, once the peer has sent much. */
  readBytes: 64 * 1024,
  /** Buffer for frames in pieces that is kept for the next frame. */
  keptBytesMax: 256 * 1024,
  /** Time for answers under way when this process closes its channels. */
  leaveMs: 1_000,
} as const;

/** What the audit log keeps. */
export const AUDIT_LIMITS = {
  /** Entries of one page. */
  pageMax: 200,
  pageDefault: 50,
  /** Values that an entry keeps, and characters of each value and of its name. */
  valuesMax: 20,
  valueLengthMax: 200,
  nameLengthMax: 64,
  /** After this time a write without a recorded end counts as ended with an unknown outcome. */
  begunMs: 3_600_000,
} as const;

/** Bounds of the sender of webhooks. */
export const SENDER_LIMITS = {
  /** How long an attempt may take. */
  answerMs: 15_000,
  /** Bytes of an answer that are read. */
  answerBytesMax: 16 * 1024,
  /** Connections kept to one address while nothing is sent ... */
  idleConnectionsMax: 8,
  /** ... for this long. */
  idleConnectionMs: 30_000,
  /** Messages in flight to one webhook. */
  inFlightMax: 8,
  /** Messages in flight to all webhooks; above this each webhook may still have one. */
  allInFlightMax: 1_000,
  /** How often a drain is requested for newly recorded messages. */
  flushEveryMs: 200,
  /** Lanes, or messages without an order, read by one query. */
  lookRows: 64,
  /** Lanes of one webhook remembered as having new messages; above this all of its lanes are read. */
  rememberedMax: 10_000,
  /** The pause after a fault on this side. */
  pauseMs: 1_000,
  /** The longest time between two checks for retries. */
  lookEveryMs: 60_000,
  /** Retries that one transaction makes due when their webhook is enabled. */
  hurryRows: 500,
  /** Outcomes written by one transaction. */
  outcomesMax: 500,
  /** How long delivered messages are kept, by the realm's clock ... */
  deliveredKeptMs: 7 * 24 * 3_600_000,
  /** ... and messages that were given up. */
  failedKeptMs: 30 * 24 * 3_600_000,
  /** How long a count of pending messages is reused. */
  countEveryMs: 5_000,
} as const;
