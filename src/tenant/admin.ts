// The admin API's work: workspaces, apps and keys; catalogs are in `catalogs.ts`. Each write is one change of the registry,
// in force in every process when it is answered. A call that names a workspace runs at the owner of its cell.

import { randomText } from "../process/secrets/random.ts";
import type { Term } from "../../actors/term.ts";
import { numberOf } from "../domain/values/amount.ts";
import type { IdSource } from "../domain/values/ids.ts";
import type { Millis } from "../domain/values/period.ts";
import type { Clock } from "../process/clock.ts";
import { hashOf } from "../process/secrets/hash.ts";
import type { Database } from "../storage/database.ts";
import { newRealms } from "../storage/stores/registry_store.ts";
import { cellOf } from "./cell_of.ts";
import type { App, Registry } from "./registry.ts";
import type { ApiKey, AppRecord, Workspace } from "../storage/rows/registry_rows.ts";
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
interface CreatedApp {
  readonly appId: string;
  readonly workspaceId: string;
  readonly identitySecret: string;
  readonly keys: readonly ShownKey[];
}

/** The caps of a workspace; an absent member keeps its value, or takes its default. */
type WorkspaceInput = Partial<Omit<Workspace, "workspaceId">>;

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
  return await world.changes.change(null, () => {
    const workspace = newWorkspace(world, input);
    return { rows: { workspaces: [workspace] }, answer: workspace };
  });
}

/** A workspace in a cell that this store serves. */
function newWorkspace(
  { ids, registry }: AdminWorld,
  input: WorkspaceInput & { readonly name: string },
): Workspace {
  let workspaceId = ids.next("workspace");
  while (registry.isMoved(cellOf(workspaceId))) workspaceId = ids.next("workspace");
  return { workspaceId, ...DEFAULT_CAPS, ...input };
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
interface RotatedIdentity {
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
interface RolledKey extends ShownKey {
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

/** What a new key is made of. */
type KeyInput = Pick<ApiKey, "class" | "mode" | "name" | "createdBy">;

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
