// What usages cost: a table of whole calls, and the properties that hold for any of them.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { compilePriceRow, type ModelDocument } from "../../../src/domain/catalog/price_row.ts";
import {
  centsOf,
  finalAmounts,
  NO_USAGE,
  type Usage,
  usageFault,
} from "../../../src/domain/pricing/usage.ts";

const CLAUDE: ModelDocument = {
  id: "claude",
  modality: "text",
  amountMode: "per_token",
  inputCentsPerMillionTokens: 300,
  cachedInputCentsPerMillionTokens: 30,
  cacheWriteCentsPerMillionTokens: 375,
  cacheWrite1hCentsPerMillionTokens: 600,
  outputCentsPerMillionTokens: 1500,
  tiers: [{
    aboveInputTokens: 200_000,
    inputCentsPerMillionTokens: 600,
    cachedInputCentsPerMillionTokens: 60,
    outputCentsPerMillionTokens: 2250,
  }],
};
const IMAGE: ModelDocument = { id: "image", modality: "image", amountMode: "per_call", centsPerImage: 4 };
const VIDEO: ModelDocument = { id: "video", modality: "video", amountMode: "per_unit", centsPerSecond: 40 };

function usageOf(members: Partial<Record<keyof Usage, number>>): Usage {
  const entries = Object.entries(members).map(([name, value]) => [name, amountOf(value)]);
  return { ...NO_USAGE, ...Object.fromEntries(entries) };
}

function show(amounts: Readonly<Record<string, bigint | undefined>>) {
  return Object.fromEntries(
    Object.entries(amounts).map(([unit, amount]) => [unit, numberOf(amount as bigint)]),
  );
}

Deno.test("what a usage makes final, by price row", () => {
  const rows: [
    name: string,
    row: ModelDocument | null,
    usage: Partial<Record<keyof Usage, number>>,
    final: Record<string, number>,
  ][] = [
    ["tokens", CLAUDE, { inputTokens: 1_000_000 / 5, outputTokens: 1000 }, { tokens: 201_000, cents: 61.5 }],
    ["the highest tier", CLAUDE, { inputTokens: 300_000, outputTokens: 1000 }, {
      tokens: 301_000,
      cents: 182.25,
    }],
    [
      "cached parts are counted once",
      CLAUDE,
      { inputTokens: 100_000, cachedInputTokens: 90_000, outputTokens: 0 },
      { tokens: 100_000, cents: 5.7 },
    ],
    [
      "writes, of them one-hour ones",
      CLAUDE,
      { inputTokens: 10_000, cacheWriteTokens: 10_000, cacheWrite1hTokens: 4_000 },
      { tokens: 10_000, cents: 4.65 },
    ],
    ["output alone", CLAUDE, { outputTokens: 1 }, { tokens: 1, cents: 0.0015 }],
    ["no tokens: nothing of a per_token row is final", CLAUDE, { calls: 3 }, {}],
    ["an unpriced model", null, { inputTokens: 5, outputTokens: 6 }, { tokens: 11 }],
    ["images by the count of the call", IMAGE, { inputTokens: 100 }, { tokens: 100, cents: 12 }],
    ["images", IMAGE, { calls: 2 }, { cents: 8 }],
    ["seconds", VIDEO, { seconds: 2.5 }, { seconds: 2.5, cents: 100 }],
    ["seconds as held", VIDEO, { calls: 1 }, { cents: 320 }],
    ["rounded once, half up", CLAUDE, { inputTokens: 0.000001, outputTokens: 0.003 }, {
      tokens: 0.003001,
      cents: 0.000005,
    }],
  ];
  for (const [name, document, members, expected] of rows) {
    const row = document === null ? null : compilePriceRow(document, 0);
    assert.deepEqual(
      show(finalAmounts(usageOf(members), row, { seconds: amountOf(8), count: amountOf(3) })),
      expected,
      name,
    );
  }
});

Deno.test("a usage says something, and no part of it is larger than its whole", () => {
  const rows: [usage: Partial<Record<keyof Usage, number>>, path: string | null][] = [
    [{}, ""],
    [{ calls: 0 }, null],
    [{ inputTokens: 5, cachedInputTokens: 3, cacheWriteTokens: 2 }, null],
    [{ inputTokens: 5, cachedInputTokens: 3, cacheWriteTokens: 3 }, "cachedInputTokens"],
    [{ cacheWriteTokens: 1 }, "cacheWriteTokens"],
    [{ outputTokens: 5, reasoningTokens: 5 }, null],
    [{ reasoningTokens: 1 }, "reasoningTokens"],
  ];
  for (const [members, path] of rows) assert.equal(usageFault(usageOf(members))?.path ?? null, path);
});

const price = fc.integer({ min: 0, max: 100_000_000 }).map((micros) => micros / 1e6);
const prices = fc.record({
  inputCentsPerMillionTokens: price,
  cachedInputCentsPerMillionTokens: fc.option(price, { nil: undefined }),
  cacheWriteCentsPerMillionTokens: fc.option(price, { nil: undefined }),
  outputCentsPerMillionTokens: price,
  reasoningCentsPerMillionTokens: fc.option(price, { nil: undefined }),
});
const tokens = fc.integer({ min: 0, max: 2_000_000 });
const usages = fc.tuple(tokens, tokens, tokens, tokens, tokens).map((
  [cached, writes, plain, reasoning, text],
) =>
  usageOf({
    inputTokens: cached + writes + plain,
    cachedInputTokens: cached,
    cacheWriteTokens: writes,
    outputTokens: reasoning + text,
    reasoningTokens: reasoning,
  })
);

function sumOf(all: readonly Usage[]): Usage {
  const add = (name: Exclude<keyof Usage, "isOtherTier">) =>
    all.reduce((sum, usage) => sum + (usage[name] ?? 0n), 0n);
  return {
    ...NO_USAGE,
    inputTokens: add("inputTokens"),
    cachedInputTokens: add("cachedInputTokens"),
    cacheWriteTokens: add("cacheWriteTokens"),
    outputTokens: add("outputTokens"),
    reasoningTokens: add("reasoningTokens"),
  };
}

Deno.test("cents are never negative, and usages priced apart differ from their sum by rounding alone", () => {
  fc.assert(fc.property(prices, fc.array(usages, { minLength: 1, maxLength: 8 }), (document, all) => {
    const row = compilePriceRow({ id: "m", modality: "text", amountMode: "per_token", ...document }, 0);
    const apart = all.map((usage) => centsOf(row, usage));
    assert.ok(apart.every((cents) => cents >= 0n));
    const difference = apart.reduce((sum, cents) => sum + cents, 0n) - centsOf(row, sumOf(all));
    assert.ok((difference < 0n ? -difference : difference) <= BigInt(all.length), `${difference}`);
  }));
});

Deno.test("cached and reasoning parts at the price of their whole change nothing: they are counted once", () => {
  fc.assert(
    fc.property(prices, usages, ({ inputCentsPerMillionTokens, outputCentsPerMillionTokens }, usage) => {
      const flat = { inputCentsPerMillionTokens, outputCentsPerMillionTokens };
      const row = compilePriceRow({ id: "m", modality: "text", amountMode: "per_token", ...flat }, 0);
      const { inputTokens, outputTokens } = usage;
      assert.equal(centsOf(row, usage), centsOf(row, { ...NO_USAGE, inputTokens, outputTokens }));
    }),
  );
});
