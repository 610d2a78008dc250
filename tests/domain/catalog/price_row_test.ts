// Price rows: defaults, tiers, and the numbers that holds remember.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import {
  compilePriceRow,
  type ModelDocument,
  pricesFor,
  type PriceTierDocument,
  withPriceRows,
} from "../../../src/domain/catalog/price_row.ts";

type Prices = Partial<PriceTierDocument>;

function modelOf(prices: Prices & { tiers?: readonly PriceTierDocument[] }): ModelDocument {
  return { id: "m", modality: "text", amountMode: "per_token", ...prices };
}

Deno.test("prices of tokens: defaults are resolved after the highest tier that the input is above", () => {
  const input = { inputCentsPerMillionTokens: 10, outputCentsPerMillionTokens: 40 };
  const cached = { ...input, cachedInputCentsPerMillionTokens: 1 };
  const tier = (aboveInputTokens: number, prices: Prices) => ({ aboveInputTokens, ...prices });
  const dearer = { inputCentsPerMillionTokens: 20, outputCentsPerMillionTokens: 60 };
  // In the order input, cached, write, one-hour write, output, reasoning.
  const rows: [name: string, document: ModelDocument, inputTokens: number, prices: number[]][] = [
    ["nothing set", modelOf({}), 1, [0, 0, 0, 0, 0, 0]],
    ["defaults", modelOf(input), 1, [10, 10, 10, 10, 40, 40]],
    ["a cached price", modelOf(cached), 1, [10, 1, 10, 10, 40, 40]],
    ["writes", modelOf({ ...input, cacheWriteCentsPerMillionTokens: 12.5 }), 1, [10, 10, 12.5, 12.5, 40, 40]],
    [
      "one-hour writes and reasoning",
      modelOf({ ...input, cacheWrite1hCentsPerMillionTokens: 16, reasoningCentsPerMillionTokens: 80 }),
      1,
      [10, 10, 10, 16, 40, 80],
    ],
    ["at a tier's bound", modelOf({ ...input, tiers: [tier(200, dearer)] }), 200, [10, 10, 10, 10, 40, 40]],
    ["above it", modelOf({ ...input, tiers: [tier(200, dearer)] }), 200.000001, [20, 20, 20, 20, 60, 60]],
    [
      "a tier keeps what it does not name",
      modelOf({ ...cached, tiers: [tier(200, { inputCentsPerMillionTokens: 20 })] }),
      201,
      [20, 1, 20, 20, 40, 40],
    ],
    [
      "tiers in any order, each over the row alone",
      modelOf({
        ...input,
        tiers: [
          tier(100, { outputCentsPerMillionTokens: 50 }),
          tier(200, { inputCentsPerMillionTokens: 20 }),
        ],
      }),
      201,
      [20, 20, 20, 20, 40, 40],
    ],
  ];
  for (const [name, document, inputTokens, prices] of rows) {
    const found = pricesFor(compilePriceRow(document, 0), amountOf(inputTokens));
    const { input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning } = found;
    const shown = [input, cachedInput, cacheWrite, cacheWrite1h, output, reasoning].map(numberOf);
    assert.deepEqual(shown, prices, name);
  }
});

Deno.test("a known price row keeps its number, a changed one gets the next, and its source is no part of it", () => {
  const first = modelOf({ inputCentsPerMillionTokens: 10 });
  const checked: ModelDocument = { ...first, source: "litellm", checkedAt: "2026-11-01T00:00:00.000Z" };
  const dearer = modelOf({ inputCentsPerMillionTokens: 20 });
  const other: ModelDocument = { ...first, id: "n" };
  const rows: [known: ModelDocument[], models: ModelDocument[], expected: ModelDocument[]][] = [
    [[], [first], [first]],
    [[first], [checked], [first]],
    [[first], [dearer, other], [first, dearer, other]],
    [[first, dearer], [first], [first, dearer]],
  ];
  for (const [known, models, expected] of rows) assert.deepEqual(withPriceRows(known, models), expected);
  const catalog = compileCatalog({ models: [first] }, 3, [first, dearer]);
  assert.equal(catalog.models.get("m")?.number, 0);
  assert.deepEqual(catalog.priceRows.map(({ number, prices }) => [number, numberOf(prices.input)]), [
    [0, 10],
    [
      1,
      20,
    ],
  ]);
});
