// Plain members of a metering call are read without its schema: what is read is what the schema would have made of it, and
// all that it would refuse or change is left to it.

import assert from "node:assert/strict";
import { canUse, commit, release, reserve, track } from "../../routes/contract/metering.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

type Members = Record<string, unknown>;

const CALL = { userId: "u", event: "image.x" };
const SETTLED = { reservationId: "rsv_1_a" };
const DEEP = JSON.parse("[".repeat(20_000) + "]".repeat(20_000));

/** Input of calls of a user: read as plain, left to the schema to refuse, and left to it to change. */
const OF_CALL: { readonly [kind in "plain" | "left" | "changed"]: readonly Members[] } = {
  plain: [
    CALL,
    { event: "a", userId: "\u{1F600}".repeat(REQUEST_LIMITS.idLengthMax) },
    { ...CALL, count: 1, quantity: 0.0000005, inputTokens: 0, inputCostCents: 1e-9 },
    { ...CALL, count: REQUEST_LIMITS.amountMax },
    { ...CALL, metadata: {} },
    { ...CALL, metadata: { model: "m", list: [1, { of: null }] }, count: 3 },
  ],
  left: [
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
    { ...CALL, metadata: [] },
    { ...CALL, metadata: { deep: DEEP } },
    { ...CALL, metadata: { text: "x".repeat(REQUEST_LIMITS.metadataBytesMax) } },
  ],
  changed: [
    { ...CALL, count: null },
    { ...CALL, metadata: null },
    { ...CALL, unknown: 1 },
    { ...CALL, toString: 1 },
    { ...CALL, prompt: "p", response: "r" },
    { ...CALL, options: {} },
  ],
};

const OF_SETTLEMENT: typeof OF_CALL = {
  plain: [SETTLED, { reservationId: "x".repeat(REQUEST_LIMITS.idLengthMax) }],
  left: [{}, { reservationId: "" }, { reservationId: 7 }, {
    reservationId: "x".repeat(REQUEST_LIMITS.idLengthMax + 1),
  }],
  changed: [{ ...SETTLED, response: "r" }, { ...SETTLED, unknown: 1 }, { ...SETTLED, options: {} }],
};

const CASES = {
  track: {
    read: track.plain,
    schema: track.input,
    of: OF_CALL,
    plain: [{ ...CALL, costCents: 2.5 }, { ...CALL, costCents: REQUEST_LIMITS.amountMax }],
    left: [{ ...CALL, costCents: NaN }],
    changed: [{ ...CALL, usage: { inputTokens: 5 } }, { ...CALL, maxOutputTokens: 1 }],
  },
  reserve: {
    read: reserve.plain,
    schema: reserve.input,
    of: OF_CALL,
    plain: [
      { ...CALL, maxOutputTokens: 1, ttlSeconds: REQUEST_LIMITS.ttlSecondsMin },
      { ...CALL, ttlSeconds: REQUEST_LIMITS.ttlSecondsMax },
    ],
    left: [
      { ...CALL, maxOutputTokens: 0 },
      { ...CALL, ttlSeconds: REQUEST_LIMITS.ttlSecondsMin / 2 },
      { ...CALL, ttlSeconds: REQUEST_LIMITS.ttlSecondsMax + 1 },
      { ...CALL, ttlSeconds: "60" },
    ],
    changed: [{ ...CALL, ttlSeconds: null }, { ...CALL, costCents: 1 }],
  },
  canUse: {
    read: canUse.plain,
    schema: canUse.input,
    of: OF_CALL,
    plain: [{ ...CALL, maxOutputTokens: 1 }],
    left: [{ ...CALL, maxOutputTokens: -1 }],
    changed: [{ ...CALL, ttlSeconds: 60 }],
  },
  commit: {
    read: commit.plain,
    schema: commit.input,
    of: OF_SETTLEMENT,
    plain: [{ ...SETTLED, costCents: 0 }],
    left: [{ ...SETTLED, costCents: -1 }],
    changed: [{ ...SETTLED, costCents: null }, { ...SETTLED, actual: { count: 1 } }],
  },
  release: {
    read: release.plain,
    schema: release.input,
    of: OF_SETTLEMENT,
    plain: [],
    left: [],
    changed: [{ ...SETTLED, reason: "late" }, { ...SETTLED, costCents: 1 }],
  },
};

for (const [name, { read, schema, of, plain, left, changed }] of Object.entries(CASES)) {
  Deno.test(`plain members of ${name} are read as its schema reads them`, () => {
    for (const members of [...of.plain, ...plain]) {
      const input: unknown = read(members);
      assert.notEqual(input, null, inspect(members));
      assert.deepEqual(input, schema.parse(members));
    }
  });

  Deno.test(`whatever the schema of ${name} would refuse or change is left to it`, () => {
    const refused: Members[] = [...of.left, ...left];
    const fitting: Members[] = [...of.changed, ...changed];
    for (const members of [...refused, ...fitting]) assert.equal(read(members), null, inspect(members));
    for (const members of refused) assert.equal(schema.safeParse(members).success, false, inspect(members));
    for (const members of fitting) assert.equal(schema.safeParse(members).success, true, inspect(members));
  });
}

function inspect(members: Members): string {
  return Deno.inspect(members, { depth: 2 }).slice(0, 200);
}
