// Connections to the database by purpose, and the bounds of reads that share them.

/**
 * Connections of one term, apart by purpose, so that no work waits behind that of another kind: reads of one app would
 * otherwise delay what proves that this process may answer.
 */
export const POOL_LIMITS = {
  /** Reading the registry, before a heartbeat counts. */
  registry: 1,
  /** The rows of nodes and cells: rounds, claims, taking and freeing cells. */
  upkeep: 2,
  /** Writes beside the journal, and changes of the registry. */
  writes: 4,
  /** Loads of users and first answers, and numbers of new users. */
  loads: 3,
} as const;

/** Bounds of reads of tables. */
export const READ_LIMITS = {
  /** Reads that run at a time. */
  connections: 4,
  /** Reads of all apps that run at a time: one connection is left for the service itself. */
  ofAppsMax: 3,
  /** Reads of one app that run at a time, so that slow reads leave a connection for another app. */
  ofAppMax: 2,
  /** Reads of an app that wait for its others; one more is refused. */
  waitingOfAppMax: 100,
  /** How long such a read waits before it is refused. */
  waitMs: 5_000,
  /** How long a statement may run before the server ends it. */
  statementMs: 15_000,
} as const;

/** Bounds of folds of recorded events under another catalog. An app has one at a time. */
export const WHAT_IF_LIMITS = {
  /** How long a fold holds the answering thread before other work runs. */
  sliceMs: 3,
  /** Users and events in memory at a time; a user or a tree with more events is read in pages. */
  usersOfBatch: 250,
  eventsOfBatch: 2_000,
  /** The most users of one tree, which are in memory together. */
  usersOfTreeMax: 20_000,
  /** The most events of a fold. */
  eventsMax: 5_000_000,
  /** The most counters of a result. */
  countersMax: 100_000,
} as const;
