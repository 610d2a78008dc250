// The credit ledger, newest first, page by page. A cursor is a place between entries, so entries that arrive later neither
// repeat nor hide others.

import { Buffer } from "node:buffer";
import { numberOf } from "../../domain/values/amount.ts";
import type { LedgerEntry } from "../../domain/state/credit.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_LEDGER } from "../rows/credit_rows.ts";
import { newestOf, queryInOrder, readOfUser } from "./user_keys.ts";
import type { Database, Param } from "../database.ts";

/** The place of an entry in a user's ledger: its time, then its id. */
export interface Place {
  readonly at: number;
  readonly id: string;
  readonly userKey: UserKey;
}

/** Selects the entries of a page. */
export interface LedgerQuery {
  readonly userKey: UserKey;
  readonly balanceId: string | null;
  /** The last entry of the previous page; null for the first page. */
  readonly after: Place | null;
  readonly limit: number;
}

const CURSOR = /^(\d{1,16}) (cle_[0-9a-z_]{1,60}) (\d{1,16})$/;

/** Decodes a cursor; undefined if it is invalid. */
export function readCursor(cursor: string): Place | undefined {
  const [, at, id, userKey] = CURSOR.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  if (at === undefined || id === undefined || userKey === undefined) return undefined;
  const place = { at: Number(at), id, userKey: Number(userKey) };
  return cursorOf(place) === cursor ? place : undefined;
}

function cursorOf({ at, id, userKey }: Place): string {
  return Buffer.from(`${at} ${id} ${userKey}`).toString("base64url");
}

/** Whether a place is in the ledger of a user. After a merge, places of the alias are in the canonical user's ledger. */
export async function isPlaceOf(database: Database, userKey: UserKey, place: Place): Promise<boolean> {
  if (place.userKey === userKey) return true;
  const rows = await database.query(
    "select 1 from users where key = $1::bigint and merged_into = $2::bigint",
    [place.userKey, userKey],
  );
  return rows.length > 0;
}

/** Whether a balance belongs to the user. */
export async function hasBalance(database: Database, userKey: UserKey, balanceId: string): Promise<boolean> {
  const rows = await readOfUser(
    database,
    userKey,
    (owners) =>
      database.query(
        "select 1 from credit_balances where id = $1 and user_key = any($2::text::bigint[])",
        [balanceId, owners],
      ),
  );
  return rows.length > 0;
}

/** Lists a page of the ledger with the cursor of the next page, null at the end. */
export async function listLedger(database: Database, query: LedgerQuery) {
  const { limit } = query;
  const records = await readOfUser(database, query.userKey, (owners) => pageOf(database, query, owners));
  const entries = records.slice(0, limit).map(CREDIT_LEDGER.read);
  const last = entries.at(-1);
  const { userKey } = query;
  const nextCursor = records.length > limit && last !== undefined
    ? cursorOf({ at: last.at, id: last.id, userKey })
    : null;
  return { entries: entries.map(showEntry), nextCursor };
}

/** Reads the entries of a page and one more. */
function pageOf(
  database: Database,
  { balanceId, after, limit }: LedgerQuery,
  owners: string,
): Promise<StoredRow[]> {
  const params: Param[] = [owners, limit + 1];
  const place = after === null ? null : `$${params.push(after.at)}::bigint, $${params.push(after.id)}::text`;
  let rows = newestOf(place === null ? OF_USER : { ...OF_USER, after: place });
  if (balanceId !== null) {
    rows = `select * from credit_ledger
      where balance_id = $${params.push(balanceId)} and user_key = any($1::text::bigint[])
      ${place === null ? "" : `and (at_ms, id) < (${place})`}`;
  }
  return queryInOrder<StoredRow>(database, `${rows} order by at_ms desc, id desc limit $2::int`, params);
}

const OF_USER = {
  table: "credit_ledger",
  time: "at_ms",
  columns: "*",
  owners: "select unnest($1::text::bigint[])",
  limit: "$2::int",
} as const;

function showEntry(entry: LedgerEntry) {
  const { id, balanceId, packId, delta, reason, eventId, reservationId, notes, at } = entry;
  const occurredAt = new Date(at).toISOString();
  return { id, balanceId, packId, delta: numberOf(delta), reason, eventId, reservationId, occurredAt, notes };
}
