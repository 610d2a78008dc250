// A node's writer: the one session that appends its batches to the journal, sends its heartbeats, and holds the locks of
// its cells. When that session dies, the locks and the ability to append end together.
//
// postgres.js may silently open a new connection, so each append proves that its session is the one with which the term
// began: the session keeps the seq of its last append in a setting, and an append writes only if it finds the seq before
// its own. The same check keeps appends in flight in order: when one fails, all later ones fail too. Appends do not
// extend the time in which this node may answer; only heartbeats do.
//
// On the embedded store the lock on the folder keeps other processes out, and the same statements run.

import {
  type AppendedBatch,
  type IdempotencyRow,
  type Journal,
  type JournalEntry,
  type Lease,
  type RowChange,
  Unavailable,
} from "../../../actors/port.ts";
import type { Millis } from "../../domain/values/period.ts";
import { LEASE_LIMITS, RUNTIME_LIMITS } from "../../process/limits.ts";
import { arrayText, type Database, type PinnedSession } from "../database.ts";
import { keepTime } from "../nodes/cell_store.ts";
import {
  forgetOldNodes,
  insertNode,
  MEMBER_LOCK,
  type NewNode,
  nextTerm,
  prepareKeys,
} from "../nodes/node_store.ts";
import { misfitOf } from "../rows/misfits.ts";
import { answerOf, encodeChanges, lineOf } from "../rows/tables.ts";
import { startDrainThread } from "./drain_thread.ts";
import { type Drainer, openSessionDrainer } from "./drainer.ts";
import { firstSeq, sessionNameOf } from "./ranges.ts";
import { rest } from "../../process/rest.ts";

/** The first key of the advisory locks of cells; the second key is the cell. */
export const CELL_LOCKS = 461_420;

/** The database's answer to a heartbeat. */
interface BeatAnswer {
  /** The version of the registry. */
  readonly version: number;
  /** The database's clock. */
  readonly now: Millis;
}

/** What a heartbeat publishes. */
interface BeatState {
  readonly share: number;
  /** The version of the registry that is in force here. */
  readonly registryVersion: number;
}

/**
 * Joins the cluster of a database: takes a term with its range of the journal, and writes the node's row.
 *
 * @param introduce makes the content of the row for a term
 * @returns null while a version for a single writer serves, or another node prepares the database
 */
export async function joinCluster(
  database: Database,
  session: PinnedSession,
  introduce: (term: number) => Promise<NewNode>,
): Promise<Writer | null> {
  if (!await lockShared(session) || !await isReady(database, session)) return null;
  await forgetOldNodes(session);
  await keepTime(session);
  const term = await nextTerm(session);
  await session.query("select set_config('holdfast.seq', $1, false)", [String(firstSeq(term))]);
  await session.query("select set_config('application_name', $1, false)", [sessionNameOf(term)]);
  if (database.kind === "postgres") {
    await session.query(`set idle_session_timeout = ${LEASE_LIMITS.sessionIdleMs}`);
    await session.query(`set idle_in_transaction_session_timeout = ${LEASE_LIMITS.sessionIdleMs}`);
  }
  const sentAt = Life.now();
  const drainer =
    await (database.url === null
      ? openSessionDrainer(database.named(sessionNameOf(term)))
      : startDrainThread(database.url, term, database.expected));
  try {
    await insertNode(session, term, await introduce(term));
    return new Writer(database, session, drainer, term, sentAt);
  } catch (error) {
    await drainer.close();
    throw error;
  }
}

/** Takes the lock that every node holds shared while it lives; a version for a single writer takes it exclusively. */
async function lockShared(session: PinnedSession): Promise<boolean> {
  const [lock] = await session.query<{ locked: boolean }>(
    "select pg_try_advisory_lock_shared($1::bigint) as locked",
    [MEMBER_LOCK],
  );
  return lock?.locked === true;
}

/**
 * Makes sure that the numbers of new users come from the sequence. A database of a version for a single writer is prepared
 * once: its whole journal is replayed, and the sequence is set past every user. The last writer may not have noticed yet
 * that it lost its session, so this first waits until that writer can answer no more.
 */
