// Calls of the gateway that two servers could read in two ways, and what the app's settings allow.

import assert from "node:assert/strict";
import { type TestApp } from "../support/test_service.ts";
import { countsOf } from "./compose_support.ts";
import { CATALOG, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { rowsOf } from "./privacy_support.ts";
import { dataOf } from "./support.ts";

const { service, model, baseUrl } = gatewayOfFile();

const CHAT = { model: "mini", messages: [], user: "u" };
const RESPONSES = { model: "mini", input: "Hello", user: "u" };
const PATHS = { chat: "/chat/completions", responses: "/responses" };

/** An app with settings of the gateway. */
function appWith(gateway?: object): Promise<TestApp> {
  const plans = CATALOG.plans.map((plan) => ({
    ...plan,
    limits: plan.limits.map((limit) => ({ ...limit, quota: 1_000_000 })),
  }));
  return gatewayApp(service, { ...CATALOG, plans, ...gateway === undefined ? {} : { gateway } });
}

/** Posts a body; returns its status, and the error's type, code and member. */
async function post(key: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(baseUrl() + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const { error } = await response.json();
  return error === undefined ? [response.status] : [response.status, error.code, error.param];
}

/** A body with more members at its end. */
const plus = (more: string, body: object = CHAT) => `${JSON.stringify(body).slice(0, -1)},${more}}`;

const invalid = (param: string | null) => [400, "invalid_request", param];

Deno.test("a call that could be read in two ways is refused, and no model is asked", async () => {
  const app = await appWith({ allowStoredObjects: true });
  // deno-fmt-ignore: a row a case
  const rows: readonly (readonly [body: string, param: string | null, path?: string])[] = [
    [plus(`"model":"dear"`), "model"], [plus(`"Model":"dear"`), "Model"], [`{"MODEL":"dear",${plus("").slice(1, -2)}}`, "MODEL"],
    [plus(String.raw`"mod\u0065l":"dear"`), "model"], [plus(String.raw`"\u004dodel":"dear"`), "Model"],
    [plus(`"uſer":"v"`), "uſer"], [plus(`"toKens":1,"tokens":1`), "tokens"],
    [plus(`"Stream":true`), "Stream"], [plus(`"stream":true,"stream":false`), "stream"], [plus(`"USER":"v"`), "USER"],
    [plus(`"N":8`), "N"], [plus(`"n":1,"n":8`), "n"], [plus(`"Max_Tokens":9`), "Max_Tokens"],
    [plus(`"max_completion_tokens":1,"max_completion_tokens":9`), "max_completion_tokens"], [plus(`"MAX_OUTPUT_TOKENS":9`), "MAX_OUTPUT_TOKENS"],
    [plus(`"Store":true`), "Store"], [plus(`"Background":true`), "Background"], [plus(`"messages":["more"]`), "messages"],
    [plus(`"Previous_Response_Id":"resp_1"`), "Previous_Response_Id"], [plus(`"Conversation":"c"`), "Conversation"], [plus(`"Prompt":{}`), "Prompt"],
    [plus(`"Input":"x"`, RESPONSES), "Input", PATHS.responses], [plus(`"model":"dear"`, RESPONSES), "model", "/embeddings"],
    [plus(`"stream_options":{},"stream_options":{"include_usage":true}`), "stream_options"], [plus(`"Stream_Options":{}`), "Stream_Options"],
    [plus(`"stream":true,"stream_options" : {"include_usage":false,"include_usage":true}`), "stream_options"],
    [plus(`"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}`), "stream_options"],
    [plus(`"stream":1`), "stream"], [plus(`"stream":"true"`), "stream"], [plus(`"store":1`), "store"], [plus(`"background":"true"`), "background"],
    [plus(`"stream":true,"stream_options":[1]`), "stream_options"],
    [plus(`"seed":1,"seed":2`), "seed"], [plus(`"${"x".repeat(101)}":1,"${"X".repeat(101)}":1`), null],
  ];
  for (const [body, param, path = PATHS.chat] of rows) {
    assert.deepEqual(await post(app.secretLive, path, body), invalid(param), body);
  }
  assert.equal(model.requests.length, 0);
  assert.deepEqual(await countsOf(app), { lg_tokens: 0, lg_cents: 0, lg_tagged: 0 });
});

Deno.test("names within a call's texts and objects are the caller's own", async () => {
  const app = await appWith();
  const odd = [
    `"metadata":{"model":"a","Model":"b","user":"{\\"model\\":1}"}`,
    String.raw`"seed\\":1,"note":"\\\",\"model\":\"dear\"","last":"\\"`,
    `"stop":["model","model",{"n":1,"n":2}],"stream":null,"store":null,"background":false`,
  ];
  for (const more of odd) {
    model.requests.length = 0;
    const body = plus(more);
    assert.deepEqual(await post(app.secretLive, PATHS.chat, body), [200], body);
    assert.equal(model.requests[0]?.text, body);
  }
});

Deno.test("U+0000 in the metadata of a header is refused as in a body", async () => {
  const app = await appWith();
  for (const metadata of [String.raw`{"a":"\u0000"}`, String.raw`{"\u0000":1}`, String.raw`{"a":"\ud800"}`]) {
    const headers = { "x-holdfast-metadata": metadata };
    assert.deepEqual(await post(app.secretLive, PATHS.chat, CHAT, headers), invalid("X-Holdfast-Metadata"));
  }
});

Deno.test("test keys call models only where the app allows it", async () => {
  for (const gateway of [{}, { allowTestMode: false }, { allowTestMode: true }, undefined]) {
    const app = await appWith(gateway);
    await dataOf(
      app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }, { key: app.secretTest }),
    );
    assert.deepEqual(
      await post(app.secretTest, PATHS.chat, CHAT),
      gateway?.allowTestMode ?? gateway === undefined ? [200] : [403, "forbidden", null],
    );
  }
});

