// Facts about a store and its pending work, for the doctor. All reads are bounded and change nothing.

import { momentOf } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { Session } from "../database.ts";
import { CATALOGS_OF_TEST_MODE, LIVE_AND_TEST_CATALOGS } from "../rows/registry_rows.ts";

type Reader = Pick<Session, "query">;

/** The first version of PostgreSQL with a view of checkpoint counts. */
const FIRST_WITH_CHECKPOINTER = 17;

/** Pending work. */
export interface BacklogFacts {
  readonly journalBatches: number;
  /** Users with something due for longer than sweeps ever leave it; counted up to a bound. */
  readonly overdueUsers: number;
  /** Aliases with history that has not moved yet; counted up to a bound. */
  readonly historyMoves: number;
  readonly openErasures: number;
  /** Erasures that were requested long ago. */
  readonly lateErasures: number;
}

/** The checkpoints of a server, and the settings that cause them. */
interface CheckpointFacts {
  /** Checkpoints since the statistics began: by time, and because the log was full. */
  readonly timed: number;
  readonly requested: number;
  readonly maxWalMegabytes: number;
  readonly timeoutSeconds: number;
  /** The setting of the server: "off", "pglz", "lz4" or another. */
  readonly compression: string;
}

/** A standby that streams from the server. */
export interface StandbyFacts {
  readonly name: string;
  /** Such as "streaming" or "catchup"; null if the role may not see it. */
  readonly state: string | null;
  /** "sync", "quorum", "potential" or "async"; null if the role may not see it. */
  readonly syncState: string | null;
}

/** The standbys of the server, and the settings of replication. */
interface ReplicationFacts {
  /** `synchronous_commit` as server, database and role set it; our sessions raise "off" and "local" to "on". */
  readonly configured: string;
  /** `synchronous_standby_names`; empty if commits wait for no standby. */
  readonly names: string;
  readonly standbys: readonly StandbyFacts[];
}

/** The version and the settings of the database. */
export interface ServerFacts {
  /** Such as "15.20". */
  readonly version: string;
  readonly fsync: boolean;
  /** The setting of the server: "on", "off", "local" or another. */
  readonly synchronousCommit: string;
  readonly checkpoints: CheckpointFacts;
  readonly replication: ReplicationFacts;
}

/** Reads the database's clock. */
export async function readClock(reader: Reader): Promise<Millis> {
  const [row] = await reader.query<{ at: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::bigint as at",
  );
  return row?.at ?? 0;
}

