// Copies a whole store to another one, for example from the data folder to a server. Both have the same tables; nothing
// serves either of them meanwhile. The target's rows are committed together, with its constraints checked anew, or not
// at all. The journal and the terms come along, so the next process continues where the last one ended.

import { copyText, type Database, type Session } from "../database.ts";
import { LEASE_LIMITS } from "../../process/limits.ts";
import { readNodes } from "../nodes/node_store.ts";

/** Rows read at a time. */
const PIECE_ROWS = 2_000;
/** Rows that every new store has; the copy replaces them. */
const SEEDED: readonly string[] = ["cells", "registry", "lease", "members"];
/** Tables that say which schema this is, or that only one of the stores uses. */
const NOT_COPIED: readonly string[] = ["migrations", "durable_check"];

/** A store that cannot be copied, or cannot be copied to. */
class MoveError extends Error {}

/** How many rows each table got. */
type MovedRows = Readonly<Record<string, number>>;

/**
 * Copies all rows and sequences.
 *
 * @throws MoveError if a process serves one of the stores, their tables differ, or the target has rows of its own
 */
export async function moveStore(from: Database, to: Database): Promise<MovedRows> {
  await refuseServed(from, "The source");
  await refuseServed(to, "The target");
  return await from.transaction((source) =>
    to.transaction(async (target) => {
      const tables = await tablesOf(source);
      if (JSON.stringify(tables) !== JSON.stringify(await tablesOf(target))) {
        throw new MoveError("The tables of the two stores differ: run the same version on both first");
      }
      await refuseFilled(target, tables);
      const constraints = await dropForeignKeys(target);
      const moved: Record<string, number> = {};
      for (const { name, columns } of tables) {
        if (SEEDED.includes(name)) await target.query(`delete from ${name}`);
        moved[name] = await copyTable(source, target, name, columns);
      }
      for (const { table, name, definition } of constraints) {
        await target.query(`alter table ${table} add constraint ${name} ${definition}`);
      }
      await moveSequences(source, target);
      return moved;
    })
  );
}

async function refuseServed(database: Database, what: string): Promise<void> {
  const serving = (await readNodes(database)).filter(({ hasEnded, silentMs }) =>
    !hasEnded && silentMs < LEASE_LIMITS.validMs
  );
  // The lock of its folder keeps others from an embedded store; a row without an end is of a process that was killed.
  if (database.kind === "embedded" || serving.length === 0) return;
  throw new MoveError(`${what} is in use: stop the ${serving.length} processes that serve it`);
}

interface MovedTable {
  readonly name: string;
  readonly columns: readonly string[];
}

async function tablesOf(session: Session): Promise<MovedTable[]> {
  const rows = await session.query<{ name: string; columns: string }>(
    `select c.relname as name, json_agg(a.attname order by a.attname)::text as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and a.attnum > 0
       and not a.attisdropped and a.attgenerated = ''
     group by c.relname order by c.relname`,
  );
  return rows.filter(({ name }) => !NOT_COPIED.includes(name))
    .map(({ name, columns }) => ({ name, columns: JSON.parse(columns) as string[] }));
}

async function refuseFilled(target: Session, tables: readonly MovedTable[]): Promise<void> {
  for (const { name } of tables) {
    if (SEEDED.includes(name)) continue;
    const [row] = await target.query(`select 1 from ${name} limit 1`);
    if (row !== undefined) throw new MoveError(`The target is not new: its table ${name} has rows`);
  }
}

interface ForeignKey {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

/** Drops the foreign keys, so that tables can be copied in any order; adding them again checks every row. */
async function dropForeignKeys(target: Session): Promise<ForeignKey[]> {
  const keys = await target.query<ForeignKey>(
    `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as definition
     from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace`,
  );
  for (const { table, name } of keys) await target.query(`alter table ${table} drop constraint ${name}`);
  return keys;
}

async function copyTable(
  source: Session,
  target: Session,
  name: string,
  columns: readonly string[],
): Promise<number> {
  const list = columns.map((column) => `${column}::text as ${column}`).join(", ");
  await source.query(`declare moved no scroll cursor for select ${list} from ${name}`);
  let count = 0;
  while (true) {
    const rows = await source.query<Record<string, string | null>>(`fetch ${PIECE_ROWS} from moved`);
    if (rows.length === 0) break;
    count += rows.length;
    await target.copy(name, columns, [rows.map((row) => lineOf(row, columns)).join("")]);
  }
  await source.query("close moved");
  return count;
}

function lineOf(row: Readonly<Record<string, string | null>>, columns: readonly string[]): string {
  return columns.map((column) => copyText(row[column] ?? null)).join("\t") + "\n";
}

async function moveSequences(source: Session, target: Session): Promise<void> {
  const sequences = await source.query<{ name: string; last: string | null }>(
    `select quote_ident(sequencename) as name, last_value::text as last
     from pg_sequences where schemaname = current_schema()`,
  );
  for (const { name, last } of sequences) {
    // Without a last value, nobody has taken a number: the target's sequence is as new.
    if (last !== null) {
      await target.query("select setval($1::text::regclass, $2::text::bigint)", [name, last]);
    }
  }
}
