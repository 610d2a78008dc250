// What one of several databases must not have: rows of users or apps that another one numbers, and workspaces that another
// one has too.

import type { Database } from "../../src/storage/database.ts";
import { KEYS_PER_STORE, REALMS_PER_STORE } from "../../src/storage/nodes/store_numbers.ts";

/** How many values of a column each database has for itself. */
const RANGES = { realm: REALMS_PER_STORE, user_key: KEYS_PER_STORE } as const;

/** Lists tables with rows outside the ranges of their database. */
export async function foreignRows(database: Pick<Database, "query">): Promise<string[]> {
  const [own] = await database.query<{ number: number }>(
    "select number from stores join registry on registry.cluster_id = stores.cluster_id",
  );
  if (own === undefined) return ["The database has no number"];
  const columns = await database.query<{ table: string; column: keyof typeof RANGES }>(
    `select c.table_name as table, c.column_name as column from information_schema.columns c
       join information_schema.tables t using (table_schema, table_name)
     where table_schema = 'public' and table_type = 'BASE TABLE' and column_name in ('realm', 'user_key')`,
  );
  const faults: string[] = columns.length < 10 ? ["The columns of users were not found"] : [];
  for (const { table, column } of columns) {
    const from = own.number * RANGES[column];
    const [row] = await database.query<{ foreign: number }>(
      `select count(*)::int as foreign from ${table} where ${column} not between $1::bigint + 1 and $2::bigint`,
      [from, from + RANGES[column]],
    );
    if (row?.foreign !== 0) faults.push(`${table} has ${row?.foreign} rows of another database`);
  }
  return faults;
}

/** Lists workspaces that more than one database has. */
export function sharedWorkspaces(lists: readonly (readonly string[])[]): string[] {
  const all = lists.flat();
  const twice = all.filter((id, place) => all.indexOf(id) !== place);
  return twice.map((id) => `${id} is on two databases`);
}
