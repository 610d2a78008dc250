// What the tests of the gateway share: a service on a port with a model server behind it, and OpenAI's own client.

import OpenAI, { type ClientOptions } from "openai";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { limitsOfFile } from "../support/limits.ts";
import type { ModelServer } from "../support/model_server.ts";
import type { TestApp, TestService } from "../support/test_service.ts";
import { composeServiceOfFile } from "./compose_support.ts";
import { dataOf } from "./support.ts";

/** Tokens and cents of everything, and a model that has no price. */
export const CATALOG = {
  settings: { reservationTtlSeconds: 60 },
  models: [{
    id: "mini",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 15,
    cachedInputCentsPerMillionTokens: 5,
    outputCentsPerMillionTokens: 60,
  }],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 10,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      { id: "lg_tokens", label: "Tokens", unit: "tokens", quota: 10_000, matches: [{ event: "openai.*" }] },
      { id: "lg_cents", label: "Cents", unit: "cents", quota: 1_000, matches: [{ event: "openai.*" }] },
      { id: "lg_tagged", label: "Tagged", unit: "count", quota: 5, matches: [{ event: "my.chat" }] },
    ],
  }],
};

/** The key of Anthropic's server. */
export const ANTHROPIC_KEY = "sk-ant-0123456789";

/** A service on a port. */
interface GatewayService {
  readonly service: TestService;
  readonly model: ModelServer;
  /** The base URL of OpenAI's client. */
  baseUrl(): string;
  /** OpenAI's client with the key of an app. */
  client(app: TestApp, options?: ClientOptions): OpenAI;
}

/** A service on a port that lives as long as the tests of a file; to be called once, at the top of the file. */
export function gatewayOfFile(): GatewayService {
  const { service, model } = composeServiceOfFile(undefined, ({ baseUrl }) => ({
    // Anthropic's own base URL has no version.
    anthropicServer: { apiKey: ANTHROPIC_KEY, baseUrl: baseUrl.replace("/v1", "") },
    upstreams: [
      { name: "eu", kind: "openai", keyVariable: "EU_KEY", server: { apiKey: "sk-eu", baseUrl } },
      { name: "unset", kind: "anthropic", keyVariable: "UNSET_KEY", server: null },
    ],
  }));
  // Holds are looked at often, so that no test waits for it.
  limitsOfFile(GATEWAY_LIMITS, { lookEveryMs: 10, readOnMs: 50 });
  let server: Deno.HttpServer<Deno.NetAddr> | null = null;
  Deno.test.beforeAll(() => {
    server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, service.http.fetch);
  });
  Deno.test.afterAll(async () => {
    await server?.shutdown();
  });
  const baseUrl = () => `http://127.0.0.1:${server?.addr.port}/openai/v1`;
  const client = (app: TestApp, options: ClientOptions = {}) =>
    new OpenAI({
      apiKey: app.secretLive,
      baseURL: baseUrl(),
      maxRetries: 0,
      logLevel: "off",
      defaultHeaders: { "X-Holdfast-User": "u" },
      ...options,
    });
  return { service, model, baseUrl, client };
}

/** An app with a subscribed user "u". */
export async function gatewayApp(
  service: TestService,
  document: unknown = CATALOG,
  workspace: Record<string, unknown> = {},
): Promise<TestApp> {
  const app = await service.newApp(document, workspace);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  return app;
}

/** The events of an app, newest first, each with its detail. */
// deno-lint-ignore no-explicit-any -- tests look at whatever came back
export async function eventsOf(app: TestApp): Promise<any[]> {
  const { events } = await dataOf(app.call("GET", "/events?limit=100"));
  return await Promise.all(
    events.map(async ({ id }: { id: string }) => await dataOf(app.call("GET", `/events/${id}`))),
  );
}
