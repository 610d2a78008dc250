// What merges read from the tables: all counters and balances of a user, the size of its history, and the reports of
// earlier merges. Also the history move, in bounded steps.

import type { StoredMerge } from "../../../actors/port.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import { type HistoryCounts, NO_HISTORY } from "../../domain/merging/merge_report.ts";
import type { OlderRows } from "../../domain/state/user.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_BALANCES } from "../rows/credit_rows.ts";
import { COUNTERS } from "../rows/metering_rows.ts";
import { OVERAGE_WINDOWS } from "../rows/overage_rows.ts";
import { SHARES } from "../rows/share_rows.ts";
import { arrayText, isAmong, type Session } from "../database.ts";
import { moveRefusedCalls } from "./refused_call_store.ts";
import { HISTORY, reservationIdsOf, someRowsOf, someSettled } from "./history_tables.ts";

type Reader = Pick<Session, "query">;

/** Loads all counters, balances, shares and windows of overage of a user. */
export async function loadWhole(reader: Reader, owner: UserKey): Promise<OlderRows> {
  const [counters, balances, shares, overages] = await Promise.all([
    reader.query<StoredRow>("select * from counters where user_key = $1::bigint", [owner]),
    reader.query<StoredRow>("select * from credit_balances where user_key = $1::bigint order by id", [
      owner,
    ]),
    reader.query<StoredRow>("select * from shares where user_key = $1::bigint", [owner]),
    reader.query<StoredRow>("select * from overage_windows where user_key = $1::bigint", [owner]),
  ]);
  return {
    counters: counters.map(COUNTERS.read),
    reservations: [],
    balances: balances.map(CREDIT_BALANCES.read),
    shares: shares.map(SHARES.read),
    overages: overages.map(OVERAGE_WINDOWS.read),
  };
}

/** Counts the history of some users; null if it has more rows than the limit. */
export async function countHistory(
  reader: Reader,
  owners: readonly UserKey[],
  limit: number,
): Promise<HistoryCounts | null> {
  const counts = { ...NO_HISTORY };
  let left = limit;
  for (const history of HISTORY) {
    const [row] = await reader.query<{ rows: number }>(
      `select count(*)::int as rows from (${someRowsOf(history, "$2::int")}) as found`,
      [arrayText(owners), left + 1],
    );
    left -= counts[history.count] = row?.rows ?? 0;
    if (left < 0) return null;
  }
  counts.reservations = await countSettled(reader, owners, left + 1);
  return counts.reservations > left ? null : counts;
}

/** The column of `merges` with the number of moved rows of a table. */
const movedColumn = (table: string) => `moved_${table}`;

/** Counts settled reservations, which are found by the owner in their ids. */
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

/** Loads the merge that made a user an alias, or null. */
export async function loadMerge(reader: Reader, fromKey: UserKey): Promise<StoredMerge | null> {
  const counts = HISTORY.map(({ table, count }) => `m.${movedColumn(table)} as "${count}"`).join(", ");
  const [row] = await reader.query<{ report: string; pending: boolean } & HistoryCounts>(
    `select m.report, ${counts}, m.${movedColumn("reservations")} as reservations,
       exists (select 1 from history_moves h
         where h.user_key in (select value::bigint from jsonb_array_elements_text(m.history_keys::jsonb))) as pending
     from merges m where m.from_key = $1::bigint order by m.at_ms desc limit 1`,
    [fromKey],
  );
  if (row === undefined) return null;
  const { report, pending, ...movedLater } = row;
  return { report, historyPending: pending, movedLater };
}

/** An alias with history that has not moved yet. */
export interface HistoryMove {
  readonly key: UserKey;
  readonly realm: number;
}

/** Lists aliases of some realms with history that has not moved yet, oldest first. */
export function listHistoryMoves(
  reader: Reader,
  realms: readonly number[],
  limit: number,
): Promise<HistoryMove[]> {
  return reader.query<HistoryMove>(
    `select u.key, u.realm from history_moves h join users u on u.key = h.user_key
     where ${isAmong("u.realm", "$1")} order by h.at_ms, u.key limit $2::int`,
    [arrayText(realms), limit],
  );
}

/**
 * Moves a bounded number of history rows of an alias to its canonical user. The last step also removes the pending move.
 * Rows that another transaction has locked wait for the next step.
 *
 * @returns the number of moved rows; fewer than the limit when none are left
 */
