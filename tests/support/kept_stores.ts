// Embedded stores on disk, as the first start makes them: empty, or with every migration applied. Making one takes
// seconds, so each is made once, kept in the folder for temporary files, and copied for each test.

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { MIGRATIONS } from "../../sql/migrations.ts";
import { openEmbedded } from "../../src/storage/embedded/embedded_folder.ts";
import { migrate } from "../../src/storage/migrate.ts";

/** Puts a store without tables into a data folder that has none. */
export async function copyEmptyStore(folder: string): Promise<void> {
  await copy(await emptyStore(), folder);
}

/** Puts a store with all tables and no rows into a data folder that has none. */
export async function copyMigratedStore(folder: string): Promise<void> {
  const hash = createHash("sha256").update(JSON.stringify(MIGRATIONS)).digest("hex").slice(0, 16);
  const migrated = await keptStore(`migrated_${hash}`, async (fresh) => {
    await copyEmptyStore(fresh);
    const database = await openEmbedded(fresh);
    await migrate(database, MIGRATIONS);
    await database.close();
  });
  await copy(migrated, folder);
}

function copy(kept: string, folder: string): Promise<void> {
  return cp(`${kept}/pg`, `${folder}/pg`, { recursive: true });
}

async function emptyStore(): Promise<string> {
  const { imports } = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
  const version = imports["@electric-sql/pglite"].split("@").at(-1);
  return await keptStore(version, async (fresh) => await (await openEmbedded(fresh)).close());
}

/** The folder of a kept store, which is made where it is missing. */
async function keptStore(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const kept = `${Deno.env.get("TMPDIR") ?? "/tmp"}/holdfast_test_store_${name}`;
  if (existsSync(kept)) return kept;
  const fresh = `${kept}.${crypto.randomUUID()}`;
  await make(fresh);
  try {
    await Deno.rename(fresh, kept);
  } catch (error) {
    // Another process was faster.
    if (!existsSync(kept)) throw error;
    await Deno.remove(fresh, { recursive: true });
  }
  return kept;
}
