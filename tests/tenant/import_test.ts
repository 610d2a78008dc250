// Prices imported into a catalog: what LiteLLM's file and rows of our own format change, exactly, and what stays.

import assert from "node:assert/strict";
import { importPrices, type PriceFile, readPriceFile } from "../../src/tenant/catalog/import.ts";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";
import { compileCatalog } from "../../src/domain/catalog/catalog.ts";
import builtin from "../../src/tenant/catalog/builtin_prices.json" with { type: "json" };

const EXTRACT = await Deno.readTextFile(new URL("../tasks/data/litellm_prices.json", import.meta.url));
const CHECKED = "2026-11-22T00:00:00.000Z";

type Row = Readonly<Record<string, unknown>>;

function fileOf(content: unknown): PriceFile {
  const file = readPriceFile(typeof content === "string" ? content : JSON.stringify(content));
  assert.ok(file !== null);
  return file;
}

function importOf(models: readonly Row[], content: unknown, ...only: string[]) {
  const options = { only: only.length === 0 ? null : only, checkedAt: CHECKED, source: "prices.json" };
  return importPrices(models, fileOf(content), options);
}

const ADDED: readonly (readonly [string, Row])[] = [
  ["gpt-5", {
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 125,
    outputCentsPerMillionTokens: 1000,
    cachedInputCentsPerMillionTokens: 12.5,
  }],
  ["claude-sonnet-4-5", {
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 300,
    outputCentsPerMillionTokens: 1500,
    cacheWriteCentsPerMillionTokens: 375,
    cachedInputCentsPerMillionTokens: 30,
    tiers: [{
      aboveInputTokens: 200_000,
      inputCentsPerMillionTokens: 600,
      outputCentsPerMillionTokens: 2250,
      cacheWriteCentsPerMillionTokens: 750,
      cachedInputCentsPerMillionTokens: 60,
    }],
  }],
  ["claude-opus-4-1", {
    modality: "text",
    amountMode: "per_token",
    cacheWriteCentsPerMillionTokens: 1875,
    cacheWrite1hCentsPerMillionTokens: 3000,
    cachedInputCentsPerMillionTokens: 150,
    inputCentsPerMillionTokens: 1500,
    outputCentsPerMillionTokens: 7500,
  }],
  ["gpt-4o-mini", {
    modality: "text",
    amountMode: "per_token",
    cachedInputCentsPerMillionTokens: 7.5,
    inputCentsPerMillionTokens: 15,
    outputCentsPerMillionTokens: 60,
  }],
  ["gemini-2.5-flash", {
    modality: "text",
    amountMode: "per_token",
    cachedInputCentsPerMillionTokens: 3,
    inputCentsPerMillionTokens: 30,
    reasoningCentsPerMillionTokens: 250,
    outputCentsPerMillionTokens: 250,
  }],
  ["gemini/imagen-4.0-generate-001", { modality: "image", amountMode: "per_call", centsPerImage: 4 }],
  ["gemini/veo-3.0-generate-001", { modality: "video", amountMode: "per_unit", centsPerSecond: 40 }],
  ["whisper-1", { modality: "audio", amountMode: "per_unit", centsPerSecond: 0.01 }],
];

for (const [id, expected] of ADDED) {
  Deno.test(`a model of LiteLLM's file becomes a whole row: ${id}`, async () => {
    const { models } = importOf([], EXTRACT, id);
    assert.deepEqual(models, [{ id, source: "litellm", checkedAt: CHECKED, ...expected }]);
    assert.ok("catalog" in await checkCatalog({ models }, null));
  });
}

const KNOWN = {
  id: "gemini-2.5-pro",
  modality: "text",
  amountMode: "per_token",
  inputCentsPerMillionTokens: 125,
  cachedInputCentsPerMillionTokens: 31.25,
  reasoningCentsPerMillionTokens: 1000,
  tiers: [
    { aboveInputTokens: 128_000, inputCentsPerMillionTokens: 200 },
    { aboveInputTokens: 200_000, inputCentsPerMillionTokens: 250, reasoningCentsPerMillionTokens: 1500 },
  ],
};

Deno.test("differences are shown by member and tier; what the file has no figure for stays", () => {
  const { models, differences } = importOf([KNOWN], EXTRACT);
  assert.deepEqual(differences.map(({ member, before, after }) => [member, before, after]), [
    ["cachedInputCentsPerMillionTokens", 31.25, 12.5],
    ["tiers[200000].cachedInputCentsPerMillionTokens", null, 25],
    ["tiers[200000].outputCentsPerMillionTokens", null, 1500],
    ["outputCentsPerMillionTokens", null, 1000],
  ]);
  const [row] = models;
  assert.equal(row?.reasoningCentsPerMillionTokens, 1000);
  const [low, high] = row?.tiers as Row[];
  assert.deepEqual(low, KNOWN.tiers[0]);
  assert.equal(high?.reasoningCentsPerMillionTokens, 1500);
});

