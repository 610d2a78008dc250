// The rows of members, the version of the registry, and the numbers of new users. A member's own beat is in
// journal/writer.ts, since it runs on the session that appends.

import type { Millis } from "../../domain/values/period.ts";
import { log, messageOf } from "../../process/log.ts";
import type { Database, PinnedSession, Session } from "../database.ts";
import { MIGRATION_LOCK } from "../migrate.ts";

type Reader = Pick<Session, "query">;

/** Every member holds it shared; a version of the program without members takes it for itself alone. */
export const MEMBER_LOCK = MIGRATION_LOCK + 1;

/** How many numbers of new users come at a time: the increment of the sequence. */
export const KEYS_PER_BLOCK = 1000;

/** What a member says of itself when it joins. */
export interface NewMember {
  /** Where others connect to, "host:port"; null on the embedded store. */
  readonly address: string | null;
  /** How much of the cells it takes; 0 for a front. */
  readonly share: number;
  /** Keyed hashes of the settings in which members must agree, by name. */
  readonly fingerprints: Readonly<Record<string, string>>;
}

/** A member as its row says, with ages by the database's clock. */
export interface MemberRow extends NewMember {
  readonly term: number;
  readonly registryVersion: number;
  /** Milliseconds since it joined. */
  readonly livedMs: Millis;
  /** Milliseconds since its last beat. */
  readonly silentMs: Millis;
  readonly hasEnded: boolean;
}

/** What all members share and none of them makes up. */
export interface ClusterIdentity {
  readonly clusterId: string;
  /** Members prove to each other that they know it. */
  readonly secret: string;
}

/** The next term; terms grow for ever. */
export async function nextTerm(session: Reader): Promise<number> {
  const [row] = await session.query<{ term: number }>(
    `insert into lease (term) values (1) on conflict (one) do update set term = lease.term + 1 returning term`,
  );
  return row?.term as number;
}

/**
 * Takes away what the tables keep for members of the version before, which have gone when this one may join: the index by
 * which their drains find an open hold. Whoever has the table in use keeps it for a while, and then for the next start.
 */
export async function forgetOldMembers(session: PinnedSession): Promise<void> {
  const [index] = await session.query<{ isThere: boolean }>(
    `select to_regclass('open_reservations_id') is not null as "isThere"`,
  );
  if (index?.isThere !== true) return;
  await session.transaction(async (inner) => {
    await inner.query("set local lock_timeout = '1s'");
    await inner.query("drop index if exists open_reservations_id");
  }).catch((error) => log("warn", "An index of the version before stays", { error: messageOf(error) }));
}

/** Writes a member's row. Rows of members that ended long ago go. */
export async function insertMember(session: Reader, term: number, member: NewMember): Promise<void> {
  await session.query(
    `delete from members where coalesce(ended_at, seen_at) < clock_timestamp() - interval '1 day'
       and term not in (select term from cells where term is not null)`,
  );
  await session.query(
    `insert into members (term, address, share, fingerprints, registry_version, started_at, seen_at)
     values ($1::bigint, $2, $3::int, $4, -1, clock_timestamp(), clock_timestamp())`,
    [term, member.address, member.share, JSON.stringify(member.fingerprints)],
  );
}

/** Every member that has not ended, and every one that a cell names. */
export async function readMembers(reader: Reader): Promise<MemberRow[]> {
  const rows = await reader.query<Omit<MemberRow, "fingerprints"> & { fingerprints: string }>(
    `select term, address, share, fingerprints, registry_version as "registryVersion",
       (extract(epoch from clock_timestamp() - started_at) * 1000)::bigint as "livedMs",
       (extract(epoch from clock_timestamp() - seen_at) * 1000)::bigint as "silentMs",
       ended_at is not null as "hasEnded"
     from members where ended_at is null or term in (select term from cells where term is not null)
     order by term`,
  );
  return rows.map((row) => ({ ...row, fingerprints: JSON.parse(row.fingerprints) }));
}

/** Says that a member has ended: by itself, or seen by another whose connection to it was refused. */
export async function endMember(reader: Reader, term: number): Promise<void> {
  await reader.query(
    "update members set ended_at = clock_timestamp() where term = $1::bigint and ended_at is null",
    [term],
  );
}

/** Says that every member has ended, for a store that only one process can have. */
export async function endEveryMember(reader: Reader): Promise<void> {
  await reader.query("update members set ended_at = clock_timestamp() where ended_at is null");
}

/** Ends the sessions that a dead member may have left on the server. */
export async function endSessionsNamed(reader: Reader, name: string): Promise<void> {
  await reader.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = $1 and datname = current_database() and pid <> pg_backend_pid()`,
    [name],
  );
}

/** The name and the secret of the cluster. */
export async function readIdentity(reader: Reader): Promise<ClusterIdentity> {
  const [row] = await reader.query<ClusterIdentity>(
    `select cluster_id as "clusterId", secret from registry`,
  );
  return row as ClusterIdentity;
}

/** A block of numbers for new users, which nobody else gets. */
export async function nextKeys(reader: Reader): Promise<{ readonly first: number; readonly count: number }> {
  const [row] = await reader.query<{ first: number }>("select nextval('user_keys') as first");
  return { first: row?.first as number, count: KEYS_PER_BLOCK };
}

/** Sets the sequence of user numbers past every user; the caller has seen that the journal is empty. */
export async function prepareKeys(session: Reader): Promise<void> {
  await session.query("select setval('user_keys', coalesce(max(key), 0) + 1) from users");
  await session.query(
    `insert into lease (term, keys_in_sequence) values (0, true)
     on conflict (one) do update set keys_in_sequence = true`,
  );
}

/** The address that the server sees this process come from; null where it is on the same host. */
export async function seenAddress(database: Pick<Database, "query">): Promise<string | null> {
  const [row] = await database.query<{ client: string | null; isSame: boolean }>(
    `select host(inet_client_addr()) as client,
       inet_client_addr() is null or inet_client_addr() = inet_server_addr() as "isSame"`,
  );
  return row === undefined || row.isSame ? null : row.client;
}
