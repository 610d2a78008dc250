// Connections to the database by purpose, and the bounds of reads that share them.

/**
 * Connections of one term, apart by purpose, so that no work waits behind that of another kind: reads of one app would
 * otherwise delay what proves that this process may answer.
 */
export const POOL_LIMITS = {
  /** Reading the registry, before a heartbeat counts. */
  registry: 1,
  /** Who lives and who owns what: rounds, claims, taking and freeing cells. */
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
  /** Those of all apps: one connection is left for the service itself. */
  ofAppsMax: 3,
  /** Those of one app, so that another app has a connection while this one's reads are slow. */
  ofAppMax: 2,
  /** Reads of an app that wait for its others; one more is refused. */
  waitingOfAppMax: 100,
  /** How long such a read waits before it is refused. */
  waitMs: 5_000,
  /** How long a statement may run before the server ends it. */
  statementMs: 15_000,
} as const;
