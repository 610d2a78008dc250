// The registry's rows: workspaces, apps, keys and realms, and their counts; catalogs are in `catalog_store.ts`. Each row
// has the version of the registry in which it was written, so that a node reads only changes.

import {
  type CellParts,
  type GatewaySpendRow,
  type IssuesRow,
  type OperationsRow,
  type Totals,
  Unavailable,
} from "../../../actors/port.ts";
import { parseAmount } from "../../domain/values/amount.ts";
import type { Millis } from "../../domain/values/period.ts";
import { LEASE_LIMITS, REGISTRY_LIMITS } from "../../process/limits.ts";
import type {
  ApiKey,
  AppRecord,
  MovedCell,
  RealmRecord,
  RegistryRows,
  StripeConnection,
  Webhook,
  Workspace,
} from "../rows/registry_rows.ts";
import { arrayText, LOCK_NOT_AVAILABLE, type Session } from "../database.ts";
import { REALMS_PER_STORE } from "../nodes/store_numbers.ts";
import { readCatalogs, saveCatalog } from "./catalog_store.ts";

type Reader = Pick<Session, "query">;

const MODES = ["live", "test"] as const;

/** Reads the version of the registry. */
export async function readVersion(reader: Reader): Promise<number> {
  const [row] = await reader.query<{ version: number }>("select version from registry");
  return row?.version as number;
}

/**
 * Locks the registry's row until the end of the transaction, so that changes run one after another; returns the version.
 * If a node freezes within a change, the server ends its session.
 *
 * @throws Unavailable when an earlier change does not end in time
 */
export async function lockRegistry(session: Session): Promise<number> {
  await session.query(
    `select set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true)`,
    [String(REGISTRY_LIMITS.confirmMs), String(LEASE_LIMITS.silentMs)],
  );
  try {
    const [row] = await session.query<{ version: number }>("select version from registry for update");
    return row?.version as number;
  } catch (error) {
    if ((error as { code?: unknown }).code !== LOCK_NOT_AVAILABLE) throw error;
    throw new Unavailable("Another change of the registry does not end", { cause: error });
  }
}

/** Reads rows that were written after a version; -1 for all. The caller provides one snapshot. Moved cells are always all. */
export async function readRegistry(reader: Reader, since: number): Promise<RegistryRows> {
  const workspaces = await reader.query<Record<keyof Workspace, string>>(
    `select id as "workspaceId", name, operation_cap as "operationCap",
       test_operation_cap as "testOperationCap", ai_budget_cents as "aiBudgetCents",
       test_credit_balance_cap as "testCreditBalanceCap"
     from workspaces where changed_in > $1::bigint order by created_at_ms, id`,
    [since],
  );
  const apps = await reader.query<Omit<AppRecord, "oldIdentitySecrets"> & { oldIdentitySecrets: string }>(
    `select id as "appId", workspace_id as "workspaceId", name, identity_secret as "identitySecret",
       old_identity_secrets as "oldIdentitySecrets", created_at_ms as "createdAt"
     from apps where changed_in > $1::bigint order by created_at_ms, id`,
    [since],
  );
  const keys = await reader.query<ApiKey>(
    `select id as "keyId", app_id as "appId", class, mode, hash, prefix, created_at_ms as "createdAt",
       name, created_by as "createdBy", valid_until_ms as "validUntil", revoked_at_ms as "revokedAt"
     from keys where changed_in > $1::bigint order by created_at_ms, id`,
    [since],
  );
  const catalogs = await readCatalogs(reader, since);
  const realms = await reader.query<RealmRecord>(
    `select r.realm, r.app_id as "appId", r.mode from realms r join apps a on a.id = r.app_id
     where a.changed_in > $1::bigint`,
    [since],
  );
  const webhooks = await readWebhooks(reader, since);
  const stripe = await reader.query<StripeConnection>(
    `select app_id as "appId", mode, webhook_secret as "webhookSecret", set_at_ms as "setAt", removed
     from stripe_connections where changed_in > $1::bigint`,
    [since],
  );
  return {
    workspaces: workspaces.map(readWorkspace),
    apps: apps.map((row) => ({ ...row, oldIdentitySecrets: JSON.parse(row.oldIdentitySecrets) })),
    keys,
    catalogs,
    realms,
    webhooks,
    stripe,
    moved: await readMoved(reader),
  };
}

/** Reads the cells that another store serves. */
function readMoved(reader: Reader): Promise<MovedCell[]> {
  return reader.query<MovedCell>(
    `select c.cell, s.name as store from cells c join stores s on s.number = c.store
     where s.cluster_id <> (select cluster_id from registry) order by c.cell`,
  );
}

