// The admin API as data: workspaces, apps, keys, catalogs, sweep, health, and the way of a request to it. Section 3 of
// the decisions.

import { type Context, Hono } from "hono";
import { z } from "zod";
import type { WireAnswer } from "../actors/idempotency.ts";
import { authorizeAdmin } from "./auth.ts";
import { readMembers } from "./body.ts";
import { Refused } from "./errors.ts";
import { invalid, type Method, success } from "./endpoint.ts";
import type { EndpointDoc } from "./reference/doc.ts";
import {
  appAnswer,
  appInput,
  appliedAnswer,
  catalogAnswer,
  catalogDocument,
  healthAnswer,
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
} from "./schemas/admin.ts";
import { timeText, timeTextOrNull } from "./schemas/fields.ts";
import { RouteWatch } from "./watch.ts";
import {
  type AdminWorld,
  applyCatalog,
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  listWorkspaces,
  revokeKey,
} from "../src/tenant/admin.ts";
import { examine } from "../src/doctor/examine.ts";
import type { ApiKey, App } from "../src/tenant/registry.ts";
import type { Service, Serving } from "../src/service/service.ts";
import { runSweep, sweepAll } from "../src/housekeeping/sweeps.ts";

type AdminHandler = (world: AdminWorld & Serving, context: Context) => Promise<WireAnswer> | WireAnswer;

/** An operation of the admin API: its input is parsed by `body`, where it has one. */
export interface AdminEndpoint {
  readonly method: Method;
  /** Under `/api/admin/v1`, with `:name` for path members. */
  readonly path: string;
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly doc: EndpointDoc;
  readonly handle: AdminHandler;
}

const WORKSPACES: readonly AdminEndpoint[] = [
  {
    method: "GET",
    path: "/workspaces",
    doc: {
      id: "listWorkspaces",
      tag: "Administration",
      summary: "Every workspace with what it used this month",
      answer: workspacesAnswer,
      errors: [],
    },
    handle: (world) => success(listWorkspaces(world)),
  },
  {
    method: "POST",
    path: "/workspaces",
    body: workspaceInput,
    doc: {
      id: "createWorkspace",
      tag: "Administration",
      summary: "Make a workspace",
      description: "Caps are per UTC month; null means no limit.",
      answer: workspaceAnswer,
      errors: [],
    },
    handle: async (world, context) =>
      success(await createWorkspace(world, withoutUndefined(await bodyOf(context, workspaceInput)))),
  },
  {
    method: "PATCH",
    path: "/workspaces/:workspaceId",
    body: workspacePatch,
    doc: {
      id: "changeWorkspace",
      tag: "Administration",
      summary: "Change a workspace",
      description: "A member that is left out keeps its value; a cap of null means no limit.",
      answer: workspaceAnswer,
      errors: ["not_found"],
    },
    handle: async (world, context) => {
      const input = withoutUndefined(await bodyOf(context, workspacePatch));
      const changed = await changeWorkspace(world, context.req.param("workspaceId") ?? "", input);
      return success(changed ?? unknown("workspace"));
    },
  },
];

const APPS: readonly AdminEndpoint[] = [
  {
    method: "GET",
    path: "/apps",
    doc: {
      id: "listApps",
      tag: "Administration",
      summary: "Every app",
      answer: z.array(appAnswer),
      errors: [],
    },
    handle: (world) => success([...world.registry.apps.values()].map(showApp)),
  },
  {
    method: "POST",
    path: "/apps",
    body: appInput,
    doc: {
      id: "createApp",
      tag: "Administration",
      summary: "Make an app with its four keys",
      description:
        "Without workspaceId the app belongs to the first workspace. Keys and identitySecret show once.",
      answer: newAppAnswer,
      errors: ["not_found"],
    },
    handle: async (world, context) => {
      const { workspaceId, ...input } = await bodyOf(context, appInput);
      const created = await createApp(world, { ...input, workspaceId: workspaceId ?? undefined });
      return success(created ?? unknown("workspace"));
    },
  },
  {
    method: "GET",
    path: "/apps/:appId",
    doc: {
      id: "getApp",
      tag: "Administration",
      summary: "An app",
      answer: appAnswer,
      errors: ["not_found"],
    },
    handle: (world, context) => success(showApp(appOf(world, context))),
  },
];

const KEYS: readonly AdminEndpoint[] = [
  {
    method: "GET",
    path: "/apps/:appId/keys",
    doc: {
      id: "listKeys",
      tag: "Administration",
      summary: "The keys of an app, by their prefixes",
      answer: z.array(keyAnswer),
      errors: ["not_found"],
    },
    handle: (world, context) => success(keysOf(world, appOf(world, context)).map(showKey)),
  },
  {
    method: "POST",
    path: "/apps/:appId/keys",
    body: keyInput,
    doc: {
      id: "createKey",
      tag: "Administration",
      summary: "Make a key",
      answer: newKeyAnswer,
      errors: ["not_found"],
    },
    handle: async (world, context) => {
      const app = appOf(world, context);
      const input = await bodyOf(context, keyInput);
      return success(await createKey(world, app, input.class, input.mode));
    },
  },
  {
    method: "DELETE",
    path: "/apps/:appId/keys/:keyId",
    doc: {
      id: "revokeKey",
      tag: "Administration",
      summary: "Revoke a key, at once",
      answer: keyAnswer,
      errors: ["not_found"],
    },
    handle: async (world, context) => {
      const app = appOf(world, context);
      const key = keysOf(world, app).find(({ keyId }) => keyId === context.req.param("keyId"));
      return success(showKey(await revokeKey(world, key ?? unknown("key"))));
    },
  },
];

