// Roles of the database for tools that read it: each may select the views of the schema `holdfast` and nothing else.

import { randomText } from "../../process/secrets/random.ts";
import type { Database } from "../database.ts";

/** A new reader. */
export interface Reader {
  readonly name: string;
  /** The address with the password, by which a tool connects. */
  readonly url: string;
}

const PREFIX = "holdfast_reader_";
const NAME = /^holdfast_reader_[a-z0-9]{8}$/;
const CONNECTIONS = 5;
const STATEMENT_SECONDS = 60;

/** Why this database has no readers. */
export type NoReaders = "embedded" | "no_views" | "no_right";

/** The code of PostgreSQL for a right that a role does not have. */
const INSUFFICIENT_PRIVILEGE = "42501";

/** Creates a reader; answers why not where this database allows none. */
export async function createReader(
  database: Pick<Database, "query" | "transaction" | "url">,
): Promise<Reader | NoReaders> {
  const { url } = database;
  if (url === null) return "embedded";
  if (!await hasViews(database)) return "no_views";
  const name = `${PREFIX}${randomText(32).toLowerCase().replaceAll(/[^a-z0-9]/g, "").slice(0, 8)}`;
  const password = randomText(32);
  try {
    await database.transaction(async (session) => {
      const [row] = await session.query<{ name: string }>("select quote_ident(current_database()) as name");
      await session.query(`create role ${name} login password '${password}' connection limit ${CONNECTIONS}`);
      await session.query(`alter role ${name} set statement_timeout = '${STATEMENT_SECONDS}s'`);
      await session.query(`alter role ${name} set default_transaction_read_only = on`);
      await session.query(`alter role ${name} set search_path = holdfast`);
      await session.query(`grant connect on database ${row?.name} to ${name}`);
      await session.query(`grant usage on schema holdfast to ${name}`);
      await session.query(`grant select on all tables in schema holdfast to ${name}`);
    });
  } catch (error) {
    if ((error as { code?: unknown }).code === INSUFFICIENT_PRIVILEGE) return "no_right";
    throw error;
  }
  const address = new URL(url);
  address.username = name;
  address.password = password;
  return { name, url: address.href };
}

/** The names of all readers. */
export async function listReaders(database: Pick<Database, "query">): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    // Roles are of the whole server: only those of this database count.
    `select rolname::text as name from pg_roles where rolname ~ $1
       and to_regnamespace('holdfast') is not null and has_schema_privilege(rolname, 'holdfast', 'usage')
     order by rolname`,
    [NAME.source],
  );
  return rows.map(({ name }) => name);
}

/**
 * Ends a reader's connections and removes it. A role with rights in another database of the server, such as a restored copy
 * of this one, stays there without a login.
 *
 * @returns false for a name that no reader has
 */
export async function removeReader(
  database: Pick<Database, "query" | "transaction">,
  name: string,
): Promise<boolean> {
  if (!NAME.test(name) || !(await listReaders(database)).includes(name)) return false;
  await database.transaction(async (session) => {
    await session.query(`alter role ${name} nologin`);
    await session.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [name]);
    await session.query(`drop owned by ${name}`);
    await session.query(
      `do $$ begin drop role ${name}; exception when dependent_objects_still_exist then null; end $$`,
    );
  });
  return true;
}

async function hasViews(database: Pick<Database, "query">): Promise<boolean> {
  const [row] = await database.query<{ found: boolean }>(
    "select to_regclass('holdfast.events') is not null as found",
  );
  return row?.found === true;
}
