// The registry's rows: workspaces, apps, keys, catalogs and realms, and what is counted for them. They are read at the start
// of a term. Writes run on the writer's own session, so that they fail once the lease is lost.

import type { AiSpendRow, IssuesRow, OperationsRow } from "../../../actors/port.ts";
import { parseAmount } from "../../domain/amount.ts";
import type { CatalogDocument } from "../../domain/plans/catalog.ts";
import type { Millis } from "../../domain/plans/period.ts";
import type {
  ApiKey,
  AppliedCatalog,
  AppRecord,
  RealmRecord,
  RegistryRows,
  Workspace,
} from "../../tenant/registry.ts";
import { arrayText, type Session } from "../database.ts";

type Reader = Pick<Session, "query">;

const MODES = ["live", "test"] as const;

/** Every row of the registry. */
export async function loadRegistry(reader: Reader): Promise<RegistryRows> {
  const workspaces = await reader.query<Record<keyof Workspace, string>>(
    `select id as "workspaceId", name, operation_cap as "operationCap",
       test_operation_cap as "testOperationCap", ai_budget_cents as "aiBudgetCents",
       test_credit_balance_cap as "testCreditBalanceCap"
     from workspaces order by created_at_ms, id`,
  );
  const apps = await reader.query<Omit<AppRecord, "oldIdentitySecrets"> & { oldIdentitySecrets: string }>(
    `select id as "appId", workspace_id as "workspaceId", name, identity_secret as "identitySecret",
       old_identity_secrets as "oldIdentitySecrets", created_at_ms as "createdAt"
     from apps order by created_at_ms, id`,
  );
  const keys = await reader.query<ApiKey>(
    `select id as "keyId", app_id as "appId", class, mode, hash, prefix, created_at_ms as "createdAt",
       revoked_at_ms as "revokedAt"
     from keys order by created_at_ms, id`,
  );
  const catalogs = await reader.query<
    { appId: string; version: number; document: string; planOrder: string; priceRows: string | null }
  >(
    `select app_id as "appId", version, document, plan_order as "planOrder", price_rows as "priceRows"
     from catalogs`,
  );
  const realms = await reader.query<RealmRecord>(
    `select realm, app_id as "appId", mode, clock_offset_ms as "clockOffsetMs" from realms`,
  );
  return {
    workspaces: workspaces.map(readWorkspace),
    apps: apps.map((row) => ({ ...row, oldIdentitySecrets: JSON.parse(row.oldIdentitySecrets) })),
    keys,
    realms,
    catalogs: catalogs.map((row) => {
      const document: CatalogDocument = JSON.parse(row.document);
      const priceRows = row.priceRows === null ? document.models ?? [] : JSON.parse(row.priceRows);
      return { ...row, document, planOrder: JSON.parse(row.planOrder), priceRows };
    }),
  };
}

function readWorkspace(row: Record<keyof Workspace, string | null>): Workspace {
  const cap = (text: string | null) => text === null ? null : Number(text);
  return {
    workspaceId: row.workspaceId as string,
    name: row.name as string,
    operationCap: cap(row.operationCap),
    testOperationCap: cap(row.testOperationCap),
    aiBudgetCents: cap(row.aiBudgetCents),
    testCreditBalanceCap: cap(row.testCreditBalanceCap),
  };
}

/** Credit balances issued so far, by realm. */
export function loadIssues(reader: Reader): Promise<IssuesRow[]> {
  return reader.query<IssuesRow>("select realm, issued from credit_issues");
}

/** Metering operations of a month. */
export function loadOperations(reader: Reader, month: string): Promise<OperationsRow[]> {
  return reader.query<OperationsRow>(
    `select workspace_id as "workspaceId", mode, month, used from operations where month = $1`,
    [month],
  );
}

/** What workspaces spent on models in a month. */
export async function loadAiSpend(reader: Reader, month: string): Promise<AiSpendRow[]> {
  const rows = await reader.query<{ workspaceId: string; month: string; cents: string }>(
    `select workspace_id as "workspaceId", month, cents from ai_spend where month = $1`,
    [month],
  );
  return rows.map((row) => ({ ...row, cents: parseAmount(row.cents) }));
}

