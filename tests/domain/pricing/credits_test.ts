// What a call costs in credits: which rate it has, the sum of its parts, and the one rounding.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { compilePriceRow } from "../../../src/domain/catalog/price_row.ts";
import {
  compileRateRow,
  type RateDocument,
  rateText,
  withRateRows,
} from "../../../src/domain/catalog/rate_row.ts";
import { heldUsage, reserveAmounts, trackAmounts } from "../../../src/domain/pricing/amounts.ts";
import { creditsOf, ratedParts, rateOf, tokenCost } from "../../../src/domain/pricing/credits.ts";
import { centsOf, NO_USAGE, type Usage } from "../../../src/domain/pricing/usage.ts";
import { amountOf, numberOf, ONE } from "../../../src/domain/values/amount.ts";
import { type Reported, type Size, sizeOf, usageOf } from "../scene_input.ts";

type Parts = Omit<RateDocument, "event">;

function rateRow(parts: Parts) {
  return compileRateRow({ event: "*", ...parts }, 0);
}

const MODEL = compilePriceRow({
  id: "m",
  modality: "text",
  amountMode: "per_token",
  inputCentsPerMillionTokens: 100,
  outputCentsPerMillionTokens: 400,
  reasoningCentsPerMillionTokens: 1000,
}, 0);

const TOKENS: Parts = { perMillionInputTokens: 200, perMillionOutputTokens: 800 };

Deno.test("the first row that covers an event is its rate, and a row may ask for metadata", () => {
  const catalog = compileCatalog({
    rates: [
      { event: "image.*", metadata: { size: "large" }, perImage: 10 },
      { event: "image.draft", perCall: 1 },
      { event: "image.*", perImage: 5 },
      { event: "image.draft", perCall: 7 },
    ],
  }, 1);
  const rows: [event: string, metadata: Record<string, unknown>, number: number | null][] = [
    ["image.render", {}, 2],
    ["image.render", { size: "large" }, 0],
    ["image.draft", { size: "large" }, 0],
    ["image.draft", { size: "small" }, 1],
    ["chat", {}, null],
  ];
  for (const [event, members, number] of rows) {
    const found = rateOf(catalog, event, { text: JSON.stringify(members), members });
    assert.equal(found?.number ?? null, number, `${event} ${JSON.stringify(members)}`);
  }
});

Deno.test("the credits of a hold are the worst case, of a usage what it says", () => {
  const rows: [parts: Parts, size: Size, held: number, usage: Reported, settled: number][] = [
    [{ perCall: 5 }, {}, 5, {}, 5],
    [{ perImage: 5 }, { count: 3 }, 15, {}, 15],
    [{ perCall: 5 }, { count: 3 }, 15, { calls: 2 }, 10],
    [{ perSecond: 10 }, { quantity: 8 }, 80, { seconds: 6.5 }, 65],
    [{ perSecond: 10 }, { quantity: 8 }, 80, { inputTokens: 9 }, 80],
    [
      TOKENS,
      { inputTokens: 1000, maxOutputTokens: 500 },
      0.6,
      { inputTokens: 1000, outputTokens: 100 },
      0.28,
    ],
    [TOKENS, {}, 0, { outputTokens: 1000, reasoningTokens: 900 }, 0.8],
    [
      TOKENS,
      { inputTokens: 1000 },
      0.2,
      { inputTokens: 1000, cachedInputTokens: 900, cacheWriteTokens: 50 },
      0.2,
    ],
    [
      { ...TOKENS, perMillionCachedInputTokens: 20 },
      { inputTokens: 1000 },
      0.2,
      { inputTokens: 1000, cachedInputTokens: 900, cacheWriteTokens: 50 },
      0.038,
    ],
    [{ ...TOKENS, perCall: 1, minimum: 1.5 }, { inputTokens: 1000 }, 1.5, { inputTokens: 5000 }, 2],
    [{ perCall: 0, minimum: 0.25 }, {}, 0.25, {}, 0.25],
    [{ perMillionInputTokens: 1 }, { inputTokens: 0.4 }, 0, { inputTokens: 0.5 }, 0.000001],
    [{ perMillionInputTokens: 1 }, { quantity: 7 }, 0, {}, 0],
  ];
  for (const [parts, size, held, usage, settled] of rows) {
    const rate = rateRow(parts);
    const what = JSON.stringify([parts, size, usage]);
    const { credits } = reserveAmounts(sizeOf(size), { row: null, rate });
    assert.equal(numberOf(credits), held, `held ${what}`);
    if (Object.keys(usage).length === 0) continue;
    const tracked = trackAmounts(sizeOf(size), { costCents: null, usage: usageOf(usage) }, {
      row: null,
      rate,
    });
    assert.equal(numberOf(tracked.credits), settled, `tracked ${what}`);
  }
});

