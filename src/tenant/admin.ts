// The admin API's work: workspaces, apps, keys and catalogs. Each write is one change of the registry, in force in every
// process when it is answered. A call that names a workspace runs at the owner of its cell.

import { withRateRows } from "../domain/catalog/rate_row.ts";
import { withPriceRows } from "../domain/catalog/price_row.ts";
import { randomText } from "../process/secrets/random.ts";
import type { Term } from "../../actors/term.ts";
import { numberOf } from "../domain/values/amount.ts";
import type { IdSource } from "../domain/values/ids.ts";
import { compileCatalog } from "../domain/catalog/catalog.ts";
import type { Millis } from "../domain/values/period.ts";
import { type Refusal, refusal } from "../domain/values/refusal.ts";
import type { Clock } from "../process/clock.ts";
import { inTurn } from "../process/in_turn.ts";
import { hashOf } from "../process/secrets/hash.ts";
import type { Database } from "../storage/database.ts";
import { newRealms, packsInUse, plansInUse } from "../storage/stores/registry_store.ts";
import { type CatalogChange, diffCatalogs } from "./catalog/changes.ts";
import { checkCatalog } from "./catalog/check.ts";
import type { CatalogInput } from "./catalog/schema.ts";
import { cellOf } from "./cell_of.ts";
import type { App, Registry } from "./registry.ts";
import type { ApiKey, AppliedCatalog, AppRecord, Workspace } from "../storage/rows/registry_rows.ts";
import type { RegistryChanges } from "./registry_changes.ts";

/** What the admin API uses. */
export interface AdminWorld {
  readonly registry: Registry;
  readonly changes: Pick<RegistryChanges, "change" | "confirm">;
  readonly database: Pick<Database, "query">;
  readonly term: Pick<Term, "budget" | "doors" | "flush">;
  readonly ids: IdSource;
  readonly clock: Clock;
}

/** A new key, with its secret text, which is shown once. */
export interface ShownKey {
  readonly keyId: string;
  readonly key: string;
  readonly class: ApiKey["class"];
  readonly mode: ApiKey["mode"];
}

/** A new app with everything that is shown once. */
export interface CreatedApp {
  readonly appId: string;
  readonly workspaceId: string;
  readonly identitySecret: string;
  readonly keys: readonly ShownKey[];
}

/** The caps of a workspace; an absent member keeps its value, or takes its default. */
export type WorkspaceInput = Partial<Omit<Workspace, "workspaceId">>;

const DEFAULT_CAPS = {
  operationCap: null,
  aiBudgetCents: null,
  testOperationCap: 10_000,
  testCreditBalanceCap: 1_000,
} as const;

/** The classes of keys that a new app gets. */
const KEY_CLASSES = ["secret", "public"] as const;
const KEY_PREFIXES = { secret: "sk", public: "pk", reader: "rk" } as const;
const KEY_MODES = ["live", "test"] as const;
const KEY_RANDOM_LENGTH = 40;
const KEY_PREFIX_LENGTH = 12;

export async function createWorkspace(
  world: AdminWorld,
  input: WorkspaceInput & { readonly name: string },
): Promise<Workspace> {
  const workspace = newWorkspace(world, input);
  return await world.changes.change(null, () => ({ rows: { workspaces: [workspace] }, answer: workspace }));
}

function newWorkspace({ ids }: AdminWorld, input: WorkspaceInput & { readonly name: string }): Workspace {
  return { workspaceId: ids.next("workspace"), ...DEFAULT_CAPS, ...input };
}

export async function changeWorkspace(
  { registry, changes }: AdminWorld,
  workspaceId: string,
  input: WorkspaceInput,
): Promise<Workspace | null> {
  if (!registry.workspaces.has(workspaceId)) return null;
  return await changes.change(cellOf(workspaceId), () => {
    const workspace: Workspace = { ...registry.workspaces.get(workspaceId) as Workspace, ...input };
    return { rows: { workspaces: [workspace] }, answer: workspace };
  });
}

