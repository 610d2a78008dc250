// The administrator's work: workspaces, apps, keys and catalogs. Each is one change of the registry, in force in every
// member when it is answered. What names a workspace runs at the owner of its cell. Section 3 of the decisions, "Admin
// API".

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

/** What the administrator works on. */
export interface AdminWorld {
  readonly registry: Registry;
  readonly changes: Pick<RegistryChanges, "change" | "confirm">;
  readonly database: Pick<Database, "query">;
  readonly term: Pick<Term, "budget" | "doors" | "flush">;
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

/** The workspaces of the cells that this member owns, with their operations of the running month. */
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

/** Makes an app with its four keys; null when the workspace is unknown. */
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
    const { record, made } = newApp(world, input.name, owner);
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
}

function newApp(world: AdminWorld, name: string, workspaceId: string) {
  const record: AppRecord = {
    appId: world.ids.next("app"),
    workspaceId,
    name,
    identitySecret: randomText(KEY_RANDOM_LENGTH),
    oldIdentitySecrets: [],
    createdAt: world.clock.now(),
  };
  const made = KEY_CLASSES.flatMap((keyClass) =>
    KEY_MODES.map((mode) => makeKey(world, record.appId, keyClass, mode))
  );
  return { record, made };
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

/** Makes a key of an app. */
export async function createKey(
  world: AdminWorld,
  app: App,
  keyClass: ApiKey["class"],
  mode: ApiKey["mode"],
): Promise<ShownKey> {
  const { key, shown } = makeKey(world, app.record.appId, keyClass, mode);
  return await world.changes.change(app.cell, () => ({ rows: { keys: [key] }, answer: shown }));
}

/** Revokes a key, which holds at once; a key that is revoked already stays as it is. */
export async function revokeKey(
  { changes, registry, clock }: AdminWorld,
  { appId, keyId }: ApiKey,
): Promise<ApiKey> {
  const { cell } = registry.apps.get(appId) as App;
  return await changes.change(cell, () => {
    const key = registry.keys.get(keyId) as ApiKey;
    // Also a repeated call waits until every member knows.
    const revoked: ApiKey = { ...key, revokedAt: key.revokedAt ?? clock.now() };
    return { rows: { keys: [revoked] }, answer: revoked };
  });
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
      if (isDryRun) return { version, changes };
      if (changes.length === 0) {
        await world.changes.confirm();
        return { version, changes };
      }
      const applied = nextCatalog(app, checked.catalog);
      const answer = { version: applied.version, changes };
      return await world.changes.change(app.cell, () => ({ rows: { catalogs: [applied] }, answer }));
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