export async function readServer(reader: Reader): Promise<ServerFacts> {
  const [row] = await reader.query<{ version: string; fsync: string; commits: string }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as commits`,
  );
  return {
    version: row?.version.split(" ")[0] ?? "",
    fsync: row?.fsync === "on",
    synchronousCommit: row?.commits ?? "",
    checkpoints: await readCheckpoints(reader, Number.parseInt(row?.version ?? "")),
    replication: await readReplication(reader),
  };
}

/** The most standbys that are listed. */
const STANDBYS_MAX = 20;

/** Leaves out copies that no failover can use: base backups, archives of the log, and subscribers to single tables. */
async function readReplication(reader: Reader): Promise<ReplicationFacts> {
  const [row] = await reader.query<Omit<ReplicationFacts, "standbys">>(
    `select (select reset_val from pg_settings where name = 'synchronous_commit') as configured,
       current_setting('synchronous_standby_names') as names`,
  );
  const standbys = await reader.query<StandbyFacts>(
    `select coalesce(application_name, '') as name, state, sync_state as "syncState" from pg_stat_replication r
     where application_name is distinct from 'pg_basebackup' and application_name is distinct from 'pg_receivewal'
       and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
     order by name, pid limit ${STANDBYS_MAX}`,
  );
  return { configured: row?.configured ?? "", names: row?.names ?? "", standbys };
}

async function readCheckpoints(reader: Reader, major: number): Promise<CheckpointFacts> {
  const counts = major >= FIRST_WITH_CHECKPOINTER
    ? "num_timed as timed, num_requested as requested from pg_stat_checkpointer"
    : "checkpoints_timed as timed, checkpoints_req as requested from pg_stat_bgwriter";
  const [row] = await reader.query<CheckpointFacts>(
    `select (select setting::int from pg_settings where name = 'max_wal_size') as "maxWalMegabytes",
       (select setting::int from pg_settings where name = 'checkpoint_timeout') as "timeoutSeconds",
       current_setting('wal_compression') as compression, ${counts}`,
  );
  return row as CheckpointFacts;
}

/**
 * Counts pending work.
 *
 * @param dueBefore users due up to this moment, in real time, are overdue
 * @param requestedBefore erasures requested up to this moment are late
 * @param limit the bound of the counts of overdue users and of history moves
 */
export async function readBacklog(
  reader: Reader,
  dueBefore: Millis,
  requestedBefore: Millis,
  limit: number,
): Promise<BacklogFacts> {
  const [row] = await reader.query<BacklogFacts>(
    `select
       (select count(*) from journal) as "journalBatches",
       (select count(*) from (
          select from realms r join users u on u.realm = r.realm
          where u.due_at_ms <= $1::bigint + r.clock_offset_ms limit $3::int) due) as "overdueUsers",
       (select count(*) from (select from history_moves limit $3::int) moves) as "historyMoves",
       (select count(*) from erasure_jobs where status in ('queued', 'in_progress')) as "openErasures",
       (select count(*) from erasure_jobs
          where status in ('queued', 'in_progress') and requested_at_ms <= $2::bigint) as "lateErasures"`,
    [dueBefore, requestedBefore, limit],
  );
  return row as BacklogFacts;
}

/** A price of a current catalog that was last compared with its source long ago. */
export interface OldPrice {
  readonly appId: string;
  readonly model: string;
}

/**
 * Reads price rows of current catalogs that were last compared with their source before a time. Rows without such a time
 * are left out.
 *
 * @param checkedBefore in real time
 * @param limit the most rows
 */
export async function readOldPrices(
  reader: Reader,
  checkedBefore: Millis,
  limit: number,
): Promise<readonly OldPrice[]> {
  // Times in documents are UTC texts of one format, so comparing the texts compares the times.
  return await reader.query<OldPrice>(
    `select distinct c.app_id as "appId", m.model ->> 'id' as model
     from ${LIVE_AND_TEST_CATALOGS} c, json_array_elements(coalesce(c.document::json -> 'models', '[]'::json)) as m(model)
     where (m.model ->> 'checkedAt') collate "C" < $1
     order by c.app_id, m.model ->> 'id' limit $2::int`,
    [new Date(checkedBefore).toISOString(), limit],
  );
}

/**
 * Lists apps whose catalog of test mode says nothing of the gateway, so that their test keys may call models.
 *
 * @param limit the most ids
 */
export async function readOpenApps(reader: Reader, limit: number): Promise<readonly string[]> {
  const rows = await reader.query<{ readonly appId: string }>(
    `select app_id as "appId" from ${CATALOGS_OF_TEST_MODE} c
     where document::json -> 'gateway' is null and document::json -> 'settings' -> 'gateway' is null
     order by app_id limit $1::int`,
    [limit],
  );
  return rows.map(({ appId }) => appId);
}

/** A server that the catalog of an app gives calls of models to. */
export interface NamedServer {
  readonly appId: string;
  readonly upstream: string;
}

/** Lists the servers that current catalogs name. */
export function readNamedServers(reader: Reader, limit: number): Promise<NamedServer[]> {
  return reader.query<NamedServer>(
    `select distinct c.app_id as "appId", r.rule ->> 'upstream' as upstream
     from ${LIVE_AND_TEST_CATALOGS} c,
       json_array_elements(coalesce(c.document::json -> 'gateway' -> 'upstreams', '[]'::json)) as r(rule)
     order by 1, 2 limit $1::int`,
    [limit],
  );
}

/** How many price rows of current catalogs there are, and how many were ever compared with their source. */
export interface PriceChecks {
  readonly prices: number;
  readonly checked: number;
}

/** Counts price rows of current catalogs. */
export async function readPriceChecks(reader: Reader): Promise<PriceChecks> {
  const [row] = await reader.query<PriceChecks>(
    `select count(*)::int as prices, count(m.model ->> 'checkedAt')::int as checked
     from ${LIVE_AND_TEST_CATALOGS} c, json_array_elements(coalesce(c.document::json -> 'models', '[]'::json)) as m(model)`,
    [],
  );
  return row as PriceChecks;
}

/** A webhook with failing deliveries. */
interface FailingWebhook {
  readonly appId: string;
  readonly webhookId: string;
  /** Real time. */
  readonly since: Millis;
  readonly isDisabled: boolean;
}

/** The state of webhook deliveries. */
export interface WebhookFacts {
  readonly enabled: number;
  /** Webhooks that have failed for long, or were disabled while failing; up to a bound. */
  readonly failing: readonly FailingWebhook[];
  /** How long the oldest message of an enabled webhook has been pending, in real time; null for none. */
  readonly oldestMs: number | null;
}

/**
 * Reads the state of webhook deliveries.
 *
 * @param failingBefore webhooks that have failed since before this moment, in real time, have failed for long
 * @param now real time
 * @param limit the most webhooks to list
 */
export async function readWebhookFacts(
  reader: Reader,
  failingBefore: Millis,
  now: Millis,
  limit: number,
): Promise<WebhookFacts> {
  const failing = await reader.query<FailingWebhook>(
    `select app_id as "appId", id as "webhookId", failing_since_ms as since, disabled as "isDisabled"
     from webhooks where not removed and failing_since_ms is not null and (disabled or failing_since_ms <= $1::bigint)
     order by app_id, id limit $2::int`,
    [failingBefore, limit],
  );
  // The time of a message is that of its realm, whose clock may have been moved since; its id has the real time.
  const [row] = await reader.query<{ enabled: number; oldest: string | null }>(
    `select count(*) as enabled, min(first.id) as oldest
     from webhooks w left join lateral (
       select id from webhook_messages m where m.webhook_id = w.id and m.status = 'pending' order by m.id limit 1
     ) as first on true where not w.removed and not w.disabled`,
    [],
  );
  const oldest = row?.oldest ?? null;
  return {
    enabled: row?.enabled ?? 0,
    failing,
    oldestMs: oldest === null ? null : Math.max(now - momentOf(oldest), 0),
  };
}

/** Paid messages of Stripe that are not handled, or late top-ups, of one app and mode. */
export interface UnhandledCount {
  readonly appId: string;
  readonly mode: string;
  readonly messages: number;
}

/** Counts top-ups that have been under way for long, by app and mode. */
export function readLateTopUps(reader: Reader, before: Millis): Promise<UnhandledCount[]> {
  return reader.query(
    `select r.app_id as "appId", r.mode, count(*) as messages
     from top_ups t join realms r on r.realm = t.realm
     where t.status in ('open', 'processing') and t.created_at_ms < $1::bigint + r.clock_offset_ms
     group by r.app_id, r.mode order by r.app_id, r.mode`,
    [before],
  );
}

/** Counts paid messages of Stripe that are not handled and have not expired, by app and mode. */
export function readUnhandledCounts(reader: Reader, now: Millis, keptMs: number): Promise<UnhandledCount[]> {
  return reader.query(
    `select r.app_id as "appId", r.mode, count(*) as messages
     from stripe_unhandled u join realms r on r.realm = u.realm
     where u.at_ms > $1::bigint + r.clock_offset_ms - $2::bigint
     group by r.app_id, r.mode order by r.app_id, r.mode`,
    [now, keptMs],
  );
}