Deno.test("a rate for cents takes those that a cents group would take, and never costCents", () => {
  const rate = rateRow({ perCent: 2, minimum: 0.5 });
  const credits = (size: Size, row: typeof MODEL | null) =>
    numberOf(reserveAmounts(sizeOf(size), { row, rate }).credits);
  assert.equal(credits({ inputCostCents: 3 }, null), 6);
  assert.equal(credits({ inputTokens: 10_000, maxOutputTokens: 1000 }, MODEL), 4, "the answer as reasoning");
  assert.equal(credits({ inputTokens: 10_000, inputCostCents: 5 }, MODEL), 10);
  assert.equal(credits({ inputCostCents: 0 }, null), 0.5, "0 cents are known");
  assert.equal(credits({ inputTokens: 10_000 }, null), 0, "no minimum for a call that is not rated");
  const film = compilePriceRow({ id: "f", modality: "video", amountMode: "per_unit", centsPerSecond: 1 }, 0);
  const tracked = (usage: Reported | undefined, row: typeof MODEL | null, size: Size = {}) => {
    const told = { costCents: amountOf(99), usage: usageOf(usage) };
    return numberOf(trackAmounts(sizeOf(size), told, { row, rate }).credits);
  };
  assert.equal(tracked(undefined, film, { quantity: 4 }), 8);
  assert.equal(tracked({ inputTokens: 20_000 }, MODEL), 4);
  assert.equal(tracked({ inputTokens: 20_000 }, null), 0);
  assert.equal(tracked({ seconds: 3 }, film), 6);
});

const count = fc.integer({ min: 0, max: 10 ** 9 });
const price = fc.integer({ min: 0, max: 10 ** 9 }).map((value) => value / 1000);
const anyRate = fc.record({
  perCall: price,
  perMillionInputTokens: price,
  perMillionCachedInputTokens: price,
  perMillionOutputTokens: price,
  perSecond: price,
  perCent: price,
}, { requiredKeys: [] });
const anyUsage: fc.Arbitrary<Usage> = fc.record({
  fresh: count,
  cached: count,
  output: count,
  seconds: count,
  calls: count,
})
  .map(({ fresh, cached, ...more }) => ({
    ...NO_USAGE,
    inputTokens: BigInt(fresh + cached),
    cachedInputTokens: BigInt(cached),
    outputTokens: BigInt(more.output),
    seconds: BigInt(more.seconds),
    calls: BigInt(more.calls),
  }));

Deno.test("credits are rounded once, half up, on the sum of the exact parts", () => {
  fc.assert(fc.property(anyRate, anyUsage, count.map(BigInt), (parts, usage, cents) => {
    const rate = rateRow(parts);
    const [input, cached] = [usage.inputTokens as bigint, usage.cachedInputTokens as bigint];
    const million = 1_000_000n;
    const exact = (input - cached) * rate.prices.input + cached * rate.prices.cachedInput +
      (usage.outputTokens as bigint) * rate.prices.output +
      million * ((usage.calls as bigint) * rate.perCall + (usage.seconds as bigint) * rate.perSecond +
          cents * (rate.perCent ?? 0n));
    const [scale, half] = [ONE * million, ONE * million / 2n];
    const credits = creditsOf(rate, usage, cents);
    assert.equal(credits, (exact + half) / scale);
    const others = { ...NO_USAGE, calls: usage.calls, seconds: usage.seconds };
    assert.equal(creditsOf(rate, others, cents, tokenCost(rate, usage)), credits, "from what a hold keeps");
    const apart = ratedParts(rate, usage, cents);
    const difference = apart.reduce((sum, part) => sum + part.credits, 0n) - credits;
    assert.ok(difference <= 3n && difference >= -3n, "the parts add up, each with its own rounding");
  }));
});

Deno.test("both price books count one reading: equal prices make equal amounts", () => {
  fc.assert(fc.property(price, price, price, anyUsage, (input, cached, output, usage) => {
    const row = compilePriceRow({
      id: "m",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: input,
      cachedInputCentsPerMillionTokens: cached,
      outputCentsPerMillionTokens: output,
    }, 0);
    const rate = rateRow({
      perMillionInputTokens: input,
      perMillionCachedInputTokens: cached,
      perMillionOutputTokens: output,
    });
    assert.equal(creditsOf(rate, usage, null), centsOf(row, usage));
    const size = { ...sizeOf({}), inputTokens: usage.inputTokens, maxOutputTokens: usage.outputTokens };
    const held = reserveAmounts(size, { row, rate });
    assert.equal(held.credits, held.cents);
    assert.equal(held.credits, creditsOf(rate, heldUsage(size), null));
  }));
});

Deno.test("a rate keeps its number for as long as its members are the same, in any order", () => {
  const image = { event: "image.*", metadata: { b: "1", a: "2" }, perImage: 5 };
  const same = { perImage: 5, metadata: { a: "2", b: "1" }, event: "image.*", perCall: undefined };
  assert.equal(rateText(image), rateText(same));
  const known = withRateRows([image], [{ event: "chat", perCall: 1 }, same]);
  assert.deepEqual(known, [image, { event: "chat", perCall: 1 }]);
  const catalog = compileCatalog({ rates: [{ event: "chat", perCall: 1 }] }, 2, [], known);
  assert.deepEqual(catalog.rates.map(({ number }) => number), [1]);
  assert.deepEqual(catalog.rateRows.map(({ perCall }) => numberOf(perCall)), [5, 1]);
});
