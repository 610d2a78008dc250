// What merges need of the tables: all counters and balances of a user, the size of its history, and the reports of
// earlier merges. Also the history move, a bounded step at a time.

import type { StoredMerge } from "../../../actors/port.ts";
import type { UserKey } from "../../domain/values/ids.ts";
import type { HistoryCounts } from "../../domain/merging/merge_report.ts";
import type { OlderRows } from "../../domain/state/user.ts";
import type { StoredRow } from "../rows/columns.ts";
import { CREDIT_BALANCES } from "../rows/credit_rows.ts";
import { COUNTERS } from "../rows/metering_rows.ts";
import { arrayText, type Session } from "../database.ts";
import { moveRefusals } from "./refusal_store.ts";
import { HISTORY, reservationIdsOf, someRowsOf, someSettled } from "./history_tables.ts";

type Reader = Pick<Session, "query">;

/** All counters and balances of a user. */
export async function loadWhole(reader: Reader, owner: UserKey): Promise<OlderRows> {
  const [counters, balances] = await Promise.all([
    reader.query<StoredRow>("select * from counters where user_key = $1::bigint", [owner]),
    reader.query<StoredRow>("select * from credit_balances where user_key = $1::bigint order by id", [
      owner,
    ]),
  ]);
  return {
    counters: counters.map(COUNTERS.read),
    reservations: [],
    balances: balances.map(CREDIT_BALANCES.read),
  };
}

/** Counts the history of some users; null where it has more rows than a limit. */
export async function countHistory(
  reader: Reader,
  owners: readonly UserKey[],
  limit: number,
): Promise<HistoryCounts | null> {
  const counts = { ...NOTHING };
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

const NOTHING: HistoryCounts = {
  events: 0,
  eventLogs: 0,
  reservations: 0,
  subscriptionEvents: 0,
  creditLedger: 0,
  composeGenerations: 0,
};

/** A column of merges that counts rows which the background moved. */
const movedColumn = (table: string) => `moved_${table}`;

/** Settled reservations are found by their owner's part of the id. */
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

/** An alias whose history is still to move. */
export interface HistoryMove {
  readonly key: UserKey;
  readonly realm: number;
}

/** Aliases of some realms whose history is still to move, oldest first. */
export function listHistoryMoves(
  reader: Reader,
  realms: readonly number[],
  limit: number,
): Promise<HistoryMove[]> {
  return reader.query<HistoryMove>(
    `select u.key, u.realm from history_moves h join users u on u.key = h.user_key
     where u.realm = any($1::text::int[]) order by h.at_ms, u.key limit $2::int`,
    [arrayText(realms), limit],
  );
}

/**
 * Gives some history rows of an alias to its canonical user. The last step also removes what is left empty. Rows that
 * another transaction has locked wait for the next step.
 *
 * @returns how many rows moved; fewer than the limit when none are left
 */
export async function moveHistory(session: Session, alias: UserKey, limit: number): Promise<number> {
  // The lock keeps a later merge of the canonical user out until this step is over: that merge would count and move the
  // rows of the canonical user without those that are on their way.
  const [row] = await session.query<{ canonical: UserKey | null; realm: number; id: string }>(
    "select merged_into as canonical, realm, id from users where key = $1::bigint for share",
    [alias],
  );
  if (row === undefined || row.canonical === null) return 0;
  const moved = { ...NOTHING };
  let left = limit - await moveRefusalsOf(session, row, row.canonical, limit);
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
  await session.query("delete from counters where user_key = $1::bigint", [alias]);
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

/** Moves some counts of refused calls, which are filed by id; no report counts them. */
async function moveRefusalsOf(
  session: Session,
  { realm, id }: { readonly realm: number; readonly id: string },
  canonical: UserKey,
  limit: number,
): Promise<number> {
  const [to] = await session.query<{ id: string }>("select id from users where key = $1::bigint", [
    canonical,
  ]);
  return to === undefined ? 0 : await moveRefusals(session, realm, id, to.id, limit);
}

/**
 * Adds what a step moved to the merge that made the alias one, and to every later merge that made an alias of the user
 * that its history went to: the rows belong to the history of each.
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
 * Keeps how many reservations a merge moved in all. None was made under the ending users' numbers after it, so the count
 * is the same whenever it is taken.
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