async function isReady(database: Database, session: PinnedSession): Promise<boolean> {
  const [lease] = await session.query<{ ready: boolean }>("select keys_in_sequence as ready from lease");
  if (lease?.ready === true) return true;
  await session.query("select pg_advisory_unlock_shared($1::bigint)", [MEMBER_LOCK]);
  const [lock] = await session.query<{ locked: boolean }>(
    "select pg_try_advisory_lock($1::bigint) as locked",
    [
      MEMBER_LOCK,
    ],
  );
  if (lock?.locked !== true) return false;
  if (database.kind === "postgres") {
    await rest(LEASE_LIMITS.validMs);
  }
  const drainer = await openSessionDrainer(database);
  try {
    await drainer.replay(null);
  } finally {
    await drainer.close();
  }
  await prepareKeys(session);
  const isShared = await lockShared(session);
  await session.query("select pg_advisory_unlock($1::bigint)", [MEMBER_LOCK]);
  return isShared;
}

/** A moment on both clocks of the machine: monotonic time may stop while a machine sleeps, wall time can be set. */
class Life {
  readonly #monotonic = performance.now();
  readonly #wall = Date.now();

  static now(): Life {
    return new Life();
  }

  /** Milliseconds since then, by the clock on which more have passed. */
  get ageMs(): number {
    return Math.max(performance.now() - this.#monotonic, Date.now() - this.#wall);
  }
}

/** The writer of one term. */
export class Writer implements Lease, Journal {
  readonly term: number;
  readonly journal: Journal = this;
  readonly lost: Promise<Error>;
  readonly #session: PinnedSession;
  readonly #drainer: Drainer;
  /** Whether there is a server, whose session can be lost. */
  readonly #isRemote: boolean;
  /** The seq of the last append that was sent. */
  #seq: number;
  #lose!: (reason: Error) => void;
  #isLost = false;
  /** When the last heartbeat was sent that entitles this node to answer. */
  #proven: Life;
  #heardAt = performance.now();
  /** Looks at the life of this node since the session answered, and since a heartbeat counted. */
  #looksUnheard = 0;
  #looksUnproved = 0;
  /** The cells whose locks this session has. The server counts each taking of a lock, so none is taken twice. */
  readonly #locked = new Set<number>();

  constructor(database: Database, session: PinnedSession, drainer: Drainer, term: number, joined: Life) {
    this.term = term;
    this.#session = session;
    this.#drainer = drainer;
    this.#seq = firstSeq(term);
    this.#isRemote = database.kind === "postgres";
    this.#proven = joined;
    this.lost = new Promise((resolve) => {
      this.#lose = (reason) => {
        this.#isLost = true;
        resolve(reason);
      };
    });
  }

  /** Seconds since the session last answered; 0 on the embedded store, which has no session to lose. */
  get silentSeconds(): number {
    return this.#isRemote ? (performance.now() - this.#heardAt) / 1000 : 0;
  }

  /** Age of the heartbeat that entitles this node to answer, in seconds; 0 on the embedded store, which needs none. */
  get beatAgeSeconds(): number {
    return this.#isRemote ? this.#proven.ageMs / 1000 : 0;
  }

