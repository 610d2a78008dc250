// The usage objects of model servers, in their full shapes.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import {
  type ProviderUsage,
  readProviderUsage,
  readReport,
} from "../../../src/domain/pricing/provider_usage.ts";
import { centsOf } from "../../../src/domain/pricing/usage.ts";
import { compilePriceRow } from "../../../src/domain/catalog/price_row.ts";
import { fromNumber } from "../../model/decimal.ts";
import { reportOf } from "../../model/reports.ts";
import { SHAPE_PRICES, USAGE_SHAPES } from "../../support/usage_shapes.ts";

/** In the order input, cached, writes, one-hour writes, output, reasoning; or the path of the fault. */
type Row = [name: string, object: ProviderUsage, expected: (number | null)[] | string];

const ROWS: readonly Row[] = [
  [
    "OpenAI chat completions",
    {
      prompt_tokens: 2006,
      completion_tokens: 300,
      total_tokens: 2306,
      prompt_tokens_details: { cached_tokens: 1920, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 64,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    [2006, 1920, 0, null, 300, 64],
  ],
  [
    "OpenAI with cache writes",
    { prompt_tokens: 100, completion_tokens: 1, prompt_tokens_details: { cache_write_tokens: 40 } },
    [100, 0, 40, null, 1, 0],
  ],
  ["OpenAI embeddings", { prompt_tokens: 8, total_tokens: 8 }, [8, 0, 0, null, 0, 0]],
  [
    "null details",
    { prompt_tokens: 8, completion_tokens: null, prompt_tokens_details: null },
    [8, 0, 0, null, 0, 0],
  ],
  [
    "OpenAI responses",
    {
      input_tokens: 328,
      input_tokens_details: { cached_tokens: 128 },
      output_tokens: 52,
      output_tokens_details: { reasoning_tokens: 32 },
      total_tokens: 380,
    },
    [328, 128, 0, null, 52, 32],
  ],
  [
    "Anthropic messages with caching",
    {
      input_tokens: 21,
      cache_creation_input_tokens: 188_086,
      cache_read_input_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 88_086, ephemeral_1h_input_tokens: 100_000 },
      output_tokens: 393,
      server_tool_use: { web_search_requests: 1 },
      service_tier: "standard",
    },
    [189_107, 1_000, 188_086, 100_000, 393, 0],
  ],
  [
    "Anthropic without caching",
    {
      input_tokens: 2095,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 503,
      service_tier: "standard",
    },
    [2095, 0, 0, 0, 503, 0],
  ],
  [
    "Anthropic with null caches",
    { input_tokens: 5, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 6 },
    [5, 0, 0, null, 6, 0],
  ],
  [
    "Gemini",
    {
      promptTokenCount: 1_000,
      cachedContentTokenCount: 600,
      candidatesTokenCount: 50,
      toolUsePromptTokenCount: 20,
      thoughtsTokenCount: 30,
      totalTokenCount: 1_100,
      promptTokensDetails: [{ modality: "TEXT", tokenCount: 1_000 }],
      trafficType: "ON_DEMAND",
    },
    [1_020, 600, null, null, 80, 30],
  ],
  ["nothing recognised", { tokens: 5 }, ""],
  ["empty", {}, ""],
  ["a mark that is null", { prompt_tokens: null }, ""],
  ["a text", { prompt_tokens: "5" }, "prompt_tokens"],
  ["below zero", { input_tokens: -1, output_tokens: 1 }, "input_tokens"],
  [
    "a part that is no number",
    { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: true } },
    "prompt_tokens_details.cached_tokens",
  ],
  [
    "a part larger than its whole",
    { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 6 } },
    [11, 6, 0, null, 0, 0],
  ],
  [
    "reasoning beyond the output",
    { input_tokens: 1, output_tokens_details: { reasoning_tokens: 1 } },
    [1, 0, 0, null, 1, 1],
  ],
];

for (const [name, object, expected] of ROWS) {
  Deno.test(`providerUsage: ${name}`, () => {
    const read = readProviderUsage(object);
    if ("path" in read) return assert.equal(read.path, expected);
    const {
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens,
      cacheWrite1hTokens,
      outputTokens,
      reasoningTokens,
    } = read;
    const shown = [
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens,
      cacheWrite1hTokens,
      outputTokens,
      reasoningTokens,
    ]
      .map((amount) => amount === null ? null : numberOf(amount));
    assert.deepEqual(shown, expected);
  });
}

