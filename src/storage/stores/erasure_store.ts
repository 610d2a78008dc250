// Erasures: their jobs, and the removal of users' rows and of their ids elsewhere.

import type { UserKey } from "../../domain/values/ids.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, isAmong, type Session } from "../database.ts";
import { HISTORY, reservationIdsOf, someRowsOf, someSettled } from "./history_tables.ts";

type Reader = Pick<Session, "query">;

/** An unfinished job. */
export interface OpenJob {
  readonly id: string;
  readonly realm: number;
  readonly distinctIds: readonly string[];
  /** Whether it has not begun. */
  readonly isQueued: boolean;
}

/** The status of a job. */
export interface JobRecord {
  status: "queued" | "in_progress" | "completed" | "failed";
  requested_at_ms: Millis;
  started_at_ms: Millis | null;
  completed_at_ms: Millis | null;
  error_message: string | null;
}

export async function insertJob(
  session: Session,
  job: Omit<OpenJob, "isQueued"> & { readonly at: Millis },
): Promise<void> {
  await session.query(
    `insert into erasure_jobs (id, realm, status, distinct_ids, requested_at_ms)
     values ($1, $2::int, 'queued', $3, $4::bigint)`,
    [job.id, job.realm, JSON.stringify(job.distinctIds), job.at],
  );
}

/** Lists the unfinished jobs of some realms, oldest first. */
export async function listOpenJobs(reader: Reader, realms: readonly number[]): Promise<OpenJob[]> {
  const rows = await reader.query<{ id: string; realm: number; distinct_ids: string; queued: boolean }>(
    `select id, realm, distinct_ids, status = 'queued' as queued
     from erasure_jobs where status in ('queued', 'in_progress') and ${isAmong("realm", "$1")}
     order by requested_at_ms, id`,
    [arrayText(realms)],
  );
  return rows.map(({ id, realm, distinct_ids: ids, queued }) => ({
    id,
    realm,
    distinctIds: JSON.parse(ids) as string[],
    isQueued: queued,
  }));
}

/** Marks a job as begun and stores the ids that it covers; has no effect on a finished job. */
export async function startJob(
  session: Session,
  id: string,
  ids: readonly string[],
  at: Millis,
): Promise<void> {
  await session.query(
    `update erasure_jobs set status = 'in_progress', distinct_ids = $2,
     started_at_ms = coalesce(started_at_ms, $3::bigint) where id = $1 and completed_at_ms is null`,
    [id, JSON.stringify(ids), at],
  );
}

/** Finishes a job and removes its ids; returns false if it was finished before. */
export async function finishJob(
  session: Session,
  id: string,
  at: Millis,
  fault: string | null,
): Promise<boolean> {
  const finished = await session.query(
    `update erasure_jobs set status = $2, distinct_ids = null, completed_at_ms = $3::bigint, error_message = $4
     where id = $1 and completed_at_ms is null returning 1`,
    [id, fault === null ? "completed" : "failed", at, fault],
  );
  return finished.length > 0;
}

/** Finds a job of a realm, or null. */
export async function findJob(reader: Reader, realm: number, id: string): Promise<JobRecord | null> {
  const [row] = await reader.query<JobRecord>(
    "select * from erasure_jobs where id = $1 and realm = $2::int",
    [id, realm],
  );
  return row ?? null;
}

/** Finds the canonical user of an id, with all of its aliases. */
export async function findUsers(
  reader: Reader,
  realm: number,
  id: string,
): Promise<{ key: UserKey; id: string }[]> {
  return await reader.query<{ key: UserKey; id: string }>(
    `with canonical as (
       select coalesce(merged_into, key) as key from users where realm = $1::int and id = $2
     )
     select key, id from users where key = (select key from canonical)
     union all select key, id from users where merged_into = (select key from canonical)`,
    [realm, id],
  );
}

/** Reads the ids of users. */
export async function idsOfUsers(reader: Reader, keys: readonly UserKey[]): Promise<string[]> {
  const rows = await reader.query<{ id: string }>(
    "select id from users where key = any($1::text::bigint[])",
    [arrayText(keys)],
  );
  return rows.map(({ id }) => id);
}

