// Whether a call fits, why it does not, and what it takes from plan and credits: a row a call.

import assert from "node:assert/strict";
import type { HeadroomDocument, LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { type Call, groupOf, PACKS, planOf, Scene, type Size } from "../scene.ts";

interface Row extends Call {
  readonly name: string;
  /** Groups of the plan; null for no subscription. */
  readonly groups?: readonly LimitGroupDocument[] | null;
  readonly headroom?: HeadroomDocument;
  /** Balances by pack, granted in this order. */
  readonly credits?: readonly (readonly [pack: string, quantity: number])[];
  /** What was tracked before. */
  readonly used?: Size | number;
  readonly size: Size | number;
  readonly answer: string;
  readonly counts?: Record<string, number>;
  /** What is left of the balances afterwards. */
  readonly left?: readonly number[];
}

const TEN = [groupOf("g", 10)];
const TWO = [groupOf("wide", 10), groupOf("narrow", 3)];
const SIZED = [groupOf("all", 10), {
  ...groupOf("sized", 1),
  matches: [{ event: "x.make", metadata: { size: "5" } }],
}];
const TOKENS = [groupOf("t", 10, "tokens")];
const UNITS = [groupOf("t", 100, "tokens"), groupOf("c", 50, "cents")];
const BOTH = [["tokens", 30], ["cents", 5], ["wallet", 1000]] as const;
const ALONE = [["wallet", 2], ["tokens", 10], ["cents", 10]] as const;
const tokens = (inputTokens: number, inputCostCents: number): Size => ({ inputTokens, inputCostCents });
const PERCENT = { mode: "percent", value: 80 } as const;
const THREE_TIMES = { mode: "multiplier", value: 3 } as const;
const TWICE = { mode: "multiplier", value: 2 } as const;
const HEADROOM = "reservation_headroom_exceeded";
const LIMIT = "limit_reached";

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "the last of the quota fits", used: 9, size: 1, answer: "ok", counts: { g: 10 } },
  { name: "a millionth more does not", used: 9, size: 1.000001, answer: LIMIT, counts: { g: 9 } },
  { name: "a group that does not match counts nothing", groups: [...TEN, groupOf("o", 5, "count", "y")], size: 6, answer: "ok", counts: { g: 6, o: 0 } },
  { name: "a rule's metadata match a number too", groups: SIZED, metadata: { size: 5 }, size: 1, answer: "ok", counts: { all: 1, sized: 1 } },
  { name: "a rule with other metadata counts nothing", groups: SIZED, metadata: { size: "6" }, size: 2, answer: "ok", counts: { all: 2, sized: 0 } },
  { name: "a reserve is one call whatever its quantity", size: { quantity: 7 }, answer: "ok", counts: { g: 1 } },
  { name: "all groups take it or none", groups: TWO, size: 4, answer: LIMIT, counts: { wide: 0, narrow: 0 } },
  { name: "the fullest group decides", groups: TWO, size: 3, answer: "ok", counts: { wide: 3, narrow: 3 } },
  { name: "a need of nothing passes below the quota", groups: UNITS, used: tokens(99, 49), size: {}, answer: "ok", counts: { t: 99, c: 49 } },
  { name: "a need of nothing does not pass a full group", groups: UNITS, used: tokens(100, 0), size: {}, answer: LIMIT },
  { name: "a need of nothing passes while a balance of the unit has something left, and takes nothing", groups: UNITS, credits: [["tokens", 1]], used: tokens(100, 0), size: {}, answer: "ok", left: [1] },
  { name: "a balance of another unit does not help a need of nothing", groups: UNITS, credits: [["cents", 5]], used: tokens(100, 0), size: {}, answer: LIMIT, left: [5] },
  { name: "credits pay what the plan lacks", credits: [["count", 5]], used: 8, size: 5, answer: "ok", counts: { g: 10 }, left: [2] },
  { name: "past plan and credits nothing changes", credits: [["count", 1]], used: 10, size: 2, answer: LIMIT, counts: { g: 10 }, left: [1] },
  { name: "credits begin where the fullest group ends, and every group takes the same part", groups: TWO, credits: [["count", 5]], size: 5, answer: "ok", counts: { wide: 3, narrow: 3 }, left: [3] },
  { name: "each unit is covered by its own balances", groups: UNITS, credits: BOTH, size: tokens(120, 53), answer: "ok", counts: { t: 100, c: 50 }, left: [10, 2, 1000] },
  { name: "cents that fall short refuse the whole", groups: UNITS, credits: BOTH, size: tokens(120, 56), answer: LIMIT, counts: { t: 0, c: 0 }, left: [30, 5, 1000] },
  { name: "tokens that fall short refuse the whole", groups: UNITS, credits: BOTH, size: tokens(131, 53), answer: LIMIT, counts: { t: 0, c: 0 }, left: [30, 5, 1000] },
  { name: "a millionth too many refuses the whole", groups: UNITS, credits: BOTH, size: tokens(0, 55.000001), answer: LIMIT, left: [30, 5, 1000] },

  { name: "percent headroom stops below the quota", headroom: PERCENT, size: 9, answer: HEADROOM, counts: { g: 0 } },
  { name: "up to the gate is free", headroom: PERCENT, size: 8, answer: "ok", counts: { g: 8 } },
  { name: "inside the buffer a need of nothing does not pass", groups: [groupOf("t", 100, "tokens")], headroom: PERCENT, used: tokens(80, 0), size: {}, answer: HEADROOM },
  { name: "what the quota itself refuses is limit_reached, headroom or not", headroom: PERCENT, used: 8, size: 3, answer: LIMIT },
  { name: "of several groups the quota's reason comes first", groups: [{ ...groupOf("wide", 10), headroom: PERCENT }, groupOf("narrow", 8.5)], size: 9, answer: LIMIT },
  { name: "credits pay past the gate", headroom: PERCENT, credits: [["count", 3]], size: 9, answer: "ok", counts: { g: 8 }, left: [2] },
  { name: "the reason is about what credits leave: the buffer", headroom: PERCENT, credits: [["count", 2]], used: 8, size: 4, answer: HEADROOM, left: [2] },
  { name: "the reason is about what credits leave: the quota", headroom: PERCENT, credits: [["count", 2]], used: 8, size: 4.5, answer: LIMIT, left: [2] },
  { name: "a multiplier asks for a multiple of the need", headroom: TWICE, size: 5, answer: "ok", counts: { g: 5 } },
  { name: "more than its share of the rest is headroom", headroom: TWICE, size: 5.000001, answer: HEADROOM, counts: { g: 0 } },
  { name: "a multiplier's share is rounded down", groups: TOKENS, headroom: THREE_TIMES, size: tokens(3.333333, 0), answer: "ok", counts: { t: 3.333333 } },
  { name: "a millionth above that share is headroom", groups: TOKENS, headroom: THREE_TIMES, size: tokens(3.333334, 0), answer: HEADROOM, counts: { t: 0 } },
  { name: "of a count the share has no fraction", headroom: THREE_TIMES, size: 3.000001, answer: HEADROOM, counts: { g: 0 } },
  { name: "nor does credit pay a fraction of a call beside a multiplier", headroom: THREE_TIMES, credits: [["count", 5]], size: 4, answer: "ok", counts: { g: 3 }, left: [4] },
  { name: "nor beside a gate within a count", groups: [groupOf("g", 15)], headroom: { mode: "percent", value: 90 }, used: 13, credits: [["count", 5]], size: 1, answer: "ok", counts: { g: 13 }, left: [4] },
  { name: "a gate within a count is full at the count before", groups: [groupOf("g", 15)], headroom: { mode: "percent", value: 90 }, used: 13, size: 1, answer: HEADROOM },
  { name: "a multiplier divides what is left, not the quota", headroom: TWICE, used: 6, size: 2, answer: "ok", counts: { g: 8 } },
  { name: "past the quota a multiplier is limit_reached", headroom: TWICE, used: 5, size: 6, answer: LIMIT, counts: { g: 5 } },
  { name: "credits pay past a multiplier's share", headroom: TWICE, credits: [["count", 1]], size: 6, answer: "ok", counts: { g: 5 }, left: [0] },

  { name: "no subscription", groups: null, size: 1, answer: "no_subscription" },
  { name: "no group matches", event: "y", size: 1, answer: "unmatched_event", counts: { g: 0 } },
  { name: "credits pay without a plan", groups: null, credits: [["count", 4]], size: 4, answer: "ok", left: [0] },
  { name: "credits that fall short without a plan", groups: null, credits: [["count", 4]], size: 4.000001, answer: "no_subscription", left: [4] },
  { name: "credits pay where no group matches", event: "y", credits: [["wallet", 1]], size: 1, answer: "ok", counts: { g: 0 }, left: [0] },
  { name: "credits that fall short where no group matches", event: "y", credits: [["wallet", 1]], size: 2, answer: "unmatched_event", left: [1] },
  { name: "credits whose rules do not match", groups: null, event: "y", credits: [["count", 4]], size: 1, answer: "no_subscription", left: [4] },
  { name: "alone, the best balance's unit is charged", groups: null, credits: ALONE, size: tokens(4, 4), answer: "ok", left: [2, 6, 10] },
  { name: "alone, a unit that falls short is passed over", groups: null, credits: ALONE, size: tokens(11, 4), answer: "ok", left: [2, 10, 6] },
  { name: "alone, a unit without a need is passed over", groups: null, credits: ALONE, size: { inputCostCents: 1 }, answer: "ok", left: [2, 10, 9] },
  { name: "alone, one call is charged where tokens and cents fall short", groups: null, credits: ALONE, size: tokens(11, 11), answer: "ok", left: [1, 10, 10] },
  { name: "alone, nothing that is left is needed", groups: null, credits: [["tokens", 10]], size: 1, answer: "no_subscription", left: [10] },
];

for (const row of ROWS) {
  Deno.test(`room: ${row.name}`, () => {
    const { groups = TEN, headroom = null, credits = [], event, metadata, size } = row;
    const call = { event, metadata };
    const scene = new Scene(
      groups === null ? [] : [{ ...planOf("p", {}), limits: groups, headroom }],
      undefined,
      PACKS,
    );
    if (groups !== null) scene.subscribe("p");
    if (row.used !== undefined) assert.equal(scene.track(row.used), "matched");
    const ids = credits.map(([pack, quantity]) => scene.fund(pack, quantity));
    const from = scene.changes.length;
    assert.equal(scene.reason(size, call), row.answer);
    const isMatched = !["no_subscription", "unmatched_event"].includes(row.answer);
    assert.equal(scene.canUse(size, call).matched, isMatched);
    assert.equal(scene.changes.length, from, "can-use writes nothing");
    assert.equal(scene.reserve(size, call) !== null, row.answer === "ok");
    if (row.answer !== "ok") assert.equal(scene.changes.length, from, "a refusal changes nothing");
    if (row.counts !== undefined) assert.deepEqual(scene.counts(), row.counts);
    if (row.left !== undefined) assert.deepEqual(scene.left(...ids), row.left);
  });
}
