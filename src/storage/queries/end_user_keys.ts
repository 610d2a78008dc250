// Keys of users, as the tables have them.

import type { Session } from "../database.ts";

/** Whether the tables have a key with this hash that is not revoked. */
export async function hasEndUserKey(
  reader: Pick<Session, "query">,
  id: string,
  hash: string,
): Promise<boolean> {
  const rows = await reader.query(
    "select 1 from end_user_keys where id = $1 and hash = $2 and revoked_at_ms is null",
    [id, hash],
  );
  return rows.length > 0;
}
