// The numbers under which history rows of a user may be filed: its own, and those of aliases whose rows are still to
// be moved. Reads look at all of them, so they are complete at every moment of a move.

import type { UserKey } from "../domain/ids.ts";
import { arrayText, type Database, type Param } from "../storage/database.ts";

/**
 * Reads rows of a user, again where the user was merged into another one while it was being read: the rows may then
 * have gone to that one between two statements.
 *
 * @param read is told the numbers as the text of an array
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

/** Where to find the newest rows of some users. */
export interface Newest {
  readonly table: string;
  /** The column with the time; the table has an index on user_key, this column and id, both falling. */
  readonly time: string;
  readonly columns: string;
  /** SQL of the users' numbers. */
  readonly owners: string;
  /** SQL of how many rows. */
  readonly limit: string;
  /** A further condition on rows. */
  readonly where?: string;
  /** SQL of time and id of the row after which to begin; such a text is for `queryInOrder`. */
  readonly after?: string;
}

/**
 * SQL of the newest rows of some users, so many of each and in no order. The planner takes any user for an average one:
 * it would fetch all rows of one who has a million, and sort them. For a range of users, of which it knows nothing, it
 * takes the order of the index; the index cannot begin at a place within a range, so there `queryInOrder` has to do.
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

/** Reads rows in the order of an index, whatever the planner thinks of a sort. */
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
