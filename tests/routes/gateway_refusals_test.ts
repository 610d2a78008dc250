// Calls of the gateway that fail: refusals in OpenAI's shape, and faults of the model server.

import assert from "node:assert/strict";
import { APIError } from "openai";
import { send, startTestService } from "../support/test_service.ts";
import { countsOf } from "./compose_support.ts";
import { CATALOG, eventsOf, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";
import { until } from "../support/until.ts";

const { service, model, client, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES };
const NOTHING = { lg_tokens: 0, lg_cents: 0, lg_tagged: 0 };

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** Sends a request by hand; its status, its error and its headers. */
async function refused(key: string, sent: Sent) {
  const { method = "POST", path = "/chat/completions", headers = {}, body = { ...CHAT, user: "u" } } = sent;
  const response = await fetch(baseUrl() + path, {
    method,
    headers: { authorization: `Bearer ${sent.key ?? key}`, ...headers },
    ...method === "GET" ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) },
  });
  const { error, ...rest } = await response.json();
  assert.deepEqual(rest, {});
  assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
  const { type, param, code, message } = error;
  return { shown: [response.status, type, code, param], message, headers: response.headers };
}

const INVALID = "invalid_request_error";

Deno.test("refusals have OpenAI's shape, name the member at fault, and no model is asked", async () => {
  const app = await gatewayApp(service);
  const user = { user: "u" };
  const rows: [name: string, sent: Sent, shown: unknown[]][] = [
    ["a wrong key", { key: "sk_live_wrong" }, [401, INVALID, "invalid_key", null]],
    ["a public key", { key: app.publicLive }, [403, INVALID, "requires_secret_key", null]],
    ["an unknown path", { path: "/audio/speech" }, [404, INVALID, "not_found", null]],
    ["an unknown path without a key", { path: "/x", key: "" }, [401, INVALID, "invalid_key", null]],
    ["another method", { method: "GET" }, [405, INVALID, "method_not_allowed", null]],
    ["no JSON", { body: "{" }, [400, INVALID, "invalid_request", null]],
    ["no object", { body: "[]" }, [400, INVALID, "invalid_request", null]],
    ["no user", { body: CHAT }, [400, INVALID, "invalid_request", "user"]],
    ["a user of no text", { body: { ...CHAT, user: 7 } }, [400, INVALID, "invalid_request", "user"]],
    ["an empty user", { headers: { "x-holdfast-user": "" } }, [
      400,
      INVALID,
      "invalid_request",
      "X-Holdfast-User",
    ]],
    ["bytes that are no text", { headers: { "x-holdfast-user": "jörg" } }, [
      400,
      INVALID,
      "invalid_request",
      "X-Holdfast-User",
    ]],
    ["a pattern as event", { headers: { "x-holdfast-event": "a.*" } }, [
      400,
      INVALID,
      "invalid_request",
      "X-Holdfast-Event",
    ]],
    ["metadata of no object", { headers: { "x-holdfast-metadata": "[1]" } }, [
      400,
      INVALID,
      "invalid_request",
      "X-Holdfast-Metadata",
    ]],
    ["no model", { body: { messages: MESSAGES, ...user } }, [400, INVALID, "invalid_request", "model"]],
    ["no price where cents count", { body: { ...CHAT, ...user, model: "other" } }, [
      400,
      INVALID,
      "invalid_request",
      "model",
    ]],
    ["no limit of an answer", { body: { ...CHAT, ...user, max_tokens: 0 } }, [
      400,
      INVALID,
      "invalid_request",
      "max_tokens",
    ]],
    [
      "the background",
      { path: "/responses", body: { model: "mini", input: "x", ...user, background: true } },
      [
        400,
        INVALID,
        "invalid_request",
        "background",
      ],
    ],
    ["a lone surrogate", { body: `{"model":"mini","user":"u","messages":[{"content":"\\ud800"}]}` }, [
      400,
      INVALID,
      "invalid_request",
      "messages.0.content",
    ]],
    ["a full plan", { body: { ...CHAT, ...user, max_tokens: 10_000 } }, [
      429,
      "insufficient_quota",
      "limit_reached",
      null,
    ]],
    ["a user without a plan", { body: { ...CHAT, user: "stranger" } }, [
      429,
      "insufficient_quota",
      "no_subscription",
      null,
    ]],
    ["an event without a group", { headers: { "x-holdfast-event": "else" } }, [
      429,
      "insufficient_quota",
      "unmatched_event",
      null,
    ]],
  ];
  for (const [name, sent, expected] of rows) {
    const { shown, headers } = await refused(app.secretLive, sent);
    assert.deepEqual(shown, expected, name);
    assert.equal(headers.get("x-should-retry"), shown[1] === "insufficient_quota" ? "false" : null, name);
    assert.match(headers.get("x-request-id") ?? "", /./, name);
    assert.equal(headers.get("x-holdfast-reservation"), null, name);
  }
  const full = await refused(app.secretLive, { body: { ...CHAT, ...user, max_tokens: 10_000 } });
  assert.match(full.message, /leaves no room for this call: Tokens \(resets at 20\S+Z\)$/);
  assert.equal(model.requests.length, 0);
  assert.deepEqual(await countsOf(app), NOTHING);
  const { refusals } = await dataOf(app.call("GET", "/refusals"));
  assert.deepEqual(
    refusals.map(({ event, reasons }: { event: string; reasons: string[] }) => [event, ...reasons])
      .toSorted(),
    [["else", "unmatched_event"], ["openai.chat", "limit_reached"], ["openai.chat", "no_subscription"]],
  );
});

