// What a call means in each unit.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import {
  type CallSize,
  priceRowOf,
  reserveAmounts,
  trackAmounts,
} from "../../../src/domain/pricing/amounts.ts";

const CATALOG = compileCatalog({
  models: [
    { id: "text", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 15 },
    { id: "paint", modality: "image", amountMode: "per_call", centsPerCall: 5 },
    { id: "film", modality: "video", amountMode: "per_unit", centsPerSecond: 0.333333 },
    { id: "a.b", modality: "image", amountMode: "per_call", centsPerCall: 1 },
    {
      id: "think",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 100,
      outputCentsPerMillionTokens: 200,
      reasoningCentsPerMillionTokens: 300,
      cacheWriteCentsPerMillionTokens: 125,
      cacheWrite1hCentsPerMillionTokens: 250,
      tiers: [
        { aboveInputTokens: 10_000, inputCentsPerMillionTokens: 1000, outputCentsPerMillionTokens: 4000 },
      ],
    },
  ],
}, 1);

function size(members: Partial<Record<keyof CallSize, number>>): CallSize {
  const amount = (value: number | undefined) => value === undefined ? null : amountOf(value);
  const { quantity, count, inputTokens, inputCostCents, maxOutputTokens } = members;
  const { cacheWriteTokens, cacheWrite1hTokens } = members;
  return {
    quantity: amount(quantity),
    count: amount(count),
    inputTokens: amount(inputTokens),
    inputCostCents: amount(inputCostCents),
    maxOutputTokens: amount(maxOutputTokens),
    cacheWriteTokens: amount(cacheWriteTokens),
    cacheWrite1hTokens: amount(cacheWrite1hTokens),
  };
}

function shown(amounts: Record<string, bigint>): Record<string, number> {
  return Object.fromEntries(Object.entries(amounts).map(([unit, amount]) => [unit, numberOf(amount)]));
}

Deno.test("a price row is named by metadata, else by what follows the event's first dot", () => {
  const rows: [event: string, model: unknown, id: string | null][] = [
    ["chat.text", undefined, "text"],
    ["chat.text", "paint", "paint"],
    ["chat.text", "unknown", "text"],
    ["chat.text", 5, "text"],
    ["chat.other", "film", "film"],
    ["x.a.b", undefined, "a.b"],
    ["text", undefined, null],
    ["chat.", undefined, null],
    [".text", undefined, "text"],
  ];
  for (const [event, model, id] of rows) {
    const members = model === undefined ? {} : { model };
    const found = priceRowOf(CATALOG, event, { text: JSON.stringify(members), members });
    assert.equal(found?.id ?? null, id, `${event} ${model}`);
  }
});

Deno.test("amounts by unit, for reserve and for track", () => {
  const rows: [sent: Parameters<typeof size>[0], event: string, reserve: number[], track: number[]][] = [
    // In the order count, tokens, seconds, cents.
    [{}, "x", [1, 0, 1, 0], [1, 0, 1, 0]],
    [{ quantity: 3 }, "x", [1, 0, 3, 0], [3, 3, 3, 0]],
    [{ quantity: 3, count: 2 }, "x", [2, 0, 3, 0], [2, 3, 3, 0]],
    [{ quantity: 3, inputTokens: 7 }, "x", [1, 7, 3, 0], [3, 7, 3, 0]],
    [{ inputTokens: 2_000_000 }, "c.text", [1, 2_000_000, 1, 30], [1, 2_000_000, 1, 30]],
    [{ quantity: 2_000_000 }, "c.text", [1, 0, 2_000_000, 0], [2_000_000, 2_000_000, 2_000_000, 0]],
    [{ inputTokens: 1, inputCostCents: 9 }, "c.text", [1, 1, 1, 9], [1, 1, 1, 9]],
    [{ inputTokens: 0.03 }, "c.text", [1, 0.03, 1, 0], [1, 0.03, 1, 0]],
    [{ inputTokens: 0.04 }, "c.text", [1, 0.04, 1, 0.000001], [1, 0.04, 1, 0.000001]],
    [{ quantity: 9 }, "i.paint", [1, 0, 9, 5], [9, 9, 9, 45]],
    [{ count: 4 }, "i.paint", [4, 0, 1, 20], [4, 0, 1, 20]],
    [{ count: 4, quantity: 9 }, "i.paint", [4, 0, 9, 20], [4, 9, 9, 20]],
    [{ count: 4, inputCostCents: 7 }, "i.paint", [4, 0, 1, 7], [4, 0, 1, 7]],
    [{ quantity: 3 }, "v.film", [1, 0, 3, 0.999999], [3, 3, 3, 0.999999]],
    [{}, "v.film", [1, 0, 1, 0.333333], [1, 0, 1, 0.333333]],
  ];
  for (const [sent, event, reserve, track] of rows) {
    const model = priceRowOf(CATALOG, event, null);
    const named = ([count, tokens, seconds, cents]: number[]) => ({
      count,
      tokens,
      seconds,
      cents,
      credits: 0,
    });
    const what = `${event} ${JSON.stringify(sent)}`;
    assert.deepEqual(
      shown(reserveAmounts(size(sent), { row: model, rate: null })),
      named(reserve),
      `reserve ${what}`,
    );
    assert.deepEqual(
      shown(trackAmounts(size(sent), { costCents: null, usage: null }, { row: model, rate: null })),
      named(track),
      `track ${what}`,
    );
  }
});