Deno.test("without --only no model is added or removed, and what the file lacks stays and is named", () => {
  const own = { id: "own", modality: "image", amountMode: "per_call", centsPerCall: 5 };
  const wrong = { id: "whisper-1", modality: "audio", amountMode: "per_call", centsPerCall: 1 };
  const { models, imported, missing, unpriced } = importOf([own, KNOWN, wrong], EXTRACT);
  assert.deepEqual(models.map(({ id }) => id), ["own", KNOWN.id, "whisper-1"]);
  assert.deepEqual([models[0], models[2]], [own, wrong]);
  assert.deepEqual([imported, missing, unpriced], [[KNOWN.id], ["own"], ["whisper-1"]]);
  const only = importOf([own, KNOWN], EXTRACT, "gpt-5", "gpt-5", "nowhere");
  assert.deepEqual(only.models.slice(0, 2), [own, KNOWN], "models that are not named stay");
  assert.deepEqual([only.imported, only.missing], [["gpt-5"], ["nowhere"]]);
});

Deno.test("a row keeps the member in which it has the price of a call", () => {
  const row = {
    id: "gemini/imagen-4.0-generate-001",
    modality: "image",
    amountMode: "per_call",
    centsPerCall: 5,
  };
  const { differences } = importOf([row], EXTRACT);
  assert.deepEqual(differences, [{ model: row.id, member: "centsPerCall", before: 5, after: 4 }]);
});

const FIGURES: readonly (readonly [string, number])[] = [
  ["3e-07", 30],
  ["0.0000003", 30],
  ["3.0000000000000004E-7", 30],
  ["1.4999999999999999999e-07", 15],
  ["7.5e-08", 7.5],
  ["1.1e-14", 0.000001],
  ["0", 0],
  ["1.0", 100_000_000],
];

for (const [text, cents] of FIGURES) {
  Deno.test(`dollars a token become cents a million by their digits: ${text}`, () => {
    const { models } = importOf([], `{"m":{"input_cost_per_token":${text},"mode":"chat"}}`, "m");
    assert.equal(models[0]?.inputCentsPerMillionTokens, cents);
  });
}

Deno.test("rows of our own format come as a list, by id or in a document, and replace whole members", () => {
  const row = { modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 1, tiers: [] };
  const dated = { ...row, source: "our contract", checkedAt: "2026-10-01T00:00:00Z" };
  for (
    const content of [[{ id: KNOWN.id, ...row }], { [KNOWN.id]: row }, { models: [{ id: KNOWN.id, ...row }] }]
  ) {
    const { models, differences } = importOf([KNOWN], content);
    assert.deepEqual(models, [{ ...KNOWN, ...row, source: "prices.json", checkedAt: CHECKED }]);
    assert.deepEqual(differences.map(({ member }) => member), [
      "inputCentsPerMillionTokens",
      "tiers[128000].inputCentsPerMillionTokens",
      "tiers[200000].inputCentsPerMillionTokens",
      "tiers[200000].reasoningCentsPerMillionTokens",
    ]);
  }
  assert.deepEqual(importOf([], { n: dated }, "n").models, [{ id: "n", ...dated }]);
});

Deno.test("what is neither of the two is reported, not imported", () => {
  for (const text of ["5", "null", '"text"', '["gpt-5"]', '{"gpt-5":3}', '[{"name":"gpt-5"}]']) {
    assert.equal(readPriceFile(text), null, text);
  }
  const without = {
    a: { mode: "chat", output_cost_per_token: 1e-6 },
    b: { mode: "chat", input_cost_per_token: "?" },
  };
  assert.deepEqual(importOf([], without, "a", "b").unpriced, ["a", "b"]);
});

const audio = { modality: "audio", amountMode: "per_unit" };

Deno.test("a second or an image has the price of the output, else of the input", () => {
  const rows: [theirs: Row, member: string, cents: number][] = [
    [
      { mode: "audio_transcription", input_cost_per_second: 7.167e-5, output_cost_per_second: 0.0 },
      "centsPerSecond",
      0.007167,
    ],
    [{ mode: "audio_transcription", input_cost_per_second: 0.0001 }, "centsPerSecond", 0.01],
    [
      { mode: "video_generation", input_cost_per_second: 0.1, output_cost_per_second: 0.4 },
      "centsPerSecond",
      40,
    ],
    [{ mode: "image_generation", input_cost_per_image: 0.04, output_cost_per_image: 0 }, "centsPerImage", 4],
    [{ mode: "image_generation", output_cost_per_image: 0 }, "centsPerImage", 0],
  ];
  for (const [theirs, member, cents] of rows) {
    const { models, faults } = importOf([], { m: theirs }, "m");
    assert.deepEqual([models[0]?.[member], faults], [cents, []], JSON.stringify(theirs));
  }
  const known = { id: "m", ...audio, centsPerSecond: 0.007167 };
  const theirs = { input_cost_per_second: 7.167e-5, output_cost_per_second: 0.0 };
  assert.deepEqual(importOf([known], { m: theirs }).differences, []);
});

