// Databases of a PostgreSQL server for tests. The server copies hundreds of files to make one and flushes as many to drop
// it, which takes as long as a test. So databases stay on the server, and what a test left in one is emptied for the next
// test, whichever file it is in. A database is taken by an advisory lock on its name, so several suites may share a server.
// A worker keeps what it took, and its sessions, to the end: opening a session takes 10 ms of processor time.

import { createHash } from "node:crypto";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { Database, PinnedSession } from "../../src/storage/database.ts";
import { forgetOldNodes } from "../../src/storage/nodes/node_store.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import type { TestStore } from "./test_store.ts";

const POOL_CONNECTIONS = 4;
/** Sessions that take databases have a name of their own: tests end sessions of the program by theirs. */
const SESSION_NAME = "holdfast_tests";
const END_MS = 10_000;
/** Each time a database is emptied its catalog grows; past this size a copy of the template is quicker. */
const CATALOG_BYTES_MAX = 2_000_000;

/** From this size on a table is truncated. */
const DELETE_BYTES_MAX = 65_536;

/** What a used database is compared with and put back to: written on the template, as its comment. */
interface Origin {
  /** What the catalog and the table of migrations say. */
  readonly shape: string;
  /** Writes what migrations wrote into the tables. */
  readonly refill: string;
}

/** A database that this worker took. */
interface Taken {
  readonly name: string;
  readonly url: string;
  /** Holds the lock on the name; on the server's own database, so it outlives this one. */
  readonly holder: PinnedSession;
  /** Empties it. */
  readonly inside: Database;
}

/** Those without a test. They end with the worker; a program outside `deno test` ends itself by `Deno.exit`. */
const idle = new Set<Taken>();

/** Opens a migrated database without rows of others. */
export async function openServerStore(server: string): Promise<TestStore> {
  const [taken = await take(server)] = idle;
  idle.delete(taken);
  const { name, url, holder } = taken;
  const template = await templateOf(server, holder);
  if (!await isEmptied(taken, template)) {
    await holder.query(`drop database if exists ${name} with (force)`);
    await holder.query(`create database ${name} template ${template}`);
  }
  const database = openPostgres(url, POOL_CONNECTIONS);
  return {
    database,
    url,
    close: async () => {
      await database.close();
      idle.add(taken);
    },
  };
}

/** Makes a migrated database with an identity of its own, as a first start does. */
export async function copyTemplate(
  server: string,
  admin: Pick<Database, "query">,
  name: string,
): Promise<void> {
  await admin.query(`create database ${name} template ${await templateOf(server, admin)}`);
  const database = openPostgres(urlOf(server, name), 1);
  await database.query("update registry set cluster_id = gen_random_uuid()::text");
  await database.close();
}

/** A migrated database that stays on the server: a copy of it is made faster than its tables are. */
async function templateOf(server: string, admin: Pick<Database, "query">): Promise<string> {
  const parts = [MIGRATIONS, SHAPE, describe.toString(), forgetOldNodes.toString()];
  const hash = createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16);
  const name = `holdfast_template_${hash}`;
  const exists = async () =>
    (await admin.query("select from pg_database where datname = $1", [name])).length > 0;
  if (await exists()) return name;
  const fresh = `${name}_${crypto.randomUUID().slice(0, 8)}`;
  await admin.query(`create database ${fresh}`);
  const database = openPostgres(urlOf(server, fresh), 2);
  await migrate(database, MIGRATIONS);
  // The first member of a database would change it.
  const session = await database.pin(() => {});
  await forgetOldNodes(session);
  await session.close();
  const origin = JSON.stringify(await describe(database)).replaceAll("'", "''");
  await database.query(`comment on database ${fresh} is '${origin}'`);
  await database.close();
  try {
    await admin.query(`alter database ${fresh} rename to ${name}`);
  } catch (error) {
    // Another process was faster.
    if (!await exists()) throw error;
    await admin.query(`drop database ${fresh} with (force)`);
  }
  return name;
}

