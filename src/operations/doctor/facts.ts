// The facts about a store that the doctor checks, read from its tables and its server. The running service reads them for
// the admin API; the command line reads them itself when no service answers.

import { MIGRATIONS } from "../../../sql/migrations.ts";
import { DOCTOR_LIMITS, STRIPE_LIMITS } from "../../process/limits.ts";
import { messageOf } from "../../process/log.ts";
import { type Drift, reconcileSample, type SampleSummary } from "../../storage/queries/reconcile.ts";
import {
  type BacklogFacts,
  type NamedServer,
  type OldPrice,
  type PriceChecks,
  readBacklog,
  readClock,
  readLateTopUps,
  readNamedServers,
  readOldPrices,
  readOpenApps,
  readPriceChecks,
  readServer,
  readUnhandledCounts,
  readWebhookFacts,
  type ServerFacts,
  type UnhandledCount,
  type WebhookFacts,
} from "../../storage/queries/store_facts.ts";
import type { Database } from "../../storage/database.ts";
import { type ClusterFacts, readCluster } from "../../cluster/examine.ts";
import { type MigrationState, migrationState } from "../../storage/migrate.ts";

/** The database itself. */
export interface DatabaseFacts extends ServerFacts {
  readonly kind: Database["kind"];
  readonly roundTripMs: number;
}

/** The result of reconciling a bounded sample, or why it is missing. */
export type DriftFacts =
  | { readonly summary: SampleSummary; readonly first: string | null }
  | { readonly fault: string };

/** Facts that take longer to read with more catalogs or events; null where the tables do not exist. */
export interface LongFacts {
  readonly drift: DriftFacts | null;
  /** Prices that were last compared with their source long ago. */
  readonly oldPrices: readonly OldPrice[] | null;
  readonly priceChecks?: PriceChecks | null;
  /** Apps with a catalog without `gateway`; up to a bound. */
  readonly openApps?: readonly string[] | null;
  /** The model servers that catalogs name; up to a bound. */
  readonly namedServers?: readonly NamedServer[] | null;
}

/** All facts of a store. Facts from the service's own tables are null where these do not exist. */
export interface StoreFacts extends Partial<LongFacts> {
  readonly database: DatabaseFacts;
  readonly migrations: MigrationState;
  readonly cluster: ClusterFacts | null;
  /** The process's clock minus the database's. */
  readonly skewMs: number;
  readonly backlog: BacklogFacts | null;
  readonly webhooks: WebhookFacts | null;
  readonly unhandled: readonly UnhandledCount[] | null;
  /** Top-ups that began long ago and have not ended. */
  readonly lateTopUps: readonly UnhandledCount[] | null;
}

/**
 * Reads the facts of a store.
 *
 * @param now the process's clock
 * @param withLong whether to read those of `LongFacts` too
 */
export async function storeFacts(
  database: Database,
  now: () => number,
  withLong = true,
): Promise<StoreFacts> {
  const { skewMs, roundTripMs } = await clockFacts(database, now);
  const migrations = await migrationState(database, MIGRATIONS);
  const isReadable = migrations.missing.length === 0;
  return {
    database: { kind: database.kind, ...await readServer(database), roundTripMs },
    migrations,
    cluster: isReadable ? await readCluster(database) : null,
    skewMs,
    backlog: isReadable ? await backlogFacts(database, now()) : null,
    ...withLong ? isReadable ? await longFacts(database, now) : { drift: null, oldPrices: null } : {},
    webhooks: isReadable ? await webhookFacts(database, now()) : null,
    lateTopUps: isReadable ? await readLateTopUps(database, now() - DOCTOR_LIMITS.topUpLateMs) : null,
    unhandled: isReadable ? await readUnhandledCounts(database, now(), STRIPE_LIMITS.unhandledKeptMs) : null,
  };
}

/** Reads the facts that take long; the tables exist. @param now the process's clock */
export async function longFacts(database: Database, now: () => number): Promise<LongFacts> {
  return {
    drift: await driftFacts(database),
    oldPrices: await readOldPrices(database, now() - DOCTOR_LIMITS.pricesOldMs, DOCTOR_LIMITS.countMax),
    priceChecks: await readPriceChecks(database),
    openApps: await readOpenApps(database, DOCTOR_LIMITS.countMax),
    namedServers: await readNamedServers(database, DOCTOR_LIMITS.countMax),
  };
}

/** The difference of the two clocks, from the fastest of a few round trips. */
async function clockFacts(database: Database, now: () => number) {
  let best = { skewMs: 0, roundTripMs: Infinity };
  for (let tries = 0; tries < 3; tries++) {
    const startedAt = performance.now();
    const before = now();
    const at = await readClock(database);
    const roundTripMs = performance.now() - startedAt;
    const skewMs = Math.round(before + roundTripMs / 2 - at);
    if (roundTripMs < best.roundTripMs) best = { skewMs, roundTripMs };
  }
  return best;
}

function backlogFacts(database: Database, now: number): Promise<BacklogFacts> {
  const { overdueMs, erasureWarnMs, countMax } = DOCTOR_LIMITS;
  return readBacklog(database, now - overdueMs, now - erasureWarnMs, countMax);
}

function webhookFacts(database: Database, now: number): Promise<WebhookFacts> {
  return readWebhookFacts(database, now - DOCTOR_LIMITS.webhookLateMs, now, DOCTOR_LIMITS.countMax);
}

/** Each call samples another range of users, so that repeated calls see all of them. */
async function driftFacts(database: Database): Promise<DriftFacts> {
  let first: string | null = null;
  const keep = ({ userKey, text }: Drift) => first ??= `user ${userKey}: ${text}`;
  try {
    const summary = await reconcileSample(database, keep, Math.random());
    return { summary, first };
  } catch (error) {
    return { fault: messageOf(error) };
  }
}