/** Removes a bounded number of history rows of users; returns how many, 0 when none are left. */
export async function deleteHistory(
  session: Session,
  keys: readonly UserKey[],
  limit: number,
): Promise<number> {
  let removed = 0;
  for (const history of HISTORY) {
    const ids = `any(array(${someRowsOf(history, "$2::bigint")}))`;
    const sql = history.table === "events"
      ? deleteEvents(ids)
      : `delete from ${history.table} where ${history.key} = ${ids} returning 1`;
    removed += (await session.query(sql, [arrayText(keys), limit])).length;
  }
  // A merge leaves messages with the user that they were recorded for.
  const messages = await session.query(
    `delete from webhook_messages where id = any(array(
       select id from webhook_messages where user_key = any($1::text::bigint[])
       order by id limit $2::bigint for update)) returning 1`,
    [arrayText(keys), limit],
  );
  removed += messages.length;
  // Settled reservations are found by the owner in their ids; open ones are removed with the user.
  for (const key of keys) {
    const rows = await session.query(
      `delete from reservations where id = any(array(${someSettled("$3::bigint")})) returning 1`,
      [...reservationIdsOf(key), limit],
    );
    removed += rows.length;
  }
  return removed;
}

/** SQL that deletes events, and keeps what they took from users above as amounts without an event. */
function deleteEvents(ids: string): string {
  return `with gone as (
      delete from events where id = ${ids} returning levels
    ), kept as (
      insert into erased_charges (user_key, plan_id, group_id, window_start_ms, amount, overage)
      select u.key, line ->> 0, line ->> 1, (line ->> 2)::bigint, sum((line ->> 5)::numeric),
        sum(coalesce((line ->> 8)::numeric, 0))
      from gone cross join lateral jsonb_array_elements(levels::jsonb) level
        cross join lateral jsonb_array_elements(level -> 1) line
        join users u on u.key = (level ->> 0)::bigint
      where levels is not null and (line ->> 7 is distinct from 'rate' or exists (
        select from counters c where c.user_key = u.key and c.plan_id = line ->> 0 and c.group_id = line ->> 1
          and c.window_start_ms = (line ->> 2)::bigint))
      group by 1, 2, 3, 4 order by 1, 2, 3, 4
      on conflict (user_key, plan_id, group_id, window_start_ms)
        do update set amount = erased_charges.amount + excluded.amount,
          overage = erased_charges.overage + excluded.overage
    )
    select 1 from gone`;
}

/** Removes the ids of erased users from messages of users above; returns how many, 0 when none are left. */
export async function hideCauses(
  session: Session,
  keys: readonly UserKey[],
  limit: number,
): Promise<number> {
  const rows = await session.query<{ id: string; body: string }>(
    `select id, body from webhook_messages where caused_by = any($1::text::bigint[])
     order by id limit $2::bigint for update`,
    [arrayText(keys), limit],
  );
  await session.query(
    `update webhook_messages m set body = given.body, caused_by = null, recent_attempts = null
     from unnest($1::text::text[], $2::text::text[]) as given(id, body) where m.id = given.id`,
    [arrayText(rows.map(({ id }) => id)), arrayText(rows.map(({ body }) => withoutCause(body)))],
  );
  return rows.length;
}

function withoutCause(body: string): string {
  const { data, ...message } = JSON.parse(body);
  const { causedBy: _, ...kept } = data;
  return JSON.stringify({ ...message, data: kept });
}

/** Locks users until the end of the transaction, also against the history move. */
export async function lockUsers(session: Session, keys: readonly UserKey[]): Promise<void> {
  await session.query("select 1 from users where key = any($1::text::bigint[]) order by key for update", [
    arrayText(keys),
  ]);
}

/** Replaces an id by a keyed hash in its consent entries, which are kept for audits. */
export async function hideConsents(
  session: Session,
  realm: number,
  id: string,
  hash: string,
): Promise<void> {
  await session.query(
    "update consents set distinct_id = null, id_hash = $3 where realm = $1::int and distinct_id = $2",
    [realm, id, hash],
  );
}

/**
 * Removes first answers without a user, such as that of a batch, with one of these ids in their bodies, and takes erased
 * users out of answers to the users below them. Those stay: without them, a call that is sent again would be carried out
 * twice. Takes a step of them after an idempotency key; returns the last key of a full step, null once none are left.
 */
