// When a message is tried again, and when a webhook is given up.

import assert from "node:assert/strict";
import { delayAfter, isLastStraw } from "../../src/webhooks/schedule.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

Deno.test("a message is tried eight times, with delays that are off by a fifth at most", () => {
  const delays = [5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
  delays.forEach((delay, index) => {
    assert.deepEqual([0, 0.5, 1].map((chance) => delayAfter(index + 1, chance)), [
      delay * 0.8,
      delay,
      delay * 1.2,
    ]);
  });
  assert.equal(delayAfter(8, 0.5), null);
});

Deno.test("410 and five days of nothing but failures are the last straw, and nothing else is", () => {
  const now = 10 * DAY;
  const rows: [status: number | null, failingSince: number | null, isLast: boolean][] = [
    [410, null, true],
    [410, now, true],
    [500, null, false],
    [null, now - 5 * DAY + 1, false],
    [null, now - 5 * DAY, true],
    [404, now - 6 * DAY, true],
  ];
  for (const [status, since, isLast] of rows) assert.equal(isLastStraw(status, since, now), isLast);
});
