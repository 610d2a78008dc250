// Opens the store that the settings name, a PostgreSQL server or the embedded one in its folder: migrated for a process
// that serves it, unchanged for tools that only read it. Of several databases each is opened apart.

import { existsSync } from "node:fs";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { NamedDatabase } from "../process/database_list.ts";
import { type Config, ConfigError } from "../process/settings.ts";
import { PROCESS_LIMITS } from "../process/limits.ts";
import { messageOf } from "../process/log.ts";
import { type Database, probe } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import { readStoreFacts } from "../storage/nodes/store_numbers.ts";
import { probeServer } from "../storage/server_probe.ts";
import { openPostgres } from "../storage/postgres_database.ts";

/** Where one store is. */
export interface StorePlace {
  /** Null for the embedded store. */
  readonly database: NamedDatabase | null;
  readonly dataDir: string;
}

/** Where each store of the settings is. */
export function placesOf({ databases, dataDir }: Pick<Config, "databases" | "dataDir">): StorePlace[] {
  return databases.length === 0
    ? [{ database: null, dataDir }]
    : databases.map((database) => ({ database, dataDir }));
}

/** The setting of a server's URL, for messages. */
function settingOf({ name }: NamedDatabase): string {
  return name === null ? "DATABASE_URL" : `HOLDFAST_DATABASES: ${name}`;
}

/** Opens and migrates a store; returns the names of the migrations that were applied now. */
export async function openStore(
  { database: place, dataDir }: StorePlace,
): Promise<{ database: Database; applied: string[] }> {
  const database = place === null
    ? await openFolder(dataDir)
    : openPostgres(place.url, PROCESS_LIMITS.poolConnectionsMax);
  try {
    await probeServer(database);
  } catch (error) {
    await database.close();
    const setting = place === null ? "HOLDFAST_DATA_DIR" : settingOf(place);
    throw new ConfigError(`Cannot start: ${setting}: ${messageOf(error)}`);
  }
  return { database, applied: await migrate(database, MIGRATIONS) };
}

/**
 * Refuses to serve one of several databases alone: it would refuse the keys of all others.
 *
 * @throws ConfigError that names the others
 */
export async function refuseOneOfSeveral(database: Pick<Database, "query">): Promise<void> {
  const { known } = await readStoreFacts(database);
  if (known.length < 2) return;
  const names = known.map(({ name }) => name).join(", ");
  throw new ConfigError(
    `Cannot start: DATABASE_URL: this database is one of several (${names}); set HOLDFAST_DATABASES to all of them`,
  );
}

/** Opens an existing store without creating or migrating anything. */
export async function openUnmigrated(
  { database: place, dataDir }: StorePlace,
): Promise<Database> {
  if (place === null) {
    if (existsSync(`${dataDir}/pg`)) return await openFolder(dataDir);
    throw new Error(`HOLDFAST_DATA_DIR: there is no store in "${dataDir}"`);
  }
  // A tool that only reads runs one transaction at a time.
  const database = openPostgres(place.url, 1);
  try {
    await probe(database);
  } catch (error) {
    await database.close();
    throw new Error(`${settingOf(place)}: ${messageOf(error)}`);
  }
  return database;
}

/** Loads the embedded PostgreSQL only where it is used: it takes 30 MB of memory. */
async function openFolder(folder: string): Promise<Database> {
  const { openEmbedded } = await import("../storage/embedded/embedded_folder.ts");
  return await openEmbedded(folder);
}
