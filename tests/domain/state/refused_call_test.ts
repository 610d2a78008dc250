// Refused calls: which calls are counted, with which groups, and which of them are alike.

import assert from "node:assert/strict";
import { addUp, kindOf, type RefusedCall, rowOf } from "../../../src/domain/state/refused_call.ts";
import type { LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { groupOf, planOf, Scene, type Size, sizeOf } from "../scene.ts";

const HOUR = 3_600_000;
const NOON = Date.UTC(2026, 2, 10, 12);
const TWO = [groupOf("wide", 10), groupOf("narrow", 3)];
const HALF = { mode: "percent", value: 50 } as const;
const CENTS = [groupOf("c", 50, "cents")];

interface Row {
  readonly name: string;
  readonly call: "reserve" | "track" | "canUse" | "explain";
  /** Groups of the plan; null for no subscription. */
  readonly groups?: readonly LimitGroupDocument[] | null;
  readonly headroom?: typeof HALF;
  readonly event?: string;
  readonly size?: Size;
  readonly counted: string | null;
}

// deno-fmt-ignore: a row a case
const CALLS: readonly Row[] = [
  { name: "a reserve that fits", call: "reserve", size: { count: 3 }, counted: null },
  { name: "a reserve over two quotas", call: "reserve", size: { count: 11 }, counted: "limit_reached wide narrow" },
  { name: "a reserve over one quota of two", call: "reserve", size: { count: 4 }, counted: "limit_reached narrow" },
  { name: "a reserve over the headroom", call: "reserve", headroom: HALF, size: { count: 2 }, counted: "reservation_headroom_exceeded narrow" },
  { name: "a reserve that no group covers", call: "reserve", event: "y", counted: "unmatched_event" },
  { name: "a reserve without a subscription", call: "reserve", groups: null, counted: "no_subscription" },
  { name: "a reserve without a price", call: "reserve", groups: CENTS, counted: "unpriced_model" },
  { name: "a track that fits", call: "track", headroom: HALF, size: { count: 2 }, counted: null },
  { name: "a blocked track", call: "track", size: { count: 4 }, counted: "limit_reached narrow" },
  { name: "a track without a price", call: "track", groups: CENTS, counted: "unpriced_model" },
  { name: "a track that no group covers, which is recorded", call: "track", event: "y", counted: null },
  { name: "a track without a subscription, which is recorded", call: "track", groups: null, counted: null },
  { name: "a question", call: "canUse", size: { count: 11 }, counted: null },
  { name: "a question why", call: "explain", size: { count: 11 }, counted: null },
];

for (
  const { name, call, groups = TWO, headroom = null, event = "x.a", size = { count: 1 }, counted } of CALLS
) {
  Deno.test(`${name} is counted as ${counted ?? "nothing"}`, () => {
    const plans = groups === null ? [] : [{ ...planOf("p", {}), limits: groups, headroom }];
    const scene = new Scene(plans, undefined, [], { settings: { unpricedModels: "refuse" } });
    if (groups !== null) scene.subscribe("p");
    const asked = { event, metadata: null, size: sizeOf(groups === CENTS ? {} : size) };
    const { refusedCall } = scene.do(call, { ...asked, ttlMs: null, costCents: null });
    assert.equal(shown(refusedCall), counted);
    assert.equal(refusedCall?.event ?? event, event);
  });
}

function shown(call: RefusedCall | null): string | null {
  return call === null ? null : [...call.reasons, ...call.groupIds].join(" ");
}

const CALL: RefusedCall = {
  event: "x",
  reasons: ["limit_reached"],
  groupIds: ["g"],
  refusedBy: [],
  at: NOON,
};

// deno-fmt-ignore: a row a case
const KINDS: readonly [note: string, userId: string, call: Partial<RefusedCall>, isAlike: boolean][] = [
  ["of another moment of the hour", "u", { at: NOON + HOUR - 1 }, true],
  ["of other groups", "u", { groupIds: ["other"] }, true],
  ["of the hour after", "u", { at: NOON + HOUR }, false],
  ["of the hour before", "u", { at: NOON - 1 }, false],
  ["of another user", "v", {}, false],
  ["of another event", "u", { event: "y" }, false],
  ["for another reason", "u", { reasons: ["no_subscription"] }, false],
  ["of a user and an event that are as long together", "ux", { event: "" }, false],
];

for (const [note, userId, call, isAlike] of KINDS) {
  Deno.test(`refused calls are ${isAlike ? "" : "not "}alike ${note}`, () => {
    const kinds = [rowOf(1, "u", CALL), rowOf(1, userId, { ...CALL, ...call })].map(kindOf);
    assert.equal(kinds[0] === kinds[1], isAlike);
  });
}

Deno.test("alike calls within an hour add up to one row with their number, both ends, and the groups of the newest", () => {
  const at = (minutes: number, group: string) =>
    rowOf(1, "u", { ...CALL, groupIds: [group], at: NOON + minutes * 60_000 });
  const [early, late] = [addUp(at(5, "a"), at(9, "b")), addUp(at(30, "d"), at(20, "c"))];
  const whole = {
    event: "x",
    reasons: ["limit_reached"],
    realm: 1,
    userId: "u",
    hour: NOON,
    count: 4,
    firstAt: NOON + 5 * 60_000,
    lastAt: NOON + 30 * 60_000,
    groupIds: ["d"],
    refusedBy: [],
  };
  assert.deepEqual(addUp(early, late), whole);
  assert.deepEqual(addUp(late, early), whole);
});
