// Counters: what a delta, a second counter and a plan change do to the three sums.

import assert from "node:assert/strict";
import { amountOf } from "../../../src/domain/values/amount.ts";
import {
  addedTo,
  adjustedTo,
  counted,
  type Counter,
  counterKey,
  emptied,
  emptyCounter,
} from "../../../src/domain/state/counter.ts";
import { numbersOf } from "../scene.ts";

const REF = { planId: "p", groupId: "g", window: { start: 5, end: 10 } };

function counterOf(count: number, adjusted = 0, costCents = 0): Counter {
  const amounts = { count: amountOf(count), adjusted: amountOf(adjusted), costCents: amountOf(costCents) };
  return { ...emptyCounter(7, REF), ...amounts };
}

function sumsOf({ count, adjusted, costCents }: Counter): number[] {
  return Object.values(numbersOf({ count, adjusted, costCents }));
}

Deno.test("a counter: its sums after each change, as count, adjusted and cost", () => {
  const base = counterOf(4, 1, 2);
  const rows: [name: string, after: Counter, sums: number[]][] = [
    ["nothing counted yet", emptyCounter(7, REF), [0, 0, 0]],
    ["a hold or event adds", counted(base, amountOf(3)), [7, 1, 2]],
    ["a refund takes", counted(base, amountOf(-4)), [0, 1, 2]],
    ["the floor at zero is accounted for", counted(base, amountOf(-6)), [0, 3, 2]],
    ["two counters are added up", addedTo(base, counterOf(5, 2, 1)), [9, 3, 3]],
    ["usage that counts elsewhere leaves nothing", emptied(base), [0, 0, 0]],
    ["a plan change sets the count", adjustedTo(base, amountOf(9), amountOf(5), 0n), [9, 6, 5]],
    ["holds that came with it are no adjustment", adjustedTo(base, amountOf(9), 0n, amountOf(5)), [9, 1, 0]],
    ["holds that left with it are none either", adjustedTo(base, 0n, 0n, amountOf(-4)), [0, 1, 0]],
  ];
  for (const [name, after, sums] of rows) assert.deepEqual(sumsOf(after), sums, name);
});

Deno.test("two counters with one start end when the later of them ends; a lifetime never", () => {
  const ends: [number | null, number | null, number | null][] = [
    [10, 12, 12],
    [12, 10, 12],
    [10, null, null],
    [null, 10, null],
  ];
  for (const [mine, other, end] of ends) {
    const sum = addedTo({ ...counterOf(1), windowEnd: mine }, { ...counterOf(1), windowEnd: other });
    assert.equal(sum.windowEnd, end, `${mine} and ${other}`);
  }
});

Deno.test("a counter's name differs by plan, group and window", () => {
  const names: [string, string, number][] = [["a", "b", 1], ["a", "b", 2], ["a", "c", 1], ["b", "b", 1], [
    "a",
    "b",
    1,
  ]];
  assert.equal(new Set(names.map((name) => counterKey(...name))).size, 4);
});