async function readWebhooks(reader: Reader, since: number): Promise<Webhook[]> {
  const rows = await reader.query<
    Omit<Webhook, "events" | "secrets"> & { readonly events: string; readonly secrets: string }
  >(
    `select id as "webhookId", app_id as "appId", mode, url, events, description, disabled, secrets,
       created_at_ms as "createdAt", removed
     from webhooks where changed_in > $1::bigint order by created_at_ms, id`,
    [since],
  );
  return rows.map((row) => ({
    ...row,
    events: JSON.parse(row.events),
    secrets: JSON.parse(row.secrets),
  }));
}

/** Writes the rows of a change and the new version. */
export async function saveRegistry(
  session: Session,
  { workspaces = [], apps = [], keys = [], catalogs = [], realms = [], webhooks = [], stripe = [] }: Partial<
    RegistryRows
  >,
  version: number,
  at: Millis,
): Promise<void> {
  for (const workspace of workspaces) await saveWorkspace(session, workspace, version, at);
  for (const app of apps) await saveApp(session, app, version);
  for (const realm of realms) await insertRealm(session, realm);
  for (const key of keys) await saveKey(session, key, version);
  for (const applied of catalogs) await saveCatalog(session, applied, version, at);
  for (const webhook of webhooks) await saveWebhook(session, webhook, version);
  for (const connection of stripe) await saveStripe(session, connection, version);
  await session.query("update registry set version = $1::bigint", [version]);
}

