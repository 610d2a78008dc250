// Bounds of the service, each with its unit in its name; those of some parts are in files of their own beside this one. At a
// bound a call is answered with `unavailable` 503 and Retry-After, or with an error code of its own; the process never
// crashes.

/** Bounds of the actor runtime. */
export const RUNTIME_LIMITS = {
  /** With more actors than this in memory, idle ones are removed; at twice as many no new user is loaded. */
  actorsMax: 50_000,
  /** Actors examined to find an idle one to remove. */
  roomSteps: 8,
  /** An actor without a turn for this long is removed. */
  actorIdleMs: 300_000,
  /** How often idle actors are looked for. */
  passivateEveryMs: 5_000,
  /** Turns that may wait in one user's mailbox. */
  mailboxTurnsMax: 10_000,
  /** How often a call begins its turn again because a user above was busy or not in memory. */
  levelTriesMax: 100,
  /** Open holds of one user. */
  openHoldsMax: 1_000_000,
  /** Lapsed holds of one user that one turn settles; more are settled in steps before it. */
  turnHoldsMax: 1_000,
  /** Open runs of one user, which are all in memory. */
  openRunsMax: 10_000,
  /** Users loaded by one query. */
  loadUsersMax: 500,
  /** Users waiting to be loaded. */
  loadQueueMax: 20_000,
  /** Idempotency keys that one prefix of a realm is made for: the first one, and later ones of a busy realm. */
  freshKeysMin: 512,
  freshKeysMax: 16_384,
  /** Realms with such prefixes. */
  freshRealmsMax: 256,
  /** Queries that load users at a time: a second one begins when the first is slow, so that others do not wait for it. */
  loadsMax: 2,
  loadSlowMs: 100,
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
  drainAloneBytesMax: 1024 * 1024,
  /** Target length of a background drain, so that its write-ahead log does not delay appends. */
  drainSpreadMs: 1_500,
  /** How long a call waits for the tables to have everything acknowledged: an order longer than a drain at its bound. */
  flushMs: 10_000,
  /** How long a step of long work holds the answering thread, so that other calls and beats go on. */
  stepMs: 8,
  /** Size of the piece of a batch that is decided before it waits for the journal, so that other appends wait for less. */
  batchPieceBytes: 256 * 1024,
  /** The limit of `batchPieceBytes` for all batches of one app that run at the same time. */
  batchesOfAppBytesMax: 512 * 1024,
  /** How long a call of a batch that has a key may wait for its decision. It is finished all the same. */
  batchUndecidedMs: 1_000,
  /** Characters of journal not yet drained before a batch of several pieces waits: reads of others wait for their drain. */
  batchBacklogBytesMax: 1024 * 1024,
  /** The same where the store works in the answering thread; there it also pauses as long as a piece took, up to this. */
  batchBacklogAloneBytesMax: 256 * 1024,
  batchPauseMsMax: 50,
  /** A drain starts at this many changes of backlog ... */
  drainFromChanges: 60_000,
  /** ... or when the oldest batch is this old. */
  drainAfterMs: 2_000,
} as const;

/** Bounds of the texts of holds in memory, metadata and prompts, at two bytes a character. Other texts stay in the tables. */
export const HOLD_LIMITS = {
  /** Of one user. */
  textBytesOfUserMax: 16 * 1024 * 1024,
  /** Of one app, so that its holds leave memory for other apps'. */
  textBytesOfAppMax: 64 * 1024 * 1024,
  /** Of all apps in one process. */
  textBytesMax: 512 * 1024 * 1024,
  /** Bytes that are loaded with one user, of up to 500 users in one query. */
  loadedBytesMax: 64 * 1024,
} as const;

/** Bounds of watches: calls that wait until a user's usage changes. */
export const WATCH_LIMITS = {
  /** How long such a call waits before it answers that nothing has changed. */
  waitMs: 60_000,
  /** The shortest time between two readings of one user. */
  readEveryMs: 100,
  /** Different readings of one user, which are all made after each change, for the streams of all processes. */
  variantsMax: 16,
  /** How often time, catalogs and moved cells are checked. */
  lookEveryMs: 250,
} as const;

