// What the console takes no second time: sessions that were signed out before their time, keys of forms that were sent. Any
// process may have to know, so it is in the tables.

import type { Millis } from "../../domain/values/period.ts";
import type { Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/**
 * Spends an id, and forgets those whose time is over.
 *
 * @param until when nobody can bring the id any more
 * @returns false for one that is spent already
 */
export async function spend(session: Session, id: string, until: Millis, now: Millis): Promise<boolean> {
  await session.query("delete from spent where until_ms < $1::bigint", [now]);
  const rows = await session.query(
    "insert into spent (id, until_ms) values ($1, $2::bigint) on conflict (id) do nothing returning 1",
    [id, until],
  );
  return rows.length > 0;
}

/** Takes an id back that was spent for nothing. */
export async function forgetSpent(session: Session, id: string): Promise<void> {
  await session.query("delete from spent where id = $1", [id]);
}

/** Whether an id was spent. */
export async function isSpent(reader: Reader, id: string): Promise<boolean> {
  const rows = await reader.query("select 1 from spent where id = $1", [id]);
  return rows.length > 0;
}
