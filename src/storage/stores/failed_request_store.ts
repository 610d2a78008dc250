// Failed requests. Alike requests of a key and hour share a row. Any process writes rows, in bulk; they are removed by
// erasures, by age, and beyond the number of an app.

import { type FailedRequestRow, REQUEST_IDS_MAX } from "../../domain/state/failed_request.ts";
import type { Millis } from "../../domain/values/period.ts";
import { arrayText, type Session } from "../database.ts";

/**
 * Adds rows. What the newest request sent is left out where an erasure in its app and mode is open, or has ended since: it might
 * bring an erased user back.
 */
export async function addFailedRequests(session: Session, rows: readonly FailedRequestRow[]): Promise<void> {
  const column = (read: (row: FailedRequestRow) => string | number | null) => arrayText(rows.map(read));
  const newest = (name: string) =>
    `${name} = case when excluded.last_at_ms >= f.last_at_ms then excluded.${name} else f.${name} end`;
  await session.query(
    `insert into failed_requests as f (app_id, mode, key_id, key_prefix, method, route, status, code, hour_ms, count,
       first_at_ms, last_at_ms, request_ids, path, message, user_id, body)
     select app_id, mode, key_id, key_prefix, method, route, status, code, hour_ms, count, first_at_ms, last_at_ms,
       request_ids::text[], case when not erased then path end, case when not erased then message end,
       case when not erased then user_id end, case when not erased then body end
     from unnest($1::text::text[], $2::text::text[], $3::text::text[], $4::text::text[], $5::text::text[],
       $6::text::text[], $7::text::int[], $8::text::text[], $9::text::bigint[], $10::text::bigint[],
       $11::text::bigint[], $12::text::bigint[], $13::text::text[], $14::text::text[], $15::text::text[],
       $16::text::text[], $17::text::text[], $18::text::bigint[]
     ) as given(app_id, mode, key_id, key_prefix, method, route, status, code, hour_ms, count, first_at_ms,
       last_at_ms, request_ids, path, message, user_id, body, realm_at_ms)
     cross join lateral (select exists (
       select 1 from realms r join erasure_jobs j on j.realm = r.realm
       where r.app_id = given.app_id and r.mode = given.mode
         and (j.completed_at_ms is null or j.completed_at_ms >= given.realm_at_ms)) as erased) e
     order by app_id, mode, key_id, method, route, status, code, hour_ms
     on conflict (app_id, mode, key_id, method, route, status, code, hour_ms) do update set
       count = f.count + excluded.count,
       first_at_ms = least(f.first_at_ms, excluded.first_at_ms),
       last_at_ms = greatest(f.last_at_ms, excluded.last_at_ms),
       request_ids = (excluded.request_ids || f.request_ids)[1:${REQUEST_IDS_MAX}],
       ${["path", "message", "user_id", "body"].map(newest).join(", ")}`,
    [
      column(({ appId }) => appId),
      column(({ mode }) => mode),
      column(({ keyId }) => keyId),
      column(({ keyPrefix }) => keyPrefix),
      column(({ method }) => method),
      column(({ route }) => route),
      column(({ status }) => status),
      column(({ code }) => code),
      column(({ hour }) => hour),
      column(({ count }) => count),
      column(({ firstAt }) => firstAt),
      column(({ lastAt }) => lastAt),
      column(({ requestIds }) => arrayText(requestIds)),
      column(({ path }) => path),
      column(({ message }) => message),
      column(({ userId }) => userId),
      column(({ body }) => body),
      column(({ realmAt }) => realmAt),
    ],
  );
}

/** Removes the oldest rows of apps beyond so many each. */
export async function trimFailedRequests(
  session: Session,
  appIds: readonly string[],
  rowsMax: number,
): Promise<void> {
  await session.query(
    `delete from failed_requests where id = any(array(
       select beyond.id from unnest($1::text::text[]) as owner(id) cross join lateral (
         select id from failed_requests where app_id = owner.id
         order by last_at_ms desc, id desc offset $2::int for update skip locked
       ) as beyond))`,
    [arrayText(appIds), rowsMax],
  );
}

/** Removes some rows with a last request up to a moment; returns how many. */
export async function deleteOldFailedRequests(
  session: Session,
  before: Millis,
  limit: number,
): Promise<number> {
  const rows = await session.query(
    `delete from failed_requests where id = any(array(
       select id from failed_requests where last_at_ms <= $1::bigint
       order by last_at_ms limit $2::int for update skip locked))
     returning 1`,
    [before, limit],
  );
  return rows.length;
}

/**
 * Removes the rows whose newest request was about one of these ids of users, or named it: as a text of its body, also one that
 * is cut off, or as a part of its path. Writes under way come first; later ones see the job of the erasure.
 */
export async function eraseFailedRequests(
  session: Session,
  realm: number,
  ids: readonly string[],
): Promise<void> {
  await session.query("lock table failed_requests in share row exclusive mode", []);
  await session.query(
    `delete from failed_requests f using realms r
     where r.realm = $1::int and f.app_id = r.app_id and f.mode = r.mode and (f.user_id = any($2::text::text[])
       or exists (select 1 from unnest($3::text::text[]) as named(text)
         where strpos(f.body, named.text) > 0
           or starts_with(named.text, substring(f.body from '"[^"]+$')))
       or exists (select 1 from unnest($4::text::text[]) as part(text) where strpos(f.path || '/', part.text) > 0))`,
    [
      realm,
      arrayText(ids),
      arrayText(ids.map((id) => JSON.stringify(id))),
      arrayText(ids.map((id) => `/${encodeURIComponent(id)}/`)),
    ],
  );
}
