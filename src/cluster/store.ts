// Opens the store that the settings name, a PostgreSQL server or the embedded one in its folder: migrated for those who
// serve it, as it is for those who look at it.

import { existsSync } from "node:fs";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { type Config, ConfigError } from "../process/settings.ts";
import { PROCESS_LIMITS } from "../process/limits.ts";
import { messageOf } from "../process/log.ts";
import { type Database, probe } from "../storage/database.ts";
import { migrate } from "../storage/migrate.ts";
import { openPostgres } from "../storage/postgres_database.ts";

/** Opens and migrates; answers the names of the migrations that were applied now. */
export async function openStore(
  config: Pick<Config, "databaseUrl" | "dataDir">,
): Promise<{ database: Database; applied: string[] }> {
  const database = config.databaseUrl === null
    ? await openFolder(config.dataDir)
    : openPostgres(config.databaseUrl, PROCESS_LIMITS.poolConnectionsMax);
  try {
    await probe(database);
  } catch (error) {
    await database.close();
    throw new ConfigError(`Cannot start: DATABASE_URL: ${messageOf(error)}`);
  }
  return { database, applied: await migrate(database, MIGRATIONS) };
}

/** Opens a store that is there, as it is: nothing is made and nothing migrated. */
export async function openUnmigrated(
  { databaseUrl, dataDir }: Pick<Config, "databaseUrl" | "dataDir">,
): Promise<Database> {
  if (databaseUrl === null) {
    if (existsSync(`${dataDir}/pg`)) return await openFolder(dataDir);
    throw new Error(`HOLDFAST_DATA_DIR: there is no store in "${dataDir}"`);
  }
  // Who looks does so in one transaction at a time.
  const database = openPostgres(databaseUrl, 1);
  try {
    await probe(database);
  } catch (error) {
    await database.close();
    throw new Error(`DATABASE_URL: ${messageOf(error)}`);
  }
  return database;
}

/** The embedded PostgreSQL takes 30 MB of memory as soon as it is loaded, so only those who use it load it. */
async function openFolder(folder: string): Promise<Database> {
  const { openEmbedded } = await import("../storage/embedded/embedded_folder.ts");
  return await openEmbedded(folder);
}
