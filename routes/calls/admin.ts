// Workspaces, apps and API keys, with the admin token.

import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint, StoreSource } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/admin.ts";
import { invalidMember, Refused } from "../http/errors.ts";
import { namedStore } from "../http/across_stores.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import {
  type AdminWorld,
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  listWorkspaces,
  revokeKey,
  rollKey,
  rotateIdentitySecret,
} from "../../src/tenant/admin.ts";
import { readKeyUses } from "../../src/storage/stores/key_use_store.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import type { ApiKey } from "../../src/storage/rows/registry_rows.ts";

type World = AdminWorld & {
  /** Null where the process has one database. */
  readonly storeName: string | null;
};

const endpoint = keylessEndpointsOn<World>();

/** Workspaces, apps and keys. */
export const ADMIN_ENDPOINTS: readonly KeylessEndpoint<World>[] = [
  endpoint(
    contract.listWorkspaces,
    ({ world }) => success(listWorkspaces(world).map((workspace) => ({ ...workspace, ...storeOf(world) }))),
    {
      // Ids grow with time.
      gather: (answers) =>
        answers.flat().toSorted((one, other) => one.workspaceId < other.workspaceId ? -1 : 1),
    },
  ),
  endpoint(contract.createWorkspace, async ({ world, input: { store: _, ...input } }) => {
    return success({ ...await createWorkspace(world, withoutUndefined(input)), ...storeOf(world) });
  }, { across: { choose: (source, { store = null }) => namedStore(source, store) } }),
  endpoint(contract.changeWorkspace, async ({ world, input: { workspaceId, ...changes } }) => {
    const changed = await changeWorkspace(world, workspaceId, withoutUndefined(changes));
    return success({ ...changed ?? unknown("Workspace"), ...storeOf(world) });
  }),
  endpoint(contract.listApps, ({ world }) => success([...world.registry.apps.values()].map(showApp)), {
    across: {
      // Ids grow with time.
      join: (answers) => answers.flat().toSorted((one, other) => one.appId < other.appId ? -1 : 1),
    },
  }),
  endpoint(contract.createApp, async ({ world, input: { name, workspaceId }, who }) => {
    const createdBy = creatorOf(who);
    const created = await createApp(world, { name, workspaceId: workspaceId ?? undefined, createdBy });
    return success(created ?? unknown("Workspace"));
  }, {
    across: {
      choose: (source, { workspaceId }) => (workspaceId ?? null) === null ? storeOfFirst(source) : undefined,
    },
  }),
  endpoint(contract.getApp, ({ world, input }) => success(showApp(appOf(world, input.appId)))),
  endpoint(contract.rotateIdentitySecret, async ({ world, input }) => {
    const keepOldMs = Math.round((input.keepOldSeconds ?? contract.KEEP_OLD_SECONDS_DEFAULT) * 1000);
    const rotated = await rotateIdentitySecret(world, appOf(world, input.appId), keepOldMs);
    const { identitySecret, oldValidUntil } = rotated;
    return success({ identitySecret, oldValidUntil: timeText(oldValidUntil) });
  }),
  endpoint(
    contract.listKeys,
    async ({ world, input }) => success(await showKeys(world, keysOf(world, appOf(world, input.appId)))),
    { across: { about: ({ appId }) => ({ appId }) } },
  ),
  endpoint(
    contract.createKey,
    async ({ world, input: { appId, name = null, ...of }, who }) =>
      success(await createKey(world, appOf(world, appId), { ...of, name, createdBy: creatorOf(who) })),
  ),
  endpoint(contract.rollKey, async ({ world, input, who }) => {
    const keepOldMs = Math.round((input.keepOldSeconds ?? contract.KEEP_OLD_SECONDS_DEFAULT) * 1000);
    const rolled = await rollKey(world, keyOf(world, input), keepOldMs, creatorOf(who));
    if (rolled === null) throw invalidMember("keyId", "names a key that is invalid: create a new one");
    return success({ ...rolled, oldValidUntil: timeText(rolled.oldValidUntil) });
  }),
  endpoint(contract.revokeKey, async ({ world, input }) => {
    const revoked = await revokeKey(world, keyOf(world, input));
    const [shown] = await showKeys(world, [revoked]);
    return success(shown as NonNullable<typeof shown>);
  }),
];

/** The member of a workspace that names its database, where there are several. */
function storeOf({ storeName }: World): { store?: string } {
  return storeName === null ? {} : { store: storeName };
}

/** The database of the oldest workspace, to which an app belongs that names none; without any, where one is created. */
function storeOfFirst(source: StoreSource<World>): number {
  const firsts = source.requireAll().flatMap(({ registry, storeName }) => {
    const [first] = registry.workspaces.keys();
    return first === undefined ? [] : [{ storeName, first }];
  });
  const [oldest] = firsts.toSorted((one, other) => one.first < other.first ? -1 : 1);
  return namedStore(source, oldest?.storeName ?? null);
}

/** @throws Refused when the app is unknown */
export function appOf({ registry }: { readonly registry: Pick<Registry, "apps"> }, appId: string): App {
  return registry.apps.get(appId) ?? unknown("App");
}

function keysOf({ registry }: { readonly registry: Pick<Registry, "keys"> }, app: App): ApiKey[] {
  return [...registry.keys.values()].filter(({ appId }) => appId === app.record.appId);
}

/**
 * Refuses a call that names something that does not exist.
 *
 * @param what with a capital letter, such as "App"
 */
export function unknown(what: string): never {
  throw new Refused("not_found", `${what} not found`);
}

function showApp({ record, realms }: App): DataOf<typeof contract.getApp> {
  const { appId, workspaceId, name, createdAt } = record;
  const { applied } = realms.live;
  return { appId, workspaceId, name, createdAt: timeText(createdAt), catalogVersion: applied?.version ?? 0 };
}

/** Who creates a key: an operator by name, or the holder of the admin token. */
function creatorOf(who: string): string {
  return who === "api" ? "admin" : who;
}

function keyOf(
  world: AdminWorld,
  { appId, keyId }: { readonly appId: string; readonly keyId: string },
): ApiKey {
  return keysOf(world, appOf(world, appId)).find((key) => key.keyId === keyId) ?? unknown("Key");
}

/** Keys of one app, with their last uses: the stored ones, and those that this process has not stored yet. */
async function showKeys(
  { database, registry }: AdminWorld,
  keys: readonly ApiKey[],
): Promise<DataOf<typeof contract.listKeys>> {
  const [first] = keys;
  if (first === undefined) return [];
  const stored = await readKeyUses(database, first.appId);
  const { uses } = registry;
  return keys.map((key) => showKey(key, Math.max(stored.get(key.keyId) ?? 0, uses.get(key.keyId) ?? 0)));
}

const MINUTE_MS = 60_000;

function showKey(key: ApiKey, usedAt: number): DataOf<typeof contract.revokeKey> {
  return {
    keyId: key.keyId,
    prefix: key.prefix,
    class: key.class,
    mode: key.mode,
    name: key.name,
    createdAt: timeText(key.createdAt),
    createdBy: key.createdBy,
    lastUsedAt: usedAt === 0 ? null : timeText(usedAt - usedAt % MINUTE_MS),
    validUntil: timeTextOrNull(key.validUntil),
    revokedAt: timeTextOrNull(key.revokedAt),
  };
}

/** Leaves undefined members out: an absent member keeps its value, a null one clears it. */
function withoutUndefined<T extends object>(input: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