Deno.test("a price above 0 never becomes 0, also one that is a default: it stays and is listed", () => {
  const known = {
    id: "m",
    modality: "text",
    amountMode: "per_token",
    inputCentsPerMillionTokens: 100,
    cachedInputCentsPerMillionTokens: 0,
    outputCentsPerMillionTokens: 400,
    tiers: [{ aboveInputTokens: 200_000, inputCentsPerMillionTokens: 200 }],
  };
  const theirs = {
    input_cost_per_token: 0,
    cache_read_input_token_cost: 0,
    cache_creation_input_token_cost: 0,
    output_cost_per_token: 5e-6,
    input_cost_per_token_above_200k_tokens: 0,
    output_cost_per_token_above_200k_tokens: 0,
  };
  const { models: [row], kept, differences } = importOf([known], { m: theirs });
  assert.deepEqual(kept.map(({ member, before }) => [member, before]), [
    ["inputCentsPerMillionTokens", 100],
    ["cacheWriteCentsPerMillionTokens", 100],
    ["tiers[200000].inputCentsPerMillionTokens", 200],
    ["tiers[200000].outputCentsPerMillionTokens", 400],
  ]);
  assert.deepEqual(differences.map(({ member, after }) => [member, after]), [[
    "outputCentsPerMillionTokens",
    500,
  ]]);
  assert.deepEqual(row?.tiers, known.tiers);
  const timed = importOf([{ id: "s", ...audio, centsPerSecond: 2 }], { s: { ...audio, centsPerSecond: 0 } });
  assert.deepEqual([timed.models[0]?.centsPerSecond, timed.kept.length], [2, 1]);
});

Deno.test("a figure that is no price is a fault of the file, with its place", () => {
  const rows: [row: Row, member: string][] = [
    [{ input_cost_per_token: -1e-6 }, "input_cost_per_token"],
    [{ input_cost_per_token: 1e-6, output_cost_per_token: "free" }, "output_cost_per_token"],
    [{ input_cost_per_token: 1e-6, cache_read_input_token_cost: { low: 1 } }, "cache_read_input_token_cost"],
    [
      { input_cost_per_token: 1e-6, input_cost_per_token_above_200k_tokens: -1 },
      "input_cost_per_token_above_200k_tokens",
    ],
    [{ output_cost_per_second: true }, "output_cost_per_second"],
    [{ amountMode: "per_call", centsPerCall: -5 }, "centsPerCall"],
    [
      { amountMode: "per_token", tiers: [{ aboveInputTokens: 5, inputCentsPerMillionTokens: "1" }] },
      "tiers[5].inputCentsPerMillionTokens",
    ],
  ];
  for (const [row, member] of rows) {
    const { faults } = importOf([], { m: row, other: { input_cost_per_token: -1 } }, "m");
    assert.deepEqual(faults.map((fault) => [fault.model, fault.member]), [["m", member]]);
  }
  assert.deepEqual(
    importOf([], { m: { input_cost_per_token: 1e-6, output_cost_per_token: null } }, "m").faults,
    [],
  );
});

Deno.test("the built-in rows are a catalog, dated, and each has the prices of its dated names", async () => {
  const checked = await checkCatalog({ models: builtin.models }, null);
  assert.ok("catalog" in checked, JSON.stringify(checked));
  const { models } = compileCatalog(checked.catalog, 1);
  for (const { id, checkedAt, source } of builtin.models) {
    assert.ok(Date.parse(checkedAt) > Date.parse("2026-01-01") && source.length > 0, id);
    assert.equal(models.get(id)?.id, id);
  }
  const names = [["gpt-4o-mini-2024-07-18", "gpt-4o-mini"], ["gpt-4o-2024-05-13", "gpt-4o-2024-05-13"]];
  names.push(["gpt-4o-2024-11-20", "gpt-4o"], ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5"]);
  for (const [name = "", id] of names) assert.equal(models.get(name)?.id, id, name);
  assert.equal(models.get("gpt-4o-mini-audio-preview"), undefined);
});

Deno.test("built-in rows keep the aliases and the kind of a row, and take no name of another one", () => {
  const rows = [
    {
      id: "gpt-4o-mini",
      modality: "text",
      amountMode: "per_token",
      inputCentsPerMillionTokens: 9,
      aliases: ["mini"],
    },
    { id: "gpt-4o", modality: "text", amountMode: "per_call", centsPerCall: 3 },
    { id: "own", modality: "text", amountMode: "per_call", centsPerCall: 3, aliases: ["gpt-4.1-20*"] },
  ];
  const { models, unpriced } = importOf(rows, builtin, "gpt-4o-mini", "gpt-4o", "gpt-4.1");
  const [mini, byCall, , added] = models;
  assert.deepEqual([mini?.aliases, mini?.inputCentsPerMillionTokens], [["mini"], 15]);
  assert.deepEqual([byCall, unpriced], [rows[1], ["gpt-4o"]]);
  assert.deepEqual([added?.id, added?.aliases], ["gpt-4.1", []]);
});
