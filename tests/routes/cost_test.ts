// True cost over HTTP: usage and the objects of model servers, what contradicts them, and slips. Section 9 of beyond.md.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const MATCHES = [{ event: "chat.*" }];
const CATALOG = {
  models: [
    {
      id: "claude",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 300,
      cachedInputCentsPerMillionTokens: 30,
      cacheWriteCentsPerMillionTokens: 375,
      outputCentsPerMillionTokens: 1500,
    },
  ],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [
      { id: "lg_tokens", label: "Tokens", unit: "tokens", quota: 1_000_000, matches: MATCHES },
      { id: "lg_budget", label: "Budget", unit: "cents", quota: 2000, matches: MATCHES },
    ],
  }],
};

async function newUser(settings: Record<string, unknown> = {}) {
  const app = await service.newApp({ ...CATALOG, settings });
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const counts = async () => {
    const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
    return counters.map(({ count }: { count: number }) => count);
  };
  return { app, counts };
}

const CHAT = { userId: "u", event: "chat.reply", metadata: { model: "claude" } };

Deno.test("a reserve holds the worst case, and a commit with the server's usage object makes it exact", async () => {
  const { app, counts } = await newUser();
  const sent = { ...CHAT, inputTokens: 1000, maxOutputTokens: 2000 };
  const { reservationId } = await dataOf(app.call("POST", "/reserve", sent));
  assert.deepEqual(await counts(), [3000, 3.3]);
  const providerUsage = {
    input_tokens: 100,
    cache_creation_input_tokens: 500,
    cache_read_input_tokens: 400,
    output_tokens: 200,
  };
  const commit = await dataOf(app.call("POST", "/commit", { reservationId, options: { providerUsage } }));
  assert.deepEqual(commit.cost, { cents: 0.5295, priced: true, model: "claude" });
  assert.equal(commit.warnings, undefined);
  assert.deepEqual(await counts(), [1200, 0.5295]);
});

Deno.test("a budget in cents refuses the answer that could pass it", async () => {
  const { app } = await newUser();
  const sent = { ...CHAT, inputTokens: 1000, maxOutputTokens: 1_400_000 };
  assert.deepEqual((await dataOf(app.call("POST", "/reserve", sent))).reasons, ["limit_reached"]);
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", sent))).reasons, ["limit_reached"]);
});

Deno.test("what contradicts a usage, and what is no usage, is refused by the name of its member", async () => {
  const { app } = await newUser();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", CHAT));
  const usage = { inputTokens: 5 };
  const rows: [path: string, body: Record<string, unknown>, at: string][] = [
    ["/commit", { usage, providerUsage: { prompt_tokens: 5 } }, "providerUsage"],
    ["/commit", { usage, costCents: 1 }, "costCents"],
    ["/commit", { usage, extra: { outputTokens: 1 } }, "extra.outputTokens"],
    ["/commit", { usage, extra: { cents: 1 } }, "extra.cents"],
    ["/commit", { usage, actual: { tokens: 1 } }, "actual.tokens"],
    ["/commit", { usage: { seconds: 1 }, actual: { seconds: 1 } }, "actual.seconds"],
    ["/commit", { usage: {} }, "usage"],
    ["/commit", { usage: { tokens: 5 } }, "usage.tokens"],
    ["/commit", { usage: { inputTokens: -1 } }, "usage.inputTokens"],
    ["/commit", { usage: { inputTokens: 1, cachedInputTokens: 2 } }, "usage.cachedInputTokens"],
    ["/commit", { providerUsage: { tokens: 5 } }, "providerUsage"],
    ["/commit", { providerUsage: { prompt_tokens: "5" } }, "providerUsage.prompt_tokens"],
    ["/commit", { tokens: 5 }, "tokens"],
    ["/commit", { options: { outputTokens: 5 } }, "outputTokens"],
    ["/track", { ...CHAT, usage, inputTokens: 5 }, "inputTokens"],
    ["/track", { ...CHAT, usage, inputCostCents: 5 }, "inputCostCents"],
    ["/track", { ...CHAT, usage, costCents: 5 }, "costCents"],
    ["/track", { ...CHAT, cost: 5 }, "cost"],
    ["/reserve", { ...CHAT, outputTokens: 5 }, "outputTokens"],
    ["/can-use", { ...CHAT, tokens: 5 }, "tokens"],
    ["/reserve", { ...CHAT, maxOutputTokens: 0 }, "maxOutputTokens"],
  ];
  for (const [path, body, at] of rows) {
    const answer = await app.call("POST", path, { reservationId, ...body });
    const { details } = assertRefused(answer, 400, "invalid_request", `${path} ${JSON.stringify(body)}`);
    assert.equal(details[0].path, at, `${path} ${JSON.stringify(body)}`);
  }
  const fits = { reservationId, usage, extra: { count: 1, tokens: null }, tokens: null };
  await dataOf(app.call("POST", "/commit", fits));
});

Deno.test("a model without a price is told, or refused where the app says so", async () => {
  const { app, counts } = await newUser();
  const unknown = { ...CHAT, metadata: { model: "unknown" } };
  const usage = { inputTokens: 5, outputTokens: 6 };
  const tracked = await dataOf(app.call("POST", "/track", { ...unknown, usage }));
  assert.deepEqual(tracked.cost, { cents: 0, priced: false, model: null });
  assert.deepEqual(tracked.warnings, ["unpriced_model"]);
  assert.deepEqual(await counts(), [11, 0]);
  const told = await dataOf(app.call("POST", "/track", { ...unknown, inputTokens: 1, inputCostCents: 2 }));
  assert.equal(told.warnings, undefined);

  const strict = await newUser({ unpricedModels: "refuse" });
  const refused = await dataOf(strict.app.call("POST", "/reserve", unknown));
  assert.deepEqual([refused.allowed, refused.matched, refused.reasons], [false, true, ["unpriced_model"]]);
  const { reasons } = await dataOf(strict.app.call("POST", "/can-use", unknown));
  assert.deepEqual(reasons, ["unpriced_model"]);
  const blocked = await strict.app.call("POST", "/track", { ...unknown, usage });
  const { details } = assertRefused(blocked, 429, "limit_reached");
  const event = await dataOf(strict.app.call("GET", `/events/${details.eventId}`));
  assert.equal(event.matchStatus, "blocked");
});

Deno.test("a hold keeps its price row through a new catalog and a restart", async () => {
  const { app, counts } = await newUser();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", CHAT));
  const [model] = CATALOG.models;
  const dearer = { ...CATALOG, models: [{ ...model, inputCentsPerMillionTokens: 900 }] };
  assert.equal((await service.admin("PUT", `/apps/${app.appId}/catalog`, dearer)).status, 200);
  await service.restart();
  const commit = await dataOf(app.call("POST", "/commit", { reservationId, usage: { inputTokens: 1000 } }));
  assert.equal(commit.cost.cents, 0.3);
  const tracked = await dataOf(app.call("POST", "/track", { ...CHAT, usage: { inputTokens: 1000 } }));
  assert.equal(tracked.cost.cents, 0.9);
  assert.deepEqual(await counts(), [2000, 1.2]);
});
