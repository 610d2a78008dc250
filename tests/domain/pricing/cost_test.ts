// The cost that answers show, and the warning where nothing priced it.

import assert from "node:assert/strict";
import { costOf, warningsOf } from "../../../src/domain/pricing/cost.ts";
import { compilePriceRow } from "../../../src/domain/catalog/price_row.ts";
import { NO_USAGE } from "../../../src/domain/pricing/usage.ts";

const ROW = compilePriceRow({ id: "m", modality: "image", amountMode: "per_call", centsPerCall: 0 }, 0);

Deno.test("a cost names its price row, also a row of prices of 0", () => {
  assert.deepEqual(costOf(5n, ROW), { cents: 5n, priced: true, model: "m" });
  assert.deepEqual(costOf(5n, null), { cents: 5n, priced: false, model: null });
});

Deno.test("a usage of another service tier is a warning", () => {
  const call = { countsCents: true, namesCents: false, lacksRate: false };
  const told = [true, false].map((isOtherTier) =>
    warningsOf(ROW, { ...call, usage: { ...NO_USAGE, isOtherTier } })
  );
  assert.deepEqual(told, [["tier_unpriced"], []]);
});

Deno.test("an event warns where it counts cents, no row prices it and no call named any", () => {
  for (const row of [ROW, null]) {
    for (const countsCents of [true, false]) {
      for (const namesCents of [true, false]) {
        const isUnpriced = row === null && countsCents && !namesCents;
        const warnings = warningsOf(row, { countsCents, namesCents, usage: null, lacksRate: false });
        assert.deepEqual(warnings, isUnpriced ? ["unpriced_model"] : []);
      }
    }
  }
});

Deno.test("an event warns where credits are counted, and nothing says how many", () => {
  const call = { countsCents: true, namesCents: false, usage: { ...NO_USAGE, isOtherTier: true } };
  assert.deepEqual(warningsOf(null, { ...call, lacksRate: true }), [
    "unpriced_model",
    "unrated_event",
    "tier_unpriced",
  ]);
});
