// True cost over HTTP: usage and the objects of model servers, members that contradict them, and common mistakes.

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
    [
      "/track",
      { ...CHAT, providerUsage: { prompt_tokens: 1, prompt_tokens_details: { cached_tokens: [] } } },
      "providerUsage.prompt_tokens_details.cached_tokens",
    ],
    ["/commit", { usage: { outputTokens: 1, reasoningTokens: 2 } }, "usage.reasoningTokens"],
    ["/commit", { usage: { inputTokens: "5" } }, "usage.inputTokens"],
    ["/commit", { usage: [] }, "usage"],
    ["/track", { ...CHAT, providerUsage: "none" }, "providerUsage"],
    ["/track", { ...CHAT, options: { usage: { inputTokens: 1e13 } } }, "usage.inputTokens"],
    ["/commit", { tokens: 5 }, "tokens"],
    ["/commit", { options: { outputTokens: 5 } }, "outputTokens"],
    ["/track", { ...CHAT, usage, inputTokens: 5 }, "inputTokens"],
    ["/track", { ...CHAT, usage, inputCostCents: 5 }, "inputCostCents"],
    ["/track", { ...CHAT, usage, costCents: 5 }, "costCents"],
    ["/track", { ...CHAT, cost: 5 }, "cost"],
    ["/reserve", { ...CHAT, outputTokens: 5 }, "outputTokens"],
    ["/can-use", { ...CHAT, tokens: 5 }, "tokens"],
    ["/explain", { ...CHAT, tokens: 5 }, "tokens"],
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

Deno.test("members of a usage may be in options, and null is as absent", async () => {
  const { app, counts } = await newUser();
  const usage = { inputTokens: 1000, cachedInputTokens: null, outputTokens: 200 };
  const options = { inputTokens: 1000, maxOutputTokens: 2000 };
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { ...CHAT, options }));
  assert.deepEqual(await counts(), [3000, 3.3]);
  const both = await app.call("POST", "/commit", { reservationId, usage, options: { usage } });
  assertRefused(both, 400, "invalid_request");
  assert.equal(both.body.error.details[0].path, "usage");
  const nulls = { usage: null, extra: null, actual: { tokens: null }, costCents: null, tokens: null };
  const committed = await dataOf(
    app.call("POST", "/commit", {
      reservationId,
      ...nulls,
      options: { usage, providerUsage: null, cost: null },
    }),
  );
  assert.equal(committed.cost.cents, 0.6);
  const providerUsage = {
    prompt_tokens: 1000,
    completion_tokens: 200,
    prompt_tokens_details: null,
    completion_tokens_details: { reasoning_tokens: null },
  };
  const tracked = await dataOf(
    app.call("POST", "/track", { ...CHAT, usage: null, inputTokens: null, options: { providerUsage } }),
  );
  assert.equal(tracked.cost.cents, 0.6);
  assert.deepEqual(await counts(), [2400, 1.2]);
  const held = await dataOf(
    app.call("POST", "/reserve", { ...CHAT, maxOutputTokens: null, inputTokens: 100 }),
  );
  assert.equal(held.groups[0].current, 2500);
});

Deno.test("a track says what it cost, its counters count it, and the event has it", async () => {
  const { app } = await newUser();
  const usage = { inputTokens: 1000, cachedInputTokens: 400, cacheWriteTokens: 500, outputTokens: 200 };
  const { eventId, counters, ...rest } = await dataOf(app.call("POST", "/track", { ...CHAT, usage }));
  assert.deepEqual(rest, {
    matchStatus: "matched",
    matchedGroupIds: ["lg_tokens", "lg_budget"],
    cost: { cents: 0.5295, priced: true, model: "claude" },
  });
  const standings = counters.map(({ count, remaining, costCents }: Record<string, number>) => [
    count,
    remaining,
    costCents,
  ]);
  assert.deepEqual(standings, [[1200, 998_800, 0.5295], [0.5295, 1999.4705, 0.5295]]);
  assert.equal((await dataOf(app.call("GET", `/events/${eventId}`))).costCents, 0.5295);
  const plain = await dataOf(app.call("POST", "/track", { ...CHAT, inputTokens: 1000, costCents: 7 }));
  assert.deepEqual(plain.cost, { cents: 7, priced: true, model: "claude" });
  assert.equal(plain.counters[1].count, 0.8295, "costCents is no part of a budget");
  const nobody = await dataOf(app.call("POST", "/track", { ...CHAT, userId: "nobody", usage }));
  assert.deepEqual([nobody.matchStatus, nobody.cost.cents], ["no_subscription", 0.5295]);
  assert.equal("warnings" in nobody, false);
});

Deno.test("a commit with a usage counts as one with the same actual tokens and cents does", async () => {
  const { app, counts } = await newUser();
  const commit = async (body: Record<string, unknown>) => {
    const sent = { ...CHAT, inputTokens: 50, maxOutputTokens: 70 };
    const { reservationId } = await dataOf(app.call("POST", "/reserve", sent));
    return await dataOf(app.call("POST", "/commit", { reservationId, ...body }));
  };
  const one = await commit({ usage: { inputTokens: 1000, outputTokens: 200 } });
  assert.deepEqual(await counts(), [1200, 0.6]);
  const other = await commit({ actual: { tokens: 1200, cents: 0.6 } });
  assert.deepEqual(await counts(), [2400, 1.2]);
  assert.deepEqual(other.cost, one.cost);
  assert.deepEqual((await commit({})).cost.cents, 0.12, "what was held");
});

Deno.test("a key comes before a member, a slip before other members, and a member before what it names", async () => {
  const { app } = await newUser();
  const slip = { reservationId: "rsv_1_unknown", tokens: 5, usage: {} };
  const publicKey = { key: app.publicLive };
  assertRefused(await app.call("POST", "/commit", slip, publicKey), 403, "requires_secret_key");
  const { details } = assertRefused(await app.call("POST", "/commit", slip), 400, "invalid_request");
  assert.deepEqual(details, [{
    path: "tokens",
    message: "unknown parameter; use usage, or actual.tokens",
  }]);
  const wrong = { reservationId: "rsv_1_unknown", usage: { inputTokens: 1, tokens: 2 }, costCents: -1 };
  const faults = assertRefused(await app.call("POST", "/commit", wrong), 400, "invalid_request");
  assert.deepEqual(faults.details.map(({ path }: { path: string }) => path), ["costCents", "usage.tokens"]);
  const fine = { reservationId: "rsv_1_unknown", usage: { inputTokens: 1 } };
  assertRefused(await app.call("POST", "/commit", fine), 404, "not_found");
});

Deno.test("a model without a price gives a warning, or is refused where the app wants that", async () => {
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