Deno.test("a model without a price is asked where nothing counts cents", async () => {
  const app = await gatewayApp(service);
  const headers = { "X-Holdfast-Event": "my.chat" };
  await client(app).chat.completions.create({ ...CHAT, model: "other" }, { headers });
  assert.equal((await countsOf(app)).lg_tagged, 1);
});

Deno.test("OpenAI's client does not send a refused call again", async () => {
  const app = await gatewayApp(service);
  let sent = 0;
  const counting: typeof fetch = (input, init) => {
    sent += 1;
    return fetch(input, init);
  };
  const openai = client(app, { maxRetries: 3, fetch: counting });
  const error = await openai.chat.completions.create({ ...CHAT, max_tokens: 10_000 }).catch((error) => error);
  assert.ok(error instanceof APIError);
  assert.deepEqual([error.status, error.code, error.type, sent], [
    429,
    "limit_reached",
    "insufficient_quota",
    1,
  ]);
});

Deno.test("rates and concurrency limits refuse as a rate limit does, and a quota beside them as a quota", async () => {
  const [plan] = CATALOG.plans;
  const guard = (id: string, quota: number, period: object) => ({
    id,
    label: id,
    unit: "count",
    quota,
    matches: [{ event: "openai.*" }],
    period,
  });
  const rate = guard("lg_rate", 1, { type: "rolling", seconds: 600 });
  for (
    const [guards, code, says] of [
      [[rate], "rate_limit_reached", "rate limit leaves no room for this call now: lg_rate"],
      [
        [guard("lg_open", 0, { type: "concurrent" })],
        "concurrency_limit_reached",
        "too many calls in flight",
      ],
    ] as const
  ) {
    const limits = [...plan?.limits ?? [], ...guards];
    const app = await gatewayApp(service, { ...CATALOG, plans: [{ ...plan, limits }] });
    const isRate = code === "rate_limit_reached";
    if (isRate) await client(app).chat.completions.create(CHAT);
    const asked = model.requests.length;
    const { shown, message, headers } = await refused(app.secretLive, {});
    assert.deepEqual(shown, [429, "rate_limit_error", code, null]);
    assert.ok(message.includes(says), message);
    assert.equal(headers.get("x-should-retry"), null);
    const seconds = Number(headers.get("retry-after"));
    assert.ok(isRate ? seconds > 600 && seconds <= 610 : headers.get("retry-after") === null, `${seconds}`);
    const byQuota = await refused(app.secretLive, { body: { ...CHAT, user: "u", max_tokens: 10_000 } });
    assert.deepEqual(byQuota.shown, [429, "insufficient_quota", "limit_reached", null]);
    assert.deepEqual([byQuota.headers.get("x-should-retry"), byQuota.headers.get("retry-after")], [
      "false",
      null,
    ]);
    assert.equal(model.requests.length, asked);
  }
});

Deno.test("a cap of the workspace refuses as a quota does", async () => {
  const app = await gatewayApp(service, CATALOG, { operationCap: 1 });
  await client(app).chat.completions.create(CHAT);
  const { shown, headers } = await refused(app.secretLive, {});
  assert.deepEqual(shown, [429, "insufficient_quota", "workspace_limit_reached", null]);
  assert.equal(headers.get("x-should-retry"), "false");
});

Deno.test("a key above its rate is refused in OpenAI's shape, for every path", async () => {
  const settings = { ...CATALOG.settings, rateLimit: { perSecond: 0.001, burst: 2 } };
  const app = await gatewayApp(service, { ...CATALOG, settings });
  await client(app).models.list();
  for (const path of ["/chat/completions", "/responses", "/embeddings"]) {
    const { shown, headers } = await refused(app.secretLive, {
      path,
      body: { ...CHAT, user: "u", input: "x" },
    });
    assert.deepEqual(shown, [429, INVALID, "rate_limited", null]);
    assert.equal(headers.get("x-should-retry"), null);
    assert.ok(Number(headers.get("retry-after")) >= 1);
  }
  assert.equal((await refused(app.secretLive, { method: "GET", path: "/models" })).shown[2], "rate_limited");
  assert.equal(model.requests.length, 1);
});

