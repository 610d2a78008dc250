// The writer's lease and its journal.
//
// On a server the lease is a session-level advisory lock on the connection that appends. When that session dies, the lock
// and the ability to write end together. postgres.js would open a new connection unasked, so each append also proves that
// its session is the one that took the lock: the session keeps the seq of its last append in a setting, and an append
// writes only where it finds the seq before its own. The same check keeps appends that are in flight together in order:
// when one fails, all later ones fail too.
//
// On the embedded store the folder's lock keeps other processes out, and the same statements run.

import {
  type AppendedBatch,
  type Journal,
  type Lease,
  type RowChange,
  Unavailable,
} from "../../../actors/port.ts";
import { LEASE_LIMITS } from "../../process/limits.ts";
import type { Database, PinnedSession, Session } from "../database.ts";
import { startDrainThread } from "./drain_thread.ts";
import { type Drainer, openSessionDrainer } from "./drainer.ts";
import { MIGRATION_LOCK } from "../migrate.ts";
import { encodeChange } from "../rows/tables.ts";

const LEASE_LOCK = MIGRATION_LOCK + 1;
/** How many batches one term can append. All terms share the numbers below 2^53. */
const SEQ_PER_TERM = 2 ** 33;

/** A lease on a SQL store, with transactions that only the writer can make. */
export interface StoreLease extends Lease {
  /** Seconds since the writer's session last answered; 0 on the embedded store, which has no session to lose. */
  readonly silentSeconds: number;
  /** Runs statements on the writer's own session: they fail once the lease is lost. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T>;
}

/** Tries once to become the writer: null while another process is. Replays what the last writer left in the journal. */
export async function tryLease(database: Database, session: PinnedSession): Promise<StoreLease | null> {
  const [lock] = await session.query<{ locked: boolean }>(
    "select pg_try_advisory_lock($1::bigint) as locked",
    [LEASE_LOCK],
  );
  if (lock?.locked !== true) return null;
  if (database.kind === "postgres") await outwaitRestart(session);
  const [row] = await session.query<{ term: number }>(
    `insert into lease (term) values (1) on conflict (one) do update set term = lease.term + 1 returning term`,
  );
  const term = row?.term as number;
  await session.query("select set_config('holdfast.seq', $1, false)", [String(firstSeq(term))]);
  if (database.kind === "postgres") {
    await session.query(`set idle_session_timeout = ${LEASE_LIMITS.sessionIdleMs}`);
    await session.query(`set idle_in_transaction_session_timeout = ${LEASE_LIMITS.sessionIdleMs}`);
  }
  const drainer =
    await (database.url === null ? openSessionDrainer(database) : startDrainThread(database.url));
  return new ValidLease(database, session, drainer, term);
}

/**
 * Waits until the last writer can no longer believe that it has the lease. A restart of the server ends every session at
 * once. A writer that was paused or cut off may not have noticed, and answers from memory for as long as its last sign of
 * life is valid. A process that ends by itself frees the lock as its last act and needs no such wait.
 */
async function outwaitRestart(session: Pick<Session, "query">): Promise<void> {
  const [row] = await session.query<{ up_ms: number }>(
    "select (extract(epoch from clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint as up_ms",
  );
  const leftMs = LEASE_LIMITS.validMs - (row?.up_ms ?? 0);
  if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
}

/** The session of the process that serves a server's database. */
export interface LeaseHolder {
  readonly pid: number;
  /** null where the asking role may not see it, or on a local socket. */
  readonly address: string | null;
  readonly since: string | null;
}

/** The session that holds the lease of a server's database; null while none does. Any session may ask. */
export async function leaseHolder(reader: Pick<Session, "query">): Promise<LeaseHolder | null> {
  const [row] = await reader.query<LeaseHolder>(
    `select l.pid, host(a.client_addr) as address,
       to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
     from pg_locks l left join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 1
       and l.classid::bigint = $1::bigint >> 32 and l.objid::bigint = $1::bigint & 4294967295
       and l.database = (select oid from pg_database where datname = current_database())`,
    [LEASE_LOCK],
  );
  return row ?? null;
}

/** The seq before the first append of a term. */
function firstSeq(term: number): number {
  return term * SEQ_PER_TERM;
}

/** The encoded changes of a batch, a line each. */
function encodeChanges(changes: readonly RowChange[]): string {
  let payload = "";
  for (const change of changes) payload += (payload === "" ? "" : "\n") + encodeChange(change);
  return payload;
}

class ValidLease implements StoreLease, Journal {
  readonly journal: Journal = this;
  readonly lost: Promise<Error>;
  readonly #session: PinnedSession;
  readonly #drainer: Drainer;
  /** The seq of the last append that was sent. */
  #seq: number;
  #lose!: (reason: Error) => void;
  #isLost = false;
  #provenAt = performance.now();
  #beat: ReturnType<typeof setInterval> | null = null;

