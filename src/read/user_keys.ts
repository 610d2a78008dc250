// The numbers under which history rows of a user may be filed: its own, and those of aliases whose rows are still to
// be moved. Reads look at all of them, so they are complete at every moment of a move.

import type { UserKey } from "domain/ids.ts";
import { arrayText, type Database } from "storage/database.ts";

/** A condition on `user_key`, with the value of its one parameter. */
export interface UserCondition {
  readonly sql: (place: number) => string;
  readonly param: string | number;
}

/**
 * Reads rows of a user, again where the user was merged into another one while it was being read: the rows may then
 * have gone to that one between two statements.
 */
export async function readOfUser<T>(
  database: Database,
  userKey: UserKey,
  read: (user: UserCondition) => Promise<T>,
): Promise<T> {
  for (let key = userKey;;) {
    const rows = await read(await ofUser(database, key));
    const [now] = await database.query<{ key: number }>(
      "select coalesce(merged_into, key) as key from users where key = $1::bigint",
      [key],
    );
    if (now === undefined || now.key === key) return rows;
    key = now.key;
  }
}

/** The condition for rows of a canonical user. A single number is compared as such: an index then gives the order. */
async function ofUser(database: Database, userKey: UserKey): Promise<UserCondition> {
  const rows = await database.query<{ key: number }>(
    `select u.key from users u join history_moves h on h.user_key = u.key where u.merged_into = $1::bigint`,
    [userKey],
  );
  if (rows.length === 0) return { sql: (place) => `= $${place}::bigint`, param: userKey };
  return {
    sql: (place) => `= any($${place}::text::bigint[])`,
    param: arrayText([userKey, ...rows.map(({ key }) => key)]),
  };
}
