// Counts of refused calls. Calls with the same user, event, reasons and hour share a row. Rows are written in bulk, moved
// by merges, and removed by erasures and by age.

import type { RefusalStore } from "../../../actors/port.ts";
import type { RefusalRow } from "../../domain/state/refused_call.ts";
import { arrayText, type Session } from "../database.ts";
import type { InCell } from "../nodes/cell_store.ts";

const COLUMNS =
  "realm, user_id, event, reasons, hour_ms, group_ids, count, first_at_ms, last_at_ms, refused_by";

/** The order in which every statement locks several rows. */
const ORDER = "order by realm, user_id, event, reasons, hour_ms";

/** Adds a row to an existing row of the same calls, like `addUp` of the domain. */
const ADD_UP = `on conflict (realm, user_id, event, reasons, hour_ms) do update set
    count = refusals.count + excluded.count,
    first_at_ms = least(refusals.first_at_ms, excluded.first_at_ms),
    last_at_ms = greatest(refusals.last_at_ms, excluded.last_at_ms),
    group_ids = case when excluded.last_at_ms >= refusals.last_at_ms then excluded.group_ids else refusals.group_ids end,
    refused_by = case when excluded.refused_by is null then refusals.refused_by else array(
      select distinct id from unnest(refusals.refused_by || excluded.refused_by) as id order by id) end`;

/** Opens the store; its writes lock the cells first. */
export function openRefusedCallStore(inCell: InCell): RefusalStore {
  return {
    add: async (cells, rows) => {
      let isSent = false;
      try {
        await inCell(cells, async (session) => {
          await addRows(session, rows);
          isSent = true;
        });
        return true;
      } catch (error) {
        // After the last statement only the commit can fail, with an unknown outcome.
        if (isSent) return false;
        throw error;
      }
    },
  };
}

async function addRows(session: Session, rows: readonly RefusalRow[]): Promise<void> {
  const column = (read: (row: RefusalRow) => string | number) => arrayText(rows.map(read));
  await session.query(
    `insert into refusals (${COLUMNS})
     select realm, user_id, event, reasons, hour_ms, group_ids, count, first_at_ms, last_at_ms,
       case when refused_by <> '{}' then refused_by::text[] end
     from unnest($1::text::int[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::bigint[],
       $6::text::text[], $7::text::bigint[], $8::text::bigint[], $9::text::bigint[], $10::text::text[]
     ) as given(${COLUMNS})
     ${ORDER} ${ADD_UP}`,
    [
      column(({ realm }) => realm),
      column(({ userId }) => userId),
      column(({ event }) => event),
      column(({ reasons }) => JSON.stringify(reasons)),
      column(({ hour }) => hour),
      column(({ groupIds }) => JSON.stringify(groupIds)),
      column(({ count }) => count),
      column(({ firstAt }) => firstAt),
      column(({ lastAt }) => lastAt),
      column(({ refusedBy }) => arrayText(refusedBy)),
    ],
  );
}

/** SQL of the ids of some rows of the users in $2. */
const SOME_OF_USERS = `select found.id from unnest($2::text::text[]) as owner(id) cross join lateral (
    select id from refusals where realm = $1::int and user_id >= owner.id and user_id <= owner.id
    order by user_id, last_at_ms desc, id desc limit $3::int
  ) as found limit $3::int`;

/** Moves some rows of an id to another id; returns how many, fewer than the limit when none are left. */
export async function moveRefusedCalls(
  session: Session,
  realm: number,
  from: string,
  to: string,
  limit: number,
): Promise<number> {
  const [moved] = await session.query<{ rows: number }>(
    `with gone as (
       delete from refusals where id = any(array(${SOME_OF_USERS})) returning *
     ), added as (
       insert into refusals (${COLUMNS})
       select realm, $4, event, reasons, hour_ms, group_ids, count, first_at_ms, last_at_ms, refused_by from gone
       ${ORDER} ${ADD_UP}
     )
     select count(*) as rows from gone`,
    [realm, arrayText([from]), limit, to],
  );
  return moved?.rows ?? 0;
}

/** Removes some rows of users by their ids; returns how many, 0 when none are left. */
export async function deleteRefusedCalls(
  session: Session,
  realm: number,
  ids: readonly string[],
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from refusals where id = any(array(${SOME_OF_USERS})) returning 1`,
    [realm, arrayText(ids), limit],
  );
  return rows.length;
}

/** Removes the ids of users from some rows that they refused; returns how many, 0 when none are left. */
export async function removeRefusers(
  session: Session,
  realm: number,
  ids: readonly string[],
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `update refusals set refused_by = array(
       select kept from unnest(refused_by) as kept where kept <> all($2::text::text[])
     ) where id = any(array(
       select id from refusals where realm = $1::int and refused_by && $2::text::text[]
       order by id limit $3::int for update)) returning 1`,
    [realm, arrayText(ids), limit],
  );
  return rows.length;
}
