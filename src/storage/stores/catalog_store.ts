// Catalogs: those in force, the versions that are kept, and the use of their plans and packs.

import type { CatalogDocument } from "../../domain/catalog/catalog.ts";
import type { Millis } from "../../domain/values/period.ts";
import { CATALOG_LIMITS } from "../../process/catalog_limits.ts";
import type { AppliedCatalog, CatalogVersion } from "../rows/registry_rows.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

/** Reads catalogs that were written after a version of the registry. */
export async function readCatalogs(reader: Reader, since: number): Promise<AppliedCatalog[]> {
  const rows = await reader.query<
    Pick<AppliedCatalog, "appId" | "mode" | "version" | "removed"> & {
      document: string;
      planOrder: string;
      priceRows: string | null;
      rateRows: string | null;
    }
  >(
    `select app_id as "appId", 'live' as mode, version, document, plan_order as "planOrder",
       price_rows as "priceRows", rate_rows as "rateRows", false as removed
     from catalogs where changed_in > $1::bigint
     union all
     select app_id, 'test', version, document, plan_order, price_rows, rate_rows, removed
     from test_catalogs where changed_in > $1::bigint`,
    [since],
  );
  return rows.map((row) => {
    const document: CatalogDocument = JSON.parse(row.document);
    const priceRows = row.priceRows === null ? document.models ?? [] : JSON.parse(row.priceRows);
    const rateRows = row.rateRows === null ? [] : JSON.parse(row.rateRows);
    return { ...row, document, planOrder: JSON.parse(row.planOrder), priceRows, rateRows };
  });
}

const SAVE_LIVE =
  `insert into catalogs (app_id, version, document, plan_order, price_rows, rate_rows, applied_at_ms, changed_in)
   values ($1, $2::int, $3, $4, $5, $6, $7::bigint, $8::bigint)
   on conflict (app_id) do update set version = excluded.version, document = excluded.document,
     plan_order = excluded.plan_order, price_rows = excluded.price_rows, rate_rows = excluded.rate_rows,
     applied_at_ms = excluded.applied_at_ms, changed_in = excluded.changed_in`;
const SAVE_TEST = `insert into test_catalogs (app_id, version, document, plan_order, price_rows, rate_rows,
     applied_at_ms, changed_in, removed)
   values ($1, $2::int, $3, $4, $5, $6, $7::bigint, $8::bigint, $9::boolean)
   on conflict (app_id) do update set version = excluded.version, document = excluded.document,
     plan_order = excluded.plan_order, price_rows = excluded.price_rows, rate_rows = excluded.rate_rows,
     applied_at_ms = excluded.applied_at_ms, changed_in = excluded.changed_in, removed = excluded.removed`;

/**
 * Saves a catalog.
 *
 * @param version of the registry
 */
export async function saveCatalog(
  session: Session,
  applied: AppliedCatalog,
  version: number,
  at: Millis,
): Promise<void> {
  const isLive = applied.mode === "live";
  await session.query(isLive ? SAVE_LIVE : SAVE_TEST, [
    applied.appId,
    applied.version,
    JSON.stringify(applied.document),
    JSON.stringify(applied.planOrder),
    JSON.stringify(applied.priceRows),
    applied.rateRows.length === 0 ? null : JSON.stringify(applied.rateRows),
    at,
    version,
    ...isLive ? [] : [applied.removed],
  ]);
}

/** Keeps a document as a version, and removes the versions that are older than the newest ones. */
export async function keepVersion(
  session: Session,
  { appId, version, mode, at, who, changes }: CatalogVersion,
  document: CatalogDocument,
): Promise<void> {
  // A version of a process that numbers live catalogs alone may be there already.
  await session.query(
    `insert into catalog_versions (app_id, version, mode, document, changes, who, at_ms)
     values ($1, $2::int, $3, $4, $5, $6, $7::bigint)
     on conflict (app_id, version) do update set mode = excluded.mode, document = excluded.document,
       changes = excluded.changes, who = excluded.who, at_ms = excluded.at_ms`,
    [
      ...[appId, version, mode, JSON.stringify(document)],
      ...[JSON.stringify(changes.slice(0, CATALOG_LIMITS.changesKeptMax)), who, at],
    ],
  );
  await session.query(
    `delete from catalog_versions where app_id = $1 and version <= (
       select version from catalog_versions where app_id = $1 order by version desc offset $2::int limit 1)`,
    [appId, CATALOG_LIMITS.versionsKeptMax],
  );
}