/** Bounds of streams: answers that continue while something changes. */
export const STREAM_LIMITS = {
  /** Open streams of a process. */
  openMax: 10_000,
  /** Of these, those of one app, so that its users leave room for other apps' ... */
  ofAppMax: 2_000,
  /** ... those of one user: the oldest ends when there would be more ... */
  ofUserMax: 20,
  /** ... and those of one end-user token: one page with a token in it cannot end all streams of its user. */
  ofTokenMax: 5,
  /** Different values of `event` among the streams of one user: each costs a reading for every change of the user. */
  variantsMax: 8,
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

/** Bounds of downloads: documents that are made while they are sent. */
export const DOWNLOAD_LIMITS = {
  /** Open downloads of one person: a link can be opened by anyone who has it. */
  ofPersonMax: 2,
  /** Open downloads of one app, each with a page of rows in memory. */
  ofAppMax: 20,
  /** A reader that has taken nothing for this long counts as gone. */
  readerGoneMs: 60_000,
  /** Bytes sent at a time: a reader has to take this much in that time. */
  chunkBytes: 64 * 1024,
  /** Bytes of an answer above which it is sent in the same way: longer than one to 500 calls together. */
  longBytes: 256 * 1024,
} as const;

/** Bounds of a process's lease: its right to write and to answer. */
export const LEASE_LIMITS = {
  /** How often a process that cannot join yet tries again. */
  tryEveryMs: 500,
  /** The interval of the heartbeat, which also reads the version of the registry. */
  beatEveryMs: 1_000,
  /** A process with a last heartbeat of this age answers no calls ... */
  validMs: 3_000,
  /** ... and the other processes end its sessions after this much silence, which frees its cells. */
  silentMs: 8_000,
  /** Signs of life go on for this long while work holds the answering thread. */
  heldMsMax: 15_000,
  /** The server itself ends the session that appends after this much silence: longer than a hold may be. */
  sessionIdleMs: 20_000,
  /** A process that could not put the registry in force for this long gives its cells up, although it sends heartbeats. */
  unprovedMs: 6_000,
  /** A transaction of a dead process that keeps rows locked for this long is ended by the process that waits for it. */
  staleDrainMs: 2_000,
} as const;

/** Bounds of moving cells from one process to another. */
export const CELL_LIMITS = {
  /** How long a call waits at a closed door, and how long it looks for the owner of its cell. */
  doorWaitMs: 2_000,
  /** A hand-over is given up when its last calls take longer than this; the door opens again. */
  closedMs: 1_500,
  /** How long cells that go to another store wait for each other's long calls; then those with one come later. */
  pinnedWaitMs: 30_000,
  /** A cell is handed over only to a process of this age ... */
  settledMs: 5_000,
  /** ... with a last heartbeat of at most this age. */
  freshMs: 1_500,
  /** A cell that has been free for longer, two heartbeats, may be taken by any process. */
  freeMs: 2_000,
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
  /** The largest body of a batch of events. */
  batchBytesMax: 8 * 1024 * 1024,
  batchEventsMax: 500,
  batchCallsMax: 500,
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
  /** People whose links have no recorded author, of one search. */
  peopleShownMax: 200,
  ledgerLimitMax: 500,
  ledgerLimitDefault: 50,
  customLimitsMax: 1_000,
  /** Limits of one user on groups of the users above. */
  memberLimitsMax: 100,
  runLimitsMax: 8,
  runTtlSecondsMin: 60,
  runTtlSecondsMax: 604_800,
  runTtlSeconds: 3600,
  runsLimit: 20,
  runsLimitMax: 100,
  childrenLimit: 20,
  childrenLimitMax: 100,
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
  /** A message: anyone may send one, and its signature can be checked only when it has arrived. */
  bodyBytesMax: 256 * 1024,
  /** How long payments, refunds and disputes without a purchase are kept, by the realm's clock. */
  strayKeptMs: 90 * 24 * 3_600_000,
  /** How long messages about something that was paid for and is not granted are kept, by the realm's clock. */
  unhandledKeptMs: 30 * 24 * 3_600_000,
  /** How long one call to Stripe may take. */
  callMs: 30_000,
  /** How long Stripe surely knows a key of a call: it forgets keys after a day. */
  keyValidMs: 23 * 3_600_000,
  /** Top-ups that one process pays at a time. */
  payingMax: 8,
  /** Top-ups of one app that a process pays at a time, so that no app delays the others. */
  payingOfAppMax: 2,
  /** Top-ups that a process remembers; the tables have the others. */
  payingKnownMax: 10_000,
  /** How often the tables are looked at for top-ups that are under way. */
  payingLookMs: 30_000,
  /** The first pause before a top-up is looked at again; each one doubles it. */
  payingPauseMs: 2_000,
  payingPauseMaxMs: 600_000,
  /** Such messages of an app and mode; older ones go. Protects the store of an app that sells other things too. */
  unhandledMax: 1_000,
} as const;

/** Bounds of end-user tokens. */
export const TOKEN_LIMITS = {
  /** How far ahead a token may expire: a stolen one opens its user's usage until then. */
  aheadMs: 400 * 24 * 3_600_000,
} as const;

/** Bounds of sweeps. */
export const SWEEP_LIMITS = {
  /** Users settled, or rows removed, by one step. */
  stepRowsMax: 500,
  /** Steps of one run that remove rows of workspaces on another database: the next run goes on. */
  movedStepsMax: 500,
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
  /** Users below a user whose usage an answer adds to that of the user. */
  membersMax: 500,
} as const;

/** Bounds of the process. */
export const PROCESS_LIMITS = {
  /** Connections outside of a term: to migrate and to look for other processes. */
  poolConnectionsMax: 2,
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
  /** Generations in flight in one process ... */
  callsMax: 500,
  /** ... and those of one workspace, so that a slow model under one leaves room for others. */
  callsOfWorkspaceMax: 100,
  /** Events in the data source `user_events`. */
  eventsMax: 50,
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
  /** A card payment is settled within minutes. */
  topUpLateMs: 24 * 3_600_000,
  /** Rows counted at most, where the expected number is 0. */
  countMax: 1_000,
} as const;

/** Bounds of people, captures and exports. */
export const PEOPLE_LIMITS = {
  /** How far ahead of the realm's clock a captured event may be. */
  timestampAheadMs: 24 * 3_600_000,
  /** Properties of one person, as JSON. */
  personBytesMax: 64 * 1024,
  /** Rows that an export reads at a time; with their texts a row may have 100 KB. */
  exportPageRows: 250,
  /** Rows that an export holds in memory while it merges the events of several people into one order. */
  exportHeldRows: 1_000,
  /** How long a download link is valid, in real time. */
  exportValidMs: 24 * 3_600_000,
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
  /** Rows for failed sign-ins that a process writes a minute, since strangers cause them ... */
  failedRowsMax: 100,
  /** ... how long those above the limit of attempts wait to be written together ... */
  failedWriteMs: 1_000,
  /** ... and how long rows are kept, in real time. */
  failedKeptMs: 90 * 24 * 3_600_000,
} as const;
