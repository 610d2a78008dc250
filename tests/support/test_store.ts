// A migrated database without rows for a test or a test file: in memory with the embedded store, or on the server that
// HOLDFAST_TEST_DATABASE_URL names. The same tests run on both.

import { PGlite } from "@electric-sql/pglite";
import { createHash } from "node:crypto";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Database } from "../../src/storage/database.ts";
import { embeddedDatabase } from "../../src/storage/embedded/embedded_database.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { openServerStore } from "./server_stores.ts";

/** A database that another test may get, emptied, once it is closed. */
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
  return server === null ? openEmbedded() : openServerStore(server);
}

/** PostgreSQL clears its buffers at each start; tests need few. */
const START_PARAMS = [...PGlite.defaultStartParams, "-c", "shared_buffers=4MB"];

/** An embedded store, the names of its tables, and the statement that puts back what migrations wrote into them. */
interface Embedded {
  readonly lite: PGlite;
  readonly tables: readonly string[];
  readonly refill: string;
}

/**
 * Stores of this test file that were closed: emptying one takes a tenth of the time of starting another. They end with
 * the file; a program outside `deno test` ends itself by `Deno.exit`.
 */
const idle: Embedded[] = [];

async function openEmbedded(): Promise<TestStore> {
  const used = idle.pop();
  const embedded = used !== undefined && await isEmptied(used) ? used : await startEmbedded();
  const database = embeddedDatabase(embedded.lite);
  return {
    database,
    url: null,
    close: () => {
      idle.push(embedded);
      // What still runs for the test that closed it must not reach the store of the next one.
      const gone = () => Promise.reject(new Error("The store is closed"));
      Object.assign(database, { query: gone, transaction: gone, pin: gone, script: gone });
      return Promise.resolve();
    },
  };
}

async function startEmbedded(): Promise<Embedded> {
  const lite = await PGlite.create({ loadDataDir: await templateImage(), startParams: START_PARAMS });
  const tables = await tablesOf(lite);
  return { lite, tables, refill: await refillOf(lite, tables) };
}

/** Makes the SQL that brings a store with empty tables to its state of now. */
async function refillOf(lite: PGlite, tables: readonly string[]): Promise<string> {
  const steps: string[] = [];
  for (const name of tables.filter((table) => table !== "migrations")) {
    const { rows: [kept] } = await lite.query<{ text: string | null }>(
      `select quote_literal(json_agg(t)) as text from ${name} t`,
    );
    if (!kept?.text) continue;
    steps.push(`insert into ${name} select * from json_populate_recordset(null::${name}, ${kept.text});`);
  }
  const { rows } = await lite.query<{ name: string }>("select sequencename as name from pg_sequences");
  return [...steps, ...rows.map(({ name }) => `alter sequence ${name} restart;`)].join(" ");
}

/** From this size on a table is truncated. */
const DELETE_BYTES_MAX = 65_536;

/** Tables that have a page. */
const FILLED = `
  select relname as name, pg_relation_size(oid) > ${DELETE_BYTES_MAX} as "isLarge" from pg_class
  where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'migrations'
    and pg_relation_size(oid) > 0 order by name`;

/** What DISCARD ALL does, except that statements stay prepared. */
const DISCARD = `close all; set session authorization default; reset all; unlisten *;
  select pg_advisory_unlock_all(); discard temp; discard sequences`;

/** Makes a store what it was when it was started; false where a test changed its tables. */
async function isEmptied({ lite, tables, refill }: Embedded): Promise<boolean> {
  const { rows } = await lite.query("select from migrations");
  if (rows.length !== MIGRATIONS.length || (await tablesOf(lite)).join() !== tables.join()) return false;
  const { rows: filled } = await lite.query<{ name: string; isLarge: boolean }>(FILLED);
  // Deleting is quicker than truncation, which makes new files for a table and its indexes, but leaves dead rows, and nothing
  // removes them. Foreign keys are not asked.
  const steps = filled.map(({ name, isLarge }) =>
    isLarge ? `truncate ${name} cascade;` : `delete from ${name};`
  );
  await lite.exec(`set session_replication_role = replica; ${steps.join(" ")} ${refill}`);
  await lite.exec(DISCARD);
  return true;
}

async function tablesOf(lite: PGlite): Promise<string[]> {
  const { rows } = await lite.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' order by tablename",
  );
  return rows.map(({ name }) => name);
}

/** A migrated store as an image, made once and kept in the folder for temporary files: loading it is fast. */
async function templateImage(): Promise<Blob> {
  const hash = hashOf([MIGRATIONS, makeTemplate.toString()]);
  const path = `${Deno.env.get("TMPDIR") ?? "/tmp"}/holdfast_test_template_${hash}.tar`;
  try {
    return new Blob([await Deno.readFile(path)]);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const image = await makeTemplate();
  const fresh = `${path}.${crypto.randomUUID()}`;
  await Deno.writeFile(fresh, new Uint8Array(await image.arrayBuffer()));
  await Deno.rename(fresh, path);
  return image;
}

/** Every test file reads the whole image: a small log, and no database but the one in use, make it a third as large. */
async function makeTemplate(): Promise<Blob> {
  const smallLog = ["-c", "min_wal_size=2MB", "-c", "max_wal_size=4MB"];
  const lite = await PGlite.create({
    initDbStartParams: ["--wal-segsize=1"],
    startParams: [...START_PARAMS, ...smallLog],
  });
  await migrate(embeddedDatabase(lite), MIGRATIONS);
  for (const name of ["template0", "template1"]) {
    await lite.exec(`alter database ${name} is_template false`);
    await lite.exec(`drop database ${name}`);
  }
  await lite.exec("checkpoint");
  const image = await lite.dumpDataDir("none");
  await lite.close();
  return image;
}

function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
}

/** Runs work on a store, and closes the store. */
export async function withStore<T>(work: (store: TestStore) => Promise<T>): Promise<T> {
  const store = await openTestStore();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
