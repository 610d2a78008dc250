// Ids that the console accepts once: sessions that were signed out before they expired, keys of forms that were sent. They
// are in the tables because every process has to know them.

import type { Millis } from "../../domain/values/period.ts";
import type { Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/**
 * Marks an id as used, and removes expired ids.
 *
 * @param until when the id expires by itself, in real time
 * @returns false if it was used already
 */
export async function spend(session: Session, id: string, until: Millis, now: Millis): Promise<boolean> {
  await session.query("delete from spent where until_ms < $1::bigint", [now]);
  const rows = await session.query(
    "insert into spent (id, until_ms) values ($1, $2::bigint) on conflict (id) do nothing returning 1",
    [id, until],
  );
  return rows.length > 0;
}

/** Makes a used id usable again. */
export async function forgetSpent(session: Session, id: string): Promise<void> {
  await session.query("delete from spent where id = $1", [id]);
}

/** Whether an id was used. */
export async function isSpent(reader: Reader, id: string): Promise<boolean> {
  const rows = await reader.query("select 1 from spent where id = $1", [id]);
  return rows.length > 0;
}
