// Sessions of the console that were ended before their time. Any process may have to know, so it is asked of the tables.

import type { Millis } from "../../domain/plans/period.ts";
import type { Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** Ends a session; forgets those that would have ended by themselves. */
export async function endSession(reader: Reader, sessionId: string, until: Millis): Promise<void> {
  await reader.query(
    "insert into ended_sessions (id, until_ms) values ($1, $2::bigint) on conflict (id) do nothing",
    [sessionId, until],
  );
  await reader.query(
    "delete from ended_sessions where until_ms < (extract(epoch from clock_timestamp()) * 1000)::bigint",
    [],
  );
}

/** Whether a session was ended. */
export async function isEnded(reader: Reader, sessionId: string): Promise<boolean> {
  const rows = await reader.query("select 1 from ended_sessions where id = $1", [sessionId]);
  return rows.length > 0;
}
