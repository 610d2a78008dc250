// The content of the export document of a person, in pages of rows, newest first.

import type { ConsentScope } from "../../domain/state/user.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Database } from "../database.ts";
import { type EventRecord, PREVIEWS, selectFrom } from "./feed.ts";
import { newestOf, queryInOrder } from "./user_keys.ts";

/** The place of a row in a list: its time, then its id. */
export interface Place {
  readonly at_ms: Millis;
  readonly id: string;
}

export interface AnalyticsRecord extends Place {
  readonly event: string;
  readonly properties: string;
}

export interface ConsentRecord extends Place {
  readonly action: "opt_out" | "opt_in";
  readonly scope: ConsentScope;
}

/** Lists people and all people merged into them. */
export async function listMergedPeople(
  database: Database,
  personIds: readonly string[],
): Promise<string[]> {
  const people = await database.query<{ id: string }>(
    "select id from people where id = any($1::text::text[]) or merged_into = any($1::text::text[]) order by id",
    [arrayText(personIds)],
  );
  return people.map(({ id }) => id);
}

/** Reads captured events of one person, before a place. */
export function readCaptured(
  database: Database,
  personId: string,
  { at_ms, id }: Place,
  limit: number,
): Promise<AnalyticsRecord[]> {
  return queryInOrder<AnalyticsRecord>(
    database,
    `select id, at_ms, event, properties from analytics_events
     where person_id = $1 and (at_ms, id) < ($2::bigint, $3) order by at_ms desc, id desc limit $4::int`,
    [personId, at_ms, id, limit],
  );
}

/**
 * Reads metering events, before a place, of every user of these ids. The users are found anew for each page, in the same
 * statement, because a history move may be moving rows from an alias to its user.
 */
export function readMetered(
  database: Database,
  realm: number,
  ids: readonly string[],
  { at_ms, id }: Place,
  limit: number,
): Promise<EventRecord[]> {
  const rows = newestOf({
    table: "events",
    time: "created_at_ms",
    columns: "*",
    owners: "select key from owners",
    after: "$3::bigint, $4::text",
    limit: `${limit}`,
  });
  const text = `with canonical as (
      select coalesce(merged_into, key) as key from users where realm = $1::int and id = any($2::text::text[])
    ), owners as (
      select key from canonical union
      select a.key from canonical join users a on a.merged_into = canonical.key
      join history_moves h on h.user_key = a.key
    ), page as (
      ${rows} order by created_at_ms desc, id desc limit ${limit}
    ) ${selectFrom("page", PREVIEWS)} order by e.created_at_ms desc, e.id desc`;
  return queryInOrder<EventRecord>(database, text, [realm, arrayText(ids), at_ms, id]);
}

/** The key of a share within its user; empty texts come before all. */
export type SharePlace = Pick<ShareRecord, "user_key" | "account_key" | "group_id" | "unit" | "start_ms">;

/** What a user used of a limit group of a user above. */
export interface ShareRecord {
  readonly user_key: number;
  readonly account_key: number;
  readonly group_id: string;
  readonly unit: string;
  readonly start_ms: Millis;
  readonly end_ms: Millis | null;
  readonly count: string;
  readonly cost_cents: string;
}

/** Reads shares of every user of these ids, after a place. */
export function readShares(
  database: Database,
  realm: number,
  ids: readonly string[],
  { user_key, account_key, group_id, unit, start_ms }: SharePlace,
  limit: number,
): Promise<ShareRecord[]> {
  return database.query<ShareRecord>(
    `select user_key, account_key, group_id, unit, window_start_ms as start_ms, window_end_ms as end_ms,
       count::text as count, cost_cents::text as cost_cents
     from shares where user_key = any(array(
       select coalesce(merged_into, key) from users where realm = $1::int and id = any($2::text::text[])
     )) and (count > 0 or cost_cents > 0)
       and (user_key, account_key, group_id, unit, window_start_ms) > ($3::bigint, $4::bigint, $5, $6, $7::bigint)
     order by user_key, account_key, group_id, unit, window_start_ms limit $8::int`,
    [realm, arrayText(ids), user_key, account_key, group_id, unit, start_ms, limit],
  );
}

/** Reads consent entries of these ids, before a place. */
export function readConsents(
  database: Database,
  realm: number,
  ids: readonly string[],
  before: Place,
  limit: number,
): Promise<ConsentRecord[]> {
  return database.query<ConsentRecord>(
    `select id, at_ms, action, scope from consents
     where realm = $1::int and distinct_id = any($2::text::text[]) and (at_ms, id) < ($3::bigint, $4::text)
     order by at_ms desc, id desc limit $5::int`,
    [realm, arrayText(ids), before.at_ms, before.id, limit],
  );
}

/** A key of a user, without what it is checked by. */
export interface KeyRecord {
  readonly id: string;
  readonly name: string | null;
  readonly created_at_ms: Millis;
  readonly expires_at_ms: Millis | null;
  readonly last_used_at_ms: Millis | null;
}

/** Reads the keys, of the users of these ids, that are not revoked. */
export function readKeys(database: Database, realm: number, ids: readonly string[]): Promise<KeyRecord[]> {
  return database.query<KeyRecord>(
    `select k.id, k.name, k.created_at_ms, k.expires_at_ms, k.last_used_at_ms
     from end_user_keys k
     where k.user_key in (select coalesce(merged_into, key) from users
       where realm = $1::int and id = any($2::text::text[])) and k.revoked_at_ms is null
     order by k.created_at_ms desc, k.id desc`,
    [realm, arrayText(ids)],
  );
}
