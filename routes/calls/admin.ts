// Workspaces, apps and API keys, with the admin token.

import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import type { DataOf } from "../contract/definition.ts";
import * as contract from "../contract/admin.ts";
import { Refused } from "../http/errors.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import {
  type AdminWorld,
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  listWorkspaces,
  revokeKey,
  rotateIdentitySecret,
} from "../../src/tenant/admin.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import type { ApiKey } from "../../src/storage/rows/registry_rows.ts";

const endpoint = keylessEndpointsOn<AdminWorld>();

/** Workspaces, apps and keys. */
export const ADMIN_ENDPOINTS: readonly KeylessEndpoint<AdminWorld>[] = [
  endpoint(contract.listWorkspaces, ({ world }) => success(listWorkspaces(world)), {
    // Ids grow with time.
    gather: (answers) =>
      answers.flat().toSorted((one, other) => one.workspaceId < other.workspaceId ? -1 : 1),
  }),
  endpoint(
    contract.createWorkspace,
    async ({ world, input }) => success(await createWorkspace(world, withoutUndefined(input))),
  ),
  endpoint(contract.changeWorkspace, async ({ world, input: { workspaceId, ...changes } }) => {
    const changed = await changeWorkspace(world, workspaceId, withoutUndefined(changes));
    return success(changed ?? unknown("Workspace"));
  }),
  endpoint(contract.listApps, ({ world }) => success([...world.registry.apps.values()].map(showApp))),
  endpoint(contract.createApp, async ({ world, input: { name, workspaceId } }) => {
    const created = await createApp(world, { name, workspaceId: workspaceId ?? undefined });
    return success(created ?? unknown("Workspace"));
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
    ({ world, input }) => success(keysOf(world, appOf(world, input.appId)).map(showKey)),
  ),
  endpoint(
    contract.createKey,
    async ({ world, input }) =>
      success(await createKey(world, appOf(world, input.appId), input.class, input.mode)),
  ),
  endpoint(contract.revokeKey, async ({ world, input }) => {
    const app = appOf(world, input.appId);
    const key = keysOf(world, app).find(({ keyId }) => keyId === input.keyId);
    return success(showKey(await revokeKey(world, key ?? unknown("Key"))));
  }),
];

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

function showKey(key: ApiKey): DataOf<typeof contract.revokeKey> {
  return {
    keyId: key.keyId,
    prefix: key.prefix,
    class: key.class,
    mode: key.mode,
    createdAt: timeText(key.createdAt),
    revokedAt: timeTextOrNull(key.revokedAt),
  };
}

/** Leaves undefined members out: an absent member keeps its value, a null one clears it. */
function withoutUndefined<T extends object>(input: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
