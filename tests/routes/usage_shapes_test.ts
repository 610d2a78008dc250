// Each usage object of the table means the same by commit, track, a batch and the gateway; and count, caches, aliases and
// service tiers over HTTP.

import assert from "node:assert/strict";
import { ANSWERS, SHAPE_PRICES, USAGE_SHAPES, type UsageShape } from "../support/usage_shapes.ts";
import type { TestApp } from "../support/test_service.ts";
import { gatewayApp, gatewayOfFile } from "./gateway_support.ts";
import { assertRefused, dataOf } from "./support.ts";

const { service, model, client } = gatewayOfFile();

const group = (id: string, unit: string) => ({
  id,
  label: id,
  unit,
  quota: 1_000_000,
  matches: [{ event: "*" }],
});

const CATALOG = {
  models: [
    { ...SHAPE_PRICES, aliases: ["priced-*"] },
    { id: "painter", modality: "image", amountMode: "per_call", centsPerImage: 4 },
  ],
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [group("tokens", "tokens"), group("cents", "cents"), group("count", "count")],
  }],
};

/** What the counters of the user show, in the order tokens, cents, count. */
async function shown(app: TestApp): Promise<number[]> {
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
  return counters.map(({ count }: { count: number }) => count);
}

const CHAT = { userId: "u", event: "chat.reply", metadata: { model: "priced-2026-01-01" } };
const IMAGES = { userId: "u", event: "image.render", metadata: { model: "painter" } };

/** Counts a usage in each way; returns what counters and answer say. */
const WAYS: Readonly<Record<string, (app: TestApp, usage: unknown) => Promise<Answered>>> = {
  commit: async (app, providerUsage) => {
    const { reservationId } = await dataOf(app.call("POST", "/reserve", CHAT));
    return await dataOf(app.call("POST", "/commit", { reservationId, providerUsage }));
  },
  track: (app, providerUsage) => dataOf(app.call("POST", "/track", { ...CHAT, providerUsage })),
  batch: async (app, providerUsage) => {
    const { results } = await dataOf(
      app.call("POST", "/track/batch", { events: [{ ...CHAT, providerUsage }] }),
    );
    return results[0].data;
  },
};

interface Answered {
  readonly cost: unknown;
  readonly warnings?: unknown;
}

for (const [way, count] of Object.entries(WAYS)) {
  Deno.test(`every shape of the table costs what it must: ${way}`, async () => {
    const app = await gatewayApp(service, CATALOG);
    let [tokens, cents] = [0, 0];
    for (const shape of USAGE_SHAPES) {
      const { cost, warnings } = await count(app, shape.usage);
      assert.deepEqual(cost, { cents: shape.cents, priced: true, model: "priced" }, shape.name);
      assert.deepEqual(warnings, shape.isOtherTier ? ["tier_unpriced"] : undefined, shape.name);
      tokens += tokensOf(shape);
      cents = Number((cents + shape.cents).toFixed(6));
    }
    assert.deepEqual(await shown(app), [tokens, cents, USAGE_SHAPES.length]);
  });
}

Deno.test("every shape that a gateway can meet costs what it must there", async () => {
  const app = await gatewayApp(service, CATALOG);
  const openai = client(app);
  let [tokens, cents, calls] = [0, 0, 0];
  for (const shape of USAGE_SHAPES) {
    const { form, usage, name } = shape;
    if (form === undefined) continue;
    model.reply = () => ({ answer: { ...ANSWERS[form], usage } });
    if (form === "chat") {
      await openai.chat.completions.create({ model: "priced", messages: [{ role: "user", content: "Hi" }] });
    } else if (form === "responses") await openai.responses.create({ model: "priced", input: "Hi" });
    else await openai.embeddings.create({ model: "priced", input: "Hi", encoding_format: "float" });
    tokens += tokensOf(shape);
    cents = Number((cents + shape.cents).toFixed(6));
    calls += 1;
    assert.deepEqual(await shown(app), [tokens, cents, calls], name);
  }
  assert.ok(calls > 10);
  model.reset();
});

Deno.test("every shape that compose can meet costs what it must there", async () => {
  const outputSchema = { type: "object", properties: {}, required: [], additionalProperties: false };
  const composeTypes = [{ name: "recap", model: "priced", prompt: "A recap.", outputSchema }];
  const app = await gatewayApp(service, { ...CATALOG, composeTypes });
  const choices = [{ index: 0, message: { role: "assistant", content: "{}" }, finish_reason: "stop" }];
  const shapes = USAGE_SHAPES.filter(({ form }) => form === "chat");
  for (const shape of shapes) {
    model.reply = () => ({ answer: { ...ANSWERS.chat, choices, usage: shape.usage } });
    const { usage } = await dataOf(app.call("POST", "/compose", { userId: "u", type: "recap" }));
    const { inputTokens, outputTokens, costCents } = usage;
    assert.deepEqual([inputTokens + outputTokens, costCents], [tokensOf(shape), shape.cents], shape.name);
  }
  assert.ok(shapes.length > 10);
  model.reset();
});

function tokensOf({ tokens: [input, , , , output] }: UsageShape): number {
  return input + output;
}

