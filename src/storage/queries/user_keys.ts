// The user numbers under which a user's history may be stored: its own, and those of aliases with rows that have not moved
// yet. Reads use all of them, so they are complete at every moment of a move.

import type { UserKey } from "../../domain/values/ids.ts";
import { arrayText, type Database, type Param } from "../database.ts";

/**
 * Reads rows of a user. If the user is merged into another one meanwhile, it reads again, because rows may have moved
 * between two statements.
 *
 * @param read receives the numbers as the text of an array
 */
export async function readOfUser<T>(
  database: Database,
  userKey: UserKey,
  read: (owners: string) => Promise<T>,
): Promise<T> {
  for (let key = userKey;;) {
    const rows = await read(arrayText(await ownersOf(database, key)));
    const [now] = await database.query<{ key: number }>(
      "select coalesce(merged_into, key) as key from users where key = $1::bigint",
      [key],
    );
    if (now === undefined || now.key === key) return rows;
    key = now.key;
  }
}

async function ownersOf(database: Database, userKey: UserKey): Promise<UserKey[]> {
  const rows = await database.query<{ key: number }>(
    `select u.key from users u join history_moves h on h.user_key = u.key where u.merged_into = $1::bigint`,
    [userKey],
  );
  return [userKey, ...rows.map(({ key }) => key)];
}

/** Describes a read of the newest rows of some users. */
interface Newest {
  readonly table: string;
  /** The column with the time; the table has an index on user_key, this column and id, both descending. */
  readonly time: string;
  readonly columns: string;
  /** SQL of the users' numbers. */
  readonly owners: string;
  /** SQL of the number of rows. */
  readonly limit: string;
  /** SQL of a further condition on rows. */
  readonly where?: string;
  /** SQL of the time and id of the row to start after; run such a statement with `queryInOrder`. */
  readonly after?: string;
}

/**
 * SQL of the newest rows of some users: up to a limit for each, in no order. For one user the planner assumes an average
 * number of rows, and would fetch and sort all rows of a user with a million. For a range of users it reads in the order of
 * the index, so each user is read as a range. Such a scan cannot start within the range, so a page that follows another one
 * needs `queryInOrder`.
 */
export function newestOf({ table, time, columns, owners, limit, where = "true", after }: Newest): string {
  const rows = after === undefined
    ? "user_key >= owner.key and user_key <= owner.key"
    : `user_key = owner.key and (${time}, id) < (${after})`;
  return `select found.* from (${owners}) as owner(key) cross join lateral (
      select ${columns} from ${table} where ${rows} and ${where}
      order by user_key, ${time} desc, id desc limit ${limit}
    ) as found`;
}

/** Reads rows in the order of an index, even where the planner would prefer a sort. */
export function queryInOrder<Row>(
  database: Database,
  text: string,
  params: readonly Param[],
): Promise<Row[]> {
  return database.transaction(async (session) => {
    await session.query("select set_config('enable_bitmapscan', 'off', true)");
    return await session.query<Row>(text, params);
  });
}