  isValid(): boolean {
    if (this.#isLost) return false;
    return !this.#isRemote || this.#proven.ageMs < LEASE_LIMITS.validMs;
  }

  /** Not async itself: while it waits, an async function would keep the rows that the text replaces. */
  append(entries: readonly JournalEntry[]): Promise<AppendedBatch> {
    return this.#append(encodeChanges(entries), entries.length);
  }

  lineOf(change: RowChange): string {
    return lineOf(change);
  }

  answerOf(line: string): IdempotencyRow {
    return answerOf(line);
  }

  async #append(payload: string, changes: number): Promise<AppendedBatch> {
    const before = this.#seq++;
    const seq = this.#seq;
    const rows = await this.#session.query(
      `insert into journal (seq, payload) select $1::bigint, $2::text
       where case when current_setting('holdfast.seq', true) = $3::text
         then set_config('holdfast.seq', $4::text, false) is not null else false end
       returning seq`,
      [seq, payload, String(before), String(seq)],
    );
    if (rows.length !== 1) throw this.#fail();
    this.#hear();
    this.#drainer.keep({ seq, payload });
    return { seq, changes, bytes: payload.length };
  }

  misfitOf(changes: readonly RowChange[]): string | null {
    return misfitOf(changes);
  }

  drain(batches: readonly AppendedBatch[], spreadMs = 0): Promise<void> {
    return this.#drainer.drain(batches.map(({ seq }) => seq), this.#isRemote ? spreadMs : 0);
  }

  hurry(): void {
    this.#drainer.hurry();
  }

  /** Bounded on the embedded store: its one connection takes no append during a drain. */
  get drainChangesMax(): number {
    return this.#isRemote ? Infinity : RUNTIME_LIMITS.drainAloneChangesMax;
  }

  get drainBytesMax(): number {
    return this.#isRemote ? Infinity : RUNTIME_LIMITS.drainAloneBytesMax;
  }

  get isInThread(): boolean {
    return !this.#isRemote;
  }

  /** Moves all that a dead term left in the journal into the tables. After a failure it may be tried again. */
  replay(term: number): Promise<void> {
    return this.#drainer.replay(term);
  }

  /**
   * Sends a heartbeat: one statement that updates the node's row and reads the version of the registry.
   *
   * @returns the database's answer, and a function that entitles this node to answer while the heartbeat is recent; call
   * it once that version of the registry is in force here
   */
  async beat({ share, registryVersion }: BeatState): Promise<BeatAnswer & { readonly prove: () => void }> {
    const sent = Life.now();
    const [row] = await this.#session.query<BeatAnswer>(
      `update members set seen_at = clock_timestamp(), share = $2::int, registry_version = $3::bigint
       where term = $1::bigint and ended_at is null
         and coalesce(current_setting('holdfast.seq', true), '') <> ''
       returning (select version from registry) as version,
         (extract(epoch from clock_timestamp()) * 1000)::bigint as now`,
      [this.term, share, registryVersion],
    );
    if (row === undefined) throw this.#fail();
    this.#hear();
    return { ...row, prove: () => this.#prove(sent) };
  }

  /**
   * Ends the term if the database has been silent for so long that other nodes may end the session, or if no heartbeat has
   * counted for long, because the registry could not be read. To be called at each heartbeat: it counts calls and not time,
   * so that a thread which was held for long first hears what has arrived meanwhile.
   */
  lookAtLife(): void {
    const { silentMs, unprovedMs, beatEveryMs } = LEASE_LIMITS;
    this.#looksUnheard += 1;
    this.#looksUnproved += 1;
    if (this.#looksUnheard * beatEveryMs > silentMs) {
      this.#lose(new Unavailable("The database is silent"));
    } else if (this.#looksUnproved * beatEveryMs > unprovedMs) {
      this.#lose(new Unavailable("The registry could not be read for a while"));
    }
  }

  /** Takes the free locks of some cells; returns the cells whose locks this session has now or had before. */
  async lockCells(cells: readonly number[]): Promise<number[]> {
    const asked = cells.filter((cell) => !this.#locked.has(cell));
    const rows = await this.#session.query<{ cell: number }>(
      `select cell from unnest($2::text::int[]) as asked(cell)
       where pg_try_advisory_lock($1::int, cell)`,
      [CELL_LOCKS, arrayText(asked)],
    );
    for (const { cell } of rows) this.#locked.add(cell);
    return cells.filter((cell) => this.#locked.has(cell));
  }

  async unlockCells(cells: readonly number[]): Promise<void> {
    await this.#session.query(
      "select pg_advisory_unlock($1::int, cell) from unnest($2::text::int[]) as held(cell)",
      [CELL_LOCKS, arrayText(cells)],
    );
    for (const cell of cells) this.#locked.delete(cell);
  }

  async close(): Promise<void> {
    this.#isLost = true;
    await Promise.all([this.#drainer.close(), this.#session.close()]);
  }

  #hear(): void {
    this.#heardAt = performance.now();
    this.#looksUnheard = 0;
  }

  #prove(sent: Life): void {
    this.#looksUnproved = 0;
    if (sent.ageMs < this.#proven.ageMs) this.#proven = sent;
  }

  #fail(): Error {
    const error = new Unavailable("The writer's session was lost");
    this.#lose(error);
    return error;
  }
}
