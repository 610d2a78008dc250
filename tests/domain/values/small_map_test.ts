// The map that is a list while it has few entries, beside the map of the language.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { SmallMap } from "../../../src/domain/values/small_map.ts";

Deno.test("a small map answers as a map does, however many entries it has", () => {
  const step = fc.record({
    verb: fc.constantFrom("set", "set", "set", "delete"),
    key: fc.nat(20).map((place) => `k${place}`),
    value: fc.nat(),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const small = new SmallMap<number>();
    const map = new Map<string, number>();
    for (const { verb, key, value } of steps) {
      if (verb === "set") {
        small.set(key, value);
        map.set(key, value);
      } else {
        small.delete(key);
        map.delete(key);
      }
      assert.deepEqual([small.get(key), small.has(key), small.size], [map.get(key), map.has(key), map.size]);
      assert.deepEqual([...small.keys()], [...map.keys()]);
      assert.deepEqual([...small.values()], [...map.values()]);
    }
  }));
});
