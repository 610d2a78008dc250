// What the doctor knows of a store: read from its tables and its server, in bounded questions that change nothing. The
// same facts are read by the running service, over the admin API, and by the command line when no service answers.

import { MIGRATIONS } from "../../sql/migrations.ts";
import { DOCTOR_LIMITS } from "../process/limits.ts";
import { messageOf } from "../process/log.ts";
import { type Drift, reconcileSample, type SampleSummary } from "../read/reconcile.ts";
import type { Database } from "../storage/database.ts";
import { type LeaseHolder, leaseHolder } from "../storage/journal/lease.ts";
import { type MigrationState, migrationState } from "../storage/migrate.ts";

/** The database itself. */
export interface DatabaseFacts {
  readonly kind: Database["kind"];
  /** As "15.20". */
  readonly version: string;
  readonly roundTripMs: number;
  readonly fsync: boolean;
  /** As the server's setting says: "on", "off", "local" or another. */
  readonly synchronousCommit: string;
}

/** What is written and not done yet. */
export interface BacklogFacts {
  readonly journalBatches: number;
  /** Users with something due for longer than any sweep leaves it; counted up to a bound. */
  readonly overdueUsers: number;
  /** Aliases whose history is still to be moved. */
  readonly historyMoves: number;
  readonly openErasures: number;
  /** Erasures that were asked for long ago. */
  readonly lateErasures: number;
}

/** A proof of a bounded sample, or why there is none. */
export type DriftFacts =
  | { readonly summary: SampleSummary; readonly first: string | null }
  | { readonly fault: string };

/** Everything that a store says; what needs the program's own tables is null where they are not there. */
export interface StoreFacts {
  readonly database: DatabaseFacts;
  readonly migrations: MigrationState;
  /** On a server; the embedded store's folder has a lock of its own. */
  readonly holder: LeaseHolder | null;
  /** The process's clock less the database's. */
  readonly skewMs: number;
  readonly backlog: BacklogFacts | null;
  readonly drift: DriftFacts | null;
}

/**
 * Asks a store.
 *
 * @param now the process's clock
 */
export async function storeFacts(database: Database, now: () => number): Promise<StoreFacts> {
  const { skewMs, roundTripMs } = await clockFacts(database, now);
  const migrations = await migrationState(database, MIGRATIONS);
  const isReadable = migrations.missing.length === 0;
  return {
    database: { ...await databaseFacts(database), roundTripMs },
    migrations,
    holder: database.kind === "postgres" ? await leaseHolder(database) : null,
    skewMs,
    backlog: isReadable ? await backlogFacts(database, now()) : null,
    drift: isReadable ? await driftFacts(database) : null,
  };
}

/** The difference of two clocks, free of the way there and back: the best of a few tries. */
async function clockFacts(database: Database, now: () => number) {
  let best = { skewMs: 0, roundTripMs: Infinity };
  for (let tries = 0; tries < 3; tries++) {
    const startedAt = performance.now();
    const before = now();
    const [row] = await database.query<{ at: number }>(
      "select (extract(epoch from clock_timestamp()) * 1000)::bigint as at",
    );
    const roundTripMs = performance.now() - startedAt;
    const skewMs = Math.round(before + roundTripMs / 2 - (row?.at ?? 0));
    if (roundTripMs < best.roundTripMs) best = { skewMs, roundTripMs };
  }
  return best;
}

async function databaseFacts(database: Database): Promise<Omit<DatabaseFacts, "roundTripMs">> {
  const [row] = await database.query<{ version: string; fsync: string; commits: string }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as commits`,
  );
  return {
    kind: database.kind,
    version: row?.version.split(" ")[0] ?? "",
    fsync: row?.fsync === "on",
    synchronousCommit: row?.commits ?? "",
  };
}

async function backlogFacts(database: Database, now: number): Promise<BacklogFacts> {
  const { overdueMs, erasureWarnMs, countMax } = DOCTOR_LIMITS;
  const [row] = await database.query<BacklogFacts>(
    `select
       (select count(*) from journal) as "journalBatches",
       (select count(*) from (
          select from realms r join users u on u.realm = r.realm
          where u.due_at_ms <= $1::bigint + r.clock_offset_ms limit $3::int) due) as "overdueUsers",
       (select count(*) from (select from history_moves limit $3::int) moves) as "historyMoves",
       (select count(*) from erasure_jobs where status in ('queued', 'in_progress')) as "openErasures",
       (select count(*) from erasure_jobs
          where status in ('queued', 'in_progress') and requested_at_ms <= $2::bigint) as "lateErasures"`,
    [now - overdueMs, now - erasureWarnMs, countMax],
  );
  return row as BacklogFacts;
}

/** Another place at each call, so that calls over time see all of it. */
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
