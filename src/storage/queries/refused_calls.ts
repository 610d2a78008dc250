// Refused calls, counted by user, event, reasons and hour. Callers first wait for the drain, and for a write of the counts
// in memory.

import type { RefusalRow } from "../../domain/state/refused_call.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database, type Param } from "../database.ts";
import { readOfUser } from "./user_keys.ts";

/** Selects the rows of a page. */
interface RefusedCallQuery {
  readonly realm: number;
  /** Rows with a last call up to this moment have expired. */
  readonly keptFrom: Millis;
  readonly userId: string | null;
  readonly event: string | null;
  /** Only rows that this user refused; null for all. */
  readonly refusedBy: string | null;
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
  /** As JSON. */
  refusers: string | null;
}

const NEWEST_FIRST = "order by r.last_at_ms desc, r.id desc";

/**
 * SQL that hides users with a pending erasure; ids without a user are shown. Checked row by row: for a join the planner
 * might join whole tables.
 */
const IS_SHOWN = `coalesce((select not (u.erasing or c.erasing)
    from users u join users c on c.key = coalesce(u.merged_into, u.key)
    where u.realm = r.realm and u.id = r.user_id), true)`;

/** Lists a page of rows, newest last call first; of equal times the later written first. */
export async function listRefusedCalls(database: Database, query: RefusedCallQuery) {
  const { realm, userId, refusedBy } = query;
  const refusers = refusedBy === null ? null : await namesOf(database, realm, refusedBy);
  if (userId === null) return (await pageOfRealm(database, query, refusers)).map(showRefusal);
  const [known] = await database.query<{ key: number; erasing: boolean }>(
    `select c.key, u.erasing or c.erasing as erasing
     from users u join users c on c.key = coalesce(u.merged_into, u.key) where u.realm = $1::int and u.id = $2`,
    [realm, userId],
  );
  if (known?.erasing === true) return [];
  const records = known === undefined
    ? await pageOfUser(database, query, refusers, "select $5::text", userId)
    : await readOfUser(database, known.key, (owners) => pageOfUser(database, query, refusers, IDS, owners));
  return records.map(showRefusal);
}

/** The ids of a user: its own and those of its aliases. A row may have any of them. */
async function namesOf(database: Database, realm: number, id: string): Promise<string> {
  const rows = await database.query<{ id: string }>(
    `with asked as (
       select coalesce(merged_into, key) as key from users where realm = $1::int and id = $2
     )
     select u.id from users u join asked a on u.key = a.key or u.merged_into = a.key`,
    [realm, id],
  );
  return arrayText([id, ...rows.map((row) => row.id)]);
}

/** SQL of the ids under which rows of a user may be: rows of an alias keep its id until they have moved. */
const IDS = "select id from users where key = any($5::text::bigint[])";

function pageOfRealm(
  database: Database,
  { realm, keptFrom, event, limit, offset }: RefusedCallQuery,
  refusers: string | null,
) {
  const params: Param[] = [limit, offset, realm, keptFrom];
  const ofEvent = event === null ? "" : `and r.event = $${params.push(event)}`;
  const byThem = refusers === null ? "" : `and r.refused_by && $${params.push(refusers)}::text::text[]`;
  return readPage(
    database,
    `select r.id from refusals r
     where r.realm = $3::int and r.last_at_ms > $4::bigint ${ofEvent} ${byThem} and ${IS_SHOWN}`,
    params,
  );
}

/**
 * Makes SQL that reads each owner as a range in the order of the index: for an owner of a large part of all rows the
 * planner would otherwise read and sort them all.
 *
 * @param ids SQL of the ids, made of $5
 */
function pageOfUser(
  database: Database,
  { realm, keptFrom, event, limit, offset }: RefusedCallQuery,
  refusers: string | null,
  ids: string,
  owners: string,
) {
  const params: Param[] = [limit, offset, realm, keptFrom, owners];
  const ofEvent = event === null ? "" : `and event = $${params.push(event)}`;
  const byThem = refusers === null ? "" : `and refused_by && $${params.push(refusers)}::text::text[]`;
  return readPage(
    database,
    `select r.id from (${ids}) as owner(id) cross join lateral (
       select id, last_at_ms from refusals where realm = $3::int and user_id >= owner.id and user_id <= owner.id
         and last_at_ms > $4::bigint ${ofEvent} ${byThem}
       order by user_id, last_at_ms desc, id desc limit $1::int + $2::int
     ) as r`,
    params,
  );
}

/** Reads the page of these ids; the limit is $1, the offset $2. No join runs before the page is known. */
function readPage(database: Database, ids: string, params: readonly Param[]): Promise<RefusalRecord[]> {
  const page = `${ids} ${NEWEST_FIRST} limit $1::int offset $2::int`;
  return database.query<RefusalRecord>(
    `select r.*, to_json(r.refused_by)::text as refusers, coalesce(c.id, r.user_id) as end_user_id
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
    ...record.refusers === null ? {} : { refusedBy: JSON.parse(record.refusers) as string[] },
    count: record.count,
    firstAt: new Date(record.first_at_ms).toISOString(),
    lastAt: new Date(record.last_at_ms).toISOString(),
  };
}
