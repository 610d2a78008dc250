// The buckets of rate limits go with their cell, so that a hand-over gives no key a second burst.

import assert from "node:assert/strict";
import { RateBuckets } from "../../src/tenant/rate_buckets.ts";

const LIMIT = { perSecond: 1, burst: 2 };
const NOW = Date.UTC(2026, 0, 1);
const CELL = 5;

/** Buckets in which a key of a cell has used its burst. */
function usedUp(): RateBuckets {
  const buckets = new RateBuckets();
  for (let call = 0; call < LIMIT.burst; call++) assert.equal(buckets.take(CELL, "k", LIMIT, NOW), 0);
  assert.ok(buckets.take(CELL, "k", LIMIT, NOW) > 0);
  return buckets;
}

Deno.test("each key has a bucket of its own", () => {
  const buckets = usedUp();
  assert.equal(buckets.take(CELL, "other", LIMIT, NOW), 0);
  assert.equal(buckets.take(CELL, "k", LIMIT, NOW + 1_000), 0);
});

Deno.test("the next owner of a cell goes on with what the last one counted", () => {
  const text = usedUp().remove(CELL);
  const next = new RateBuckets();
  next.admit(CELL, text);
  assert.ok(next.take(CELL, "k", LIMIT, NOW) > 0);
  assert.equal(next.take(CELL, "k", LIMIT, NOW + 1_000), 0);
});

Deno.test("a cell that was handed over leaves nothing behind, and a cell that returns has what it brings", () => {
  const buckets = usedUp();
  buckets.remove(CELL);
  assert.equal(buckets.remove(CELL), null);
  const back = usedUp();
  back.admit(CELL, null);
  assert.equal(back.take(CELL, "k", LIMIT, NOW), 0, "its last owner died, or counted nothing");
});