Deno.test("the count multiplies the price of an image: at reserve, commit, track and can-use", async () => {
  const app = await gatewayApp(service, CATALOG);
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { ...IMAGES, count: 4 }));
  assert.deepEqual(await shown(app), [0, 16, 4]);
  const drawn = await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 3 } }));
  assert.equal(drawn.cost.cents, 12);
  assert.deepEqual(await shown(app), [0, 12, 3]);
  const { cost } = await dataOf(app.call("POST", "/track", { ...IMAGES, quantity: 2 }));
  assert.equal(cost.cents, 8);
  assert.deepEqual(await shown(app), [2, 20, 5]);
  const { groups } = await dataOf(app.call("POST", "/explain", { ...IMAGES, count: 5 }));
  assert.deepEqual(groups.map(({ need }: { need: number }) => need), [0, 20, 5]);
  const tooMany = { ...IMAGES, count: 250_000 };
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", tooMany))).reasons, ["limit_reached"]);
});

Deno.test("what the caller says of calls or cents is not multiplied", async () => {
  const app = await gatewayApp(service, CATALOG);
  const rows: [held: object, settled: object, cents: number][] = [
    [{ count: 4 }, { usage: { calls: 2 } }, 8],
    [{ count: 4, inputCostCents: 7 }, { actual: { count: 2 } }, 7],
    [{ count: 4 }, { actual: { count: 2, cents: 9 } }, 9],
    [{ count: 4 }, { extra: { count: -4, cents: 1 } }, 17],
    [{ count: 4 }, { extra: { count: -4 } }, 0],
    [{ count: 4 }, { usage: { inputTokens: 5 } }, 16],
    [{ count: 4 }, {}, 16],
  ];
  for (const [held, settled, cents] of rows) {
    const { reservationId } = await dataOf(app.call("POST", "/reserve", { ...IMAGES, ...held }));
    const { cost } = await dataOf(app.call("POST", "/commit", { reservationId, ...settled }));
    assert.equal(cost.cents, cents, JSON.stringify([held, settled]));
  }
});

Deno.test("a call that may write to a cache holds the price of the writes", async () => {
  const app = await gatewayApp(service, CATALOG);
  const rows: [size: object, cents: number][] = [
    [{ inputTokens: 10_000 }, 1],
    [{ inputTokens: 10_000, cacheWriteTokens: 10_000 }, 1.25],
    [{ inputTokens: 10_000, cacheWriteTokens: 4_000, cacheWrite1hTokens: 4_000 }, 1.4],
  ];
  for (const [size, cents] of rows) {
    const { reservationId } = await dataOf(app.call("POST", "/reserve", { ...CHAT, ...size }));
    assert.equal((await shown(app))[1], cents);
    await dataOf(app.call("POST", "/release", { reservationId }));
  }
  const faults: [size: object, at: string][] = [
    [{ inputTokens: 5, cacheWriteTokens: 6 }, "cacheWriteTokens"],
    [{ inputTokens: 5, cacheWriteTokens: 5, cacheWrite1hTokens: 6 }, "cacheWrite1hTokens"],
    [{ cacheWriteTokens: 1 }, "cacheWriteTokens"],
  ];
  for (const [size, at] of faults) {
    for (const path of ["/reserve", "/can-use", "/explain"]) {
      const answer = await app.call("POST", path, { ...CHAT, ...size });
      assert.equal(assertRefused(answer, 400, "invalid_request").details[0].path, at);
    }
  }
});

Deno.test("one-hour writes are a part of a usage of our own", async () => {
  const app = await gatewayApp(service, CATALOG);
  const usage = { inputTokens: 100, cacheWriteTokens: 100, cacheWrite1hTokens: 60, outputTokens: 0 };
  const { cost } = await dataOf(app.call("POST", "/track", { ...CHAT, usage }));
  assert.equal(cost.cents, 0.017);
  const contradiction = { ...usage, cacheWrite1hTokens: 101 };
  const answer = await app.call("POST", "/track", { ...CHAT, usage: contradiction });
  assert.equal(assertRefused(answer, 400, "invalid_request").details[0].path, "usage.cacheWrite1hTokens");
});

Deno.test("the gateway holds the price of cache writes where a call asks for caching", async () => {
  const app = await gatewayApp(service, CATALOG);
  const openai = client(app);
  const text = "x".repeat(40_000);
  const held: number[] = [];
  model.reply = async () => {
    held.push((await shown(app))[1] ?? 0);
    return { answer: ANSWERS.chat };
  };
  for (const cache_control of [undefined, { type: "ephemeral" }, { type: "ephemeral", ttl: "1h" }]) {
    const content = [{ type: "text", text, ...(cache_control ? { cache_control } : {}) }] as never;
    const before = (await shown(app))[1] ?? 0;
    await openai.chat.completions.create({
      model: "priced",
      messages: [{ role: "user", content }],
      max_tokens: 1,
    });
    const [now = 0] = held.splice(0);
    const settled = (await shown(app))[1] ?? 0;
    const perMillion = cache_control === undefined ? 100 : cache_control.ttl === "1h" ? 200 : 125;
    const expected = 10_000 * perMillion / 1_000_000;
    assert.ok(Math.abs(now - before - expected) < 0.05, `${now - before} for ${perMillion}`);
    // There was no report, so nothing says that anything was written to a cache.
    assert.ok(Math.abs(settled - before - 1) < 0.05, `${settled - before}`);
  }
  model.reset();
});