/** The workspaces of this process's cells, with their operations of the current month. */
export function listWorkspaces({ registry, term }: AdminWorld) {
  const own = [...registry.workspaces.values()].filter(({ workspaceId }) =>
    term.doors.isOpen(cellOf(workspaceId))
  );
  return own.map((workspace) => ({
    ...workspace,
    operationsUsed: term.budget.used(workspace.workspaceId, "live"),
    testOperationsUsed: term.budget.used(workspace.workspaceId, "test"),
    aiSpentCents: numberOf(term.budget.aiSpent(workspace.workspaceId)),
  }));
}

/** Creates an app with its four keys; null when the workspace is unknown. */
export async function createApp(world: AdminWorld, input: AppInput): Promise<CreatedApp | null> {
  const { registry, changes } = world;
  const { workspaceId } = input;
  if (workspaceId !== undefined && !registry.workspaces.has(workspaceId)) return null;
  return await changes.change(workspaceId === undefined ? null : cellOf(workspaceId), async (session) => {
    const first = registry.workspaces.values().next().value;
    const added = workspaceId === undefined && first === undefined
      ? [newWorkspace(world, { name: "Default" })]
      : [];
    const owner = workspaceId ?? (first ?? added[0] as Workspace).workspaceId;
    const { record, made } = newApp(world, input, owner);
    const rows = {
      workspaces: added,
      apps: [record],
      keys: made.map(({ key }) => key),
      realms: await newRealms(session, record.appId),
    };
    const { appId, identitySecret } = record;
    const answer = { appId, workspaceId: owner, identitySecret, keys: made.map(({ shown }) => shown) };
    return { rows, answer };
  });
}

interface AppInput {
  readonly name: string;
  readonly workspaceId?: string | undefined;
  /** Who creates it; null or left out for the service itself. */
  readonly createdBy?: string | null;
}

function newApp(world: AdminWorld, { name, createdBy = null }: AppInput, workspaceId: string) {
  const record: AppRecord = {
    appId: world.ids.next("app"),
    workspaceId,
    name,
    identitySecret: randomText(KEY_RANDOM_LENGTH),
    oldIdentitySecrets: [],
    createdAt: world.clock.now(),
  };
  const made = KEY_CLASSES.flatMap((keyClass) =>
    KEY_MODES.map((mode) => makeKey(world, record.appId, { class: keyClass, mode, name: null, createdBy }))
  );
  return { record, made };
}

/** A new identity secret, shown once, and the time until which the previous one is valid. */
export interface RotatedIdentity {
  readonly identitySecret: string;
  readonly oldValidUntil: Millis;
}

/**
 * Gives an app a new identity secret, in force at once. Previous ones stay valid until their own time, in real time.
 *
 * @param keepOldMs how long the current one stays valid
 */
export function rotateIdentitySecret(
  { changes, clock }: Pick<AdminWorld, "changes" | "clock">,
  app: App,
  keepOldMs: Millis,
): Promise<RotatedIdentity> {
  return changes.change(app.cell, () => {
    const now = clock.now();
    const oldValidUntil = now + keepOldMs;
    const { identitySecret: secret, oldIdentitySecrets } = app.record;
    const old = [{ secret, validUntil: oldValidUntil }, ...oldIdentitySecrets];
    const record: AppRecord = {
      ...app.record,
      identitySecret: randomText(KEY_RANDOM_LENGTH),
      oldIdentitySecrets: old.filter(({ validUntil }) => validUntil > now),
    };
    return { rows: { apps: [record] }, answer: { identitySecret: record.identitySecret, oldValidUntil } };
  });
}

/** Creates an API key of an app. */
export async function createKey(world: AdminWorld, app: App, of: KeyInput): Promise<ShownKey> {
  const { key, shown } = makeKey(world, app.record.appId, of);
  return await world.changes.change(app.cell, () => ({ rows: { keys: [key] }, answer: shown }));
}

