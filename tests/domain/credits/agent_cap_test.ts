// How many units of an agent's cap a grant is.

import assert from "node:assert/strict";
import { compileCatalog, type PackDocument } from "../../../src/domain/catalog/catalog.ts";
import { grantDayOf, grantedUnits } from "../../../src/domain/credits/agent_cap.ts";
import { amountOf, decimalOf } from "../../../src/domain/values/amount.ts";
import { packOf } from "../short_catalog.ts";

const item = (id: string, unit: "count" | "cents" | "tokens", amount: number) => ({
  id,
  label: id,
  unit,
  amount,
  matches: [{ event: "*" }],
});

const CASES: readonly (readonly [name: string, pack: PackDocument, quantity: number, units: string])[] = [
  ["the amount of a pack without items", packOf("p"), 7.5, "7.5"],
  ["a hundredth of cents", packOf("p", { unit: "cents" }), 250, "2.5"],
  ["never less than a part of a cent", packOf("p", { unit: "cents" }), 0.00001, "0.000001"],
  [
    "the sum of the items, whatever the quantity",
    packOf("p", { items: [item("a", "count", 10), item("b", "cents", 500), item("c", "tokens", 3)] }),
    99,
    "18",
  ],
];

for (const [name, document, quantity, units] of CASES) {
  Deno.test(`the units of a grant are ${name}`, () => {
    const { packs } = compileCatalog({ packs: [document] }, 1);
    const pack = packs.get("p");
    assert.ok(pack !== undefined);
    assert.equal(decimalOf(grantedUnits(pack, amountOf(quantity))), units);
  });
}

Deno.test("a day of grants begins at midnight UTC", () => {
  const midnight = Date.UTC(2026, 0, 2);
  assert.deepEqual([grantDayOf(midnight - 1), grantDayOf(midnight)], [20_454, 20_455]);
});
