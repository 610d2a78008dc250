// The drainer: a session that keeps appended batches in memory until it moves them into the tables, and that replays what
// a dead node left in the journal. On a server it runs in a thread of its own (drain_thread.ts), so that it does not delay
// the thread that answers calls. The embedded store has one connection, and drains on it.
//
// Both ways are equally safe. A drain deletes its journal rows first and counts them, so draining a batch twice fails, and
// every batch in memory is also in the journal.

import { LEASE_LIMITS } from "../../process/limits.ts";
import { type Database, LOCK_NOT_AVAILABLE, type PinnedSession, type Session } from "../database.ts";
import { type DrainBatch, drainBatches, prepareDrain } from "./drain.ts";
import { Pace } from "./pace.ts";
import { endSessionsNamed } from "../nodes/node_store.ts";
import { withLaterColumns } from "../rows/tables.ts";
import { firstSeq, lastSeq, sessionNameOf } from "./ranges.ts";
import { rest } from "../../process/rest.ts";

/**
 * A drain's commit does not wait for the disk. A crash of the server may undo the last drains, rows and journal alike, but
 * also ends every session, and the next owners replay the journal. Acknowledged changes are in the journal by a commit
 * that did wait; with it everything before it in the write-ahead log is on disk too.
 */
const COMMIT_LATER = "set local synchronous_commit = off";
const REPLAY_BATCHES = 200;
/** The first key of the advisory lock for the replay of a term; the second key is the term. */
const REPLAY_LOCKS = 461_421;
/** How often a node tries the lock of a replay that another node has begun. */
const LOOK_MS = 50;

/** Writes batches of the journal into the tables. */
export interface Drainer {
  /** Keeps a durable batch until it is drained. */
  keep(batch: DrainBatch): void;
  /**
   * Moves kept batches from the journal into the tables, in order of seq, as one transaction.
   *
   * @param spreadMs how long that may take while no caller waits for it; 0 for full speed
   */
  drain(seqs: readonly number[], spreadMs: number): Promise<void>;
  /** Makes the last requested drain run at full speed from now on. */
  hurry(): void;
  /**
   * Moves all that a dead term left in the journal into the tables, in order; null for every term. It has a session of its
   * own, so that drains go on beside it, and beside its wait for a replay of another node.
   */
  replay(term: number | null): Promise<void>;
  close(): Promise<void>;
}

/** Starts a drainer with a session in this thread. */
export async function openSessionDrainer(database: Database): Promise<Drainer> {
  const session = await database.pin(() => {});
  const staged = new Set<string>();
  try {
    await prepareDrain(session, staged);
  } catch (error) {
    await session.close().catch(() => {});
    throw error;
  }
  return new SessionDrainer(database, session, staged);
}

class SessionDrainer implements Drainer {
  readonly #database: Database;
  readonly #session: PinnedSession;
  /** Tables that have a temporary table in the session. */
  readonly #staged: Set<string>;
  /** Sessions of the replays that run. */
  readonly #replaying = new Set<PinnedSession>();
  readonly #kept = new Map<number, string>();
  #isHurried = false;
  #pace: Pace | null = null;

  constructor(database: Database, session: PinnedSession, staged: Set<string>) {
    this.#database = database;
    this.#session = session;
    this.#staged = staged;
  }

  keep({ seq, payload }: DrainBatch): void {
    this.#kept.set(seq, payload);
  }

