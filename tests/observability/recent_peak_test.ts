// The largest value of the last fifteen seconds.

import assert from "node:assert/strict";
import { RecentPeak } from "../../src/process/counts/recent_peak.ts";

Deno.test("a peak is seen for fifteen seconds, and then the next smaller one", () => {
  const peak = new RecentPeak();
  assert.equal(peak.read(0), 0);
  for (const [value, atMs] of [[3, 500], [9, 1_900], [4, 2_000], [5, 9_999]] as const) {
    peak.record(value, atMs);
  }
  for (
    const [atMs, expected] of [
      [10_000, 9],
      [15_999, 9],
      [16_000, 5],
      [23_999, 5],
      [24_000, 0],
      [999_000, 0],
    ] as const
  ) assert.equal(peak.read(atMs), expected, `at ${atMs}`);
  peak.record(1, 999_500);
  assert.equal(peak.read(1_000_000), 1);
});