Deno.test("an app calls the models of its setting, and sees no others", async () => {
  const mini = CATALOG.models[0];
  const models = [mini, { ...mini, id: "maxi" }];
  model.reply = ({ path }) =>
    path.endsWith("/models")
      ? { answer: { object: "list", data: ["mini", "maxi", "ft:mini:another-app"].map((id) => ({ id })) } }
      : { content: "Hello" };
  const shown = async (app: TestApp) => {
    const headers = { authorization: `Bearer ${app.secretLive}` };
    const { object, data } = await (await fetch(`${baseUrl()}/models`, { headers })).json();
    return [object, ...data.map(({ id }: { id: string }) => id)];
  };
  const strict = await gatewayApp(service, {
    ...CATALOG,
    models,
    gateway: { models: ["max*"] },
  });
  assert.deepEqual(await shown(strict), ["list", "maxi"]);
  assert.deepEqual(await post(strict.secretLive, PATHS.chat, CHAT), [404, "not_found", "model"]);
  assert.deepEqual(await post(strict.secretLive, PATHS.chat, { ...CHAT, model: "maxi" }), [200]);
  const open = await gatewayApp(service, { ...CATALOG, models });
  assert.deepEqual(await shown(open), ["list", "mini", "maxi", "ft:mini:another-app"]);
  const none = await gatewayApp(service, { ...CATALOG, models, gateway: { models: [] } });
  assert.deepEqual(await shown(none), ["list"]);
  for (const answer of [{ data: "none" }, [], "x"]) {
    model.reply = () => ({ answer });
    const headers = { authorization: `Bearer ${strict.secretLive}` };
    assert.equal((await fetch(`${baseUrl()}/models`, { headers })).status, 502);
  }
});

