// The admin API: workspaces, apps, keys, catalogs, sweeps, health and members. Section 3 of the decisions, "Admin API".

import { z } from "zod";
import { success } from "../http/answer.ts";
import { keylessEndpointsOn } from "../http/endpoint.ts";
import type { About, KeylessEndpoint } from "../http/endpoint_types.ts";
import { Refused } from "../http/errors.ts";
import {
  appAnswer,
  appInput,
  appliedAnswer,
  catalogAnswer,
  catalogBody,
  catalogInput,
  clusterAnswer,
  healthAnswer,
  identityAnswer,
  identityInput,
  KEEP_OLD_SECONDS_DEFAULT,
  keyAnswer,
  keyInput,
  moveHistoryAnswer,
  newAppAnswer,
  newKeyAnswer,
  sweepAnswer,
  workspaceAnswer,
  workspaceInput,
  workspacePatch,
  workspacesAnswer,
} from "../contract/schemas/admin.ts";
import { timeText, timeTextOrNull } from "../contract/schemas/fields.ts";
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

const workspacePath = { workspaceId: z.string() };
/** The app in the path of a call. */
export const appPath = { appId: z.string() };
const keyPath = { ...appPath, keyId: z.string() };

/** An app's calls run at the owner of its cell. */
export function aboutApp({ input }: { readonly input: unknown }): About {
  return input as { readonly appId: string };
}

/** Counts by name, each the sum of what every member counted. */
function sumOf(answers: readonly unknown[]): Record<string, number> {
  const sum: Record<string, number> = {};
  for (const counts of answers as readonly Record<string, number>[]) {
    for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

const WORKSPACES: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/workspaces",
    input: null,
    doc: {
      id: "listWorkspaces",
      tag: "Administration",
      summary: "Every workspace with what it used this month",
      answer: workspacesAnswer,
      errors: [],
    },
    gather: (answers) => {
      const all = answers.flat() as ReturnType<typeof listWorkspaces>;
      // Ids grow with time.
      return all.toSorted((one, other) => one.workspaceId < other.workspaceId ? -1 : 1);
    },
    handle: ({ world }) => success(listWorkspaces(world)),
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/workspaces",
    input: workspaceInput,
    doc: {
      id: "createWorkspace",
      tag: "Administration",
      summary: "Make a workspace",
      description: "Caps are per UTC month; null means no limit.",
      answer: workspaceAnswer,
      errors: [],
    },
    handle: async ({ world, input }) => success(await createWorkspace(world, withoutUndefined(input))),
  }),
  endpoint({
    method: "PATCH",
    access: "admin",
    path: "/admin/v1/workspaces/:workspaceId",
    input: workspacePatch.extend(workspacePath),
    about: ({ input }) => input as { readonly workspaceId: string },
    doc: {
      id: "changeWorkspace",
      tag: "Administration",
      summary: "Change a workspace",
      description: "A member that is left out keeps its value; a cap of null means no limit.",
      answer: workspaceAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { workspaceId, ...changes } }) => {
      const changed = await changeWorkspace(world, workspaceId, withoutUndefined(changes));
      return success(changed ?? unknown("workspace"));
    },
  }),
];

const APPS: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps",
    input: null,
    doc: {
      id: "listApps",
      tag: "Administration",
      summary: "Every app",
      answer: z.array(appAnswer),
      errors: [],
    },
    handle: ({ world }) => success([...world.registry.apps.values()].map(showApp)),
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps",
    input: appInput,
    about: ({ input }) => {
      const { workspaceId } = input as z.infer<typeof appInput>;
      return workspaceId == null ? null : { workspaceId };
    },
    doc: {
      id: "createApp",
      tag: "Administration",
      summary: "Make an app with its four keys",
      description:
        "Without workspaceId the app belongs to the first workspace. Keys and identitySecret show once.",
      answer: newAppAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input: { name, workspaceId } }) => {
      const created = await createApp(world, { name, workspaceId: workspaceId ?? undefined });
      return success(created ?? unknown("workspace"));
    },
  }),
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps/:appId",
    input: z.object(appPath),
    about: aboutApp,
    doc: {
      id: "getApp",
      tag: "Administration",
      summary: "An app",
      answer: appAnswer,
      errors: ["not_found"],
    },
    handle: ({ world, input }) => success(showApp(appOf(world, input.appId))),
  }),
];

const IDENTITY: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/identity-secret",
    input: identityInput.extend(appPath),
    about: aboutApp,
    doc: {
      id: "rotateIdentitySecret",
      tag: "Administration",
      summary: "Give an app a new identity secret",
      description:
        "The new secret signs end-user tokens at once and shows once. Tokens that the old one signed hold " +
        "until oldValidUntil, or until they expire.",
      answer: identityAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input }) => {
      const keepOldMs = Math.round((input.keepOldSeconds ?? KEEP_OLD_SECONDS_DEFAULT) * 1000);
      const rotated = await rotateIdentitySecret(world, appOf(world, input.appId), keepOldMs);
      const { identitySecret, oldValidUntil } = rotated;
      return success({ identitySecret, oldValidUntil: timeText(oldValidUntil) });
    },
  }),
];

