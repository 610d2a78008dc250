// The tree of users as the tables have it. Callers wait for the drain first. The key of a parent may be that of an alias.

import { Buffer } from "node:buffer";
import type { UserKey } from "../../domain/values/ids.ts";
import { arrayText, type Database } from "../database.ts";

/** SQL of the users directly below each user of a list, also below its aliases. */
const belowEach = (list: string) =>
  `${list} b join users n on n.key = b.key or n.merged_into = b.key
   join users c on c.parent_key = n.key and c.merged_into is null`;

/** Lists the numbers of some users below a user, the nearest first. */
export async function keysBelow(
  database: Pick<Database, "query">,
  realm: number,
  userId: string,
  limit: number,
): Promise<UserKey[]> {
  const rows = await database.query<{ key: UserKey }>(
    `with recursive own (key) as (
       select coalesce(merged_into, key) from users where realm = $1::int and id = $2
     ), below (key) as (
       select c.key from ${belowEach("own")} union select c.key from ${belowEach("below")}
     )
     select key from below limit $3::int`,
    [realm, userId, limit],
  );
  return rows.map(({ key }) => key);
}

/**
 * Counts the users on the longest way down from a user, without itself.
 *
 * @param keys the numbers of the user and its aliases
 * @param most where to stop: the tree cannot be deeper than a path is long
 */
export async function heightBelow(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
  most: number,
): Promise<number> {
  const [row] = await database.query<{ height: number | null }>(
    `with recursive below (key, height) as (
       select c.key, 1 from users c where c.parent_key = any($1::text::bigint[]) and c.merged_into is null
       union
       select c.key, b.height + 1 from ${belowEach("below")} where b.height < $2::int
     )
     select max(height) as height from below`,
    [arrayText(keys), most],
  );
  return row?.height ?? 0;
}

/** Whether any user of a realm has a parent. */
export async function hasTree(database: Pick<Database, "query">, realm: number): Promise<boolean> {
  const rows = await database.query(
    "select 1 from users where realm = $1::int and parent_key is not null limit 1",
    [realm],
  );
  return rows.length > 0;
}

/** Counts the direct children of a user, by the numbers of the user and its aliases. */
export async function countChildren(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
): Promise<number> {
  const [row] = await database.query<{ children: number }>(
    `select count(*)::int as children from users
     where parent_key = any($1::text::bigint[]) and merged_into is null`,
    [arrayText(keys)],
  );
  return row?.children ?? 0;
}

/** Lists the ids of some direct children of a user. */
export async function someChildren(
  database: Pick<Database, "query">,
  keys: readonly UserKey[],
  limit: number,
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `select id from users where parent_key = any($1::text::bigint[]) and merged_into is null
     order by key limit $2::int`,
    [arrayText(keys), limit],
  );
  return rows.map(({ id }) => id);
}

/** A page of the children of a user. */
export interface ChildrenQuery {
  /** The numbers of the user and its aliases. */
  readonly keys: readonly UserKey[];
  /** The last id of the previous page; null for the first page. */
  readonly after: string | null;
  readonly limit: number;
}

/** Lists a page of direct children by id, each with the number of its own children, and the cursor of the next page. */
export async function listChildren(database: Pick<Database, "query">, { keys, after, limit }: ChildrenQuery) {
  const rows = await database.query<{ id: string; children: number }>(
    // Row by row along the index: the planner would read all users with a parent where one of them has very many below.
    `with page as (
       select c.key, c.id from unnest($1::text::bigint[]) as own(key) cross join lateral (
         select key, id from users where parent_key = own.key and id > $2 and merged_into is null
         order by id limit $3::int
       ) c order by c.id limit $3::int
     )
     select p.id, (
       select count(*)::int from (
         select p.key union all select a.key from users a where a.merged_into = p.key
       ) as own cross join lateral (
         select from users where parent_key = own.key and merged_into is null offset 0
       ) c
     ) as children from page p order by p.id`,
    [arrayText(keys), after ?? "", limit + 1],
  );
  const children = rows.slice(0, limit).map(({ id, children: count }) => ({ userId: id, children: count }));
  const last = children.at(-1);
  return { children, cursor: rows.length > limit && last !== undefined ? cursorOf(last.userId) : null };
}

/** Decodes a cursor; undefined if it is invalid. */
export function readChildrenCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, "base64url").toString();
  return id !== "" && !id.includes("\0") && cursorOf(id) === cursor ? id : undefined;
}

function cursorOf(id: string): string {
  return Buffer.from(id).toString("base64url");
}
