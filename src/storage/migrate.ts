// Applies migrations once each, in order and under a lock, and stores the checksum of each text. A migration whose text
// changed after it was applied stops the start, because the tables may differ from what the code expects.

import { createHash } from "node:crypto";
import type { Migration } from "../../sql/migrations.ts";
import type { Database, Session } from "./database.ts";

/** The key of the advisory lock of migrations; the next number is the lock that every node holds. */
export const MIGRATION_LOCK = 4_614_206_521;

/** The tables are newer than the program, or the text of an applied migration has changed. */
export class MigrationError extends Error {}

/** Applies missing migrations, each in its own transaction; returns their names. */
export async function migrate(database: Database, migrations: readonly Migration[]): Promise<string[]> {
  await database.transaction(async (session) => {
    await session.query("select pg_advisory_xact_lock($1::bigint)", [MIGRATION_LOCK]);
    await session.query(`create table if not exists migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`);
  });
  const applied: string[] = [];
  for (const migration of migrations) {
    if (await database.transaction((session) => applyOne(session, migration))) applied.push(migration.name);
  }
  await refuseUnknown(database, migrations);
  return applied;
}

/** A database compared with the program's migrations, by name. */
export interface MigrationState {
  /** Applied with the same text. */
  readonly applied: readonly string[];
  readonly missing: readonly string[];
  /** Applied with another text. */
  readonly changed: readonly string[];
  /** Applied by a newer program. */
  readonly unknown: readonly string[];
}

/** Compares a database with the program's migrations, without changes. */
export async function migrationState(
  reader: Pick<Session, "query">,
  migrations: readonly Migration[],
): Promise<MigrationState> {
  const [table] = await reader.query<{ isThere: boolean }>(
    `select to_regclass('migrations') is not null as "isThere"`,
  );
  const rows = table?.isThere !== true ? [] : await reader.query<{ name: string; checksum: string }>(
    "select name, checksum from migrations order by name",
  );
  const known = new Map(rows.map(({ name, checksum }) => [name, checksum]));
  const state = { applied: [] as string[], missing: [] as string[], changed: [] as string[] };
  for (const migration of migrations) {
    const checksum = known.get(migration.name);
    known.delete(migration.name);
    if (checksum === undefined) state.missing.push(migration.name);
    else (checksum === checksumOf(migration) ? state.applied : state.changed).push(migration.name);
  }
  return { ...state, unknown: [...known.keys()] };
}

function checksumOf({ sql }: Migration): string {
  return createHash("sha256").update(sql).digest("hex");
}

async function applyOne(session: Session, migration: Migration): Promise<boolean> {
  const { name, sql } = migration;
  await session.query("select pg_advisory_xact_lock($1::bigint)", [MIGRATION_LOCK]);
  const checksum = checksumOf(migration);
  const [known] = await session.query<{ checksum: string }>(
    "select checksum from migrations where name = $1",
    [name],
  );
  if (known !== undefined) {
    if (known.checksum === checksum) return false;
    throw new MigrationError(`Cannot use this database: migration "${name}" was applied with another text`);
  }
  for (const statement of statementsOf(sql)) await session.query(statement);
  await session.query("insert into migrations (name, checksum) values ($1, $2)", [name, checksum]);
  return true;
}

async function refuseUnknown(database: Database, migrations: readonly Migration[]): Promise<void> {
  const names = new Set(migrations.map(({ name }) => name));
  const rows = await database.query<{ name: string }>("select name from migrations order by name");
  const unknown = rows.find(({ name }) => !names.has(name));
  if (unknown === undefined) return;
  throw new MigrationError(`Cannot use this database: a newer program applied migration "${unknown.name}"`);
}

/**
 * Splits a migration into statements at semicolons that end a line. The files have none within a literal, except in the
 * body of a function between two `$$`.
 */
function statementsOf(sql: string): string[] {
  const bare = sql.split("\n").filter((line) => !line.startsWith("--")).join("\n");
  const statements = bare.match(/(?:\$\$[^]*?\$\$|(?!;\s*$)[^])+/gm) ?? [];
  return statements.map((text) => text.replace(/^;/, "").trim()).filter((text) => text !== "");
}
