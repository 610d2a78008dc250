// The orders of a list of users: for each, the users with a value in the order of that value, each page from an index. Users
// without a value follow by id. A value and the tie after it are a place, from which the next page continues.

import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { USER_LIST_LIMITS } from "../../process/user_list_limits.ts";
import type { Database, Param } from "../database.ts";
import { endOfRange } from "../prefix_range.ts";

/** What a list is sorted by. */
export type UserSort = "id" | "limit" | "cost" | "refusals" | "lastSeen" | "plan";

/** The place of a user in an order: its value, then what breaks ties. */
export type Place = readonly (number | string)[];

/** The part of a user by which lists are sorted. */
export interface Sorted {
  readonly key: UserKey;
  readonly id: string;
  readonly planId: string | null;
  /** 0 in a window that ended. */
  readonly percent: number;
  readonly until: Millis;
  readonly seenAt: Millis | null;
  readonly costCents: number;
  readonly refusals: number;
}

/** Selects users of a realm. */
export interface Selection {
  readonly realm: number;
  /** The realm's clock. */
  readonly now: Millis;
  readonly isAscending: boolean;
  readonly planId: string | null;
  /** The beginning of their ids; "" for all. */
  readonly startsWith: string;
  /** The least percent of the fullest limit; 0 for all. */
  readonly percentMin: number;
}

/** The place of a user with a value; null for a user without one. */
export const PLACES: Readonly<Record<UserSort, (user: Sorted) => Place | null>> = {
  id: ({ id }) => [id],
  limit: ({ percent, until, key }) => percent === 0 ? null : [percent, until, key],
  cost: ({ costCents, key }) => costCents > 0 ? [costCents, key] : null,
  refusals: ({ refusals, key }) => refusals > 0 ? [refusals, key] : null,
  lastSeen: ({ seenAt, key }) => seenAt === null ? null : [seenAt, key],
  plan: ({ planId, id }) => planId === null ? null : [planId, id],
};

/** Reads the next users with a value, after a place. */
type ReadOrder = (
  database: Pick<Database, "query">,
  selection: Selection,
  after: Place | null,
  limit: number,
) => Promise<UserKey[]>;

/** The orders that an index has; those of sums are made of their leaders (user_list_sums.ts). */
export const ORDERS: Readonly<Record<Exclude<UserSort, "cost" | "refusals">, ReadOrder>> = {
  id: (database, selection, after, limit) => {
    const { realm, startsWith, isAscending } = selection;
    const params: Param[] = [realm, limit, startsWith];
    const end = endOfRange(startsWith);
    const isBefore = end === null ? "" : `and id < $${params.push(end)}`;
    const next = after === null
      ? ""
      : `and id ${isAscending ? ">" : "<"} $${params.push(after[0] as string)}`;
    return keysOf(
      database,
      `select key from users where realm = $1::int and id >= $3 ${isBefore} ${next}
       order by id ${directionOf(selection)} limit $2::int`,
      params,
    );
  },
  limit: byFullest,
  lastSeen: (database, selection, after, limit) =>
    keysOf(
      database,
      `select user_key as key from user_summaries where realm = $1::int and seen_at_ms is not null
       ${after === null ? "" : `and (seen_at_ms, user_key) ${nextOf(selection)} ($3::bigint, $4::bigint)`}
       order by seen_at_ms ${directionOf(selection)}, user_key ${directionOf(selection)} limit $2::int`,
      [selection.realm, limit, ...after ?? []],
    ),
  plan: (database, selection, after, limit) => {
    const params: Param[] = [selection.realm, limit];
    const ofPlan = selection.planId === null ? "" : `and held_plan_id = $${params.push(selection.planId)}`;
    const next = after === null
      ? ""
      : `and (held_plan_id, id) ${nextOf(selection)} ($${params.push(after[0] as string)}, $${
        params.push(after[1] as string)
      })`;
    return keysOf(
      database,
      `select key from users where realm = $1::int and ${HAS_PLAN} ${ofPlan} ${next}
       order by held_plan_id ${directionOf(selection)}, id ${directionOf(selection)} limit $2::int`,
      params,
    );
  },
};

/** SQL of the condition that a user is no alias and has a plan. */
const HAS_PLAN = "held_plan_id is not null and held_until_ms is null and merged_into is null";

