// Plain members of a track are read without the schema: what is read is what the schema would have made of it, and all that
// it would refuse or change is left to it.

import assert from "node:assert/strict";
import { plainTrack, trackInput } from "../../routes/schemas/metering.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const CALL = { userId: "u", event: "image.x" };
const DEEP = JSON.parse("[".repeat(20_000) + "]".repeat(20_000));

const PLAIN: Record<string, unknown>[] = [
  CALL,
  { event: "a", userId: "\u{1F600}".repeat(REQUEST_LIMITS.idLengthMax) },
  { ...CALL, count: 1, quantity: 0.0000005, inputTokens: 0, inputCostCents: 1e-9, costCents: 2.5 },
  { ...CALL, count: REQUEST_LIMITS.amountMax, costCents: REQUEST_LIMITS.amountMax },
  { ...CALL, metadata: {} },
  { ...CALL, metadata: { model: "m", list: [1, { of: null }] }, count: 3 },
];

const LEFT: Record<string, unknown>[] = [
  {},
  { userId: "u" },
  { event: "image.x" },
  { ...CALL, userId: "" },
  { ...CALL, userId: "u\uFFFD" },
  { ...CALL, userId: "x".repeat(REQUEST_LIMITS.idLengthMax + 1) },
  { ...CALL, userId: 7 },
  { ...CALL, event: "image.*" },
  { ...CALL, event: "a\nb" },
  { ...CALL, event: "x".repeat(REQUEST_LIMITS.eventLengthMax + 1) },
  { ...CALL, count: 0 },
  { ...CALL, count: 4e-7 },
  { ...CALL, count: "1" },
  { ...CALL, quantity: REQUEST_LIMITS.amountMax * 2 },
  { ...CALL, inputTokens: -1 },
  { ...CALL, inputCostCents: Infinity },
  { ...CALL, costCents: NaN },
  { ...CALL, metadata: [] },
  { ...CALL, metadata: { deep: DEEP } },
  { ...CALL, metadata: { text: "x".repeat(REQUEST_LIMITS.metadataBytesMax) } },
];

/** Fits, but not as it is. */
const CHANGED: Record<string, unknown>[] = [
  { ...CALL, count: null },
  { ...CALL, metadata: null },
  { ...CALL, unknown: 1 },
  { ...CALL, toString: 1 },
  { ...CALL, prompt: "p", response: "r" },
  { ...CALL, usage: { inputTokens: 5 } },
  { ...CALL, options: {} },
];

Deno.test("plain members of a track are read as the schema reads them", () => {
  for (const members of PLAIN) {
    const read = plainTrack(members);
    assert.notEqual(read, null, JSON.stringify(members));
    assert.deepEqual(read, trackInput.parse(members));
  }
});

Deno.test("whatever a track's schema would refuse or change is left to it", () => {
  for (const members of [...LEFT, ...CHANGED]) assert.equal(plainTrack(members), null, inspect(members));
  for (const members of LEFT) assert.equal(trackInput.safeParse(members).success, false, inspect(members));
});

function inspect(members: Record<string, unknown>): string {
  return Deno.inspect(members, { depth: 2 }).slice(0, 200);
}
