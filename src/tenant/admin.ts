// The administrator's work: workspaces, apps, keys and catalogs. Each is one fenced transaction of the
// writer, then the same change in the registry. Section 3 of the decisions, "Admin API".

import { withPriceRows } from "../domain/pricing/price_row.ts";
import { randomText } from "../secrets/random.ts";
import type { Term } from "../../actors/term.ts";
import { numberOf } from "../domain/amount.ts";
import type { IdSource } from "../domain/ids.ts";
import { compileCatalog } from "../domain/plans/catalog.ts";
import type { Millis } from "../domain/plans/period.ts";
import { type Refusal, refusal } from "../domain/refusal.ts";
import type { Clock } from "../process/clock.ts";
import { inTurn } from "../process/in_turn.ts";
import { hashOf } from "../secrets/hash.ts";
import type { StoreLease } from "../storage/journal/lease.ts";
import {
  insertApp,
  packsInUse,
  plansInUse,
  saveCatalog,
  saveIdentitySecrets,
  saveKey,
  saveWorkspace,
} from "../storage/stores/registry_store.ts";
import { type CatalogChange, diffCatalogs } from "./catalog/changes.ts";
import { checkCatalog } from "./catalog/check.ts";
import type { CatalogInput } from "./catalog/schema.ts";
import type { ApiKey, App, AppliedCatalog, AppRecord, Registry, Workspace } from "./registry.ts";

/** What the administrator works on. */
export interface AdminWorld {
  readonly registry: Registry;
  readonly lease: Pick<StoreLease, "transaction">;
  readonly term: Pick<Term, "budget" | "flush">;
  readonly ids: IdSource;
  readonly clock: Clock;
}

/** A key as it is shown once, when it is made. */
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

/** The caps of a workspace as a caller gives them; absent members keep or take their defaults. */
export type WorkspaceInput = Partial<Omit<Workspace, "workspaceId">>;

const DEFAULT_CAPS = {
  operationCap: null,
  aiBudgetCents: null,
  testOperationCap: 10_000,
  testCreditBalanceCap: 1_000,
} as const;

const KEY_CLASSES = ["secret", "public"] as const;
const KEY_MODES = ["live", "test"] as const;
const KEY_RANDOM_LENGTH = 40;
const KEY_PREFIX_LENGTH = 12;

export async function createWorkspace(
  world: AdminWorld,
  input: WorkspaceInput & { readonly name: string },
): Promise<Workspace> {
  const workspace: Workspace = { workspaceId: world.ids.next("workspace"), ...DEFAULT_CAPS, ...input };
  await writeWorkspace(world, workspace);
  return workspace;
}

export async function changeWorkspace(
  world: AdminWorld,
  workspaceId: string,
  input: WorkspaceInput,
): Promise<Workspace | null> {
  return await inTurn(world.registry, async () => {
    const known = world.registry.workspaces.get(workspaceId);
    if (known === undefined) return null;
    const workspace: Workspace = { ...known, ...input };
    await writeWorkspace(world, workspace);
    return workspace;
  });
}

async function writeWorkspace({ lease, registry, clock }: AdminWorld, workspace: Workspace): Promise<void> {
  await lease.transaction((session) => saveWorkspace(session, workspace, clock.now()));
  registry.workspaces.set(workspace.workspaceId, workspace);
}

/** Every workspace with its operations of the running month. */
export function listWorkspaces({ registry, term }: AdminWorld) {
  return [...registry.workspaces.values()].map((workspace) => ({
    ...workspace,
    operationsUsed: term.budget.used(workspace.workspaceId, "live"),
    testOperationsUsed: term.budget.used(workspace.workspaceId, "test"),
    aiSpentCents: numberOf(term.budget.aiSpent(workspace.workspaceId)),
  }));
}

/** Makes an app with its four keys; null when the workspace is unknown. */
export function createApp(world: AdminWorld, input: AppInput): Promise<CreatedApp | null> {
  return inTurn(world.registry, () => createAppNow(world, input));
}

interface AppInput {
  readonly name: string;
  readonly workspaceId?: string | undefined;
}

async function createAppNow(world: AdminWorld, input: AppInput): Promise<CreatedApp | null> {
  const { registry, lease, ids, clock } = world;
  const first = registry.workspaces.values().next().value;
  const workspace = input.workspaceId === undefined
    ? first ?? await createWorkspace(world, { name: "Default" })
    : registry.workspaces.get(input.workspaceId);
  if (workspace === undefined) return null;
  const record: AppRecord = {
    appId: ids.next("app"),
    workspaceId: workspace.workspaceId,
    name: input.name,
    identitySecret: randomText(KEY_RANDOM_LENGTH),
    oldIdentitySecrets: [],
    createdAt: clock.now(),
  };
  const made = KEY_CLASSES.flatMap((keyClass) =>
    KEY_MODES.map((mode) => makeKey(world, record.appId, keyClass, mode))
  );
  const realms = await lease.transaction(async (session) => {
    const rows = await insertApp(session, record);
    for (const { key } of made) await saveKey(session, key);
    return rows;
  });
  registry.addApp(record, realms);
  for (const { key } of made) registry.setKey(key);
  const { appId, workspaceId, identitySecret } = record;
  return { appId, workspaceId, identitySecret, keys: made.map(({ shown }) => shown) };
}

/** A new identity secret, shown once, and until when the one before it holds. */
export interface RotatedIdentity {
  readonly identitySecret: string;
  readonly oldValidUntil: Millis;
}

/**
 * Gives an app a new identity secret, which holds at once. Old ones hold until their own time, in real time.
 *
 * @param keepOldMs how long the present one goes on being valid
 */