/**
 * Reads users by their fullest limit. A window that has ended reads 0, so the index is read in one range for each percent
 * that there is: the windows of that percent that still run.
 */
function byFullest(
  database: Pick<Database, "query">,
  selection: Selection,
  after: Place | null,
  limit: number,
): Promise<UserKey[]> {
  const { realm, now, percentMin } = selection;
  const [next, direction] = [nextOf(selection), directionOf(selection)];
  const level = (where: string) =>
    `(select percent from user_summaries
      where realm = $1::int and percent > 0 and percent >= $3::int ${where} order by percent ${direction} limit 1)`;
  return keysOf(
    database,
    `with recursive levels(percent) as (
       ${level(after === null ? "" : `and percent ${next}= $5::bigint`)}
       union all select ${level(`and percent ${next} levels.percent`)} from levels where percent is not null
     )
     select found.key from levels cross join lateral (
       select user_key as key from user_summaries
       where realm = $1::int and percent > 0 and percent = levels.percent and until_ms > $4::bigint
       ${
      after === null ? "" : `and (percent, until_ms, user_key) ${next} ($5::bigint, $6::bigint, $7::bigint)`
    }
       order by until_ms ${direction}, user_key ${direction} limit $2::int
     ) found limit $2::int`,
    [realm, limit, percentMin, now, ...after ?? []],
  );
}

/** Reads users who are no aliases by their ids. */
export function byId(
  database: Pick<Database, "query">,
  { realm }: Selection,
  after: Place | null,
  limit: number,
): Promise<UserKey[]> {
  return keysOf(
    database,
    `select key from users where realm = $1::int and merged_into is null and id > $3 order by id limit $2::int`,
    [realm, limit, after?.[0] ?? ""],
  );
}

/**
 * Finds the users of a filter where they are few, so that any order of them is exact.
 *
 * @returns null where no filter of the selection has so few users
 */
export async function fewOf(
  database: Pick<Database, "query">,
  selection: Selection,
  hitSince: Millis | null,
): Promise<readonly UserKey[] | null> {
  const limit = USER_LIST_LIMITS.fewUsersMax + 1;
  const reads: (() => Promise<readonly UserKey[]>)[] = [];
  if (selection.startsWith !== "") reads.push(() => ORDERS.id(database, selection, null, limit));
  if (selection.percentMin > 0) reads.push(() => byFullest(database, selection, null, limit));
  if (selection.planId !== null) reads.push(() => ORDERS.plan(database, selection, null, limit));
  if (hitSince !== null) reads.push(() => refusedUsers(database, selection.realm, hitSince));
  for (const read of reads) {
    const keys = await read();
    if (keys.length < limit) return keys;
  }
  return null;
}

/** Lists users with refusals since a moment; too many of them where their rows are too many to read. */
async function refusedUsers(
  database: Pick<Database, "query">,
  realm: number,
  since: Millis,
): Promise<UserKey[]> {
  const { fewUsersMax, fewRefusalsMax } = USER_LIST_LIMITS;
  // Without rows beyond the bound the inner query is not run.
  return await keysOf(
    database,
    `with beyond as materialized (
       select 0 as key from refusals where realm = $1::int and last_at_ms > $3::bigint
       order by last_at_ms desc, id desc limit 1 offset ${fewRefusalsMax - 1}
     )
     select key from (
       select distinct coalesce(u.merged_into, u.key) as key from (
         select distinct user_id from refusals where realm = $1::int and last_at_ms > $3::bigint
       ) as n join users u on u.realm = $1::int and u.id = n.user_id
     ) as few where not exists (select from beyond)
     union all select beyond.key from beyond cross join generate_series(1, $2::int)
     limit $2::int`,
    [realm, fewUsersMax + 1, since],
  );
}

async function keysOf(
  database: Pick<Database, "query">,
  sql: string,
  params: readonly Param[],
): Promise<UserKey[]> {
  const rows = await database.query<{ key: UserKey }>(sql, params);
  return rows.map(({ key }) => key);
}

function directionOf({ isAscending }: Selection): string {
  return isAscending ? "asc" : "desc";
}

function nextOf({ isAscending }: Selection): string {
  return isAscending ? ">" : "<";
}
