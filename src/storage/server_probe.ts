// The probe of a server before anything starts on it: what one process owns rests on sessions that are the server's own
// and on locks that exclude. Poolers in transaction mode and databases that only speak PostgreSQL's protocol lack one or
// the other, and would let two processes serve the same users.

import { log, messageOf } from "../process/log.ts";
import type { Database, PinnedSession } from "./database.ts";

/** The oldest PostgreSQL that the statements are written for. */
export const SERVER_MAJOR_MIN = 15;
/** How long a session may wait for another one: a pooler with one connection lets it wait for ever. */
const WAIT_MS = 3_000;
/** Databases that speak the protocol, by what they say of themselves. */
const OTHERS: readonly [name: string, sign: RegExp][] = [
  ["CockroachDB", /CockroachDB/i],
  ["YugabyteDB", /-YB-|Yugabyte/i],
  ["Amazon Redshift", /Redshift/i],
  ["Aurora DSQL", /DSQL/i],
];
const PLAIN = "Use a plain PostgreSQL server, version 15 or later";
const DIRECT = "Connect to the server itself, or through a pooler in session mode";

/** What the probe found, in words; everything is true of a plain PostgreSQL. */
export interface ProbeFacts {
  /** What `version()` says. */
  readonly version: string;
  /** Such as 150020. */
  readonly versionNumber: number;
  readonly isStandby: boolean;
  readonly hasLz4: boolean;
  /** Whether a session keeps its backend and its settings, in transactions and beside another session. */
  readonly isSessionKept: boolean;
  /** Whether a second session is refused a lock that the first one has. */
  readonly doLocksExclude: boolean;
}

/** Returns the one line that says what is wrong and what to do; null if the server will do. */
export function probeFault(facts: ProbeFacts): string | null {
  const { version, versionNumber, isStandby, isSessionKept, doLocksExclude } = facts;
  const other = OTHERS.find(([, sign]) => sign.test(version));
  if (other !== undefined) return `this is ${other[0]}, whose locks and statements differ. ${PLAIN}`;
  if (!isSessionKept) {
    return `a session does not keep its connection: a pooler in transaction mode. ${DIRECT}`;
  }
  if (versionNumber < SERVER_MAJOR_MIN * 10_000) return `this is ${nameOf(version)}. ${PLAIN}`;
  if (!doLocksExclude) {
    return `two sessions got the same advisory lock on ${
      nameOf(version)
    }, so two processes could serve the same users. ${PLAIN}`;
  }
  if (isStandby) return "this is a standby, which takes no writes. Name the primary, or several hosts";
  return null;
}

/** The name and version, without the compiler: "PostgreSQL 14.2". */
function nameOf(version: string): string {
  return version.split(/ on |,| \(/)[0]?.slice(0, 60) ?? "";
}

/**
 * Looks whether a server gives what the service rests on. Changes nothing, and frees its locks.
 *
 * @throws Error with one line that says what was found and what to do
 */
export async function probeServer(database: Database): Promise<void> {
  if (database.kind === "embedded") return;
  const sessions: PinnedSession[] = [];
  try {
    for (let count = 0; count < 2; count++) sessions.push(await database.pin(() => {}));
    const facts = await readFacts(sessions[0] as PinnedSession, sessions[1] as PinnedSession);
    const fault = probeFault(facts);
    if (fault !== null) throw new Error(fault);
    if (!facts.hasLz4) {
      log("warn", "This PostgreSQL was built without lz4: its log grows faster. Use a build with lz4");
    }
  } finally {
    await Promise.allSettled(sessions.map((session) => session.close()));
  }
}

const SERVER = `select version() as version, current_setting('server_version_num')::int as "versionNumber",
  pg_is_in_recovery() as "isStandby",
  exists (select from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)) as "hasLz4"`;
const MARK = `select pg_backend_pid() as pid, set_config('holdfast.probe', $1, false) as mark`;
const LOOK = `select pg_backend_pid() as pid, current_setting('holdfast.probe', true) as mark`;
const LOCK = "select pg_try_advisory_lock($1::bigint) as locked";

interface Look {
  readonly pid: number;
  readonly mark: string | null;
}

async function readFacts(one: PinnedSession, other: PinnedSession): Promise<ProbeFacts> {
  const version = (await one.query<{ version: string }>("select version() as version"))[0]?.version ?? "";
  const unkept = { version, versionNumber: Infinity, isStandby: false, hasLz4: true, doLocksExclude: true };
  // A database that says what it is need not understand the rest.
  if (OTHERS.some(([, sign]) => sign.test(version))) return { ...unkept, isSessionKept: true };
  if (!await isSessionKept(one, other)) return { ...unkept, isSessionKept: false };
  const [server] = await one.query<Omit<ProbeFacts, "isSessionKept" | "doLocksExclude">>(SERVER);
  return {
    ...server as typeof unkept,
    isSessionKept: true,
    doLocksExclude: await doLocksExclude(one, other),
  };
}

/** A pooler in transaction mode gives a session's connection to another session between its transactions. */
async function isSessionKept(one: PinnedSession, other: PinnedSession): Promise<boolean> {
  const token = crypto.randomUUID();
  try {
    const [marked] = await one.query<Look>(MARK, [token]);
    const isSame = (look: Look | undefined) => look?.mark === token && look.pid === marked?.pid;
    const beside = await other.transaction(async (inner) => {
      const [theirs] = await inner.query<Look>(LOOK);
      const [ours] = await soon(one.query<Look>(LOOK));
      return isSame(ours) && theirs?.pid !== marked?.pid;
    });
    const within = await one.transaction(async (inner) => (await inner.query<Look>(LOOK))[0]);
    return beside && isSame(within);
  } catch (error) {
    // Where another connection answers, it does not know the statement that was prepared on this one.
    if (/prepared statement/.test(messageOf(error)) || error === LATE) return false;
    throw error;
  }
}

async function doLocksExclude(one: PinnedSession, other: PinnedSession): Promise<boolean> {
  // A lock of this probe alone: other processes may start at the same moment.
  const key = [crypto.getRandomValues(new Uint32Array(1))[0] as number];
  const taken = async (session: PinnedSession) =>
    (await session.query<{ locked: boolean }>(LOCK, key))[0]?.locked === true;
  return await taken(one) && !await taken(other);
}

const LATE = new Error("The session waits for another one");

function soon<T>(work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  work.catch(() => {});
  const late = new Promise<never>((_, reject) => timer = setTimeout(() => reject(LATE), WAIT_MS));
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