/** A new key in place of another one, and the time until which that one is valid. */
export interface RolledKey extends ShownKey {
  readonly oldValidUntil: Millis;
}

/**
 * Creates a key with the class, mode and name of another one, which stays valid until its own end, at most for so long. Null
 * where that one is invalid already.
 */
export async function rollKey(
  world: AdminWorld,
  { appId, keyId }: ApiKey,
  keepOldMs: Millis,
  createdBy: string,
): Promise<RolledKey | null> {
  const { registry, changes, clock } = world;
  const { cell } = registry.apps.get(appId) as App;
  return await changes.change(cell, () => {
    const old = registry.keys.get(keyId) as ApiKey;
    if (!registry.isValid(old)) return { rows: {}, answer: null };
    const { key, shown } = makeKey(world, appId, { ...old, createdBy });
    const oldValidUntil = Math.min(old.validUntil ?? Infinity, clock.now() + keepOldMs);
    const rows = { keys: [{ ...old, validUntil: oldValidUntil }, key] };
    return { rows, answer: { ...shown, oldValidUntil } };
  });
}

/** Revokes a key at once; a key that is already revoked is unchanged. */
export async function revokeKey(
  { changes, registry, clock }: AdminWorld,
  { appId, keyId }: ApiKey,
): Promise<ApiKey> {
  const { cell } = registry.apps.get(appId) as App;
  return await changes.change(cell, () => {
    const key = registry.keys.get(keyId) as ApiKey;
    // A repeated call waits for every process too.
    const revoked: ApiKey = { ...key, revokedAt: key.revokedAt ?? clock.now() };
    return { rows: { keys: [revoked] }, answer: revoked };
  });
}

/** How to apply a catalog. */
export interface ApplyOptions {
  /** Reports what would change, and changes nothing. */
  readonly isDryRun: boolean;
  /** The version that the document was made from; refused when another one is in force. Null: any version. */
  readonly expectedVersion: number | null;
}

/** Applies a catalog document, or reports what would change. Refused as a whole when any part is invalid. */
export async function applyCatalog(
  world: AdminWorld,
  app: App,
  document: unknown,
  { isDryRun, expectedVersion }: ApplyOptions = { isDryRun: false, expectedVersion: null },
): Promise<{ version: number; changes: CatalogChange[] } | Refusal> {
  return await inTurn(world.registry, async () => {
    // Within the turn: units are compared with the catalog in force, which another call may replace.
    const checked = await checkCatalog(document, app.applied?.document ?? null);
    if ("faults" in checked) {
      return refusal("invalid_request", "Catalog is invalid", checked.faults);
    }
    const version = app.applied?.version ?? 0;
    if (expectedVersion !== null && expectedVersion !== version) {
      return movedCatalog(version, expectedVersion);
    }
    const changes = diffCatalogs(app.applied?.document ?? {}, checked.catalog);
    const removed = removedParts(app, checked.catalog);
    const inForce = app.catalog;
    // From here on no user gets a plan or pack that is being removed; the flush then shows every user who has one.
    if (!isDryRun) closeParts(app, removed);
    try {
      const inUse = await findInUse(world, app, removed);
      if (inUse !== null) return inUse;
      if (isDryRun) return { version, changes };
      if (changes.length === 0) {
        await world.changes.confirm();
        return { version, changes };
      }
      const applied = nextCatalog(app, checked.catalog);
      const answer = { version: applied.version, changes };
      return await world.changes.change(app.cell, () => ({ rows: { catalogs: [applied] }, answer }));
    } finally {
      // The catalog with closed parts is replaced when no new one was put in force.
      if (app.applied?.version === inForce.version) app.catalog = inForce;
    }
  });
}

function movedCatalog(version: number, expected: number): Refusal {
  const message = `Catalog changed: current version is ${version}, expectedVersion is ${expected}`;
  return refusal("catalog_in_use", message, { version });
}

