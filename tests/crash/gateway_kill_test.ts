// A process that is killed in the middle of a stream leaves a hold that the next one finds, and that lapses.

import assert from "node:assert/strict";
import { chatChunk, eventOf, ModelServer } from "../support/model_server.ts";
import { until } from "./program.ts";
import { ADMIN_TOKEN, Stage } from "./stage.ts";

const WAIT_MS = 60_000;

const CATALOG = {
  gateway: { allowTestMode: true },
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "lifetime", anchor: "subscription_start" },
    limits: [{ id: "lg", label: "Tokens", unit: "tokens", quota: 5_000, matches: [{ event: "openai.*" }] }],
  }],
};

async function call(
  origin: string,
  bearer: string,
  method: string,
  path: string,
  body?: unknown,
  // deno-lint-ignore no-explicit-any -- tests look at whatever came back
): Promise<any> {
  const response = await fetch(`${origin}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${bearer}` },
    ...body === undefined ? {} : { body: JSON.stringify(body) },
  });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.data;
}

Deno.test("a kill in the middle of a stream leaves a hold, which lapses", async () => {
  const model = new ModelServer();
  await using stage = await Stage.open();
  const stop = Promise.withResolvers<void>();
  model.reply = () => ({
    events: (async function* () {
      yield eventOf(chatChunk("x"));
      await stop.promise;
    })(),
  });
  const settings = { OPENAI_API_KEY: "sk-model", OPENAI_BASE_URL: model.baseUrl };
  try {
    const { program, origin } = await stage.startReady(settings);
    const admin = "/admin/v1";
    const { workspaceId } = await call(origin, ADMIN_TOKEN, "POST", `${admin}/workspaces`, { name: "W" });
    const app = await call(origin, ADMIN_TOKEN, "POST", `${admin}/apps`, { name: "A", workspaceId });
    await call(origin, ADMIN_TOKEN, "PUT", `${admin}/apps/${app.appId}/catalog`, CATALOG);
    const { key } = app.keys.find((row: { class: string; mode: string }) =>
      row.class === "secret" && row.mode === "test"
    );
    await call(origin, key, "POST", "/v1/subscriptions", { userId: "u", planId: "plan_pro" });
    const stream = await fetch(`${origin}/openai/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "m", messages: [], user: "u", stream: true, max_tokens: 4_000 }),
    });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await program.kill();
    await assert.rejects(reader.read());

    const next = (await stage.startReady(settings)).origin;
    const used = async () => (await call(next, key, "GET", "/v1/usage?userId=u")).counters[0].count;
    assert.equal(await used(), 4_001);
    const { now } = await call(next, key, "GET", "/v1/test-clock");
    const later = new Date(Date.parse(now) + 601_000).toISOString();
    await call(next, key, "POST", "/v1/test-clock", { now: later });
    await until("the hold has lapsed", WAIT_MS, async () => await used() === 0 || null);
    assert.deepEqual((await call(next, key, "GET", "/v1/events")).events, []);
  } finally {
    stop.resolve();
    await model.close();
  }
});
