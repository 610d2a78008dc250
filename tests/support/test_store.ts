// A fresh, migrated database for a test file: in memory with the embedded store, or a scratch database on the
// server that HOLDFAST_TEST_DATABASE_URL names. The same tests run on both.

import { PGlite } from "@electric-sql/pglite";
import { createHash } from "node:crypto";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Database } from "../../src/storage/database.ts";
import { embeddedDatabase } from "../../src/storage/embedded/embedded_database.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";

const POOL_CONNECTIONS = 4;

/** A database that is gone when it is closed. */
export interface TestStore {
  readonly database: Database;
  /** The server's URL of this database; null on the embedded store. */
  readonly url: string | null;
  close(): Promise<void>;
}

/** The server that tests run on, or null for the embedded store. */
export function testServerUrl(): string | null {
  return Deno.env.get("HOLDFAST_TEST_DATABASE_URL") || null;
}

/** Opens a fresh store. */
export function openTestStore(): Promise<TestStore> {
  const server = testServerUrl();
  return server === null ? openEmbedded() : openScratch(server);
}

/** Makes a scratch database on a server. */
export async function openScratch(server: string): Promise<TestStore> {
  const name = `holdfast_test_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  const admin = openPostgres(server, 1);
  await admin.script(`create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  const database = openPostgres(url.href, POOL_CONNECTIONS);
  await migrate(database, MIGRATIONS);
  return {
    database,
    url: url.href,
    close: async () => {
      await database.close();
      await admin.script(`drop database if exists ${name} with (force)`);
      await admin.close();
    },
  };
}

async function openEmbedded(): Promise<TestStore> {
  const lite = await PGlite.create({ loadDataDir: await templateImage() });
  const database = embeddedDatabase(lite);
  return { database, url: null, close: () => database.close() };
}

/** A migrated store as an image, made once and kept in the folder for temporary files: loading it is fast. */
async function templateImage(): Promise<Blob> {
  const hash = createHash("sha256").update(JSON.stringify(MIGRATIONS)).digest("hex").slice(0, 16);
  const path = `${Deno.env.get("TMPDIR") ?? "/tmp"}/holdfast_test_template_${hash}.tar`;
  try {
    return new Blob([await Deno.readFile(path)]);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const lite = await PGlite.create();
  await migrate(embeddedDatabase(lite), MIGRATIONS);
  const image = await lite.dumpDataDir("none");
  await lite.close();
  const fresh = `${path}.${crypto.randomUUID()}`;
  await Deno.writeFile(fresh, new Uint8Array(await image.arrayBuffer()));
  await Deno.rename(fresh, path);
  return image;
}