/** Ids of plans and packs that a new catalog no longer has. */
interface RemovedParts {
  readonly plans: readonly string[];
  readonly packs: readonly string[];
}

/** Refuses a catalog that lacks a plan or pack in use; null when none is. */
async function findInUse(
  world: AdminWorld,
  app: App,
  { plans, packs }: RemovedParts,
): Promise<Refusal | null> {
  if (plans.length === 0 && packs.length === 0) return null;
  await world.term.flush();
  const realms = Object.values(app.realms).map((realm) => ({ realm: realm.realm, now: realm.now() }));
  const inUse = {
    plans: plans.length === 0 ? [] : await plansInUse(world.database, realms, plans),
    packs: packs.length === 0 ? [] : await packsInUse(world.database, realms, packs),
  };
  const faults = [
    ...inUse.plans.length === 0 ? [] : [`plans with active subscriptions: ${inUse.plans.join(", ")}`],
    ...inUse.packs.length === 0 ? [] : [`packs with live balances: ${inUse.packs.join(", ")}`],
  ];
  if (faults.length === 0) return null;
  return refusal("catalog_in_use", `Cannot be removed, only archived: ${faults.join("; ")}`, [
    ...inUse.plans.map((planId) => ({ planId })),
    ...inUse.packs.map((packId) => ({ packId })),
  ]);
}

function closeParts(app: App, { plans, packs }: RemovedParts): void {
  if (app.applied === null || plans.length === 0 && packs.length === 0) return;
  const { document, version, priceRows, rateRows } = app.applied;
  const closed = <Part extends { id: string; archived?: boolean | undefined }>(
    parts: readonly Part[] | undefined,
    ids: readonly string[],
  ) => (parts ?? []).map((part) => ({ ...part, archived: part.archived === true || ids.includes(part.id) }));
  app.catalog = compileCatalog(
    { ...document, plans: closed(document.plans, plans), packs: closed(document.packs, packs) },
    version,
    priceRows,
    rateRows,
  );
}

function removedParts({ applied }: App, next: CatalogInput): RemovedParts {
  const removed = (before: readonly { id: string }[] = [], after: readonly { id: string }[] = []) => {
    const left = new Set(after.map(({ id }) => id));
    return before.map(({ id }) => id).filter((id) => !left.has(id));
  };
  return {
    plans: removed(applied?.document.plans, next.plans),
    packs: removed(applied?.document.packs, next.packs),
  };
}

function nextCatalog(app: App, document: CatalogInput): AppliedCatalog {
  const known = app.applied?.planOrder ?? [];
  const added = (document.plans ?? []).map(({ id }) => id).filter((id) => !known.includes(id));
  return {
    appId: app.record.appId,
    version: (app.applied?.version ?? 0) + 1,
    document,
    planOrder: [...known, ...added],
    priceRows: withPriceRows(app.applied?.priceRows ?? [], document.models ?? []),
    rateRows: withRateRows(app.applied?.rateRows ?? [], document.rates ?? []),
  };
}

/** What a new key is made of. */
export type KeyInput = Pick<ApiKey, "class" | "mode" | "name" | "createdBy">;

function makeKey(
  { ids, clock }: AdminWorld,
  appId: string,
  { class: keyClass, mode, name, createdBy }: KeyInput,
): { key: ApiKey; shown: ShownKey } {
  const text = `${KEY_PREFIXES[keyClass]}_${mode}_${randomText(KEY_RANDOM_LENGTH)}`;
  const keyId = ids.next("key");
  const key: ApiKey = {
    keyId,
    appId,
    class: keyClass,
    mode,
    hash: hashOf(text),
    prefix: text.slice(0, KEY_PREFIX_LENGTH),
    name,
    createdAt: clock.now(),
    createdBy,
    validUntil: null,
    revokedAt: null,
  };
  return { key, shown: { keyId, key: text, class: keyClass, mode } };
}
