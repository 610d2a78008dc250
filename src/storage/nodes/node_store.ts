// The rows of nodes (table `members`), the cluster's id and secret, and the numbers of new users. A node's own heartbeat
// is in journal/writer.ts, because it runs on the session that appends.

import type { Millis } from "../../domain/values/period.ts";
import { log, messageOf } from "../../process/log.ts";
import type { Database, PinnedSession, Session } from "../database.ts";
import { MIGRATION_LOCK } from "../migrate.ts";

type Reader = Pick<Session, "query">;

/** Every node holds this lock shared; a version of the program for a single writer takes it exclusively. */
export const MEMBER_LOCK = MIGRATION_LOCK + 1;

/** How many numbers of new users are fetched at a time: the increment of the sequence. */
export const KEYS_PER_BLOCK = 1000;

/** What a node publishes about itself when it joins. */
export interface NewNode {
  /** The "host:port" that other nodes connect to; null on the embedded store. */
  readonly address: string | null;
  /** 1 if it takes cells; 0 for a front. */
  readonly share: number;
  /** Keyed hashes of the settings in which nodes must agree, by name. */
  readonly fingerprints: Readonly<Record<string, string>>;
}

/** A node's row, with ages by the database's clock. */
export interface NodeRow extends NewNode {
  readonly term: number;
  readonly registryVersion: number;
  /** Milliseconds since it joined. */
  readonly livedMs: Millis;
  /** Milliseconds since its last heartbeat. */
  readonly silentMs: Millis;
  readonly hasEnded: boolean;
}

/** The identity of the cluster, which the database keeps. */
interface ClusterIdentity {
  readonly clusterId: string;
  /** Nodes prove to each other that they know this secret. */
  readonly secret: string;
}

/** Takes the next term number; terms only grow. */
export async function nextTerm(session: Reader): Promise<number> {
  const [row] = await session.query<{ term: number }>(
    `insert into lease (term) values (1) on conflict (one) do update set term = lease.term + 1 returning term`,
  );
  return row?.term as number;
}

/**
 * Drops the index by which drains of an older version found an open hold; no node of that version is left when this one
 * may join. If the table is in use, the index stays until the next start.
 */
export async function forgetOldNodes(session: PinnedSession): Promise<void> {
  const [index] = await session.query<{ isThere: boolean }>(
    `select to_regclass('open_reservations_id') is not null as "isThere"`,
  );
  if (index?.isThere !== true) return;
  await session.transaction(async (inner) => {
    await inner.query("set local lock_timeout = '1s'");
    await inner.query("drop index if exists open_reservations_id");
  }).catch((error) =>
    log("warn", "An index of an older version could not be dropped", { error: messageOf(error) })
  );
}

/** Writes a node's row, and removes rows of nodes that ended long ago. */
export async function insertNode(session: Reader, term: number, node: NewNode): Promise<void> {
  await session.query(
    `delete from members where coalesce(ended_at, seen_at) < clock_timestamp() - interval '1 day'
       and term not in (select term from cells where term is not null)`,
  );
  await session.query(
    `insert into members (term, address, share, fingerprints, registry_version, started_at, seen_at)
     values ($1::bigint, $2, $3::int, $4, -1, clock_timestamp(), clock_timestamp())`,
    [term, node.address, node.share, JSON.stringify(node.fingerprints)],
  );
}

/** Reads every node that has not ended, and every node that a cell names. */
export async function readNodes(reader: Reader): Promise<NodeRow[]> {
  const rows = await reader.query<Omit<NodeRow, "fingerprints"> & { fingerprints: string }>(
    `select term, address, share, fingerprints, registry_version as "registryVersion",
       (extract(epoch from clock_timestamp() - started_at) * 1000)::bigint as "livedMs",
       (extract(epoch from clock_timestamp() - seen_at) * 1000)::bigint as "silentMs",
       ended_at is not null as "hasEnded"
     from members where ended_at is null or term in (select term from cells where term is not null)
     order by term`,
  );
  return rows.map((row) => ({ ...row, fingerprints: JSON.parse(row.fingerprints) }));
}

/** Marks a node as ended: by itself, or by another node with proof that its process is gone. */
export async function endNode(reader: Reader, term: number): Promise<void> {
  await reader.query(
    "update members set ended_at = clock_timestamp() where term = $1::bigint and ended_at is null",
    [term],
  );
}

/** Marks every node as ended, on a store that only one process can use. */
export async function endEveryNode(reader: Reader): Promise<void> {
  await reader.query("update members set ended_at = clock_timestamp() where ended_at is null");
}

/** Ends the sessions that a dead node may have left on the server. */
export async function endSessionsNamed(reader: Reader, name: string): Promise<void> {
  await reader.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = $1 and datname = current_database() and pid <> pg_backend_pid()`,
    [name],
  );
}

/** Reads the id and the secret of the cluster. */
export async function readIdentity(reader: Reader): Promise<ClusterIdentity> {
  const [row] = await reader.query<ClusterIdentity>(
    `select cluster_id as "clusterId", secret from registry`,
  );
  return row as ClusterIdentity;
}

/** Takes a block of numbers for new users; no other node gets them. */
export async function nextKeys(reader: Reader): Promise<{ readonly first: number; readonly count: number }> {
  const [row] = await reader.query<{ first: number }>("select nextval('user_keys') as first");
  return { first: row?.first as number, count: KEYS_PER_BLOCK };
}

/** Sets the sequence of user numbers past every user. The caller has made sure that the journal is empty. */
export async function prepareKeys(session: Reader): Promise<void> {
  await session.query("select setval('user_keys', coalesce(max(key), 0) + 1) from users");
  await session.query(
    `insert into lease (term, keys_in_sequence) values (0, true)
     on conflict (one) do update set keys_in_sequence = true`,
  );
}

/** The address from which the server sees this process connect; null if both are on the same host. */
export async function seenAddress(database: Pick<Database, "query">): Promise<string | null> {
  const [row] = await database.query<{ client: string | null; isSame: boolean }>(
    `select host(inet_client_addr()) as client,
       inet_client_addr() is null or inet_client_addr() = inet_server_addr() as "isSame"`,
  );
  return row === undefined || row.isSame ? null : row.client;
}
