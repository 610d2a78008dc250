// When a run ends and is forgotten, and what each step adds to its counts.

import { deepStrictEqual, strictEqual } from "node:assert";
import type { Amounts } from "../../../src/domain/pricing/amounts.ts";
import {
  ENDED_KEPT_MS,
  endOf,
  eventStep,
  hasEnded,
  holdStep,
  isForgotten,
  settleStep,
} from "../../../src/domain/state/run.ts";

const OPEN = { endedAt: null, expiresAt: 1000 };
const ENDED = { endedAt: 400, expiresAt: 1000 };

Deno.test("a run ends at its expiry, or when a call ends it", () => {
  strictEqual(endOf(OPEN), 1000);
  strictEqual(hasEnded(OPEN, 999), false);
  strictEqual(hasEnded(OPEN, 1000), true);
  strictEqual(endOf(ENDED), 400);
  strictEqual(hasEnded(ENDED, 400), true);
});

Deno.test("a run is known until 30 days after its end, that moment included", () => {
  strictEqual(ENDED_KEPT_MS, 2_592_000_000);
  for (const run of [OPEN, ENDED]) {
    strictEqual(isForgotten(run, endOf(run)), false);
    strictEqual(isForgotten(run, endOf(run) + ENDED_KEPT_MS), false);
    strictEqual(isForgotten(run, endOf(run) + ENDED_KEPT_MS + 1), true);
  }
});

Deno.test("the steps of an event, of a hold and of its end", () => {
  const none = amounts(0n, 0n);
  const step = { event: "ai.chat" };
  deepStrictEqual(eventStep("ai.chat", amounts(1n, 5n)), {
    ...step,
    count: amounts(1n, 5n),
    held: none,
    openHolds: 0,
  });
  deepStrictEqual(holdStep("ai.chat", amounts(1n, 5n)), {
    ...step,
    count: amounts(1n, 5n),
    held: amounts(1n, 5n),
    openHolds: 1,
  });
  deepStrictEqual(settleStep("ai.chat", amounts(1n, 5n), amounts(1n, 7n)), {
    ...step,
    count: amounts(0n, 2n),
    held: amounts(-1n, -5n),
    openHolds: -1,
  });
  deepStrictEqual(settleStep("ai.chat", amounts(1n, 5n)), {
    ...step,
    count: amounts(-1n, -5n),
    held: amounts(-1n, -5n),
    openHolds: -1,
  });
});

function amounts(count: bigint, tokens: bigint): Amounts {
  return { count, tokens, cents: 0n, seconds: 0n, credits: 0n };
}
