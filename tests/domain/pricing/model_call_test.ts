// The most that a call of a model server may use: the upper bound that the gateway reserves.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import {
  estimateCall,
  estimateImages,
  estimateMessages,
  type ModelCall,
  tokensOfBytes,
  usageOfLeft,
} from "../../../src/domain/pricing/model_call.ts";

const NO_INPUT = 0;
const DATA_URL = `data:image/png;base64,${"A".repeat(4_000)}`;

/** Bytes of JSON as tokens. */
const sized = (value: unknown) => Math.ceil(new TextEncoder().encode(JSON.stringify(value)).byteLength / 4);

const MESSAGES = [{ role: "user", content: "Grüße 👋" }];
const picture = (url: string) => [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
const format = { type: "json_schema", json_schema: { name: "x", schema: {} } };

/** Calls with their input and their longest answer in tokens. */
const CALLS: readonly [name: string, call: ModelCall, input: number, answer: number][] = [
  ["messages by their UTF-8 bytes", { messages: MESSAGES }, sized(MESSAGES), 1024],
  ["the model and other members are no input", { model: "m".repeat(99), store: true }, NO_INPUT, 1024],
  ["a text of responses", { input: "12345678" }, sized("12345678"), 1024],
  [
    "all parts together are rounded once",
    { messages: MESSAGES, tools, response_format: format },
    Math.ceil(
      [MESSAGES, tools, format].map((part) => new TextEncoder().encode(JSON.stringify(part)).byteLength)
        .reduce((sum, bytes) => sum + bytes) / 4,
    ),
    1024,
  ],
  [
    "instructions and the format of responses",
    { instructions: "abcdef", text: { format, verbosity: "low" } },
    2 + sized(format),
    1024,
  ],
  ["a picture counts flat", { messages: picture(DATA_URL) }, sized(picture("")) + 1024, 1024],
  ["a link to one counts its text", { messages: picture("https://x") }, sized(picture("https://x")), 1024],
  [
    "a text that begins like a picture is a text",
    { messages: [{ role: "user", content: DATA_URL }] },
    sized([{ role: "user", content: DATA_URL }]),
    1024,
  ],
  [
    "a sound counts flat",
    { messages: [{ content: [{ input_audio: { data: "A".repeat(999), format: "wav" } }] }] },
    sized([{ content: [{ input_audio: { data: "", format: "wav" } }] }]) + 1024,
    1024,
  ],
  ["tokens count themselves", { input: [1, 2, 3] }, 3, 1024],
  ["lists of tokens too", { input: [[1, 2, 3], [4]] }, 4, 1024],
  ["an empty list is a text of two bytes", { input: [] }, 1, 1024],
  ["max_completion_tokens", { max_completion_tokens: 7 }, NO_INPUT, 7],
  ["max_tokens", { max_tokens: 7 }, NO_INPUT, 7],
  ["max_output_tokens", { max_output_tokens: 7 }, NO_INPUT, 7],
  ["the larger of two", { max_tokens: 7, max_completion_tokens: 9 }, NO_INPUT, 9],
  ["n answers", { max_tokens: 7, n: 3 }, NO_INPUT, 21],
  ["n answers without a limit", { n: 2 }, NO_INPUT, 2048],
  ["null is as absent", { max_tokens: null, n: null, tools: null }, NO_INPUT, 1024],
];

for (const [name, call, input, answer] of CALLS) {
  Deno.test(`the estimate of a call: ${name}`, () => {
    const estimate = estimateCall(call, true);
    assert.ok(!("path" in estimate));
    assert.deepEqual([numberOf(estimate.inputTokens), numberOf(estimate.maxOutputTokens ?? -1n)], [
      input,
      answer,
    ]);
  });
}

Deno.test("a call without an answer of tokens holds its input alone", () => {
  const estimate = estimateCall({ input: "abcd", max_tokens: -1 }, false);
  assert.ok(!("path" in estimate));
  assert.equal(estimate.maxOutputTokens, null);
});

Deno.test("a limit that is no number of tokens is named", () => {
  for (const value of [0, -1, 1.5, "7", true, 2e12]) {
    for (const name of ["max_completion_tokens", "max_tokens", "max_output_tokens", "n"]) {
      const fault = estimateCall({ [name]: value }, true);
      assert.equal("path" in fault && fault.path, name, JSON.stringify(value));
    }
  }
  const product = estimateCall({ n: 1e7, max_tokens: 1e7 }, true);
  assert.equal("path" in product && product.path, "n");
});

Deno.test("an input that is nested too deeply is a fault and not a crash", () => {
  let deep: unknown = "x";
  for (let level = 0; level < 100_000; level++) deep = [deep];
  assert.equal("path" in estimateCall({ messages: deep }, true), true);
});

Deno.test("bytes are rounded up to tokens", () => {
  assert.deepEqual([0, 1, 4, 5].map((bytes) => numberOf(tokensOfBytes(bytes))), [0, 1, 1, 2]);
});

Deno.test("leaving early: at least what was held for media and for a model that reasons; media count by their size", () => {
  const part = (member: object) => ({ max_tokens: 500, messages: [{ content: [member] }] });
  const file = (length: number) => part({ file: { file_data: "A".repeat(length) } });
  const sound = (length: number) => part({ input_audio: { data: "A".repeat(length), format: "wav" } });
  const text = part({ text: "abcd" });
  const rows: [name: string, call: ModelCall, moreInput: number, output: number][] = [
    ["a text", text, 0, 7],
    ["a small file", file(1_000), 0, 500],
    ["a file of 2 MB", file(2_000_000), 2_000_000 / 32 - 1_024, 500],
    [
      "a file as a data URL",
      part({ file_url: `data:application/pdf;base64,${"A".repeat(63_972)}` }),
      976,
      500,
    ],
    ["a sound", sound(4 * 1024 * 1024), 3 * 1_024, 500],
    ["a picture", part({ image_url: { url: `data:image/png;base64,${"A".repeat(9_999_999)}` } }), 0, 500],
    ["a picture at an address", part({ image_url: { url: "https://x" } }), 1_024, 500],
    ["an effort", { ...text, reasoning_effort: "low" }, 0, 500],
    ["no effort", { ...text, reasoning_effort: "none", reasoning: null }, 0, 7],
    ["reasoning of responses", { ...text, reasoning: { summary: "auto" } }, 0, 500],
    ["none of it", { ...text, reasoning: { effort: "none" } }, 0, 7],
  ];
  for (const [name, call, moreInput, output] of rows) {
    const estimate = estimateCall(call, true);
    assert.ok(!("path" in estimate));
    const { inputTokens, outputTokens } = usageOfLeft(estimate, amountOf(7), false);
    assert.equal(numberOf(inputTokens - estimate.inputTokens), moreInput, name);
    assert.equal(numberOf(outputTokens), output, name);
  }
  const estimate = estimateCall(text, true);
  assert.ok(!("path" in estimate));
  const longest = (written: number) => numberOf(usageOfLeft(estimate, amountOf(written), true).outputTokens);
  assert.deepEqual([longest(7), longest(900)], [500, 900], "what came is charged in any case");
  const vectors = estimateCall({ input: "abcd", reasoning_effort: "high" }, false);
  assert.ok(!("path" in vectors));
  assert.equal(usageOfLeft(vectors, 0n, true).outputTokens, 0n);
});

Deno.test("a message holds its input, its media and its limit, which may be 0; images hold their number", () => {
  const pdf = { type: "base64", media_type: "application/pdf", data: "a".repeat(40_001) };
  const numbers = (estimate: ReturnType<typeof estimateMessages>) => {
    assert.ok(!("path" in estimate));
    const { inputTokens, maxOutputTokens, cacheWrite1hTokens, images, asksReasoning } = estimate;
    const tokens = [inputTokens, maxOutputTokens ?? -1n, cacheWrite1hTokens].map(numberOf);
    return [...tokens, images, asksReasoning];
  };
  const empty = Math.ceil(JSON.stringify([{ ...pdf, data: "" }]).length / 4);
  const cached = { cache_control: { type: "ephemeral", ttl: "1h" } };
  assert.deepEqual(
    numbers(estimateMessages({ messages: [pdf], ...cached, thinking: { type: "adaptive" } })),
    [
      empty + 1_001,
      1_024,
      empty + 1_001,
      null,
      true,
    ],
  );
  assert.deepEqual(numbers(estimateMessages({ system: "ab", max_tokens: 0 })), [1, 0, 0, null, false]);
  assert.deepEqual(estimateMessages({ max_tokens: -1 }), {
    path: "max_tokens",
    message: "must be an integer of at least 0",
  });
  assert.deepEqual(numbers(estimateImages({ prompt: "ab", n: 3 })), [1, 3_072, 0, 3, false]);
  assert.deepEqual(estimateImages({ n: 0 }), { path: "n", message: "must be a positive integer" });
});
