// What the figures of the benchmark rest on: percentiles that are right to one percent, and latencies that hide no stall.

import assert from "node:assert/strict";
import { Histogram } from "./histogram.ts";
import { Pace } from "./pace.ts";

Deno.test("every percentile is at most one percent above the exact one, and never below it", () => {
  // From microseconds to minutes, many short and few long, as latencies are.
  const values = Array.from({ length: 20_000 }, (_, place) => Math.exp((place * 7919 % 20_000) / 1_075));
  const parts = [new Histogram(), new Histogram()];
  for (const [place, value] of values.entries()) parts[place % 2]!.record(value);
  const whole = new Histogram();
  for (const part of parts) whole.add(part);
  const sorted = values.toSorted((a, b) => a - b);
  assert.equal(whole.count, values.length);
  for (const share of [0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1]) {
    const exact = Math.floor(sorted[Math.ceil(values.length * share) - 1]!) / 1000;
    const found = whole.percentileMs(share);
    assert.ok(found >= exact && found <= exact * 1.01, `${share}: ${found} for ${exact}`);
  }
});

Deno.test("a call that fell due while its connection waited counts from then, a call that our timer delayed from now", async () => {
  let now = 0;
  const pace = new Pace(10, 5, {
    now: () => now,
    sleep: (ms) => {
      now += ms + 2;
      return Promise.resolve();
    },
  });
  assert.equal(await pace.wait(), 7);
  now = 38;
  const counted = [await pace.wait(), await pace.wait(), await pace.wait(), await pace.wait()];
  assert.deepEqual(counted, [15, 25, 35, 47]);
  assert.equal(pace.nextAt, 55);
});