/** Writes a workspace, new or changed. */
export async function saveWorkspace(session: Session, row: Workspace, createdAt: Millis): Promise<void> {
  await session.query(
    `insert into workspaces (id, name, operation_cap, test_operation_cap, ai_budget_cents,
       test_credit_balance_cap, created_at_ms)
     values ($1, $2, $3::numeric, $4::numeric, $5::numeric, $6::numeric, $7::bigint)
     on conflict (id) do update set name = excluded.name, operation_cap = excluded.operation_cap,
       test_operation_cap = excluded.test_operation_cap, ai_budget_cents = excluded.ai_budget_cents,
       test_credit_balance_cap = excluded.test_credit_balance_cap`,
    [
      row.workspaceId,
      row.name,
      row.operationCap,
      row.testOperationCap,
      row.aiBudgetCents,
      row.testCreditBalanceCap,
      createdAt,
    ],
  );
}

/** Writes a new app; answers its two realms. */
export async function insertApp(session: Session, app: AppRecord): Promise<RealmRecord[]> {
  await session.query(
    `insert into apps (id, workspace_id, name, identity_secret, created_at_ms)
     values ($1, $2, $3, $4, $5::bigint)`,
    [app.appId, app.workspaceId, app.name, app.identitySecret, app.createdAt],
  );
  const realms: RealmRecord[] = [];
  for (const mode of MODES) {
    const [row] = await session.query<{ realm: number }>(
      `insert into realms (realm, app_id, mode)
       select coalesce(max(realm), 0) + 1, $1, $2 from realms returning realm`,
      [app.appId, mode],
    );
    realms.push({ realm: row?.realm as number, appId: app.appId, mode, clockOffsetMs: 0 });
  }
  return realms;
}

/** Writes an app's identity secret and the old ones that still hold. */
export async function saveIdentitySecrets(session: Session, app: AppRecord): Promise<void> {
  await session.query(
    "update apps set identity_secret = $2, old_identity_secrets = $3 where id = $1",
    [app.appId, app.identitySecret, JSON.stringify(app.oldIdentitySecrets)],
  );
}

/** Writes a key, new or revoked. */
export async function saveKey(session: Session, key: ApiKey): Promise<void> {
  await session.query(
    `insert into keys (id, app_id, class, mode, hash, prefix, created_at_ms, revoked_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7::bigint, $8::bigint)
     on conflict (id) do update set revoked_at_ms = excluded.revoked_at_ms`,
    [key.keyId, key.appId, key.class, key.mode, key.hash, key.prefix, key.createdAt, key.revokedAt],
  );
}

/** Writes a catalog as the next version of its app. */
export async function saveCatalog(session: Session, applied: AppliedCatalog, at: Millis): Promise<void> {
  await session.query(
    `insert into catalogs (app_id, version, document, plan_order, price_rows, applied_at_ms)
     values ($1, $2::int, $3, $4, $5, $6::bigint)
     on conflict (app_id) do update set version = excluded.version, document = excluded.document,
       plan_order = excluded.plan_order, price_rows = excluded.price_rows,
       applied_at_ms = excluded.applied_at_ms`,
    [
      applied.appId,
      applied.version,
      JSON.stringify(applied.document),
      JSON.stringify(applied.planOrder),
      JSON.stringify(applied.priceRows),
      at,
    ],
  );
}

/** Moves a realm's clock forward; an earlier offset changes nothing. */
export async function saveClockOffset(session: Session, realm: number, offsetMs: number): Promise<void> {
  await session.query(
    "update realms set clock_offset_ms = greatest(clock_offset_ms, $2::bigint) where realm = $1::int",
    [
      realm,
      offsetMs,
    ],
  );
}

/** Which of the plans have an active subscription in one of the realms. */
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
       where s.plan_id = p.id and not s.ended and (s.ends_at_ms is null or s.ends_at_ms > r.now_ms))`,
    [arrayText(planIds), ...momentsText(realms)],
  );
  return rows.map(({ planId }) => planId);
}

/** Which of the packs have a balance in the realms that can still be spent, or get a refund. */
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

/** A realm with the time of its clock. */
export interface RealmMoment {
  readonly realm: number;
  readonly now: Millis;
}

function momentsText(realms: readonly RealmMoment[]): [string, string] {
  return [arrayText(realms.map(({ realm }) => realm)), arrayText(realms.map(({ now }) => now))];
}