/** Counts nodes that may still answer and do not have a version of the registry in force. */
export async function countUnconfirmed(reader: Reader, version: number): Promise<number> {
  const [row] = await reader.query<{ members: number }>(
    `select count(*) as members from members where ended_at is null and registry_version < $1::bigint
       and seen_at > clock_timestamp() - $2::int * interval '1 millisecond'`,
    [version, LEASE_LIMITS.validMs],
  );
  return row?.members ?? 0;
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

/**
 * SQL of a table's rows of the workspaces or realms in $1. They are joined and not compared with the list: a comparison would
 * read the text of the list again for each row, which takes minutes with 10,000 apps.
 */
const ofListed = (table: string, column: string, type: string) =>
  `unnest($1::text::${type}[]) as listed(${column}) join ${table} using (${column})`;

/** Loads the counts of workspaces and realms, of a month and all later ones. */
export async function loadTotals(reader: Reader, parts: CellParts, month: string): Promise<Totals> {
  const workspaces = arrayText([...parts.workspaces]);
  const issues = await reader.query<IssuesRow>(
    `select realm, issued from ${ofListed("credit_issues", "realm", "int")}`,
    [arrayText([...parts.realms])],
  );
  const operations = await reader.query<OperationsRow>(
    `select workspace_id as "workspaceId", mode, month, used from ${
      ofListed("operations", "workspace_id", "text")
    }
     where month >= $2`,
    [workspaces, month],
  );
  const spend = await reader.query<{ workspaceId: string; month: string; cents: string }>(
    `select workspace_id as "workspaceId", month, cents from ${ofListed("ai_spend", "workspace_id", "text")}
     where month >= $2`,
    [workspaces, month],
  );
  const aiSpend = spend.map((row) => ({ ...row, cents: parseAmount(row.cents) }));
  const spentByApps = await reader.query<Omit<GatewaySpendRow, "cents"> & { cents: string }>(
    `select workspace_id as "workspaceId", app_id as "appId", month, cents from ${
      ofListed("gateway_spend", "workspace_id", "text")
    }
     where month >= $2`,
    [workspaces, month],
  );
  const gatewaySpend = spentByApps.map((row) => ({ ...row, cents: parseAmount(row.cents) }));
  return { operations, issues, aiSpend, gatewaySpend };
}

/** What is stored about the clock of a realm. */
interface RealmClock {
  readonly realm: number;
  /** How far a test clock is ahead of real time. */
  readonly offsetMs: Millis;
  /** The real time of the last event that is in the sums by day; 0 for none. */
  readonly usedMs: Millis;
}

/** Loads the clocks of realms. */
export function loadClocks(
  reader: Reader,
  realms: Iterable<number>,
): Promise<RealmClock[]> {
  return reader.query(
    `select realm, clock_offset_ms as "offsetMs", coalesce(m.at_ms - clock_offset_ms, 0) as "usedMs"
     from ${ofListed("realms", "realm", "int")} left join daily_use_marks m using (realm)`,
    [arrayText([...realms])],
  );
}

async function saveWorkspace(session: Session, row: Workspace, version: number, at: Millis): Promise<void> {
  await session.query(
    `insert into workspaces (id, name, operation_cap, test_operation_cap, ai_budget_cents,
       test_credit_balance_cap, created_at_ms, changed_in)
     values ($1, $2, $3::numeric, $4::numeric, $5::numeric, $6::numeric, $7::bigint, $8::bigint)
     on conflict (id) do update set name = excluded.name, operation_cap = excluded.operation_cap,
       test_operation_cap = excluded.test_operation_cap, ai_budget_cents = excluded.ai_budget_cents,
       test_credit_balance_cap = excluded.test_credit_balance_cap, changed_in = excluded.changed_in`,
    [
      row.workspaceId,
      row.name,
      row.operationCap,
      row.testOperationCap,
      row.aiBudgetCents,
      row.testCreditBalanceCap,
      at,
      version,
    ],
  );
}

async function saveApp(session: Session, app: AppRecord, version: number): Promise<void> {
  await session.query(
    `insert into apps (id, workspace_id, name, identity_secret, old_identity_secrets, created_at_ms, changed_in)
     values ($1, $2, $3, $4, $5, $6::bigint, $7::bigint)
     on conflict (id) do update set identity_secret = excluded.identity_secret,
       old_identity_secrets = excluded.old_identity_secrets, changed_in = excluded.changed_in`,
    [
      app.appId,
      app.workspaceId,
      app.name,
      app.identitySecret,
      JSON.stringify(app.oldIdentitySecrets),
      app.createdAt,
      version,
    ],
  );
}

/** Creates the two realms of a new app. The caller has locked the registry's row, so their numbers are free. */
export async function newRealms(session: Session, appId: string): Promise<RealmRecord[]> {
  const [row] = await session.query<{ last: number }>(
    `select coalesce(max(r.realm), b.base) as last
     from (select coalesce((select number from stores join registry using (cluster_id)), 0)::bigint * ${REALMS_PER_STORE}
       as base) b left join realms r on r.realm > b.base and r.realm <= b.base + ${REALMS_PER_STORE}
     group by b.base`,
  );
  return MODES.map((mode, index) => ({ realm: (row?.last as number) + 1 + index, appId, mode }));
}

async function insertRealm(session: Session, { realm, appId, mode }: RealmRecord): Promise<void> {
  await session.query("insert into realms (realm, app_id, mode) values ($1::int, $2, $3)", [
    realm,
    appId,
    mode,
  ]);
}

async function saveKey(session: Session, key: ApiKey, version: number): Promise<void> {
  await session.query(
    `insert into keys (id, app_id, class, mode, hash, prefix, name, created_at_ms, created_by,
       valid_until_ms, revoked_at_ms, changed_in)
     values ($1, $2, $3, $4, $5, $6, $7, $8::bigint, $9, $10::bigint, $11::bigint, $12::bigint)
     on conflict (id) do update set valid_until_ms = excluded.valid_until_ms,
       revoked_at_ms = excluded.revoked_at_ms, changed_in = excluded.changed_in`,
    [
      key.keyId,
      key.appId,
      key.class,
      key.mode,
      key.hash,
      key.prefix,
      key.name,
      key.createdAt,
      key.createdBy,
      key.validUntil,
      key.revokedAt,
      version,
    ],
  );
}

/** Saves a webhook. Enabling it clears its failures: otherwise the next failure could disable it at once. */
async function saveWebhook(session: Session, webhook: Webhook, version: number): Promise<void> {
  await session.query(
    `insert into webhooks (id, app_id, mode, url, events, description, disabled, secrets, created_at_ms, removed,
       changed_in)
     values ($1, $2, $3, $4, $5, $6, $7::boolean, $8, $9::bigint, $10::boolean, $11::bigint)
     on conflict (id) do update set url = excluded.url, events = excluded.events,
       description = excluded.description, disabled = excluded.disabled, secrets = excluded.secrets,
       removed = excluded.removed, changed_in = excluded.changed_in,
       failing_since_ms = case when webhooks.disabled and not excluded.disabled then null
         else webhooks.failing_since_ms end`,
    [
      webhook.webhookId,
      webhook.appId,
      webhook.mode,
      webhook.url,
      JSON.stringify(webhook.events),
      webhook.description,
      webhook.disabled,
      JSON.stringify(webhook.secrets),
      webhook.createdAt,
      webhook.removed,
      version,
    ],
  );
}

/** Saves the secret of Stripe's messages. A new secret means another endpoint, without a last message yet. */
async function saveStripe(session: Session, connection: StripeConnection, version: number): Promise<void> {
  const { appId, mode, webhookSecret, setAt, removed } = connection;
  await session.query(
    `insert into stripe_connections (app_id, mode, webhook_secret, set_at_ms, removed, changed_in)
     values ($1, $2, $3, $4::bigint, $5::boolean, $6::bigint)
     on conflict (app_id, mode) do update set webhook_secret = excluded.webhook_secret,
       set_at_ms = excluded.set_at_ms, removed = excluded.removed, changed_in = excluded.changed_in,
       last_event_id = null, last_type = null, last_at_ms = null, last_reason = null`,
    [appId, mode, webhookSecret, setAt, removed, version],
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

/** Reads the offset of a realm's clock, after every move in flight has ended. */
export async function lockClockOffset(session: Session, realm: number): Promise<number> {
  const [row] = await session.query<{ offset_ms: number }>(
    "select clock_offset_ms as offset_ms from realms where realm = $1::int for update",
    [realm],
  );
  return (row as { offset_ms: number }).offset_ms;
}
