// The admin API: workspaces, apps, keys, catalogs, sweep. Section 3 of the decisions.

import { type Context, Hono } from "hono";
import { z } from "zod";
import { Unavailable } from "actors/port.ts";
import type { WireAnswer } from "actors/idempotency.ts";
import { authorizeAdmin } from "routes/auth.ts";
import { readBody } from "routes/body.ts";
import { Refused } from "routes/errors.ts";
import { invalid, success } from "routes/operation.ts";
import { textOf, timeText, timeTextOrNull } from "routes/schemas/fields.ts";
import { RouteWatch } from "routes/watch.ts";
import {
  type AdminWorld,
  applyCatalog,
  changeWorkspace,
  createApp,
  createKey,
  createWorkspace,
  listWorkspaces,
  revokeKey,
} from "src/admin/admin.ts";
import { REQUEST_LIMITS } from "src/limits.ts";
import type { ApiKey, App } from "src/registry.ts";
import type { Service, Serving } from "src/service.ts";
import { runSweep, sweepAll } from "src/sweeps.ts";

type AdminHandler = (world: AdminWorld & Serving, context: Context) => Promise<WireAnswer> | WireAnswer;

const name = textOf(1, REQUEST_LIMITS.idLengthMax);
const cap = z.number().min(0).max(REQUEST_LIMITS.amountMax).nullable().optional();
const caps = { operationCap: cap, aiBudgetCents: cap, testOperationCap: cap, testCreditBalanceCap: cap };
const newWorkspace = z.object({ name, ...caps });
const workspacePatch = z.object({ name: name.nullish().transform((text) => text ?? undefined), ...caps });
const newApp = z.object({ name, workspaceId: z.string().nullish() });
const newKey = z.object({ class: z.enum(["secret", "public"]), mode: z.enum(["live", "test"]) });

/** The admin API as an app of its own, to be mounted under `/api/admin/v1`. */
export function adminRoutes(service: Service, adminToken: string | null): Hono {
  const app = new Hono();
  const on = (method: string, path: string, handler: AdminHandler) => {
    const watch = new RouteWatch(service, method, `/api/admin/v1${path}`);
    app.on(method, path, (context) => run(context, service, adminToken, handler, watch));
  };

  on("GET", "/workspaces", (world) => success(listWorkspaces(world)));
  on("POST", "/workspaces", async (world, context) => {
    return success(await createWorkspace(world, withoutUndefined(await bodyOf(context, newWorkspace))));
  });
  on("PATCH", "/workspaces/:id", async (world, context) => {
    const input = withoutUndefined(await bodyOf(context, workspacePatch));
    return success(await changeWorkspace(world, pathId(context), input) ?? unknown("workspace"));
  });
  on("GET", "/apps", (world) => success([...world.registry.apps.values()].map(showApp)));
  on("POST", "/apps", async (world, context) => {
    const { workspaceId, ...input } = await bodyOf(context, newApp);
    return success(
      await createApp(world, { ...input, workspaceId: workspaceId ?? undefined }) ?? unknown("workspace"),
    );
  });
  on("GET", "/apps/:id", (world, context) => success(showApp(appOf(world, context))));
  on("GET", "/apps/:id/keys", (world, context) => success(keysOf(world, appOf(world, context)).map(showKey)));
  on("POST", "/apps/:id/keys", async (world, context) => {
    const app = appOf(world, context);
    const input = await bodyOf(context, newKey);
    return success(await createKey(world, app, input.class, input.mode));
  });
  on("DELETE", "/apps/:id/keys/:keyId", async (world, context) => {
    const app = appOf(world, context);
    const key = keysOf(world, app).find(({ keyId }) => keyId === context.req.param("keyId"));
    return success(showKey(await revokeKey(world, key ?? unknown("key"))));
  });
  on("GET", "/apps/:id/catalog", (world, context) => {
    const { applied } = appOf(world, context);
    return success({ version: applied?.version ?? 0, ...applied?.document });
  });
  on("PUT", "/apps/:id/catalog", async (world, context) => {
    const app = appOf(world, context);
    const { members } = await readBody(context.req.raw);
    const result = await applyCatalog(world, app, members, isDryRun(context));
    if ("code" in result) throw new Refused(result.code, result.message, result.details);
    return success(result);
  });
  on("POST", "/sweep", async (world) => success(await sweepAll(world)));
  on("POST", "/move-history", async (world) => success({ historyRows: await runSweep(world, "history") }));
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
    const { serving } = service;
    if (serving === null) throw new Unavailable("This process is not the writer");
    authorizeAdmin(context.req.raw, adminToken);
    return watch.answered(startedAt, context.req.raw, await handler(serving, context));
  } catch (error) {
    return watch.threw(startedAt, context.req.raw, error);
  }
}

async function bodyOf<Schema extends z.ZodType>(context: Context, schema: Schema): Promise<z.infer<Schema>> {
  const parsed = schema.safeParse((await readBody(context.req.raw)).members);
  if (!parsed.success) throw invalid(parsed.error);
  return parsed.data;
}

function isDryRun(context: Context): boolean {
  const text = context.req.query("dryRun");
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new Refused("invalid_request", "dryRun: must be true or false");
}

function pathId(context: Context): string {
  return context.req.param("id") ?? "";
}

function appOf({ registry }: AdminWorld, context: Context): App {
  return registry.apps.get(pathId(context)) ?? unknown("app");
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
