// A usage is a way of saying what is final: over random catalogs with tiers, holds and usages, a commit with `usage`
// leaves the state, the event and the answer of one with the same `actual`.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import type { Change } from "../../../src/domain/state/user.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import type { ModelDocument } from "../../../src/domain/catalog/price_row.ts";
import { finalAmounts, NO_USAGE, type Usage } from "../../../src/domain/pricing/usage.ts";
import { groupOf, PACKS, planOf, Scene, sizeOf } from "../scene.ts";

const PLAN = {
  ...planOf("p", {}),
  limits: [
    groupOf("t", 900, "tokens", "x.*"),
    groupOf("c", 300, "cents", "x.*"),
    groupOf("s", 20, "seconds", "x.*"),
    groupOf("g", 5, "count", "*"),
  ],
};

const price = fc.integer({ min: 0, max: 900_000_000_000 }).map((micros) => micros / 1e6);
const tokenPrices = fc.record({
  inputCentsPerMillionTokens: price,
  cachedInputCentsPerMillionTokens: price,
  cacheWriteCentsPerMillionTokens: price,
  outputCentsPerMillionTokens: price,
  reasoningCentsPerMillionTokens: price,
}, { requiredKeys: [] });
const tier = fc.tuple(fc.integer({ min: 0, max: 600 }), tokenPrices).map(([aboveInputTokens, prices]) => ({
  aboveInputTokens,
  ...prices,
}));
const tiers = fc.uniqueArray(tier, { maxLength: 3, selector: ({ aboveInputTokens }) => aboveInputTokens });
const common = { id: "m", modality: "text" } as const;
const model: fc.Arbitrary<ModelDocument | null> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.tuple(tokenPrices, tiers).map(([prices, tiers]) => ({
      ...common,
      amountMode: "per_token" as const,
      ...prices,
      tiers,
    })),
  },
  price.map((cents) => ({ ...common, amountMode: "per_call" as const, centsPerImage: cents / 1e4 })),
  price.map((cents) => ({ ...common, amountMode: "per_unit" as const, centsPerSecond: cents / 1e4 })),
  fc.constant(null),
);

const tokens = fc.oneof(
  fc.integer({ min: 0, max: 400 }),
  fc.integer({ min: 0, max: 4e8 }).map((micros) => micros / 1e6),
);
const usage: fc.Arbitrary<Usage> = fc.record({
  cached: tokens,
  writes: tokens,
  plain: fc.option(tokens),
  reasoning: tokens,
  text: fc.option(tokens),
  seconds: fc.option(fc.integer({ min: 0, max: 30 })),
  calls: fc.option(fc.integer({ min: 0, max: 5 })),
}).map(({ cached, writes, plain, reasoning, text, seconds, calls }) => {
  const optional = (value: number | null) => value === null ? null : amountOf(value);
  return {
    ...NO_USAGE,
    inputTokens: plain === null ? null : amountOf(plain) + amountOf(cached) + amountOf(writes),
    cachedInputTokens: plain === null ? null : amountOf(cached),
    cacheWriteTokens: plain === null ? null : amountOf(writes),
    outputTokens: text === null ? null : amountOf(text) + amountOf(reasoning),
    reasoningTokens: text === null ? null : amountOf(reasoning),
    seconds: optional(seconds),
    calls: optional(calls),
  };
});
const hold = fc.record({
  inputTokens: fc.integer({ min: 1, max: 800 }),
  maxOutputTokens: fc.integer({ min: 1, max: 400 }),
  inputCostCents: fc.integer({ min: 0, max: 200 }),
  quantity: fc.integer({ min: 1, max: 15 }),
  count: fc.integer({ min: 1, max: 4 }),
}, { requiredKeys: [] });
const world = fc.record({
  model,
  usage,
  hold,
  credits: fc.array(
    fc.tuple(fc.constantFrom("tokens", "cents", "seconds"), fc.integer({ min: 1, max: 300 })),
    { maxLength: 3 },
  ),
  extraCount: fc.integer({ min: -3, max: 3 }),
  /** Whether prices change and the hold lapses before the commit. */
  isRepriced: fc.boolean(),
  lapses: fc.boolean(),
});

/** Everything that a user's state says. */
function rowsOf({ state: { user, counters, reservations, balances } }: Scene) {
  return { user, rows: [counters, reservations, balances].map((rows) => [...rows.values()]) };
}

type Pair = [unknown, unknown];

/** Changes without the work of events, which keeps the usage that was reported. */
function withoutWork(changes: readonly Change[]) {
  return changes.map((change) =>
    change.table === "events" ? { ...change, row: { ...change.row, work: null } } : change
  );
}

Deno.test("a commit with usage leaves what one with the same actual tokens, cents and seconds leaves", () => {
  let committed = 0;
  fc.assert(
    fc.property(world, ({ model, usage, hold, credits, extraCount, isRepriced, lapses }) => {
      const scenes = [0, 1].map(() => {
        const models = model === null ? [] : [model];
        const scene = new Scene([PLAN], undefined, PACKS, { models, isCompared: false });
        scene.subscribe("p");
        for (const [pack, quantity] of credits) scene.fund(pack, quantity);
        const { hold: made } = scene.ask("reserve", {
          event: "x.m",
          metadata: null,
          size: sizeOf(hold),
          ttlMs: null,
        });
        if (isRepriced) {
          scene.reprice([PLAN], { models: [{ ...common, amountMode: "per_call", centsPerCall: 7 }] });
        }
        if (lapses) scene.wait(601);
        return { scene, id: made?.reservationId ?? null };
      });
      const [reported, corrected] = scenes as [typeof scenes[0], typeof scenes[0]];
      if (reported.id === null || corrected.id === null) return;
      committed += 1;
      const row = reported.scene.state.reservations.get(reported.id);
      assert.ok(row !== undefined);
      const priceRow = model === null ? null : reported.scene.catalog.priceRows[0] ?? null;
      const count = row.amounts.count + amountOf(extraCount);
      const work = { seconds: row.amounts.seconds, count: count > 0n ? count : 0n };
      const actual = finalAmounts(usage, priceRow, work);
      const more = { extra: { count: amountOf(extraCount) }, costCents: null };
      const answers = [
        reported.scene.do("commit", { reservationId: reported.id, ...more, actual: {}, usage }),
        corrected.scene.do("commit", { reservationId: corrected.id, ...more, actual }),
      ];
      assert.deepEqual(...answers.map((each) => ({ ...each, changes: withoutWork(each.changes) })) as Pair);
      assert.deepEqual(...[reported, corrected].map(({ scene }) => withoutWork(scene.changes)) as Pair);
      assert.deepEqual(rowsOf(reported.scene), rowsOf(corrected.scene));
      if (actual.tokens !== undefined && answers[0]?.result.ok === true) {
        const event = reported.scene.event();
        const ofTokens = [...event.lines, ...event.credits].filter(({ unit }) => unit === "tokens");
        assert.equal(numberOf(ofTokens.reduce((sum, { taken }) => sum + taken, 0n)), numberOf(actual.tokens));
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(committed > 100, `${committed}`);
});