export async function hideInAnswers(
  session: Session,
  realm: number,
  ids: readonly string[],
  limit: number,
  after = "",
): Promise<string | null> {
  const rows = await session.query<{ key: string; body: string }>(
    `with named as (select id from unnest($2::text::text[]) as given(id)), gone as (
       delete from idempotency i using named
       where i.realm = $1::int and i.user_key is null and position(named.id in i.body) > 0
     )
     select i.key, i.body from idempotency i
     where i.realm = $1::int and i.user_key is not null and i.key > $4 and exists (
       select 1 from named
       where position(named.id in i.body) > 0 and (
         position('"userId":' || named.id in i.body) > 0 or position('"parentId":' || named.id in i.body) > 0 or
         position('[' || named.id in i.body) > 0 or position(',' || named.id || ',' in i.body) > 0 or
         position(',' || named.id || ']' in i.body) > 0
       )
     )
     order by i.key limit $3::bigint`,
    [realm, arrayText(ids.map((id) => JSON.stringify(id))), limit, after],
  );
  if (rows.length === 0) return null;
  const gone = new Set(ids);
  await session.query(
    `update idempotency i set body = given.body
     from unnest($2::text::text[], $3::text::text[]) as given(key, body)
     where i.realm = $1::int and i.key = given.key`,
    [
      realm,
      arrayText(rows.map(({ key }) => key)),
      arrayText(rows.map(({ body }) => withoutUsers(body, gone))),
    ],
  );
  return rows.length < limit ? null : rows.at(-1)?.key ?? null;
}

/** Removes first answers without a user, with one of these texts in their idempotency keys. */
export async function deleteAnswersKeyed(
  session: Session,
  realm: number,
  texts: readonly string[],
): Promise<void> {
  await session.query(
    `delete from idempotency i using unnest($2::text::text[]) as named(id)
     where i.realm = $1::int and i.user_key is null and position(named.id in i.key) > 0`,
    [realm, arrayText(texts)],
  );
}

/** An answer without the levels of some users, and without them in paths, among those who refuse, and in texts. */
function withoutUsers(body: string, gone: ReadonlySet<string>): string {
  const isKept = (each: unknown) =>
    typeof each === "string"
      ? !gone.has(each)
      : !gone.has(String((each as { userId?: unknown } | null)?.userId));
  return JSON.stringify(JSON.parse(body, (name, value) => {
    if (["levels", "path", "refusedBy"].includes(name) && Array.isArray(value)) return value.filter(isKept);
    if (name === "parentId" && gone.has(value)) return null;
    const isText = (name === "message" || name === "text") && typeof value === "string";
    return isText ? [...gone].reduce(withoutName, value) : value;
  }));
}

function withoutName(text: string, id: string): string {
  return text.replaceAll(new RegExp(`(?<![\\w-])${RegExp.escape(id)}(?![\\w-])`, "gu"), "an erased user");
}

/** Tables with few rows of a user, or with rows that are not history. */
const OF_USERS = [
  "subscriptions",
  "counters",
  "credit_balances",
  "runs",
  "end_user_keys",
  "top_ups",
  "erased_charges",
  "shares",
  "overage_windows",
  "overage_hours",
  "user_summaries",
  "history_moves",
  "idempotency",
];

/** Removes users with all of their remaining rows. */
export async function deleteUsers(session: Session, keys: readonly UserKey[]): Promise<void> {
  const text = arrayText(keys);
  for (const key of keys) {
    await session.query(
      "delete from reservations where id > $1 and id < $2 and status <> 'held'",
      reservationIdsOf(key),
    );
  }
  await session.query(
    "delete from reservations where user_key = any($1::text::bigint[]) and status = 'held'",
    [text],
  );
  for (const table of OF_USERS) {
    await session.query(`delete from ${table} where user_key = any($1::text::bigint[])`, [text]);
  }
  await session.query(
    "delete from merges where from_key = any($1::text::bigint[]) or to_key = any($1::text::bigint[])",
    [text],
  );
  await session.query("delete from users where key = any($1::text::bigint[])", [text]);
}