export async function moveHistory(session: Session, alias: UserKey, limit: number): Promise<number> {
  // Locks the canonical user until this step ends: a later merge of it would count and move its rows without those of
  // this step.
  const [row] = await session.query<{ canonical: UserKey | null; realm: number; id: string }>(
    "select merged_into as canonical, realm, id from users where key = $1::bigint for share",
    [alias],
  );
  if (row === undefined || row.canonical === null) return 0;
  const moved = { ...NO_HISTORY };
  let left = limit - await moveRefusedCallsOf(session, row, row.canonical, limit);
  let hasMoved = false;
  for (const history of HISTORY) {
    if (left <= 0) break;
    const { table, key, count } = history;
    const rows = await session.query(
      `update ${table} set user_key = $2::bigint
       where ${key} = any(array(${someRowsOf(history, "$3::int", "for update skip locked")})) returning 1`,
      [arrayText([alias]), row.canonical, left],
    );
    left -= moved[count] = rows.length;
    hasMoved ||= rows.length > 0;
  }
  if (hasMoved) await countMoved(session, alias, moved);
  if (left <= 0) return limit;
  for (const table of ["counters", "shares", "overage_windows", "user_summaries"]) {
    await session.query(`delete from ${table} where user_key = $1::bigint`, [alias]);
  }
  const ended = await session.query(
    `delete from history_moves where user_key = $1::bigint
     ${
      HISTORY.map(({ table }) => `and not exists (select 1 from ${table} where user_key = $1::bigint)`).join(
        " ",
      )
    } and not exists (select 1 from refusals where realm = $2::int and user_id = $3) returning 1`,
    [alias, row.realm, row.id],
  );
  if (ended.length > 0) await countReservations(session, alias, row.canonical);
  return limit - left;
}

/** Moves some counts of refused calls, which are stored by id; merge reports do not include them. */
async function moveRefusedCallsOf(
  session: Session,
  { realm, id }: { readonly realm: number; readonly id: string },
  canonical: UserKey,
  limit: number,
): Promise<number> {
  const [to] = await session.query<{ id: string }>("select id from users where key = $1::bigint", [
    canonical,
  ]);
  return to === undefined ? 0 : await moveRefusedCalls(session, realm, id, to.id, limit);
}

/**
 * Adds the moved rows of a step to the merge of the alias, and to each later merge by which its canonical user became an
 * alias in turn: the rows are part of the history that each of them moves.
 */
async function countMoved(session: Session, alias: UserKey, moved: HistoryCounts): Promise<void> {
  const sums = HISTORY.map(({ table }, index) => {
    const column = movedColumn(table);
    return `${column} = ${column} + $${index + 2}::bigint`;
  });
  await session.query(
    `with recursive chain(id, to_key) as (
       select id, to_key from merges where from_key = $1::bigint
       union select m.id, m.to_key from chain join merges m on m.from_key = chain.to_key
     )
     update merges set ${sums.join(", ")} where id in (select id from chain)`,
    [alias, ...HISTORY.map(({ count }) => moved[count])],
  );
}

/**
 * Stores how many reservations a merge moved in all. No reservation was made under the aliases' numbers after the merge, so
 * the count does not depend on when it is taken.
 */
async function countReservations(session: Session, alias: UserKey, canonical: UserKey): Promise<void> {
  const [merge] = await session.query<{ id: string; history_keys: string }>(
    `select id, history_keys from merges
     where from_key = $1::bigint and position('"historyPending":true' in report) > 0 order by at_ms desc limit 1`,
    [alias],
  );
  if (merge === undefined) return;
  let reservations = 0;
  for (const owner of JSON.parse(merge.history_keys) as UserKey[]) {
    const [row] = await session.query<{ rows: number }>(
      `select count(*) as rows from (
         select from reservations where id > $1 and id < $2 and status <> 'held'
         union all
         select from reservations where id > $1 and id < $2 and status = 'held' and user_key = $3::bigint
       ) as made`,
      [...reservationIdsOf(owner), canonical],
    );
    reservations += row?.rows ?? 0;
  }
  await session.query(`update merges set ${movedColumn("reservations")} = $2::bigint where id = $1`, [
    merge.id,
    reservations,
  ]);
}
