// The compiled catalog: defaults, what a part falls back to, and what names find.

import assert from "node:assert/strict";
import { compileCatalog, findPack, foldName } from "../../../src/domain/catalog/catalog.ts";
import { groupOf, packOf, planOf } from "../scene.ts";

Deno.test("what a document leaves out has its default", () => {
  const empty = compileCatalog({}, 3);
  assert.deepEqual(
    [
      empty.version,
      empty.promptLogging,
      empty.promptLogRetentionMs,
      empty.reservationTtlMs,
      empty.rateLimit,
      empty.corsOrigins.size,
    ],
    [3, false, 30 * 86_400_000, 600_000, null, 0],
  );
  const plan = compileCatalog({ plans: [planOf("p", { g: 1 })] }, 1).plans.get("p");
  assert.deepEqual([plan?.onPlanChange, plan?.archived, plan?.groups[0]?.headroom], ["carry", false, null]);
  const { packs } = compileCatalog({
    packs: [packOf("a"), packOf("b", { kind: "generic" }), packOf("c", { priority: 5 })],
  }, 1);
  assert.deepEqual([...packs.values()].map(({ priority }) => priority), [100, 0, 5]);
  assert.deepEqual(packs.get("a")?.bucket, {
    id: null,
    unit: "count",
    matches: [{ event: "x.*" }],
    lowAt: null,
  });
  assert.deepEqual([packs.get("a")?.defaultExpiryDays, packs.get("a")?.archived], [null, false]);
});

Deno.test("times of settings are whole milliseconds", () => {
  const settings = { promptLogRetentionDays: 99.999999, reservationTtlSeconds: 10.00051 };
  const { promptLogRetentionMs, reservationTtlMs } = compileCatalog({ settings }, 1);
  assert.deepEqual([promptLogRetentionMs, reservationTtlMs], [8_639_999_914, 10_001]);
});

Deno.test("a model's price is that of its mode; a compose type without its model is left out", () => {
  const priced = {
    modality: "text",
    inputCentsPerMillionTokens: 1,
    centsPerCall: 2,
    centsPerSecond: 3,
  } as const;
  const modes = ["per_token", "per_call", "per_unit"] as const;
  const type = { prompt: "p", outputSchema: {} };
  const { models, composeTypes } = compileCatalog({
    models: modes.map((amountMode) => ({ ...priced, id: amountMode, amountMode })),
    composeTypes: [{ ...type, name: "a", model: "per_token" }, { ...type, name: "b", model: "none" }],
  }, 1);
  const prices = modes.map((mode) => {
    const row = models.get(mode);
    return [row?.prices.input, row?.perCall, row?.perSecond];
  });
  assert.deepEqual(prices, [[1_000_000n, 0n, 0n], [0n, 2_000_000n, 0n], [0n, 0n, 3_000_000n]]);
  assert.deepEqual([...composeTypes.keys()], ["a"]);
});

Deno.test("a pack is found by its id first, else by name without regard to case and form", () => {
  const catalog = compileCatalog(
    { packs: [packOf("a", { name: "B" }), packOf("b", { name: "CAF\u00c9" })] },
    1,
  );
  const found = ["a", "b", "B", "A", "cafe\u0301", "x"].map((text) => findPack(catalog, text)?.id ?? null);
  assert.deepEqual(found, ["a", "b", "a", null, "b", null]);
  assert.equal(foldName("E\u0301"), "\u00e9");
});

Deno.test("groups keep their order and their rules", () => {
  const limits = [groupOf("b", 2, "cents"), groupOf("a", 1)];
  const groups = compileCatalog({ plans: [{ ...planOf("p", {}), limits }] }, 1).plans.get("p")?.groups ?? [];
  assert.deepEqual(groups.map(({ id, unit, quota }) => [id, unit, quota]), [["b", "cents", 2_000_000n], [
    "a",
    "count",
    1_000_000n,
  ]]);
});