/** Lists the versions of an app, newest first. */
export async function listVersions(reader: Reader, appId: string): Promise<CatalogVersion[]> {
  const rows = await reader.query<Omit<CatalogVersion, "changes"> & { readonly changes: string }>(
    `select app_id as "appId", version, mode, at_ms as at, who, changes
     from catalog_versions where app_id = $1 order by version desc limit $2::int`,
    [appId, CATALOG_LIMITS.versionsKeptMax],
  );
  return rows.map((row) => ({ ...row, changes: JSON.parse(row.changes) }));
}

/** Reads the document of a version; null where it is not kept. */
export async function readVersionDocument(
  reader: Reader,
  appId: string,
  version: number,
): Promise<CatalogDocument | null> {
  const [row] = await reader.query<{ readonly document: string }>(
    "select document from catalog_versions where app_id = $1 and version = $2::int",
    [appId, version],
  );
  return row === undefined ? null : JSON.parse(row.document);
}

/** Lists the plans that an active subscription in one of the realms has, or will change to. */
export async function plansInUse(
  reader: Reader,
  realms: readonly RealmMoment[],
  planIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ planId: string }>(
    `select p.id as "planId" from unnest($1::text::text[]) as p(id)
     where exists (
       select 1 from subscriptions s join users u on u.key = s.user_key
       join unnest($2::text::int[], $3::text::bigint[]) as r(realm, now_ms) on r.realm = u.realm
       where (s.plan_id = p.id or s.scheduled_plan_id = p.id or s.then_plan_id = p.id) and not s.ended and (s.ends_at_ms is null or s.ends_at_ms > r.now_ms))`,
    [arrayText(planIds), ...momentsText(realms)],
  );
  return rows.map(({ planId }) => planId);
}

/** Lists the packs with a balance in the realms that can still be used, or get a refund. */
export async function packsInUse(
  reader: Reader,
  realms: readonly RealmMoment[],
  packIds: readonly string[],
): Promise<string[]> {
  const rows = await reader.query<{ packId: string }>(
    `select p.id as "packId" from unnest($1::text::text[]) as p(id)
     where exists (
       select 1 from credit_balances b
       join unnest($2::text::int[], $3::text::bigint[]) as r(realm, now_ms) on r.realm = b.realm
       where b.pack_id = p.id and b.revoked_at_ms is null and (b.held > 0
         or b.remaining > 0 and (b.expires_at_ms is null or b.expires_at_ms > r.now_ms)))`,
    [arrayText(packIds), ...momentsText(realms)],
  );
  return rows.map(({ packId }) => packId);
}

/**
 * Counts the users of a realm with an active subscription to one of the plans, up to a number; null where the realm has too
 * many users to look at all of them.
 */
export async function countUsersOn(
  reader: Reader,
  { realm, now }: RealmMoment,
  planIds: readonly string[],
): Promise<number | null> {
  const { usersCountedMax, usersLookedAtMax } = CATALOG_LIMITS;
  // Begins at the users of the realm: other apps may have plans of the same ids.
  const [row] = await reader.query<{ readonly users: number; readonly seen: number }>(
    `with seen as materialized (select key from users where realm = $1::int order by id limit $5::int)
     select (select count(*)::int from (
         select from seen where exists (
           select 1 from subscriptions s where s.user_key = seen.key and s.plan_id = any($3::text::text[])
             and not s.ended and (s.ends_at_ms is null or s.ends_at_ms > $2::bigint))
         limit $4::int) found) as users,
       (select count(*)::int from seen) as seen`,
    [realm, now, arrayText(planIds), usersCountedMax, usersLookedAtMax],
  );
  const { users, seen } = row as { users: number; seen: number };
  return users < usersCountedMax && seen === usersLookedAtMax ? null : users;
}

/** A realm with the time of its clock. */
export interface RealmMoment {
  readonly realm: number;
  readonly now: Millis;
}

function momentsText(realms: readonly RealmMoment[]): [string, string] {
  return [arrayText(realms.map(({ realm }) => realm)), arrayText(realms.map(({ now }) => now))];
}
