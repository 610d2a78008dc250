// Properties of the token bucket, whatever its limit and however calls come.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type Bucket, takeToken } from "../../src/tenant/token_bucket.ts";

const limits = fc.record({
  perSecond: fc.double({ min: 0.001, max: 10_000, noNaN: true }),
  burst: fc.double({ min: 1, max: 1_000, noNaN: true }),
});
/** Pauses between calls, in ms; most are short, so that buckets run empty. */
const pauses = fc.array(
  fc.oneof({ weight: 4, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.nat(5_000) }),
  { minLength: 1, maxLength: 300 },
);
const START = 1_767_225_600_000;

Deno.test("in no span are more calls let through than the burst and what has flowed in since", () => {
  fc.assert(fc.property(limits, pauses, (limit, steps) => {
    let bucket: Bucket | null = null;
    let now = START;
    const passed: number[] = [];
    for (const step of steps) {
      now += step;
      const taken = takeToken(bucket, limit, now);
      bucket = taken.bucket;
      if (taken.waitMs === 0) passed.push(now);
    }
    for (let from = 0; from < passed.length; from++) {
      for (let to = from; to < passed.length; to++) {
        const spanMs = (passed[to] as number) - (passed[from] as number);
        const most = limit.burst + spanMs * limit.perSecond / 1000;
        assert.ok(to - from + 1 <= most + 1e-6, `${to - from + 1} calls in ${spanMs} ms`);
      }
    }
  }));
});

Deno.test("a refused call passes after the time in its answer, and not a whole millisecond sooner", () => {
  fc.assert(fc.property(limits, pauses, (limit, steps) => {
    let bucket: Bucket | null = null;
    let now = START;
    for (const step of steps) {
      now += step;
      const { bucket: left, waitMs } = takeToken(bucket, limit, now);
      bucket = left;
      if (waitMs === 0) continue;
      assert.ok(Number.isSafeInteger(waitMs));
      assert.equal(takeToken(left, limit, now + waitMs).waitMs, 0);
      assert.ok(takeToken(left, limit, now + waitMs - 2).waitMs > 0);
    }
  }));
});

Deno.test("a bucket that was never used, or long ago, lets exactly its burst through at once", () => {
  fc.assert(fc.property(fc.integer({ min: 1, max: 200 }), fc.nat(1e9), (burst, idleMs) => {
    const limit = { perSecond: 1, burst };
    const empty = { tokens: 0, at: START };
    for (const start of [null, ...idleMs >= burst * 1000 ? [empty] : []]) {
      let bucket: Bucket | null = start;
      let passed = 0;
      while (passed <= burst) {
        const taken = takeToken(bucket, limit, START + idleMs);
        bucket = taken.bucket;
        if (taken.waitMs > 0) break;
        passed++;
      }
      assert.equal(passed, burst);
    }
  }));
});

Deno.test("a clock that goes back gives nothing, and a refusal takes nothing", () => {
  const limit = { perSecond: 10, burst: 1 };
  const { bucket } = takeToken(null, limit, START);
  const back = takeToken(bucket, limit, START - 60_000);
  assert.equal(back.waitMs, 100);
  const again = takeToken(back.bucket, limit, START);
  assert.equal(again.waitMs, 100, "the minute is not given twice");
  assert.equal(takeToken(takeToken(again.bucket, limit, START + 50).bucket, limit, START + 100).waitMs, 0);
});

Deno.test("a lower burst holds at once, and rates at the ends of the range stay finite", () => {
  const full = takeToken(null, { perSecond: 1, burst: 100 }, START).bucket;
  const next = takeToken(full, { perSecond: 1, burst: 2 }, START + 1);
  assert.equal(next.bucket.tokens, 1);
  const fast = takeToken({ tokens: 0, at: START }, { perSecond: Number.MAX_VALUE, burst: 1 }, START + 1e9);
  assert.equal(fast.waitMs, 0);
  assert.equal(fast.bucket.tokens, 0);
});