Deno.test("objects that another app may have stored are out of reach, unless the app's setting allows them", async () => {
  const file = { type: "file_search", vector_store_ids: ["vs_1"] };
  const content = (part: object) => ({ ...RESPONSES, input: [{ role: "user", content: [part] }] });
  const rows: readonly (readonly [path: string, body: object, param: string])[] = [
    [PATHS.responses, { ...RESPONSES, previous_response_id: "resp_1" }, "previous_response_id"],
    [PATHS.responses, { ...RESPONSES, conversation: { id: "conv_1" } }, "conversation"],
    [PATHS.responses, { ...RESPONSES, prompt: { id: "pmpt_1" } }, "prompt"],
    [PATHS.responses, { ...RESPONSES, store: true }, "store"],
    [PATHS.responses, { ...RESPONSES, tools: [file] }, "vector_store_ids"],
    [PATHS.responses, content({ type: "input_file", file_id: "file-1" }), "file_id"],
    [PATHS.responses, { ...RESPONSES, input: [{ type: "item_reference", id: "msg_1" }] }, "input"],
    [
      PATHS.responses,
      { ...RESPONSES, tools: [{ type: "code_interpreter", container: "cntr_1" }] },
      "container",
    ],
    [
      PATHS.chat,
      { ...CHAT, messages: [{ content: [{ type: "file", file: { file_id: "file-1" } }] }] },
      "file_id",
    ],
    [PATHS.chat, { ...CHAT, store: true }, "store"],
  ];
  const app = await appWith({});
  const allowed = await Promise.all([appWith({ allowStoredObjects: true }), appWith()]);
  for (const [path, body, param] of rows) {
    assert.deepEqual(await post(app.secretLive, path, body), invalid(param), JSON.stringify(body));
    for (const { secretLive } of allowed) {
      assert.deepEqual(await post(secretLive, path, body), [200], JSON.stringify(body));
    }
  }
  // A tool of the caller may have parameters of these names.
  const parameters = { properties: { file_id: { type: "string", examples: [{ file_id: "a" }] } } };
  const tools = [{ type: "function", name: "read", parameters }];
  assert.deepEqual(await post(app.secretLive, PATHS.responses, { ...RESPONSES, tools }), [200]);
});

Deno.test("a response is not stored at the server, unless the app's setting allows it", async () => {
  const rows = [[{}, false], [{ allowStoredObjects: true }, undefined], [undefined, undefined]] as const;
  for (const [gateway, expected] of rows) {
    const app = await appWith(gateway);
    model.requests.length = 0;
    for (const body of [RESPONSES, { ...RESPONSES, store: null }, { ...RESPONSES, store: false }]) {
      await post(app.secretLive, PATHS.responses, body);
    }
    const [absent, none, no] = model.requests;
    assert.equal(absent?.body.store, expected);
    assert.equal(none?.body.store, expected ?? null);
    assert.equal(no?.text, JSON.stringify({ ...RESPONSES, store: false }));
    if (expected === false) assert.equal(absent?.text, JSON.stringify({ store: false, ...RESPONSES }));
  }
});

Deno.test("an app's budget refuses calls once it is spent, over both modes and a restart, until the next month", async () => {
  // A sample costs 0.045 cents.
  const app = await appWith({ budgetCents: 0.05, allowTestMode: true });
  const call = (key = app.secretLive, body: object = CHAT) => post(key, PATHS.chat, body);
  await dataOf(
    app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }, { key: app.secretTest }),
  );
  assert.deepEqual(await call(app.secretLive, { ...CHAT, model: "unpriced" }), invalid("model"));
  assert.deepEqual(await call(), [200]);
  assert.deepEqual(await call(app.secretTest), [200], "what was spent is below the budget");
  const spent = [429, "ai_budget_exceeded", null];
  assert.deepEqual(await call(), spent);
  assert.deepEqual(await call(app.secretTest), spent);
  const { refusals } = await dataOf(app.call("GET", "/refusals"));
  assert.deepEqual(
    refusals.map(({ reasons, count }: { reasons: string[]; count: number }) => [...reasons, count]),
    [["ai_budget_exceeded", 1]],
  );
  await service.restart();
  assert.deepEqual(await call(), spent);
  const rows = await rowsOf(
    service,
    "select month, cents::text from gateway_spend where app_id = $1",
    [app.appId],
  );
  const month = new Date(service.clock.now()).toISOString().slice(0, 7);
  assert.deepEqual(rows, [{ month, cents: "0.09" }]);
  const other = await appWith({ budgetCents: 0.05 });
  assert.deepEqual(await call(other.secretLive), [200], "another app has its own");
  service.clock.advance(31 * 86_400_000);
  assert.deepEqual(await call(), [200]);
});