Deno.test("of a report with a faulty detail the totals are left, and of one without figures nothing", () => {
  const tokens = (report: unknown) => {
    const read = readReport(report);
    return read &&
      [read.inputTokens, read.cachedInputTokens, read.outputTokens].map((amount) => numberOf(amount ?? 0n));
  };
  const details = { prompt_tokens_details: { cached_tokens: 9 } };
  assert.deepEqual(tokens({ prompt_tokens: 10, completion_tokens: 5, ...details }), [10, 9, 5]);
  assert.deepEqual(tokens({ prompt_tokens: 3, completion_tokens: 5, ...details }), [12, 9, 5]);
  assert.deepEqual(
    tokens({ input_tokens: 3, output_tokens: 5, input_tokens_details: { cached_tokens: "x" } }),
    [
      3,
      0,
      5,
    ],
  );
  for (const none of [undefined, null, "usage", {}, { total_tokens: 5 }, { prompt_tokens: -1 }]) {
    assert.equal(readReport(none), null, JSON.stringify(none));
  }
});

const MEMBERS = [
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "cacheWrite1hTokens",
  "outputTokens",
  "reasoningTokens",
] as const;

for (const { name, usage, tokens, cents, isOtherTier = false } of USAGE_SHAPES) {
  Deno.test(`the shape, read and priced: ${name}`, () => {
    const read = readProviderUsage(usage);
    if ("path" in read) return assert.fail(read.message);
    assert.deepEqual(MEMBERS.map((member) => numberOf(read[member] ?? 0n)), tokens);
    assert.equal(numberOf(centsOf(compilePriceRow(SHAPE_PRICES, 0), read)), cents);
    assert.equal(read.isOtherTier ?? false, isOtherTier);
    const modelled = reportOf({ providerUsage: usage });
    const micros = tokens.map(fromNumber) as [bigint, bigint, bigint, bigint, bigint, bigint];
    const [input, cached, write, hourWrite, output, reasoning] = micros;
    assert.deepEqual([modelled?.input, modelled?.tokens], [input, input + output]);
    assert.deepEqual(modelled?.parts, {
      plain: input - cached - write,
      cached,
      write: write - hourWrite,
      hourWrite,
      text: output - reasoning,
      reasoning,
    });
    assert.equal(modelled.isOtherTier, isOtherTier);
  });
}

Deno.test("a transcription that is billed by its duration is read in seconds", () => {
  const read = readProviderUsage({ type: "duration", seconds: 12.5 });
  assert.ok(!("path" in read));
  assert.deepEqual([numberOf(read.seconds ?? 0n), read.inputTokens, read.outputTokens], [12.5, null, null]);
});

Deno.test("a message of several runs is their sum, and a faulty run is named", () => {
  const iterations = [
    { type: "compaction", input_tokens: 1_000, output_tokens: 50 },
    { type: "message", input_tokens: 100, cache_read_input_tokens: 30, output_tokens: 20 },
  ];
  const last = { input_tokens: 100, cache_read_input_tokens: 30, output_tokens: 20, speed: "fast" };
  const usage = readProviderUsage({ ...last, iterations });
  assert.ok(!("path" in usage));
  const { inputTokens, cachedInputTokens, outputTokens, isOtherTier } = usage;
  assert.deepEqual([inputTokens, cachedInputTokens, outputTokens, isOtherTier], [
    amountOf(1_130),
    amountOf(30),
    amountOf(70),
    true,
  ]);
  assert.deepEqual(readProviderUsage({ ...last, iterations: [{ ...last, input_tokens: -1 }] }), {
    path: "iterations[0].input_tokens",
    message: "must be a number of at least 0",
  });
  const none = readProviderUsage({ ...last, iterations: [] });
  assert.ok(!("path" in none));
  assert.equal(none.outputTokens, amountOf(20));
  const thought = readProviderUsage({ ...last, output_tokens_details: { thinking_tokens: 15 } });
  assert.ok(!("path" in thought));
  assert.equal(thought.reasoningTokens, amountOf(15));
});

Deno.test("the server's own object is looked for once, not within itself", () => {
  const own = { input_tokens: 7, output_tokens: 3 };
  for (const wrapped of [{ raw: own }, { raw: { iterations: [own] } }]) {
    const read = readProviderUsage(wrapped);
    assert.ok(!("path" in read));
    assert.equal(read.inputTokens, amountOf(7));
  }
  for (
    const wrap of [(inner: object) => ({ raw: inner }), (inner: object) => ({ iterations: [{ raw: inner }] })]
  ) {
    let deep: Record<string, unknown> = own;
    for (let level = 0; level < 100_000; level++) deep = wrap(deep);
    assert.ok("path" in readProviderUsage(deep));
  }
});