Deno.test("what the server refuses passes through, and the hold is given back", async () => {
  for (const status of [400, 404, 429, 500, 503]) {
    const app = await gatewayApp(service);
    const body = { error: { message: "Theirs", type: "theirs", param: null, code: "their_code" } };
    const headers = { "retry-after": "7", "openai-organization": "org-of-ours", "x-request-id": "theirs" };
    model.reply = () => ({ status, body: JSON.stringify(body), headers });
    const error = await client(app).chat.completions.create(CHAT).catch((error) => error);
    assert.ok(error instanceof APIError);
    assert.deepEqual([error.status, error.error], [status, body.error]);
    assert.equal(error.headers?.get("retry-after"), "7");
    assert.equal(error.headers?.get("openai-organization"), null);
    assert.notEqual(error.headers?.get("x-request-id"), "theirs");
    assert.match(error.headers?.get("x-holdfast-reservation") ?? "", /^rsv_/);
    assert.deepEqual(await countsOf(app), NOTHING);
    const [event] = await eventsOf(app);
    assert.deepEqual([event.matchStatus, event.reason], [
      "released",
      `The model server answered ${status}`,
    ]);
  }
});

Deno.test("a refusal of our own key, a lost connection and a server that is not there are 502, and released", async () => {
  const app = await gatewayApp(service);
  const failed = [502, "server_error", "generation_failed", null];
  for (const status of [401, 403]) {
    model.reply = () => ({ status, body: `{"error":{"message":"Incorrect API key: sk-model"}}` });
    const response = await fetch(`${baseUrl()}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.secretLive}` },
      body: JSON.stringify({ ...CHAT, user: "u" }),
    });
    const text = await response.text();
    assert.ok(!text.includes("sk-model"));
    assert.deepEqual([response.status, JSON.parse(text).error.code], [502, "generation_failed"]);
    assert.deepEqual((await refused(app.secretLive, { method: "GET", path: "/models" })).shown, failed);
  }
  for (const drop of ["before", "within"] as const) {
    model.reply = () => ({ drop });
    assert.deepEqual((await refused(app.secretLive, {})).shown, failed);
  }
  assert.deepEqual(await countsOf(app), NOTHING);
});

Deno.test("a caller who leaves before the answer is charged its input, and the server is left too", async () => {
  const app = await gatewayApp(service);
  const arrived = Promise.withResolvers<void>();
  let left = Promise.resolve();
  const stop = Promise.withResolvers<void>();
  model.reply = (request) => {
    left = request.left;
    arrived.resolve();
    return { stall: stop.promise };
  };
  const leaving = new AbortController();
  // Without a port in between: it is up to the runtime when it reports a closed connection.
  const here: typeof fetch = (input, init) => Promise.resolve(service.http.fetch(new Request(input, init)));
  const asked = client(app, { fetch: here }).chat.completions.create(CHAT, { signal: leaving.signal });
  await arrived.promise;
  leaving.abort();
  await assert.rejects(asked);
  await left;
  stop.resolve();
  await until(async () => (await eventsOf(app)).length === 1);
  const [event] = await eventsOf(app);
  assert.deepEqual(event.metadata, { model: "mini", estimated: true });
  assert.equal((await countsOf(app)).lg_tokens, Math.ceil(JSON.stringify(MESSAGES).length / 4));
});

Deno.test("without a model server the gateway answers that it is off, to known keys alone", async () => {
  const other = await startTestService();
  try {
    const app = await other.newApp(CATALOG);
    for (const [method, path] of [["POST", "/chat/completions"], ["GET", "/models"]] as const) {
      const body = method === "GET" ? undefined : { ...CHAT, user: "u" };
      const answer = await send(other.http, method, `/openai/v1${path}`, body, { key: app.secretLive });
      assert.deepEqual([answer.status, answer.body.error.code, answer.body.error.type], [
        501,
        "not_implemented",
        "server_error",
      ]);
    }
  } finally {
    await other.close();
  }
});

Deno.test("a refusal by a user above names it", async () => {
  const app = await gatewayApp(service);
  await dataOf(app.call("POST", "/subscriptions", { userId: "member", planId: "plan_pro" }));
  await dataOf(app.call("PUT", "/users/member/parent", { parentId: "u" }));
  await dataOf(app.call("POST", "/track", { userId: "u", event: "openai.chat", inputTokens: 9_000 }));
  const body = { ...CHAT, user: "member", max_tokens: 2_000 };
  const full = await refused(app.secretLive, { body });
  assert.deepEqual(full.shown.slice(0, 3), [429, "insufficient_quota", "limit_reached"]);
  assert.match(full.message, /^The limit of "u" leaves no room for this call: Tokens \(resets at 20\S+Z\)$/);
  const { key } = await dataOf(app.call("POST", "/users/member/keys", {}));
  const own = await refused(key, { body });
  assert.match(own.message, /^The limit of an account above the user leaves no room for this call: Tokens /);
  await dataOf(app.call("DELETE", "/subscriptions?userId=u"));
  const ended = await refused(app.secretLive, { body });
  assert.deepEqual(ended.shown.slice(0, 3), [429, "insufficient_quota", "no_subscription"]);
  assert.equal(ended.message, 'The subscription of "u" has ended');
});
