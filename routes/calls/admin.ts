// The admin API: workspaces, apps, keys, catalogs, sweeps, health and members. Section 3 of the decisions, "Admin API".

import { failure, success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { KeylessEndpoint } from "../http/endpoint_types.ts";
import * as service from "../contract/service.ts";
import * as admin from "../contract/admin.ts";
import { Refused } from "../http/errors.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import {
  type AdminWorld,
  applyCatalog,
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  listWorkspaces,
  revokeKey,
  rotateIdentitySecret,
} from "../../src/tenant/admin.ts";
import { examine, examineCluster } from "../../src/operations/doctor/examine.ts";
import type { App, Registry } from "../../src/tenant/registry.ts";
import type { ApiKey } from "../../src/storage/rows/registry_rows.ts";
import { runSweep, sweepAll } from "../../src/operations/sweeps/sweeps.ts";

type HousekeepingWorld = Parameters<typeof sweepAll>[0] & Parameters<typeof examine>[0];
type World = AdminWorld & HousekeepingWorld;

const endpoint = keylessEndpointsOn<World>();

/** Counts by name, each the sum of what every member counted. */
function sumOf<Counts extends Readonly<Record<string, number>>>(answers: readonly Counts[]): Counts {
  const sum: Record<string, number> = {};
  for (const counts of answers) {
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum as Counts;
}

const WORKSPACES: readonly KeylessEndpoint<World>[] = [
  endpoint(admin.listWorkspaces, ({ world }) => success(listWorkspaces(world)), {
    // Ids grow with time.
    gather: (answers) =>
      answers.flat().toSorted((one, other) => one.workspaceId < other.workspaceId ? -1 : 1),
  }),
  endpoint(
    admin.createWorkspace,
    async ({ world, input }) => success(await createWorkspace(world, withoutUndefined(input))),
  ),
  endpoint(admin.changeWorkspace, async ({ world, input: { workspaceId, ...changes } }) => {
    const changed = await changeWorkspace(world, workspaceId, withoutUndefined(changes));
    return success(changed ?? unknown("workspace"));
  }),
];

const APPS: readonly KeylessEndpoint<World>[] = [
  endpoint(admin.listApps, ({ world }) => success([...world.registry.apps.values()].map(showApp))),
  endpoint(admin.createApp, async ({ world, input: { name, workspaceId } }) => {
    const created = await createApp(world, { name, workspaceId: workspaceId ?? undefined });
    return success(created ?? unknown("workspace"));
  }),
  endpoint(admin.getApp, ({ world, input }) => success(showApp(appOf(world, input.appId)))),
];

const IDENTITY: readonly KeylessEndpoint<World>[] = [
  endpoint(admin.rotateIdentitySecret, async ({ world, input }) => {
    const keepOldMs = Math.round((input.keepOldSeconds ?? admin.KEEP_OLD_SECONDS_DEFAULT) * 1000);
    const rotated = await rotateIdentitySecret(world, appOf(world, input.appId), keepOldMs);
    const { identitySecret, oldValidUntil } = rotated;
    return success({ identitySecret, oldValidUntil: timeText(oldValidUntil) });
  }),
];

const KEYS: readonly KeylessEndpoint<World>[] = [
  endpoint(
    admin.listKeys,
    ({ world, input }) => success(keysOf(world, appOf(world, input.appId)).map(showKey)),
  ),
  endpoint(
    admin.createKey,
    async ({ world, input }) =>
      success(await createKey(world, appOf(world, input.appId), input.class, input.mode)),
  ),
  endpoint(admin.revokeKey, async ({ world, input }) => {
    const app = appOf(world, input.appId);
    const key = keysOf(world, app).find(({ keyId }) => keyId === input.keyId);
    return success(showKey(await revokeKey(world, key ?? unknown("key"))));
  }),
];

const CATALOG_AND_SWEEPS: readonly KeylessEndpoint<World>[] = [
  endpoint(admin.getCatalog, ({ world, input }) => {
    const { applied } = appOf(world, input.appId);
    return success({ version: applied?.version ?? 0, ...applied?.document });
  }),
  endpoint(admin.applyCatalog, async ({ world, input: { appId, dryRun, catalog } }) => {
    const { document, expectedVersion } = catalog;
    const options = { isDryRun: dryRun === "true", expectedVersion };
    const result = await applyCatalog(world, appOf(world, appId), document, options);
    return "code" in result ? failure(result) : success(result);
  }),
  endpoint(service.examine, async ({ world }) => success(await examine(world))),
  endpoint(
    service.showCluster,
    async ({ world }) => success(showCluster(world, await examineCluster(world))),
  ),
  endpoint(service.sweep, async ({ world }) => success(await sweepAll(world)), { gather: sumOf }),
  endpoint(
    service.moveHistory,
    async ({ world }) => success({ historyRows: await runSweep(world, "history") }),
    { gather: sumOf },
  ),
];

/** Every endpoint of the admin API. */
export const ADMIN_ENDPOINTS: readonly KeylessEndpoint<World>[] = [
  ...WORKSPACES,
  ...APPS,
  ...IDENTITY,
  ...KEYS,
  ...CATALOG_AND_SWEEPS,
];

/** @throws Refused when the app is unknown */
export function appOf({ registry }: { readonly registry: Pick<Registry, "apps"> }, appId: string): App {
  return registry.apps.get(appId) ?? unknown("app");
}

function keysOf({ registry }: { readonly registry: Pick<Registry, "keys"> }, app: App): ApiKey[] {
  return [...registry.keys.values()].filter(({ appId }) => appId === app.record.appId);
}

/** Refuses a call that names what does not exist. */
export function unknown(what: string): never {
  throw new Refused("not_found", `No such ${what}`);
}

function showApp({ record, applied }: App) {
  const { appId, workspaceId, name, createdAt } = record;
  return { appId, workspaceId, name, createdAt: timeText(createdAt), catalogVersion: applied?.version ?? 0 };
}

function showCluster({ member }: World, facts: Awaited<ReturnType<typeof examineCluster>>) {
  const { registryVersion, members, free, troubles } = facts;
  return {
    member: member.term,
    registryVersion,
    members: members.map(({ term, address, share, cells, hasEnded, ...row }) => ({
      term,
      address,
      share,
      cells,
      registryVersion: row.registryVersion,
      livedSeconds: secondsOf(row.livedMs),
      silentSeconds: secondsOf(row.silentMs),
      hasEnded,
      isReached: member.reaches(term),
    })),
    cellsWithoutOwner: free,
    troubles: troubles.map(({ found, advice }) => ({ found, advice })),
  };
}

/** Seconds with three digits behind the point. */
function secondsOf(ms: number): number {
  return Math.max(0, Math.round(ms)) / 1000;
}

function showKey(key: ApiKey) {
  return {
    keyId: key.keyId,
    prefix: key.prefix,
    class: key.class,
    mode: key.mode,
    createdAt: timeText(key.createdAt),
    revokedAt: timeTextOrNull(key.revokedAt),
  };
}

/** The members that are set: an absent member keeps its value, a null one clears it. */
function withoutUndefined<T extends object>(input: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(input).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}
