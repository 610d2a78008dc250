// Which price row a model's name has.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { priceRowOf } from "../../../src/domain/pricing/amounts.ts";

const row = (id: string, price: number, aliases?: readonly string[]) => ({
  id,
  ...(aliases === undefined ? {} : { aliases }),
  modality: "text" as const,
  amountMode: "per_token" as const,
  inputCentsPerMillionTokens: price,
});

const CATALOG = compileCatalog({
  models: [
    row("gpt-4o", 1, ["gpt-4o-*", "chatgpt"]),
    row("gpt-4o-mini", 2, ["gpt-4o-mini-*", "gpt-*"]),
    row("gpt-4o-mini-audio", 3),
  ],
}, 1);

const NAMES: readonly (readonly [name: string, id: string | null])[] = [
  ["gpt-4o", "gpt-4o"],
  ["chatgpt", "gpt-4o"],
  ["gpt-4o-2024-08-06", "gpt-4o"],
  ["gpt-4o-mini", "gpt-4o-mini"],
  ["gpt-4o-mini-2024-07-18", "gpt-4o-mini"],
  ["gpt-4o-mini-audio", "gpt-4o-mini-audio"],
  ["gpt-5", "gpt-4o-mini"],
  ["GPT-4o", null],
  ["o3", null],
];

Deno.test("exact names are first, then the longest pattern", () => {
  for (const [name, id] of NAMES) assert.equal(CATALOG.models.get(name)?.id ?? null, id, name);
});

Deno.test("a model that metadata name by an alias is before the one of the event", () => {
  const members = { model: "gpt-4o-2024-08-06" };
  const metadata = { text: JSON.stringify(members), members };
  assert.equal(priceRowOf(CATALOG, "chat.gpt-4o-mini", metadata)?.id, "gpt-4o");
  assert.equal(priceRowOf(CATALOG, "chat.gpt-4o-mini-2024-07-18", null)?.id, "gpt-4o-mini");
});

Deno.test("aliases are no part of the prices: a hold's row keeps its number", () => {
  const before = [row("m", 1)];
  const after = compileCatalog({ models: [row("m", 1, ["n"])] }, 2, before);
  assert.equal(after.priceRows.length, 1);
  assert.equal(after.models.get("n")?.number, 0);
});
