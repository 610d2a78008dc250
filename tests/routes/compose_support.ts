// What the tests of compose share: a service with a model server beside it, a catalog with compose types, and looks
// into the tables.

import assert from "node:assert/strict";
import type { Features } from "../../src/process/features.ts";
import { ModelServer } from "../support/model_server.ts";
import { type Answer, startTestService, type TestApp, type TestService } from "../support/test_service.ts";
import { dataOf } from "./support.ts";

export const MODEL_KEY = "sk-model-0123456789";

const SCHEMA = {
  type: "object",
  properties: { headline: { type: "string" }, score: { type: "integer" } },
  required: ["headline", "score"],
  additionalProperties: false,
};

/** An answer that matches the schema of every type here. */
export const GOOD = { headline: "Well done", score: 7 };

/** A type with this prompt. */
export function typeOf(name: string, prompt: string, more: Record<string, unknown> = {}) {
  return { name, model: "mini", prompt, outputSchema: SCHEMA, ...more };
}

/** Models, plans and packs for compose types. */
export function catalogOf(composeTypes: readonly unknown[], more: Record<string, unknown> = {}) {
  return {
    settings: { promptLogging: true },
    models: [{
      id: "mini",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 15,
      outputCentsPerMillionTokens: 60,
    }],
    plans: [{
      id: "plan_pro",
      name: "Pro",
      rank: 10,
      period: { type: "monthly", anchor: "calendar" },
      limits: [
        { id: "lg_tokens", label: "Tokens", unit: "tokens", quota: 2000, matches: [{ event: "compose.*" }] },
        { id: "lg_calls", label: "Calls", unit: "count", quota: 1000, matches: [{ event: "*" }] },
      ],
    }],
    packs: [{
      id: "cpk_tokens",
      name: "Tokens",
      kind: "generic",
      unit: "tokens",
      matches: [{ event: "compose.*" }],
      items: [],
    }],
    composeTypes,
    ...more,
  };
}

export const CATALOG = catalogOf([typeOf("recap", "Recap for {name}.")]);

/** What a generation by the default usage of the model server costs: 1000 x 15 + 500 x 60 cents a million. */
export const COST = 0.045;

/** A service and the model server that it asks. */
interface ComposeService {
  readonly service: TestService;
  readonly model: ModelServer;
}

/** Both live as long as the tests of a file; to be called once, at the top of the file. */
export function composeServiceOfFile(
  deadlineMs?: number,
  features: (model: ModelServer) => Partial<Features> = () => ({}),
): ComposeService {
  let parts: ComposeService | null = null;
  Deno.test.beforeAll(async () => {
    const model = new ModelServer();
    const modelServer = {
      apiKey: MODEL_KEY,
      baseUrl: model.baseUrl,
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    };
    parts = { model, service: await startTestService(undefined, { modelServer, ...features(model) }) };
  });
  Deno.test.beforeEach(() => parts?.model.reset());
  Deno.test.afterAll(async () => {
    await parts?.service.close();
    await parts?.model.close();
  });
  const of = <Name extends keyof ComposeService>(name: Name) =>
    new Proxy({} as ComposeService[Name], {
      get: (_, member) => {
        assert.ok(parts !== null, "The service has not started");
        const target = parts[name];
        const value = target[member as keyof typeof target];
        return typeof value === "function" ? value.bind(target) : value;
      },
      set: (_, member, value) => {
        assert.ok(parts !== null, "The service has not started");
        Object.assign(parts[name], { [member]: value });
        return true;
      },
    });
  return { service: of("service"), model: of("model") };
}

/** Composes a recap for user "u". */
export function composeRecap(
  app: TestApp,
  body: Record<string, unknown> = {},
  options: { key?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return app.call(
    "POST",
    "/compose",
    { type: "recap", userId: "u", vars: { name: "Ada" }, ...body },
    options,
  );
}

/** A new app with a subscribed user "u". */
export async function composeApp(
  service: TestService,
  document: unknown = CATALOG,
  workspace: Record<string, unknown> = {},
): Promise<TestApp> {
  const app = await service.newApp(document, workspace);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  return app;
}

/** Rows of a table of an app's realms, once they are there. */
export async function rowsOf(
  service: TestService,
  app: TestApp,
  table: "generations" | "events" | "event_logs" | "users" | "idempotency",
): Promise<Record<string, unknown>[]> {
  await service.serving().term.flush();
  const rows = await service.store.database.query(
    `select t.* from ${table} t join realms r on r.realm = t.realm where r.app_id = $1`,
    [app.appId],
  );
  return [...rows];
}

/** What the app's workspace spent on models in the running month. */
export async function spentOf(service: TestService, app: TestApp): Promise<number> {
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === app.workspaceId);
  return row.aiSpentCents;
}

/** The counts of user "u" by group. */
export async function countsOf(app: TestApp, userId = "u"): Promise<Record<string, number>> {
  const { counters } = await dataOf(app.call("GET", `/usage?userId=${userId}`));
  return Object.fromEntries(
    counters.map((row: { groupId: string; count: number }) => [row.groupId, row.count]),
  );
}