export function rotateIdentitySecret(
  { registry, lease, clock }: Pick<AdminWorld, "registry" | "lease" | "clock">,
  app: App,
  keepOldMs: Millis,
): Promise<RotatedIdentity> {
  return inTurn(registry, async () => {
    const now = clock.now();
    const oldValidUntil = now + keepOldMs;
    const { identitySecret: secret, oldIdentitySecrets } = app.record;
    const old = [{ secret, validUntil: oldValidUntil }, ...oldIdentitySecrets];
    const record: AppRecord = {
      ...app.record,
      identitySecret: randomText(KEY_RANDOM_LENGTH),
      oldIdentitySecrets: old.filter(({ validUntil }) => validUntil > now),
    };
    await lease.transaction((session) => saveIdentitySecrets(session, record));
    app.record = record;
    return { identitySecret: record.identitySecret, oldValidUntil };
  });
}

/** Makes a key of an app. */
export async function createKey(
  world: AdminWorld,
  app: App,
  keyClass: ApiKey["class"],
  mode: ApiKey["mode"],
): Promise<ShownKey> {
  const { key, shown } = makeKey(world, app.record.appId, keyClass, mode);
  await world.lease.transaction((session) => saveKey(session, key));
  world.registry.setKey(key);
  return shown;
}

/** Revokes a key, which holds at once; a key that is revoked already stays as it is. */
export async function revokeKey({ lease, registry, clock }: AdminWorld, key: ApiKey): Promise<ApiKey> {
  if (key.revokedAt !== null) return key;
  const revoked: ApiKey = { ...key, revokedAt: clock.now() };
  await lease.transaction((session) => saveKey(session, revoked));
  registry.setKey(revoked);
  return revoked;
}

/** How a catalog is to be put in force. */
export interface ApplyOptions {
  /** Says what would change, and changes nothing. */
  readonly isDryRun: boolean;
  /** The version that the document was made from; another one in force refuses it. Null: whatever is in force. */
  readonly expectedVersion: number | null;
}

/** Puts a catalog document in force, or says what would change. Refused as a whole when any part is wrong. */
export async function applyCatalog(
  world: AdminWorld,
  app: App,
  document: unknown,
  { isDryRun, expectedVersion }: ApplyOptions = { isDryRun: false, expectedVersion: null },
): Promise<{ version: number; changes: CatalogChange[] } | Refusal> {
  return await inTurn(world.registry, async () => {
    // Within the turn: units are compared with the catalog in force, which another call may be about to replace.
    const checked = await checkCatalog(document, app.applied?.document ?? null);
    if ("faults" in checked) {
      return refusal("invalid_request", "The catalog has faults", checked.faults);
    }
    const version = app.applied?.version ?? 0;
    if (expectedVersion !== null && expectedVersion !== version) {
      return movedCatalog(version, expectedVersion);
    }
    const changes = diffCatalogs(app.applied?.document ?? {}, checked.catalog);
    const removed = removedParts(app, checked.catalog);
    const inForce = app.catalog;
    // From here on nobody new gets a plan or pack that is about to go; the flush then shows everyone who has one.
    if (!isDryRun) closeParts(app, removed);
    try {
      const inUse = await findInUse(world, app, removed);
      if (inUse !== null) return inUse;
      if (isDryRun || changes.length === 0) return { version, changes };
      const applied = nextCatalog(app, checked.catalog);
      await world.lease.transaction((session) => saveCatalog(session, applied, world.clock.now()));
      world.registry.setCatalog(applied);
      return { version: applied.version, changes };
    } finally {
      // Still the closed one where nothing was put in force.
      if (app.applied?.version === inForce.version) app.catalog = inForce;
    }
  });
}

function movedCatalog(version: number, expected: number): Refusal {
  const message = `The catalog has moved: version ${version} is in force, and expectedVersion is ${expected}`;
  return refusal("catalog_in_use", message, { version });
}

/** Ids of what a new catalog no longer has. */
interface RemovedParts {
  readonly plans: readonly string[];
  readonly packs: readonly string[];
}

/** The refusal of a catalog that lacks what somebody holds, or null. */
async function findInUse(
  world: AdminWorld,
  app: App,
  { plans, packs }: RemovedParts,
): Promise<Refusal | null> {
  if (plans.length === 0 && packs.length === 0) return null;
  await world.term.flush();
  const realms = Object.values(app.realms).map((realm) => ({ realm: realm.realm, now: realm.now() }));
  const inUse = await world.lease.transaction(async (session) => ({
    plans: plans.length === 0 ? [] : await plansInUse(session, realms, plans),
    packs: packs.length === 0 ? [] : await packsInUse(session, realms, packs),
  }));
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
  const { document, version, priceRows } = app.applied;
  const closed = <Part extends { id: string; archived?: boolean | undefined }>(
    parts: readonly Part[] | undefined,
    ids: readonly string[],
  ) => (parts ?? []).map((part) => ({ ...part, archived: part.archived === true || ids.includes(part.id) }));
  app.catalog = compileCatalog(
    { ...document, plans: closed(document.plans, plans), packs: closed(document.packs, packs) },
    version,
    priceRows,
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
  };
}

function makeKey(
  { ids, clock }: AdminWorld,
  appId: string,
  keyClass: ApiKey["class"],
  mode: ApiKey["mode"],
): { key: ApiKey; shown: ShownKey } {
  const text = `${keyClass === "secret" ? "sk" : "pk"}_${mode}_${randomText(KEY_RANDOM_LENGTH)}`;
  const keyId = ids.next("key");
  const key: ApiKey = {
    keyId,
    appId,
    class: keyClass,
    mode,
    hash: hashOf(text),
    prefix: text.slice(0, KEY_PREFIX_LENGTH),
    createdAt: clock.now(),
    revokedAt: null,
  };
  return { key, shown: { keyId, key: text, class: keyClass, mode } };
}