/** Whatever migrations make, by the rows of the catalog: a copy of the template has the same ones. */
const SHAPE = `
  select md5(string_agg(line, e'\\n' order by line)) as shape from (
    select name || checksum from migrations
    union all select (oid, relnamespace, relname, relkind, relpersistence, reloptions)::text from pg_class
      where oid >= 16384
    union all select a::text from pg_attribute a where attrelid >= 16384
    union all select d::text from pg_attrdef d
    union all select i::text from pg_index i where indrelid >= 16384
    union all select c::text from pg_constraint c where oid >= 16384
    union all select t::text from pg_trigger t
    union all select p::text from pg_proc p where oid >= 16384
    union all select s::text from pg_sequence s
    union all select n::text from pg_namespace n where oid >= 16384 and nspname !~ '^pg_'
    union all select s::text from pg_db_role_setting s
      where setdatabase = (select oid from pg_database where datname = current_database())
  ) as lines (line)`;

/** What a database is that was migrated and never used. */
async function describe(database: Database): Promise<Origin> {
  const [row] = await database.query<{ shape: string }>(SHAPE);
  const steps: string[] = [];
  for (const { name: table } of await filledTables(database)) {
    const [{ text } = { text: null }] = await database.query<{ text: string | null }>(
      `select quote_literal(json_agg(t)) as text from ${table} t`,
    );
    if (text) {
      steps.push(`insert into ${table} select * from json_populate_recordset(null::${table}, ${text});`);
    }
  }
  return { shape: row?.shape ?? "", refill: steps.join(" ") };
}

/** Tables that have a page; those without one need not be emptied. */
interface FilledTable {
  readonly name: string;
  /** Whether it has many pages, or the planner has statistics of its rows. */
  readonly isKnown: boolean;
}

async function filledTables(database: Pick<Database, "query">): Promise<FilledTable[]> {
  return await database.query<FilledTable>(
    `select oid::regclass::text as name, pg_relation_size(oid) > ${DELETE_BYTES_MAX} or reltuples >= 0 as "isKnown"
     from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'migrations'
       and pg_relation_size(oid) > 0 order by name`,
  );
}

/**
 * Removes rows. Truncation leaves no dead row and no size that the planner knows, but makes new files for the table and its
 * indexes and flushes each, so it is for tables that have grown.
 */
function emptying({ name, isKnown }: FilledTable): string {
  return isKnown ? `truncate ${name} cascade;` : `delete from ${name};`;
}

/** Takes the first database that no run uses, whether it exists or not. */
async function take(server: string): Promise<Taken> {
  const holder: PinnedSession = await openPostgres(server, 1, SESSION_NAME).pin(() => {
    for (const taken of idle) if (taken.holder === holder) idle.delete(taken);
  });
  const base = (await templateOf(server, holder)).replace("template", "kept");
  for (let number = 1;; number++) {
    const name = `${base}_${number}`;
    const [row] = await holder.query<{ isOurs: boolean }>(
      `select pg_try_advisory_lock(hashtextextended($1, 0)) as "isOurs"`,
      [name],
    );
    if (row?.isOurs !== true) continue;
    const url = urlOf(server, name);
    return { name, url, holder, inside: openPostgres(url, 1, SESSION_NAME) };
  }
}

/** Makes a database what it was when it was copied; false where it is not there, or where that cannot be done. */
async function isEmptied({ name, holder, inside }: Taken, template: string): Promise<boolean> {
  const [found] = await holder.query<{ comment: string }>(
    `select shobj_description(t.oid, 'pg_database') as comment from pg_database t, pg_database d
     where t.datname = $1 and d.datname = $2`,
    [template, name],
  );
  if (found === undefined) return false;
  // What still runs for the test that had it.
  await inside.query(
    `select pg_terminate_backend(pid, ${END_MS}) from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`,
  );
  const origin = JSON.parse(found.comment) as Origin;
  const [now] = await inside.query<{ shape: string; size: number }>(
    `select shape, pg_relation_size('pg_class') as size from (${SHAPE}) as shape`,
  );
  if (now?.shape !== origin.shape || now.size > CATALOG_BYTES_MAX) return false;
  const tables = await filledTables(inside);
  // Triggers that keep rows from being removed are not asked. Statistics would tell the planner of rows that are gone.
  await inside.script(`
    begin;
    set local session_replication_role = replica;
    ${tables.map(emptying).join(" ")}
    delete from pg_statistic where starelid >= 16384;
    select setval(seqrelid, seqstart, false) from pg_sequence;
    ${origin.refill}
    commit;`);
  return true;
}

function urlOf(server: string, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