  async drain(seqs: readonly number[], spreadMs: number): Promise<void> {
    const batches = seqs.map((seq) => ({ seq, payload: this.#payloadOf(seq) }));
    const pace = new Pace(spreadMs);
    this.#pace = pace;
    if (this.#isHurried) pace.hurry();
    await transact(this.#session, this.#staged, async (session) => {
      await session.query(COMMIT_LATER);
      await drainBatches(session, batches, this.#staged, pace);
    });
    this.#pace = null;
    this.#isHurried = false;
    for (const seq of seqs) this.#kept.delete(seq);
  }

  hurry(): void {
    this.#isHurried = true;
    this.#pace?.hurry();
  }

  async replay(term: number | null): Promise<void> {
    const session = await this.#database.pin(() => {});
    this.#replaying.add(session);
    try {
      const lock = [REPLAY_LOCKS, term ?? 0] as const;
      await takeLock(session, lock);
      try {
        await replayRange(session, term);
      } finally {
        await session.query("select pg_advisory_unlock($1::int, $2::int)", lock);
      }
    } finally {
      this.#replaying.delete(session);
      await session.close().catch(() => {});
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#session, ...this.#replaying].map((session) => session.close()));
  }

  #payloadOf(seq: number): string {
    const payload = this.#kept.get(seq);
    if (payload === undefined) throw new Error(`Cannot drain: batch ${seq} is not kept here`);
    return payload;
  }
}

/** Runs a transaction of a session that drains; one that fails takes its temporary tables along. */
async function transact<T>(
  session: PinnedSession,
  staged: Set<string>,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await session.transaction(work);
  } catch (error) {
    staged.clear();
    throw error;
  }
}

/**
 * Takes the lock for the replay of a term. It polls, to notice a holder that is stuck in its own replay: the sessions of a
 * node that has been silent for too long to answer are ended.
 */
async function takeLock(session: PinnedSession, lock: readonly [kind: number, term: number]): Promise<void> {
  while (true) {
    const [row] = await session.query<{ locked: boolean }>(
      "select pg_try_advisory_lock($1::int, $2::int) as locked",
      lock,
    );
    if (row?.locked === true) return;
    await session.query(
      `select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a on a.pid = l.pid
       join members m on a.application_name = 'holdfast ' || m.term
       where l.locktype = 'advisory' and l.classid = $1::int::oid and l.objid = $2::int::oid and l.granted
         and l.database = (select oid from pg_database where datname = current_database())
         and m.seen_at < clock_timestamp() - $3::int * interval '1 millisecond'`,
      [...lock, LEASE_LIMITS.validMs],
    );
    await rest(LOOK_MS);
  }
}

/**
 * Drains what a dead term left in the journal. One node replays, the others wait. A drain of the dead node that still runs
 * is waited for, but ended if it makes no progress: a stopped process, or a broken connection, would keep its rows locked
 * for ever.
 */
async function replayRange(session: PinnedSession, term: number | null): Promise<void> {
  const [from, to] = term === null ? [0, Number.MAX_SAFE_INTEGER] : [firstSeq(term), lastSeq(term)];
  const staged = new Set<string>();
  while (true) {
    try {
      if (await transact(session, staged, (inner) => replaySome(inner, from, to, staged)) > 0) continue;
    } catch (error) {
      if ((error as { code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error;
      await (term === null ? endStaleDrains(session) : endSessionsNamed(session, sessionNameOf(term)));
      continue;
    }
    return;
  }
}

/** Drains the first batches of a range; returns how many. */
async function replaySome(
  session: Session,
  from: number,
  to: number,
  staged: Set<string>,
): Promise<number> {
  await session.query(`set local lock_timeout = ${LEASE_LIMITS.staleDrainMs}`);
  const rows = await session.query<{ seq: number; payload: string }>(
    `select seq, payload from journal where seq > $1::bigint and seq <= $2::bigint
     order by seq limit $3::int for update`,
    [from, to, REPLAY_BATCHES],
  );
  const batches = rows.map(({ seq, payload }) => ({ seq, payload: withLaterColumns(payload) }));
  if (rows.length > 0) await drainBatches(session, batches, staged);
  return rows.length;
}

/** Ends the sessions that still have a transaction on the journal. The caller has made sure that no process serves. */
async function endStaleDrains(session: Session): Promise<void> {
  await session.query(
    `select pg_terminate_backend(pid) from pg_locks
     where locktype = 'relation' and relation = 'journal'::regclass and mode = 'RowExclusiveLock' and granted
       and database = (select oid from pg_database where datname = current_database())
       and pid <> pg_backend_pid()`,
  );
}
