// What a split asks of servers: whether one is a standby, how far it has followed its primary, and to become a primary.

import type { Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** Whether a server follows another one. */
export async function isInRecovery(reader: Reader): Promise<boolean> {
  const [row] = await reader.query<{ is: boolean }>("select pg_is_in_recovery() as is");
  return row?.is === true;
}

/** The place in the log of a primary up to which it has written. */
export async function readPosition(reader: Reader): Promise<string> {
  const [row] = await reader.query<{ lsn: string }>("select pg_current_wal_lsn()::text as lsn");
  return row?.lsn as string;
}

/** Whether a standby has replayed the log up to a place. */
export async function hasReplayed(reader: Reader, position: string): Promise<boolean> {
  const [row] = await reader.query<{ has: boolean }>(
    "select pg_last_wal_replay_lsn() >= $1::pg_lsn as has",
    [position],
  );
  return row?.has === true;
}

/** Makes a standby a primary, and waits for it. @throws Error where the role may not, or the server is a primary already */
export async function promote(reader: Reader, seconds: number): Promise<void> {
  await reader.query("select pg_promote(true, $1::int)", [seconds]);
}
