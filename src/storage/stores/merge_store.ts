// What merges need of the tables: everything of a user that is not live, the size of its history, and reports of
// merges that were made. Also the history move: rows of an alias, a bounded step at a time.

import type { StoredMerge } from "../../../actors/port.ts";
import type { UserKey } from "../../domain/ids.ts";
import type { HistoryCounts } from "../../domain/merging/merge_report.ts";
import type { OlderRows } from "../../domain/user.ts";
import { type BalanceRecord, decodeBalance } from "../rows/credit_rows.ts";
import { arrayText, type Session } from "../database.ts";
import { HISTORY, reservationIdsOf, someRowsOf, someSettled } from "./history_tables.ts";
import { type CounterRecord, decodeCounter } from "../rows/rows.ts";

type Reader = Pick<Session, "query">;

/** All counters and balances of a user. */
export async function loadWhole(reader: Reader, owner: UserKey): Promise<OlderRows> {
  const [counters, balances] = await Promise.all([
    reader.query<CounterRecord>("select * from counters where user_key = $1::bigint", [owner]),
    reader.query<BalanceRecord>("select * from credit_balances where user_key = $1::bigint order by id", [
      owner,
    ]),
  ]);
  return { counters: counters.map(decodeCounter), reservations: [], balances: balances.map(decodeBalance) };
}

/** Sizes of a history up to a limit; null beyond it. Settled reservations are found by their owner's part of the id. */
export async function countHistory(
  reader: Reader,
  owners: readonly UserKey[],
  limit: number,
): Promise<HistoryCounts | null> {
  const counts: Record<string, number> = {};
  let left = limit;
  for (const history of HISTORY) {
    const [row] = await reader.query<{ rows: number }>(
      `select count(*)::int as rows from (${someRowsOf(history, "$2::int")}) as found`,
      [arrayText(owners), left + 1],
    );
    left -= counts[history.table] = row?.rows ?? 0;
    if (left < 0) return null;
  }
  const reservations = await countSettled(reader, owners, left + 1);
  if (reservations > left) return null;
  return {
    events: counts.events as number,
    eventLogs: counts.event_logs as number,
    reservations,
    subscriptionEvents: counts.subscription_events as number,
    creditLedger: counts.credit_ledger as number,
    composeGenerations: counts.generations as number,
  };
}

async function countSettled(reader: Reader, owners: readonly UserKey[], limit: number): Promise<number> {
  let settled = 0;
  for (const owner of owners) {
    const [row] = await reader.query<{ rows: number }>(
      `select count(*)::int as rows from (${someSettled("$3::int")}) as found`,
      [...reservationIdsOf(owner), limit],
    );
    settled += row?.rows ?? 0;
  }
  return settled;
}

/** The merge that made a user an alias; null for none. */
export async function loadMerge(reader: Reader, fromKey: UserKey): Promise<StoredMerge | null> {
  const [row] = await reader.query<{ report: string; pending: boolean }>(
    `select m.report, exists (select 1 from history_moves h
       where h.user_key in (select value::bigint from jsonb_array_elements_text(m.history_keys::jsonb))) as pending
     from merges m where m.from_key = $1::bigint order by m.at_ms desc limit 1`,
    [fromKey],
  );
  return row === undefined ? null : { report: row.report, historyPending: row.pending };
}

/** Aliases whose history is still to move, oldest first. */
export async function listHistoryMoves(reader: Reader, limit: number): Promise<UserKey[]> {
  const rows = await reader.query<{ key: number }>(
    "select user_key as key from history_moves order by at_ms, user_key limit $1::int",
    [limit],
  );
  return rows.map(({ key }) => key);
}

/**
 * Files some history rows of an alias under its canonical user; the last step also takes away what is left empty.
 * Rows that another transaction has locked wait for the next step.
 *
 * @returns how many rows moved; fewer than the limit when none are left
 */
export async function moveHistory(session: Session, alias: UserKey, limit: number): Promise<number> {
  // Locked, so that nobody becomes the alias of another user while rows on their way to him are not visible yet.
  const [row] = await session.query<{ canonical: UserKey | null }>(
    "select merged_into as canonical from users where key = $1::bigint for share",
    [alias],
  );
  if (row === undefined || row.canonical === null) return 0;
  let moved = 0;
  for (const history of HISTORY) {
    if (moved >= limit) return moved;
    const { table, key } = history;
    const rows = await session.query(
      `update ${table} set user_key = $2::bigint
       where ${key} = any(array(${someRowsOf(history, "$3::int", "for update skip locked")})) returning 1`,
      [arrayText([alias]), row.canonical, limit - moved],
    );
    moved += rows.length;
  }
  if (moved >= limit) return moved;
  await session.query("delete from counters where user_key = $1::bigint", [alias]);
  await session.query(
    `delete from history_moves where user_key = $1::bigint
     ${
      HISTORY.map(({ table }) => `and not exists (select 1 from ${table} where user_key = $1::bigint)`).join(
        " ",
      )
    }`,
    [alias],
  );
  return moved;
}
