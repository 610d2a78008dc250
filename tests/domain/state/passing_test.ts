// The counters of a group that count for a time, beside a sum over all of them.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type Counter, emptyCounter } from "../../../src/domain/state/counter.ts";
import { countOf, PassingCounters } from "../../../src/domain/state/passing.ts";

const row = (start: number, end: number, count: bigint, kind?: "rate" | "session"): Counter => {
  const window = { start, end, ...kind === undefined ? {} : { kind } };
  return { ...emptyCounter(1, { planId: "p", groupId: "g", window }), count };
};

Deno.test("slots count as their sum does, at any time, whatever is put in which order", () => {
  const step = fc.record({
    start: fc.nat(9),
    length: fc.integer({ min: 1, max: 12 }),
    count: fc.bigInt({ min: 0n, max: 9n }),
    kind: fc.constantFrom("rate", "rate", "rate", "session", undefined),
    at: fc.nat(25),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const passing = new PassingCounters();
    const all = new Map<string, Counter>();
    for (const { start, length, count, kind, at } of steps) {
      const counter = row(start, start + length, count, kind);
      for (const { key } of passing.put(counter)) all.delete(key);
      if (kind === undefined) all.delete(counter.key);
      else all.set(counter.key, counter);
      assert.equal(passing.countAt(at), countOf([...all.values()], at));
      assert.deepEqual(new Set(passing.rows), new Set(all.values()));
    }
  }));
});

Deno.test("what no longer counts when a counter begins is dropped", () => {
  const passing = new PassingCounters();
  const [old, open, next] = [row(0, 5, 1n, "rate"), row(1, 6, 2n, "rate"), row(5, 10, 3n, "rate")];
  assert.deepEqual([...passing.put(old), ...passing.put(open)], []);
  assert.deepEqual(passing.put(next), [old]);
  assert.deepEqual(passing.rows, [open, next]);
});