const CATALOG_AND_SWEEPS: readonly AdminEndpoint[] = [
  {
    method: "GET",
    path: "/apps/:appId/catalog",
    doc: {
      id: "getCatalog",
      tag: "Administration",
      summary: "The catalog in force",
      answer: catalogAnswer,
      errors: ["not_found"],
    },
    handle: (world, context) => {
      const { applied } = appOf(world, context);
      return success({ version: applied?.version ?? 0, ...applied?.document });
    },
  },
  {
    method: "PUT",
    path: "/apps/:appId/catalog",
    body: catalogDocument,
    query: z.object({ dryRun: z.enum(["true", "false"]).optional() }),
    doc: {
      id: "applyCatalog",
      tag: "Administration",
      summary: "Put a whole catalog in force",
      description: "Refused as a whole when any part is wrong; details then name each fault by its path. " +
        "A dry run says what would change.",
      answer: appliedAnswer,
      errors: ["not_found", "catalog_in_use"],
    },
    handle: async (world, context) => {
      const app = appOf(world, context);
      const members = await readMembers(context.req.raw);
      const result = await applyCatalog(world, app, members, isDryRun(context));
      if ("code" in result) throw new Refused(result.code, result.message, result.details);
      return success(result);
    },
  },
  {
    method: "GET",
    path: "/health",
    doc: {
      id: "examine",
      tag: "Administration",
      summary: "What the service finds when it examines itself",
      description: "Each check has a verdict, what was found, and what to do where it is not ok.",
      answer: healthAnswer,
      errors: [],
    },
    handle: async (world) => success(await examine(world)),
  },
  {
    method: "POST",
    path: "/sweep",
    doc: {
      id: "sweep",
      tag: "Administration",
      summary: "Settle everything that is due, now",
      answer: sweepAnswer,
      errors: [],
    },
    handle: async (world) => success(await sweepAll(world)),
  },
  {
    method: "POST",
    path: "/move-history",
    doc: {
      id: "moveHistory",
      tag: "Administration",
      summary: "File the history of merged users under one id, now",
      answer: moveHistoryAnswer,
      errors: [],
    },
    handle: async (world) => success({ historyRows: await runSweep(world, "history") }),
  },
];

/** Every operation of the admin API. */
export const ADMIN_ENDPOINTS: readonly AdminEndpoint[] = [
  ...WORKSPACES,
  ...APPS,
  ...KEYS,
  ...CATALOG_AND_SWEEPS,
];

/** The admin API as an app of its own, to be mounted under `/api/admin/v1`. */
export function adminRoutes(service: Service, adminToken: string | null): Hono {
  const app = new Hono();
  for (const { method, path, handle } of ADMIN_ENDPOINTS) {
    const watch = new RouteWatch(service, method, `/api/admin/v1${path}`);
    app.on(method, path, (context) => run(context, service, adminToken, handle, watch));
  }
  return app;
}

async function run(
  context: Context,
  service: Service,
  adminToken: string | null,
  handler: AdminHandler,
  watch: RouteWatch,
): Promise<Response> {
  const startedAt = watch.starts();
  try {
    const serving = service.requireServing();
    authorizeAdmin(context.req.raw, adminToken);
    return watch.answered(startedAt, context.req.raw, await handler(serving, context));
  } catch (error) {
    return watch.threw(startedAt, context.req.raw, error);
  }
}

async function bodyOf<Schema extends z.ZodType>(context: Context, schema: Schema): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse(await readMembers(context.req.raw));
  if (!parsed.success) throw invalid(parsed.error);
  return parsed.data;
}

function isDryRun(context: Context): boolean {
  const text = context.req.query("dryRun");
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new Refused("invalid_request", "dryRun: must be true or false");
}

function appOf({ registry }: AdminWorld, context: Context): App {
  return registry.apps.get(context.req.param("appId") ?? "") ?? unknown("app");
}

function keysOf({ registry }: AdminWorld, app: App): ApiKey[] {
  return [...registry.keys.values()].filter(({ appId }) => appId === app.record.appId);
}

function unknown(what: string): never {
  throw new Refused("not_found", `No such ${what}`);
}

function showApp({ record, applied }: App) {
  const { appId, workspaceId, name, createdAt } = record;
  return { appId, workspaceId, name, createdAt: timeText(createdAt), catalogVersion: applied?.version ?? 0 };
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
