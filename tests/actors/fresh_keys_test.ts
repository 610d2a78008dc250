// Keys that are certainly new: no key is taken for new twice, through all generations of a prefix.

import assert from "node:assert/strict";
import { FreshKeys } from "../../actors/fresh_keys.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { changedLimits } from "../support/limits.ts";

/** Takes keys with the prefix that a caller would receive; returns them, and how many were certainly new. */
function takeMany(keys: FreshKeys, count: number): { readonly taken: string[]; readonly fresh: number } {
  let fresh = 0;
  const taken = Array.from({ length: count }, (_, place) => {
    const key = keys.prefixOf(1) + place.toString(36);
    if (keys.take(1, key)) fresh += 1;
    return key;
  });
  return { taken, fresh };
}

Deno.test("a key is new once, however many come after it, and nearly every new one is known to be", () => {
  const keys = new FreshKeys();
  const { taken, fresh } = takeMany(keys, 60_000);
  assert.ok(fresh > 59_990, `${fresh} of 60,000 new keys were known to be new`);
  assert.equal(new Set(taken.map((key) => key.split(".")[0])).size, 7);
  for (const key of taken) assert.equal(keys.take(1, key), false);
});

Deno.test("the prefix before the last one holds, and no other text does", () => {
  const keys = new FreshKeys();
  assert.equal(keys.take(1, "k"), false);
  const first = keys.prefixOf(1);
  takeMany(keys, 600);
  assert.notEqual(keys.prefixOf(1), first);
  assert.deepEqual([keys.take(1, `${first}late`), keys.take(1, `${first}late`)], [true, false]);
  assert.equal(keys.take(1, `${first.slice(0, -1)}k`), false);
  assert.equal(keys.take(2, `${keys.prefixOf(1)}k`), false);
  takeMany(keys, 4_000);
  assert.equal(keys.take(1, `${first}later`), false);
});

Deno.test("the realm that got its prefix first makes room for another", () => {
  using _ = changedLimits(RUNTIME_LIMITS, { freshRealmsMax: 2 });
  const keys = new FreshKeys();
  const prefixes = [1, 2, 3].map((realm) => keys.prefixOf(realm));
  const isFresh = prefixes.map((prefix, place) => keys.take(place + 1, `${prefix}k`));
  assert.deepEqual(isFresh, [false, true, true]);
});
