// The audit log: writes and sign-ins through console and admin API. A trigger allows only inserts, except that an erasure
// replaces the ids of its users and removes the values. Failed sign-ins are in a table of their own, which is kept short.

import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** A write or sign-in that has begun. */
interface BegunRow {
  readonly id: string;
  readonly at: Millis;
  readonly who: string;
  readonly via: "console" | "api";
  /** The write by its name in the API reference, such as "createKey". */
  readonly what: string;
  readonly appId: string | null;
  readonly mode: "live" | "test" | null;
  readonly userId: string | null;
}

/** An entry of the log: `before` and `after` are each a JSON object of short values, or null. */
export interface AuditRow extends BegunRow {
  readonly before: string | null;
  readonly after: string | null;
}

const BEGUN_COLUMNS = "id, at_ms, who, via, what, app_id, mode, user_id";

function paramsOf({ id, at, who, via, what, appId, mode, userId }: BegunRow) {
  return [id, at, who, via, what, appId, mode, userId];
}

/** Adds a row. */
export async function insertAudit(session: Session, row: AuditRow): Promise<void> {
  await session.query(
    `insert into audit (${BEGUN_COLUMNS}, before, after)
     values ($1, $2::bigint, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [...paramsOf(row), row.before, row.after],
  );
}

/** Records that a write has begun, so that it is in the log even if its process dies before it ends. */
export async function beginAudit(session: Session, row: BegunRow): Promise<void> {
  await session.query(
    `insert into audit_begun (${BEGUN_COLUMNS}) values ($1, $2::bigint, $3, $4, $5, $6, $7, $8)`,
    paramsOf(row),
  );
}

/**
 * Moves writes into the log that never ended because their process died.
 *
 * @param sinceMs how long ago they began, at least
 * @param after the `after` of their entries
 */
export async function adoptBegun(session: Session, sinceMs: Millis, after: string): Promise<void> {
  await session.query(
    `with begun as (
       delete from audit_begun
       where begun_ms <= (extract(epoch from clock_timestamp()) * 1000)::bigint - $1::bigint returning *)
     insert into audit (${BEGUN_COLUMNS}, before, after)
     select ${BEGUN_COLUMNS}, null, case when erased then null else $2 end from begun`,
    [sinceMs, after],
  );
}

/** Moves an ended write into the log, without its values if its user was erased meanwhile. */
export async function endAudit(
  session: Session,
  { id, appId, before, after }: Pick<AuditRow, "id" | "appId" | "before" | "after">,
): Promise<void> {
  await session.query(
    `with begun as (delete from audit_begun where id = $1 returning *)
     insert into audit (${BEGUN_COLUMNS}, before, after)
     select id, at_ms, who, via, what, coalesce(app_id, $2), mode, user_id,
       case when erased then null else $3 end, case when erased then null else $4 end
     from begun`,
    [id, appId, before, after],
  );
}

/** Removes a write that was refused and wrote nothing. */
export async function dropBegun(session: Session, id: string): Promise<void> {
  await session.query("delete from audit_begun where id = $1", [id]);
}

/** Selects the entries of a page of the log. */
interface AuditFilter {
  readonly appId: string | null;
  readonly userId: string | null;
  /** The last id of the previous page; null for the first page. */
  readonly before: string | null;
  readonly limit: number;
}

interface StoredRow {
  readonly id: string;
  readonly at_ms: Millis;
  readonly who: string;
  readonly via: "console" | "api";
  readonly what: string;
  readonly app_id: string | null;
  readonly mode: "live" | "test" | null;
  readonly user_id: string | null;
  readonly before: string | null;
  readonly after: string | null;
}

/** The wrong tokens of an address within a minute. */
export interface FailedSignIn {
  /** The id of its entry in the log. */
  readonly id: string;
  /** When the minute began. */
  readonly minute: Millis;
  readonly address: string;
  readonly via: "console" | "api";
  readonly count: number;
}

/** Adds counts to the rows of their addresses and minutes. */
export async function addFailedSignIns(session: Session, rows: readonly FailedSignIn[]): Promise<void> {
  const column = (name: keyof FailedSignIn) => arrayText(rows.map((row) => String(row[name])));
  await session.query(
    `insert into failed_sign_ins as f (minute_ms, address, id, via, count)
     select * from unnest($1::text::bigint[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::bigint[])
     on conflict (minute_ms, address) do update set count = f.count + excluded.count`,
    [column("minute"), column("address"), column("id"), column("via"), column("count")],
  );
}

/** Removes up to `limit` rows of minutes before a moment; returns how many. */
export async function deleteOldFailedSignIns(
  session: Session,
  before: Millis,
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from failed_sign_ins where minute_ms <= $1::bigint and (minute_ms, address) in (
       select minute_ms, address from failed_sign_ins order by minute_ms limit $2::int)
     returning 1`,
    [before, limit],
  );
  return rows.length;
}

/** Failed sign-ins as entries of the log. */
const FAILED = `select id, minute_ms as at_ms, 'unknown' as who, via, 'signInFailed' as what, null as app_id,
    null as mode, null as user_id, null as before,
    json_build_object('address', address, 'count', count)::text as after
  from failed_sign_ins`;

/** Reads a page of the log, newest first. Every combination of filters is a range of one index. */
export async function listAudit(
  reader: Reader,
  { appId, userId, before, limit }: AuditFilter,
): Promise<AuditRow[]> {
  const params: (string | number)[] = [limit];
  const conditions: string[] = [];
  const add = (condition: string, value: string) => conditions.push(`${condition} $${params.push(value)}`);
  if (appId !== null) add("app_id =", appId);
  if (userId !== null) add("user_id =", userId);
  if (before !== null) add("id <", before);
  const where = conditions.length === 0 ? "" : `where ${conditions.join(" and ")}`;
  const page = (rows: string) => `${rows} ${where} order by id desc limit $1::int`;
  // A failed sign-in is about no app and no user.
  const statement = appId === null && userId === null
    ? `select * from ((${page("select * from audit")}) union all (${page(FAILED)})) entries
       order by id desc limit $1::int`
    : page("select * from audit");
  const rows = await reader.query<StoredRow>(statement, params);
  return rows.map(({ at_ms: at, app_id: appId, user_id: userId, ...row }) => ({ ...row, at, appId, userId }));
}

/**
 * Replaces ids of users of a realm by keyed hashes, and removes the values of their entries. Writes under way come first:
 * a write that ends in between is then found in the log.
 */
export async function hideInAudit(
  session: Session,
  realm: number,
  hashes: ReadonlyMap<string, string>,
): Promise<void> {
  const params = [realm, arrayText([...hashes.keys()]), arrayText([...hashes.values()])];
  const hidden = (table: string, texts: string) =>
    `update ${table} a set user_id = hidden.hash, ${texts}
     from unnest($2::text::text[], $3::text::text[]) as hidden(id, hash), realms r
     where r.realm = $1::int and a.app_id = r.app_id and a.mode = r.mode and a.user_id = hidden.id`;
  await session.query("select set_config('holdfast.erasing', 'on', true)", []);
  await session.query(hidden("audit_begun", "erased = true"), params);
  await session.query(hidden("audit", "before = null, after = null"), params);
  await session.query("select set_config('holdfast.erasing', 'off', true)", []);
}
