// The gateway in Anthropic's dialect, by Anthropic's own client: calls are answered as the model server answers them, and metered
// by its report.

import assert from "node:assert/strict";
import Anthropic, { APIError } from "npm:@anthropic-ai/sdk@1.14.0";
import { END_USAGE, messageEvents, messageOf, namedEvent, textDeltas } from "../support/anthropic_replies.ts";
import { headerOf, SAMPLE } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { ANTHROPIC_KEY, CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";
import { countsOf } from "./compose_support.ts";
import { until } from "../support/until.ts";

const { service, model, baseUrl } = gatewayOfFile();

const CATALOG_OF_MESSAGES = {
  models: [{
    id: "claude",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 100,
    cachedInputCentsPerMillionTokens: 10,
    cacheWriteCentsPerMillionTokens: 125,
    cacheWrite1hCentsPerMillionTokens: 200,
    outputCentsPerMillionTokens: 1000,
  }],
  plans: [{
    ...CATALOG.plans[0],
    limits: [
      {
        id: "lg_tokens",
        label: "Tokens",
        unit: "tokens",
        quota: 10_000,
        matches: [{ event: "anthropic.*" }],
      },
      { id: "lg_cents", label: "Cents", unit: "cents", quota: 1_000, matches: [{ event: "anthropic.*" }] },
      { id: "lg_many", label: "Many", unit: "tokens", quota: 1e9, matches: [{ event: "many" }] },
      {
        id: "lg_rate",
        label: "Rate",
        unit: "count",
        quota: 1,
        period: { type: "rolling", seconds: 60 },
        matches: [{ event: "rated" }],
      },
      { id: "lg_rated", label: "Rated", unit: "count", quota: 9, matches: [{ event: "rated" }] },
    ],
  }],
};

/** What the sample costs: 600 input, 300 cached, 60 and 40 written, 500 out. */
const TOKENS = 1_500;
const CENTS = (600 * 100 + 300 * 10 + 60 * 125 + 40 * 200 + 500 * 1000) / 1e6;
const SAMPLE_COUNTS = { lg_tokens: TOKENS, lg_cents: CENTS, lg_many: 0, lg_rated: 0 };
const ASKED = { model: "claude", max_tokens: 100, messages: [{ role: "user" as const, content: "Hello" }] };

function appWith(more: object = {}): Promise<TestApp> {
  return gatewayApp(service, { ...CATALOG_OF_MESSAGES, ...more });
}

const root = () => baseUrl().replace("/openai/v1", "/anthropic");

function clientOf(app: TestApp, options: object = {}): Anthropic {
  return new Anthropic({
    apiKey: app.secretLive,
    baseURL: root(),
    maxRetries: 0,
    logLevel: "off",
    defaultHeaders: { "X-Holdfast-User": "u" },
    ...options,
  });
}

/** Posts to a path; returns the status, the body and the headers of the answer. */
async function post(
  app: TestApp,
  body: unknown,
  {
    path = "/v1/messages",
    key = app.secretLive,
    headers = { "x-holdfast-user": "u" } as Record<string, string>,
  } = {},
) {
  const response = await fetch(root() + path, {
    method: "POST",
    headers: { "x-api-key": key, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json(), headers: response.headers };
}

/** The status, type, code and member of a refusal. */
async function refusal(app: TestApp, body: unknown, sent: Parameters<typeof post>[2] = {}) {
  const { status, body: { type, error, request_id }, headers } = await post(app, body, sent);
  assert.equal(type, "error");
  assert.equal(headers.get("request-id"), request_id);
  return [status, error.type, error.code, ...error.param === undefined ? [] : [error.param]];
}

async function counts(app: TestApp) {
  const { lg_tokens, lg_cents, lg_many, lg_rated } = await countsOf(app) as Record<string, number>;
  return { lg_tokens, lg_cents, lg_many, lg_rated };
}

Deno.test("a message and its streams are answered by the server and metered by its report", async () => {
  const calls: Record<string, (anthropic: Anthropic) => Promise<string | undefined>> = {
    message: async (anthropic) => {
      const { content: [block] } = await anthropic.messages.create(ASKED);
      return block?.type === "text" ? block.text : undefined;
    },
    stream: async (anthropic) => {
      let text = "";
      for await (const event of await anthropic.messages.create({ ...ASKED, stream: true })) {
        if (event.type === "content_block_delta" && event.delta.type === "text_delta") {
          text += event.delta.text;
        }
      }
      return text;
    },
    "helper of streams": async (anthropic) => await anthropic.messages.stream(ASKED).finalText(),
    beta: async (anthropic) => {
      const { content: [block] } = await anthropic.beta.messages.create({ ...ASKED, betas: ["some-beta"] });
      return block?.type === "text" ? block.text : undefined;
    },
  };
  for (const [name, call] of Object.entries(calls)) {
    const app = await appWith();
    model.requests.length = 0;
    assert.equal(await call(clientOf(app)), SAMPLE.join(""), name);
    assert.deepEqual(await counts(app), SAMPLE_COUNTS, name);
    const [request] = model.requests;
    assert.equal(request?.path, "/v1/messages");
    assert.equal(headerOf(request?.top ?? "", "x-api-key"), ANTHROPIC_KEY);
    assert.equal(headerOf(request?.top ?? "", "authorization"), null);
    assert.match(headerOf(request?.top ?? "", "anthropic-version") ?? "", /^20[0-9]{2}-/);
    assert.equal(headerOf(request?.top ?? "", "anthropic-beta"), name === "beta" ? "some-beta" : null);
  }
});

Deno.test("the key is in x-api-key before the bearer token, and a user's key needs no header", async () => {
  const app = await appWith();
  const by = (headers: Record<string, string>) =>
    fetch(`${root()}/v1/messages`, { method: "POST", headers, body: JSON.stringify(ASKED) });
  const user = { "x-holdfast-user": "u" };
  const good = app.secretLive;
  assert.equal((await by({ ...user, "x-api-key": good, authorization: "Bearer x" })).status, 200);
  assert.equal((await by({ ...user, "x-api-key": "x", authorization: `Bearer ${good}` })).status, 401);
  const { key } = await dataOf(app.call("POST", "/users/u/keys", {}));
  for (const options of [{ apiKey: key }, { apiKey: null, authToken: key }]) {
    await clientOf(app, { ...options, defaultHeaders: {} }).messages.create(ASKED);
  }
  assert.equal((await counts(app)).lg_tokens, 3 * TOKENS);
  // The body names no user: its metadata pass unchanged.
  const body = { ...ASKED, metadata: { user_id: "u" }, user: "u" };
  assert.deepEqual(await refusal(app, body, { headers: {} }), [
    400,
    "invalid_request_error",
    "invalid_request",
    "X-Holdfast-User",
  ]);
  const text = JSON.stringify(body);
  await post(app, text, { path: "/v1/messages?beta=true" });
  assert.equal(model.requests.at(-1)?.text, text);
  assert.equal(model.requests.at(-1)?.path, "/v1/messages?beta=true");
});

Deno.test("pings and events that are unknown here pass as they came", async () => {
  const app = await appWith();
  const events = [...messageEvents(textDeltas(["a"]))];
  events.splice(3, 0, namedEvent("ping"), namedEvent("some_new_event", { anything: { usage: 5 } }));
  model.reply = () => ({ events });
  const response = await fetch(`${root()}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": app.secretLive, "x-holdfast-user": "u" },
    body: JSON.stringify({ ...ASKED, stream: true }),
  });
  assert.equal(await response.text(), events.join(""));
  assert.deepEqual(await counts(app), SAMPLE_COUNTS);
});

Deno.test("tools, thinking and pictures pass, and are held and counted", async () => {
  const app = await appWith();
  const tools = [{ name: "weather", input_schema: { type: "object" as const } }];
  model.reply = () => ({
    events: messageEvents(
      ['{"city":', '"Rome"}'].map((partial_json) => ({ type: "input_json_delta", partial_json })),
      { type: "tool_use", id: "toolu_1", name: "weather", input: {} },
    ),
  });
  const message = await clientOf(app).messages.stream({ ...ASKED, tools }).finalMessage();
  assert.deepEqual(message.content[0]?.type === "tool_use" && message.content[0].input, { city: "Rome" });
  model.reply = () => ({
    events: messageEvents([{ type: "thinking_delta", thinking: "Hm" }], {
      type: "thinking",
      thinking: "",
      signature: "",
    }),
  });
  const thinking = { type: "enabled" as const, budget_tokens: 1024 };
  const picture = {
    type: "image" as const,
    source: { type: "base64" as const, media_type: "image/png" as const, data: "a".repeat(400_000) },
  };
  const thought = await clientOf(app).messages.stream({
    ...ASKED,
    thinking,
    max_tokens: 2048,
    messages: [{ role: "user", content: [picture] }],
  }).finalMessage();
  assert.deepEqual(thought.content[0]?.type === "thinking" && thought.content[0].thinking, "Hm");
  assert.equal((await counts(app)).lg_tokens, 2 * TOKENS);
});

Deno.test("a compacted message is charged all its runs", async () => {
  const app = await appWith();
  const iterations = [
    { type: "compaction", input_tokens: 1_000, output_tokens: 50 },
    { type: "message", input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 30 },
  ];
  model.reply = () => ({
    events: messageEvents(textDeltas(["a"]), undefined, { ...END_USAGE, output_tokens: 20, iterations }),
  });
  await clientOf(app).messages.stream(ASKED).finalMessage();
  assert.equal((await counts(app)).lg_tokens, 1_000 + 50 + 100 + 20 + 30);
});

Deno.test("a stream that breaks is charged its input as reported, and its output by its text; without work nothing", async () => {
  const broken = await appWith();
  const events = [...messageEvents(textDeltas(["a".repeat(4_000)]), undefined, null)];
  model.reply = () => ({ events, cutsOff: true });
  await assert.rejects(clientOf(broken).messages.stream(ASKED).finalMessage());
  await until(async () => (await counts(broken)).lg_tokens === 1_000 + 1_000);
  const [event] = await eventsOf(broken);
  assert.equal(event.metadata.estimated, true);

  const failed = await appWith();
  const error = namedEvent("error", { error: { type: "overloaded_error", message: "Overloaded" } });
  model.reply = () => ({ events: [...messageEvents([], undefined, null)].slice(0, 2).concat(error) });
  await assert.rejects(clientOf(failed).messages.stream(ASKED).finalMessage(), /Overloaded/);
  assert.equal((await counts(failed)).lg_tokens, 0);
  assert.deepEqual((await eventsOf(failed)).map(({ matchStatus }) => matchStatus), ["released"]);
});

Deno.test("an overloaded server's 529 passes and is released; its 401 and 403 stay here", async () => {
  const app = await appWith();
  const body = JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Busy" } });
  for (const [status, expected] of [[529, 529], [400, 400], [401, 502], [403, 502]] as const) {
    model.reply = () => ({
      status,
      body,
      headers: { "x-should-retry": "true", "anthropic-organization-id": "o" },
    });
    const error = await clientOf(app).messages.create(ASKED).then(() => null, (error) => error);
    assert.ok(error instanceof APIError);
    assert.equal(error.status, expected);
    const type = expected === 502 ? "api_error" : "overloaded_error";
    assert.equal((error.error as { error: { type: string } }).error.type, type);
    assert.equal(error.headers?.get("anthropic-organization-id"), null);
  }
  assert.equal((await counts(app)).lg_tokens, 0);
});

Deno.test("refusals have Anthropic's shape, and no model is asked", async () => {
  const app = await appWith({ gateway: { models: ["claude*"] } });
  const invalid = (
    param?: string,
  ) => [400, "invalid_request_error", "invalid_request", ...param === undefined ? [] : [param]];
  const rows: readonly (readonly [
    name: string,
    expected: readonly unknown[],
    body?: unknown,
    sent?: Parameters<typeof post>[2],
  ])[] = [
    ["a wrong key", [401, "authentication_error", "invalid_key"], ASKED, { key: "sk_live_x" }],
    ["a public key", [403, "permission_error", "requires_secret_key"], ASKED, { key: app.publicLive }],
    ["a test key", [403, "permission_error", "forbidden"], ASKED, { key: app.secretTest }],
    ["an unknown path", [404, "not_found_error", "not_found"], ASKED, { path: "/v1/complete" }],
    ["another model", [404, "not_found_error", "not_found", "model"], { ...ASKED, model: "other" }],
    ["no JSON", invalid(), "{"],
    ["a member twice", invalid("model"), '{"model":"claude","model":"claude"}'],
    ["another case", invalid("Max_Tokens"), { ...ASKED, Max_Tokens: 9 }],
    ["a stream of no boolean", invalid("stream"), { ...ASKED, stream: 1 }],
    ["a limit of no number", invalid("max_tokens"), { ...ASKED, max_tokens: "9" }],
    ["a tool of the server", invalid("tools"), {
      ...ASKED,
      tools: [{ type: "web_search_20250305", name: "web_search" }],
    }],
    ["servers of tools", invalid("mcp_servers"), {
      ...ASKED,
      mcp_servers: [{ type: "url", url: "https://x", name: "x" }],
    }],
    ["a stored thread", invalid("thread"), { ...ASKED, thread: { type: "create" } }],
    ["other models", invalid("fallbacks"), { ...ASKED, fallbacks: [{ model: "dear" }] }],
    ["a container", invalid("container"), { ...ASKED, container: { id: "container_1" } }],
    ["a stored file", invalid("file_id"), {
      ...ASKED,
      messages: [{
        role: "user",
        content: [{ type: "document", source: { type: "file", file_id: "file_1" } }],
      }],
    }],
    [
      "too large",
      [413, "request_too_large", "payload_too_large"],
      `{"a":"${"x".repeat(33 * 1024 * 1024)}"}`,
    ],
    ["a full plan", [429, "rate_limit_error", "limit_reached"], { ...ASKED, max_tokens: 10_000 }],
    ["a user without a plan", [429, "rate_limit_error", "no_subscription"], ASKED, {
      headers: { "x-holdfast-user": "v" },
    }],
  ];
  for (const [name, expected, body, sent] of rows) {
    assert.deepEqual(await refusal(app, body, sent), expected, name);
    if (expected[0] !== 429) continue;
    assert.equal((await post(app, body, sent)).headers.get("x-should-retry"), "false", name);
  }
  assert.deepEqual(model.requests, []);
  assert.equal((await counts(app)).lg_tokens, 0);
  // Inputs of tools are the model's own words.
  const input = { file_id: "a", container: "b" };
  const used = [{ role: "assistant", content: [{ type: "tool_use", id: "t", name: "read", input }] }];
  assert.equal((await post(app, { ...ASKED, messages: used })).status, 200);
});

Deno.test("a guard's refusal says when to retry", async () => {
  const app = await appWith();
  const headers = { "x-holdfast-user": "u", "x-holdfast-event": "rated" };
  assert.equal((await post(app, ASKED, { headers })).status, 200);
  const { status, body, headers: answered } = await post(app, ASKED, { headers });
  assert.deepEqual([status, body.error.type, body.error.code], [
    429,
    "rate_limit_error",
    "rate_limit_reached",
  ]);
  assert.match(answered.get("retry-after") ?? "", /^[0-9]+$/);
  assert.equal(answered.get("x-should-retry"), null);
});

Deno.test("tools of the server need the app's setting, with and without other ones; the caller's own need none", async () => {
  const tools = [{ type: "web_search_20250305", name: "web_search" }];
  const own = [{ type: "custom", name: "a" }, { type: "bash_20250124", name: "bash" }, {
    type: "memory_20250818",
    name: "memory",
  }];
  for (
    const [more, status] of [[{}, 400], [{ gateway: {} }, 400], [
      { gateway: { allowServerTools: true } },
      200,
    ]] as const
  ) {
    const app = await appWith(more);
    assert.equal((await post(app, { ...ASKED, tools })).status, status);
    assert.equal((await post(app, { ...ASKED, tools: own })).status, 200);
  }
});

Deno.test("counting tokens and reading models need a key and no user, and hold nothing", async () => {
  const app = await appWith({ gateway: { models: ["claude*"] } });
  const anthropic = clientOf(app, { defaultHeaders: {} });
  const counted = await anthropic.messages.countTokens({ model: "claude", messages: ASKED.messages });
  assert.deepEqual(counted, { input_tokens: 12 });
  assert.equal(model.requests.at(-1)?.path, "/v1/messages/count_tokens");
  await assert.rejects(anthropic.messages.countTokens({ model: "other", messages: [] }), { status: 404 });
  const list = ["claude", "claude-2", "gpt"].map((id) => ({ type: "model", id }));
  model.reply = ({ path }) =>
    path.startsWith("/v1/models?") || path === "/v1/models"
      ? { answer: { data: list, has_more: false, first_id: "claude", last_id: "gpt" } }
      : { answer: { type: "model", id: path.split("/").at(-1) } };
  const ids = (await Array.fromAsync(await anthropic.models.list({ limit: 5 }))).map(({ id }) => id);
  assert.deepEqual(ids, ["claude", "claude-2"]);
  assert.equal(model.requests.at(-1)?.path, "/v1/models?limit=5");
  assert.equal((await anthropic.models.retrieve("claude-2")).id, "claude-2");
  await assert.rejects(anthropic.models.retrieve("gpt"), { status: 404 });
  assert.deepEqual(await eventsOf(app), []);
  const test = clientOf(app, { apiKey: app.secretTest });
  await assert.rejects(test.messages.countTokens({ model: "claude", messages: [] }), { status: 403 });
});

Deno.test("what is held is the input by its size, media flat, a PDF by its own, and the longest answer", async () => {
  const app = await appWith();
  const held = async (more: object) => {
    let amount = 0;
    model.reply = async () => {
      amount = (await counts(app)).lg_many ?? 0;
      return { answer: messageOf([], { usage: { input_tokens: 0, output_tokens: 0 } }) };
    };
    const headers = { "x-holdfast-user": "u", "x-holdfast-event": "many" };
    assert.equal((await post(app, { ...ASKED, ...more }, { headers })).status, 200);
    return amount;
  };
  const bytes = (...values: unknown[]) =>
    Math.ceil(values.map((value) => JSON.stringify(value)).join("").length / 4);
  const { messages } = ASKED;
  assert.equal(await held({}), bytes(messages) + 100);
  assert.equal(await held({ max_tokens: undefined }), bytes(messages) + 1_024);
  const tools = [{ name: "a", input_schema: { type: "object" } }];
  assert.equal(await held({ system: "Be kind", tools }), bytes(messages, "Be kind", tools) + 100);
  const withSource = (source: object) => [{ role: "user", content: [{ type: "document", source }] }];
  for (const [type, tokens] of [["image/png", 1_024], ["application/pdf", 2_000]] as const) {
    const source = { type: "base64", media_type: type, data: "a".repeat(80_000) };
    const rest = withSource({ ...source, data: "" });
    assert.equal(await held({ messages: withSource(source) }), bytes(rest) + tokens + 100, type);
  }
  const linked = withSource({ type: "url", url: "https://a.example/b.png" });
  assert.equal(await held({ messages: linked }), bytes(linked) + 1_024 + 100);
  const text = withSource({ type: "text", media_type: "text/plain", data: "a".repeat(4_000) });
  assert.equal(await held({ messages: text }), bytes(text) + 100);
});

Deno.test("a model may have a server of its own, and what is missing is named", async () => {
  const upstreams = [
    { models: ["claude"], upstream: "eu" },
    { models: ["haiku"], upstream: "unset" },
    { models: ["gone"], upstream: "gone" },
  ];
  const app = await appWith({ gateway: { upstreams } });
  // A server of the other dialect is passed over.
  assert.equal((await post(app, ASKED)).status, 200);
  assert.equal(headerOf(model.requests.at(-1)?.top ?? "", "x-api-key"), ANTHROPIC_KEY);
  const headers = { "x-holdfast-user": "u", "x-holdfast-event": "many" };
  for (const [name, setting] of [["haiku", /UNSET_KEY/], ["gone", /HOLDFAST_UPSTREAMS/]] as const) {
    const { status, body: { error } } = await post(app, { ...ASKED, model: name }, { headers });
    assert.deepEqual([status, error.type, error.code], [501, "api_error", "not_implemented"]);
    assert.match(error.message, setting);
  }
  const ofOpenAI = await fetch(`${baseUrl()}/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${app.secretLive}`,
      "x-holdfast-user": "u",
      "x-holdfast-event": "many",
    },
    body: JSON.stringify({ model: "claude", messages: [] }),
  });
  assert.equal(ofOpenAI.status, 200);
  await ofOpenAI.body?.cancel();
  assert.equal(model.requests.at(-1)?.authorization, "Bearer sk-eu");
});
