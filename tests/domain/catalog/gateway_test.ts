// What the gateway allows an app: new and older forms of its settings, and models by name and by price row.

import assert from "node:assert/strict";
import { allowsModel, compileGateway } from "../../../src/domain/catalog/gateway.ts";
import type { PriceRow } from "../../../src/domain/catalog/price_row.ts";
import { amountOf } from "../../../src/domain/values/amount.ts";

Deno.test("settings that say nothing forbid, no settings forbid server tools alone, older ones have other names", () => {
  const flags = (...args: Parameters<typeof compileGateway>) => {
    const { allowTestMode, allowStoredObjects, allowServerTools } = compileGateway(...args);
    return [allowTestMode, allowStoredObjects, allowServerTools];
  };
  assert.deepEqual(flags(undefined, undefined), [true, true, false]);
  assert.deepEqual(flags({}, undefined), [false, false, false]);
  assert.deepEqual(flags(undefined, { testMode: true }), [true, false, false]);
  assert.deepEqual(flags({ allowServerTools: true }, { testMode: true }), [false, false, true]);
  assert.equal(compileGateway({ budgetCents: 5 }, undefined).budgetCents, amountOf(5));
});

Deno.test("a model may be called if a pattern covers its name or the id of its price row", () => {
  const models = new Map([["large-2026", { id: "large" } as PriceRow]]);
  const allows = (patterns: readonly string[] | undefined, name: string) =>
    allowsModel({ gateway: compileGateway({ models: patterns }, undefined), models }, name);
  assert.equal(allows(undefined, "any"), true);
  assert.equal(allows(["large"], "large-2026"), true);
  assert.equal(allows(["large-*"], "large-2026"), true);
  assert.equal(allows(["small"], "large-2026"), false);
  assert.equal(allows([], "large"), false);
});