Deno.test("the longest answer is held beside the input, in tokens and by the price that is the dearer one", () => {
  const rows: [sent: Parameters<typeof size>[0], event: string, tokens: number, cents: number][] = [
    [{ maxOutputTokens: 1000 }, "x", 1000, 0],
    [{ inputTokens: 500, maxOutputTokens: 1000, inputCostCents: 4 }, "x", 1500, 4],
    [{ inputTokens: 500, maxOutputTokens: 1000 }, "c.text", 1500, 0.0075],
    [{ maxOutputTokens: 1000 }, "c.think", 1000, 0.3],
    [{ inputTokens: 10_000, maxOutputTokens: 1000 }, "c.think", 11_000, 1.3],
    [{ inputTokens: 20_000 }, "c.think", 20_000, 20],
    [{ inputTokens: 20_000, maxOutputTokens: 1000 }, "c.think", 21_000, 24],
    [{ inputTokens: 20_000, maxOutputTokens: 1000, inputCostCents: 7 }, "c.think", 21_000, 11],
    [{ inputCostCents: 7, maxOutputTokens: 1000 }, "c.think", 1000, 7.3],
    [{ inputCostCents: 0, maxOutputTokens: 1000 }, "c.think", 1000, 0.3],
    [{ inputTokens: 10_000, cacheWriteTokens: 10_000 }, "c.think", 10_000, 1.25],
    [{ inputTokens: 10_000, cacheWriteTokens: 4000 }, "c.think", 10_000, 1.1],
    [{ inputTokens: 10_000, cacheWriteTokens: 4000, cacheWrite1hTokens: 1000 }, "c.think", 10_000, 1.225],
    [{ inputTokens: 20_000, cacheWriteTokens: 20_000 }, "c.think", 20_000, 20],
    [{ inputTokens: 2_000_000, cacheWriteTokens: 2_000_000 }, "c.text", 2_000_000, 30],
    // Each part alone would round to 0; their sum is a millionth.
    [{ inputTokens: 0.004, maxOutputTokens: 0.001 }, "c.think", 0.005, 0.000001],
    [{ inputTokens: 5, maxOutputTokens: 1000 }, "i.paint", 1005, 5],
    [{ inputCostCents: 2, maxOutputTokens: 1000 }, "i.paint", 1000, 2],
    [{ quantity: 3, maxOutputTokens: 1000 }, "v.film", 1000, 0.999999],
  ];
  for (const [sent, event, tokens, cents] of rows) {
    const amounts = reserveAmounts(size(sent), { row: priceRowOf(CATALOG, event, null), rate: null });
    const found = [numberOf(amounts.tokens), numberOf(amounts.cents)];
    assert.deepEqual(found, [tokens, cents], `${event} ${JSON.stringify(sent)}`);
  }
});

Deno.test("the real cost of a tracked event counts toward cents for per_unit rows alone", () => {
  const cost = amountOf(8);
  const cents = (event: string) =>
    trackAmounts(size({}), { costCents: cost, usage: null }, {
      row: priceRowOf(CATALOG, event, null),
      rate: null,
    }).cents;
  assert.equal(numberOf(cents("v.film")), 8);
  assert.equal(numberOf(cents("i.paint")), 5);
  assert.equal(numberOf(cents("x")), 0);
});
