// A user's key at the gateway, by OpenAI's own client: it needs no header, acts for its user alone, and a call counts at
// every level above.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { chatChunk, eventOf } from "../support/model_server.ts";
import type { TestApp } from "../support/test_service.ts";
import { CATALOG, gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { dataOf } from "./support.ts";
import { until } from "../support/until.ts";

const { service, model, baseUrl } = gatewayOfFile();

const MESSAGES = [{ role: "user" as const, content: "Hello" }];
const CHAT = { model: "mini", messages: MESSAGES, max_completion_tokens: 500 };

function clientWith(apiKey: string, headers: Record<string, string> = {}): OpenAI {
  return new OpenAI({ apiKey, baseURL: baseUrl(), maxRetries: 0, logLevel: "off", defaultHeaders: headers });
}

async function keyOf(app: TestApp, userId: string) {
  return await dataOf(app.call("POST", `/users/${userId}/keys`, { name: "CI" }));
}

async function tokensOf(app: TestApp, userId: string): Promise<number> {
  return (await dataOf(app.call("GET", `/usage?userId=${userId}`))).counters[0].count;
}

/** The status and code of a refused call. */
async function refusalOf(call: Promise<unknown>): Promise<[number | undefined, unknown]> {
  const error = await call.then(() => null, (thrown) => thrown);
  assert.ok(error instanceof OpenAI.APIError, String(error));
  return [error.status, error.code];
}

Deno.test("a team's key for an OpenAI client has a budget at each level above it", async () => {
  const app = await gatewayApp(service, {
    ...CATALOG,
    plans: [CATALOG.plans[0], {
      ...CATALOG.plans[0],
      id: "plan_team",
      name: "Team",
      limits: [{ ...CATALOG.plans[0]?.limits[0], quota: 2_000 }],
    }],
  });
  for (const [userId, planId] of [["org", "plan_pro"], ["team", "plan_team"]]) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId }));
  }
  for (const [userId, parentId] of [["team", "org"], ["ci", "team"], ["bot", "team"]]) {
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId }));
  }
  const [ci, bot] = [clientWith((await keyOf(app, "ci")).key), clientWith((await keyOf(app, "bot")).key)];
  const { choices } = await ci.chat.completions.create(CHAT);
  assert.equal(choices[0]?.message.content, "A sample of text");
  assert.deepEqual([await tokensOf(app, "team"), await tokensOf(app, "org")], [1_500, 1_500]);
  const over = bot.chat.completions.create({ ...CHAT, max_completion_tokens: 600 });
  assert.deepEqual(await refusalOf(over), [429, "limit_reached"]);
  assert.deepEqual([await tokensOf(app, "team"), await tokensOf(app, "org")], [1_500, 1_500]);
  assert.equal(model.requests.length, 1);
});

Deno.test("a call may name the key's own user, also by an alias, and no other one", async () => {
  const app = await gatewayApp(service);
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  const { key } = await keyOf(app, "u");
  const by = (header: string | null, user?: string) =>
    clientWith(key, header === null ? {} : { "X-Holdfast-User": header })
      .chat.completions.create({ ...CHAT, ...user === undefined ? {} : { user } });
  for (const [header, user] of [[null, "u"], [null, "old"], ["u", "old"], ["old", "u"]] as const) {
    await by(header, user);
  }
  assert.equal(await tokensOf(app, "u"), 4 * 1_500);
  for (
    const [header, user] of [[null, "v"], ["v", "u"], ["u", "v"], ["old", "v"], ["v", undefined]] as const
  ) {
    assert.deepEqual(await refusalOf(by(header, user)), [403, "forbidden"], `${header} ${user}`);
  }
  assert.equal(model.requests.length, 4);
});

Deno.test("a wrong key is refused in OpenAI's shape before its body is read, and a revoked one too", async () => {
  const app = await gatewayApp(service);
  const { key, userKeyId } = await keyOf(app, "u");
  const wrong = key.replace(/^uk_live_.{4}/, "uk_live_AAAA");
  const unread = new ReadableStream({ pull: () => new Promise(() => {}) }, { highWaterMark: 0 });
  const request = new Request("http://service.test/openai/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${wrong}` },
    body: unread,
  });
  assert.equal((await service.http.fetch(request)).status, 401);
  assert.deepEqual(await refusalOf(clientWith(wrong).chat.completions.create(CHAT)), [401, "invalid_key"]);
  assert.deepEqual(await refusalOf(clientWith(wrong).models.list()), [401, "invalid_key"]);
  assert.deepEqual((await clientWith(key).models.list()).data.map(({ id }) => id), ["mini"]);
  await dataOf(app.call("DELETE", `/users/u/keys/${userKeyId}`));
  assert.deepEqual(await refusalOf(clientWith(key).chat.completions.create(CHAT)), [401, "invalid_key"]);
  const stray = await service.http.fetch(
    new Request("http://service.test/openai/v1/x", { headers: { authorization: `Bearer ${key}` } }),
  );
  assert.equal((await stray.json()).error.code, "invalid_key");
});

Deno.test("a stream under way goes on when its key is revoked, and is charged by its report", async () => {
  const app = await gatewayApp(service);
  const { key, userKeyId } = await keyOf(app, "u");
  const goOn = Promise.withResolvers<void>();
  const usage = { prompt_tokens: 10, completion_tokens: 20 };
  model.reply = () => ({
    events: (async function* () {
      yield eventOf(chatChunk("x"));
      await goOn.promise;
      yield eventOf(chatChunk({}, { choices: [], usage }));
      yield eventOf("[DONE]");
    })(),
  });
  const stream = await clientWith(key).chat.completions.create({ ...CHAT, stream: true });
  const reader = stream[Symbol.asyncIterator]();
  await reader.next();
  await dataOf(app.call("DELETE", `/users/u/keys/${userKeyId}`));
  goOn.resolve();
  while ((await reader.next()).done !== true);
  await until(async () => await tokensOf(app, "u") === 30);
});
