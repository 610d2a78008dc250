// Opens the store that the settings name, a PostgreSQL server or the embedded one in its folder: migrated for a process
// that serves it, unchanged for tools that only read it.

import { existsSync } from "node:fs";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { type Config, ConfigError } from "../process/settings.ts";
import { PROCESS_LIMITS } from "../process/limits.ts";
import { messageOf } from "../process/log.ts";
import { type Database, probe } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import { probeServer } from "../storage/server_probe.ts";
import { openPostgres } from "../storage/postgres_database.ts";

/** Opens and migrates the store; returns the names of the migrations that were applied now. */
export async function openStore(
  config: Pick<Config, "databaseUrl" | "dataDir">,
): Promise<{ database: Database; applied: string[] }> {
  const database = config.databaseUrl === null
    ? await openFolder(config.dataDir)
    : openPostgres(config.databaseUrl, PROCESS_LIMITS.poolConnectionsMax);
  try {
    await probeServer(database);
  } catch (error) {
    await database.close();
    throw new ConfigError(`Cannot start: DATABASE_URL: ${messageOf(error)}`);
  }
  return { database, applied: await migrate(database, MIGRATIONS) };
}

/** Opens an existing store without creating or migrating anything. */
export async function openUnmigrated(
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
): Promise<Database> {
  if (databaseUrl === null) {
    if (existsSync(`${dataDir}/pg`)) return await openFolder(dataDir);
    throw new Error(`HOLDFAST_DATA_DIR: there is no store in "${dataDir}"`);
  }
  // A tool that only reads runs one transaction at a time.
  const database = openPostgres(databaseUrl, 1);
  try {
    await probe(database);
  } catch (error) {
    await database.close();
    throw new Error(`DATABASE_URL: ${messageOf(error)}`);
  }
  return database;
}

/** Loads the embedded PostgreSQL only where it is used: it takes 30 MB of memory. */
async function openFolder(folder: string): Promise<Database> {
  const { openEmbedded } = await import("../storage/embedded/embedded_folder.ts");
  return await openEmbedded(folder);
}
