// Who met a limit: refused calls, counted by user, event, reasons and hour. Callers wait for the drain and for a write of
// what is still in memory. Section 1 of beyond.md, "Refusals".

import type { RefusalRow } from "../../domain/state/refused_call.ts";
import type { Millis } from "../../domain/values/period.ts";
import type { Database, Param } from "../database.ts";
import { readOfUser } from "./user_keys.ts";

/** What a page shows. */
export interface RefusalQuery {
  readonly realm: number;
  /** Rows whose last call was not after this moment are past their time. */
  readonly keptFrom: Millis;
  readonly userId: string | null;
  readonly event: string | null;
  readonly limit: number;
  readonly offset: number;
}

interface RefusalRecord {
  end_user_id: string;
  event: string;
  reasons: string;
  group_ids: string;
  count: number;
  first_at_ms: Millis;
  last_at_ms: Millis;
}

const NEWEST_FIRST = "order by r.last_at_ms desc, r.id desc";

/**
 * Whoever waits for an erasure is shown nowhere; somebody unknown has no row among the users. Checked row by row: as a
 * join, the planner might join whole tables.
 */
const IS_SHOWN = `coalesce((select not (u.erasing or c.erasing)
    from users u join users c on c.key = coalesce(u.merged_into, u.key)
    where u.realm = r.realm and u.id = r.user_id), true)`;

/** A page of rows, newest first by their last call; of equal times the later written first. */
export async function listRefusals(database: Database, query: RefusalQuery) {
  const { realm, userId } = query;
  if (userId === null) return (await pageOfRealm(database, query)).map(showRefusal);
  const [known] = await database.query<{ key: number; erasing: boolean }>(
    `select c.key, u.erasing or c.erasing as erasing
     from users u join users c on c.key = coalesce(u.merged_into, u.key) where u.realm = $1::int and u.id = $2`,
    [realm, userId],
  );
  if (known?.erasing === true) return [];
  const records = known === undefined
    ? await pageOfUser(database, query, "select $5::text", userId)
    : await readOfUser(database, known.key, (owners) => pageOfUser(database, query, IDS, owners));
  return records.map(showRefusal);
}

/** The ids under which rows of a user may be: those of an alias stay under its own until they have moved. */
const IDS = "select id from users where key = any($5::text::bigint[])";

function pageOfRealm(database: Database, { realm, keptFrom, event, limit, offset }: RefusalQuery) {
  const params: Param[] = [limit, offset, realm, keptFrom];
  const ofEvent = event === null ? "" : `and r.event = $${params.push(event)}`;
  return readPage(
    database,
    `select r.id from refusals r
     where r.realm = $3::int and r.last_at_ms > $4::bigint ${ofEvent} and ${IS_SHOWN}`,
    params,
  );
}

/**
 * Each owner is asked for as a range in the order of the index: for one with a large part of all rows the planner would
 * otherwise read and sort them all.
 *
 * @param ids SQL of the ids, made of $5
 */
function pageOfUser(
  database: Database,
  { realm, keptFrom, event, limit, offset }: RefusalQuery,
  ids: string,
  owners: string,
) {
  const params: Param[] = [limit, offset, realm, keptFrom, owners];
  const ofEvent = event === null ? "" : `and event = $${params.push(event)}`;
  return readPage(
    database,
    `select r.id from (${ids}) as owner(id) cross join lateral (
       select id, last_at_ms from refusals where realm = $3::int and user_id >= owner.id and user_id <= owner.id
         and last_at_ms > $4::bigint ${ofEvent}
       order by user_id, last_at_ms desc, id desc limit $1::int + $2::int
     ) as r`,
    params,
  );
}

/** Reads the page of those ids; the limit is $1, the offset $2. Nothing is joined before the page is known. */
function readPage(database: Database, ids: string, params: readonly Param[]): Promise<RefusalRecord[]> {
  const page = `${ids} ${NEWEST_FIRST} limit $1::int offset $2::int`;
  return database.query<RefusalRecord>(
    `select r.*, coalesce(c.id, r.user_id) as end_user_id
     from (select * from refusals where id = any(array(${page}))) r
     left join users u on u.realm = r.realm and u.id = r.user_id left join users c on c.key = u.merged_into
     ${NEWEST_FIRST}`,
    params,
  );
}

function showRefusal(record: RefusalRecord) {
  return {
    userId: record.end_user_id,
    event: record.event,
    reasons: JSON.parse(record.reasons) as RefusalRow["reasons"],
    groupIds: JSON.parse(record.group_ids) as string[],
    count: record.count,
    firstAt: new Date(record.first_at_ms).toISOString(),
    lastAt: new Date(record.last_at_ms).toISOString(),
  };
}