const KEYS: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps/:appId/keys",
    input: z.object(appPath),
    about: aboutApp,
    doc: {
      id: "listKeys",
      tag: "Administration",
      summary: "The keys of an app, by their prefixes",
      answer: z.array(keyAnswer),
      errors: ["not_found"],
    },
    handle: ({ world, input }) => success(keysOf(world, appOf(world, input.appId)).map(showKey)),
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/apps/:appId/keys",
    input: keyInput.extend(appPath),
    about: aboutApp,
    doc: {
      id: "createKey",
      tag: "Administration",
      summary: "Make a key",
      answer: newKeyAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input }) =>
      success(await createKey(world, appOf(world, input.appId), input.class, input.mode)),
  }),
  endpoint({
    method: "DELETE",
    access: "admin",
    path: "/admin/v1/apps/:appId/keys/:keyId",
    input: z.object(keyPath),
    about: aboutApp,
    doc: {
      id: "revokeKey",
      tag: "Administration",
      summary: "Revoke a key, at once",
      answer: keyAnswer,
      errors: ["not_found"],
    },
    handle: async ({ world, input }) => {
      const app = appOf(world, input.appId);
      const key = keysOf(world, app).find(({ keyId }) => keyId === input.keyId);
      return success(showKey(await revokeKey(world, key ?? unknown("key"))));
    },
  }),
];

const CATALOG_AND_SWEEPS: readonly KeylessEndpoint<World>[] = [
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/apps/:appId/catalog",
    input: z.object(appPath),
    about: aboutApp,
    doc: {
      id: "getCatalog",
      tag: "Administration",
      summary: "The catalog in force",
      answer: catalogAnswer,
      errors: ["not_found"],
    },
    handle: ({ world, input }) => {
      const { applied } = appOf(world, input.appId);
      return success({ version: applied?.version ?? 0, ...applied?.document });
    },
  }),
  endpoint({
    method: "PUT",
    access: "admin",
    path: "/admin/v1/apps/:appId/catalog",
    input: catalogInput.extend(appPath),
    about: aboutApp,
    inQuery: ["dryRun"],
    wholeBody: { member: "catalog", schema: catalogBody },
    doc: {
      id: "applyCatalog",
      tag: "Administration",
      summary: "Put a whole catalog in force",
      description: "Refused as a whole when any part is wrong; details then name each fault by its path. " +
        "A dry run says what would change. With expectedVersion, a catalog that somebody else has changed " +
        "meanwhile is refused. version and $schema are ignored, so that what GET answered can be put back.",
      answer: appliedAnswer,
      errors: ["not_found", "catalog_in_use"],
    },
    handle: async ({ world, input: { appId, dryRun, catalog } }) => {
      const { document, expectedVersion } = catalog;
      const options = { isDryRun: dryRun === "true", expectedVersion };
      const result = await applyCatalog(world, appOf(world, appId), document, options);
      return "code" in result ? { ok: false, error: result } : success(result);
    },
  }),
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/health",
    input: null,
    doc: {
      id: "examine",
      tag: "Administration",
      summary: "What the service finds when it examines itself",
      description: "Each check has a verdict, what was found, and what to do where it is not ok.",
      answer: healthAnswer,
      errors: [],
    },
    handle: async ({ world }) => success(await examine(world)),
  }),
  endpoint({
    method: "GET",
    access: "admin",
    path: "/admin/v1/cluster",
    input: null,
    doc: {
      id: "showCluster",
      tag: "Administration",
      summary: "The processes that serve this database",
      description: "Each is a member and owns the workspaces of its cells. Any of them answers this.",
      answer: clusterAnswer,
      errors: [],
    },
    handle: async ({ world }) => success(showCluster(world, await examineCluster(world))),
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/sweep",
    input: null,
    doc: {
      id: "sweep",
      tag: "Administration",
      summary: "Settle everything that is due, now",
      answer: sweepAnswer,
      errors: [],
    },
    gather: sumOf,
    handle: async ({ world }) => success(await sweepAll(world)),
  }),
  endpoint({
    method: "POST",
    access: "admin",
    path: "/admin/v1/move-history",
    input: null,
    doc: {
      id: "moveHistory",
      tag: "Administration",
      summary: "File the history of merged users under one id, now",
      answer: moveHistoryAnswer,
      errors: [],
    },
    gather: sumOf,
    handle: async ({ world }) => success({ historyRows: await runSweep(world, "history") }),
  }),
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