  constructor(database: Database, session: PinnedSession, drainer: Drainer, term: number) {
    this.#session = session;
    this.#drainer = drainer;
    this.#seq = firstSeq(term);
    this.lost = new Promise((resolve) => {
      this.#lose = (reason) => {
        this.#isLost = true;
        resolve(reason);
      };
    });
    if (database.kind === "postgres") {
      this.#beat = setInterval(() => this.#prove(), LEASE_LIMITS.beatEveryMs);
    }
  }

  get silentSeconds(): number {
    return this.#beat === null ? 0 : (performance.now() - this.#provenAt) / 1000;
  }

  isValid(): boolean {
    if (this.#isLost) return false;
    return this.#beat === null || performance.now() - this.#provenAt < LEASE_LIMITS.validMs;
  }

  async append(changes: readonly RowChange[]): Promise<AppendedBatch> {
    const payload = encodeChanges(changes);
    const before = this.#seq++;
    const seq = this.#seq;
    const sentAt = performance.now();
    const rows = await this.#session.query(
      `insert into journal (seq, payload) select $1::bigint, $2::text
       where case when current_setting('holdfast.seq', true) = $3::text
         then set_config('holdfast.seq', $4::text, false) is not null else false end
       returning seq`,
      [seq, payload, String(before), String(seq)],
    );
    if (rows.length !== 1) throw this.#fail();
    this.#provenAt = sentAt;
    this.#drainer.keep({ seq, payload });
    return { seq, changes: changes.length, bytes: payload.length };
  }

  drain(batches: readonly AppendedBatch[]): Promise<void> {
    return this.#drainer.drain(batches.map(({ seq }) => seq));
  }

  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#session.transaction(async (session) => {
      await this.#check(session);
      return work(session);
    });
  }

  async close(): Promise<void> {
    this.#isLost = true;
    if (this.#beat !== null) clearInterval(this.#beat);
    await Promise.all([this.#drainer.close(), this.#session.close()]);
  }

  async #check(session: Session): Promise<void> {
    const [row] = await session.query<{ seq: string | null }>(
      "select current_setting('holdfast.seq', true) as seq",
    );
    if (!row?.seq) throw this.#fail();
  }

  /** Proves that the session lives. The proof counts from the moment of the question, however late its answer comes. */
  async #prove(): Promise<void> {
    const askedAt = performance.now();
    const silentMs = askedAt - this.#provenAt;
    if (silentMs < LEASE_LIMITS.beatEveryMs / 2) return;
    if (silentMs > LEASE_LIMITS.sessionIdleMs) this.#lose(new Unavailable("The database is silent"));
    try {
      await this.#check(this.#session);
      this.#provenAt = Math.max(this.#provenAt, askedAt);
    } catch (error) {
      this.#lose(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #fail(): Error {
    const error = new Unavailable("The writer's session was lost");
    this.#lose(error);
    return error;
  }
}
