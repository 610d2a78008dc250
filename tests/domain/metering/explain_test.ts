// Explain: what it shows of groups and credits, what its text says, and that it never disagrees with can-use and reserve.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { numberOf } from "../../../src/domain/values/amount.ts";
import type { ExplainAnswer } from "../../../src/domain/metering/explanation.ts";
import type { HeadroomDocument, LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { type Call, groupOf, packOf, PACKS, planOf, Scene, type Size } from "../scene.ts";

const TEN = [groupOf("g", 10)];
const TWO = [groupOf("wide", 10), groupOf("narrow", 3)];
const UNITS = [groupOf("t", 100, "tokens"), groupOf("c", 50, "cents")];
const HD = { ...groupOf("hd", 5), matches: [{ event: "x.*", metadata: { style: "hd" } }] };
const RATE: LimitGroupDocument = { ...groupOf("rate", 5), period: { type: "rolling", seconds: 60 } };
const PERCENT = { mode: "percent", value: 80 } as const;
const TWICE = { mode: "multiplier", value: 2 } as const;

interface Row extends Call {
  readonly name: string;
  /** Groups of the plan; null for no subscription. */
  readonly groups?: readonly LimitGroupDocument[] | null;
  readonly headroom?: HeadroomDocument;
  readonly refuseUnpriced?: boolean;
  readonly credits?: readonly (readonly [pack: string, quantity: number])[];
  readonly used?: Size | number;
  readonly hold?: number;
  readonly size: Size | number;
  readonly text: string;
}

// deno-fmt-ignore: a row a case
const TEXTS: readonly Row[] = [
  { name: "there is room", used: 4, size: 2, text: 'Allowed: the limit "g" has room, with 4 of 10 used and 2 needed.' },
  { name: "several groups have room", groups: TWO, size: 2, text: 'Allowed: the limit "wide" has room, with 0 of 10 used and 2 needed. "narrow" has room too.' },
  { name: "credits pay what the plan lacks", credits: [["count", 5]], used: 8, size: 5, text: 'Allowed with credits: the limit "g" has room for 2, with 8 of 10 used, and the call needs 5. Credits from "count" cover 3.' },
  { name: "a need of nothing passes a full group by credits", groups: UNITS, credits: [["tokens", 1]], used: { inputTokens: 100 }, size: {}, text: 'Allowed with credits: the limit "t" (tokens) has room for 0, with 100 of 100 used, and the call needs 0. Such a call passes while the limit or matching credits have anything left.' },
  { name: "credits alone, without a plan", groups: null, credits: [["first", 1], ["count", 5]], size: 3, text: 'Allowed with credits alone: the user has no active subscription. Credits from "first" and "count" cover 3.' },
  { name: "credits alone, beside a plan", event: "y", credits: [["wallet", 5]], size: 3, text: 'Allowed with credits alone: no limit of the plan "p" covers the event. Credits from "wallet" cover 3.' },
  { name: "the quota refuses", used: 7, size: 4, text: 'Refused by the limit "g": 7 of 10 are used, and the call needs 4.' },
  { name: "holds are part of what is used", used: 3, hold: 5, size: 4, text: 'Refused by the limit "g": 8 of 10 are used (5 of them held by open reservations), and the call needs 4.' },
  { name: "the group that refuses is named, not the first", groups: TWO, size: 4, text: 'Refused by the limit "narrow": 0 of 3 are used, and the call needs 4.' },
  { name: "several groups refuse", groups: TWO, size: 11, text: 'Refused by the limit "wide": 0 of 10 are used, and the call needs 11. "narrow" has no room either.' },
  { name: "credits fall short", credits: [["count", 1]], used: 10, size: 2, text: 'Refused by the limit "g": 10 of 10 are used, and the call needs 2. Matching credits have too little left: 1.' },
  { name: "several groups refuse and credits fall short", groups: TWO, credits: [["count", 0.5]], size: 11, text: 'Refused by the limit "wide": 0 of 10 are used, and the call needs 11. "narrow" has no room either; matching credits have too little left: 0.5.' },
  { name: "a need of nothing finds a full group", groups: UNITS, used: { inputTokens: 100 }, size: {}, text: 'Refused by the limit "t" (tokens): 100 of 100 are used, and a call that needs 0 requires a remaining balance.' },
  { name: "percent headroom refuses", headroom: PERCENT, used: 5, size: 4, text: 'Refused by the limit "g": 5 of 10 are used, reservations stop at 8 (headroom), and the call needs 4.' },
  { name: "a multiplier refuses", headroom: TWICE, used: 5, size: 4, text: 'Refused by the limit "g": 5 of 10 are used, headroom asks for 2 times the need, which leaves room for 2, and the call needs 4.' },
  { name: "the quota's refusal names the quota's groups alone", groups: [{ ...groupOf("wide", 10), headroom: PERCENT }, groupOf("narrow", 8.5)], size: 9, text: 'Refused by the limit "narrow": 0 of 8.5 are used, and the call needs 9.' },
  { name: "no subscription", groups: null, size: 1, text: "Refused: the user has no active subscription. No matching credits." },
  { name: "no subscription, and credits that fall short", groups: null, credits: [["count", 1]], size: 2, text: "Refused: the user has no active subscription. Matching credits do not cover it: 1 left." },
  { name: "no group names the event", event: "y", size: 1, text: 'Refused: no limit of the plan "p" covers the event. No matching credits.' },
  { name: "metadata differs", groups: [HD, { ...HD, id: "sd", label: "sd" }], metadata: { style: "a secret" }, size: 1, text: 'Refused: no limit of the plan "p" covers the event. "hd" and "sd" apply only with other metadata.' },
  { name: "a guard alone covers the event", groups: [RATE], size: 1, text: 'Refused: no limit of the plan "p" covers the event. "rate" only refuses: a rate or concurrency limit covers no event. No matching credits.' },
  { name: "nothing says what it costs", groups: UNITS, refuseUnpriced: true, size: {}, text: 'Refused: the limit "c" (cents), with 0 of 50 used, needs to know what the call costs. The call names neither a model with a price nor its cost.' },
];

function sceneOf(row: Omit<Row, "name" | "text">): Scene {
  const { groups = TEN, headroom = null, credits = [], refuseUnpriced = false } = row;
  const plans = groups === null ? [] : [{ ...planOf("p", {}), limits: groups, headroom }];
  const settings = refuseUnpriced ? { unpricedModels: "refuse" } as const : {};
  const scene = new Scene(plans, undefined, PACKS, { settings });
  if (groups !== null) scene.subscribe("p");
  if (row.used !== undefined) assert.equal(scene.track(row.used), "matched");
  if (row.hold !== undefined) scene.hold(row.hold);
  for (const [pack, quantity] of credits) scene.fund(pack, quantity);
  return scene;
}

for (const row of TEXTS) {
  Deno.test(`explain says: ${row.name}`, () => {
    assert.equal(sceneOf(row).explain(row.size, row).text, row.text);
  });
}

/** A group in short: whether and why it covers, what is held of what is used, and how the call fits. */
function shown({ groups }: ExplainAnswer) {
  return groups.map(({ group, meeting, held, counter, gate, quota, isCustom, fit }) => ({
    id: group.id,
    why: meeting.why,
    held: numberOf(held),
    current: numberOf(counter.count),
    gate: gate === null ? null : numberOf(gate),
    quota: numberOf(quota),
    isCustom,
    fit: fit === null ? null : [numberOf(fit.need), numberOf(fit.room), fit.fits],
  }));
}

Deno.test("explain shows every group of the plan in its order, those too that do not cover the call", () => {
  const other = { ...groupOf("other", 7, "count", "y.*"), headroom: PERCENT };
  const scene = new Scene([{ ...planOf("p", {}), limits: [other, HD, groupOf("g", 10), ...UNITS] }]);
  const subscriptionId = scene.subscribe("p", { customLimits: { g: 4_000_000n } });
  scene.hold(5, { event: "y.make" });
  scene.track(1);
  const answer = scene.explain({ count: 3.5, inputTokens: 100 });
  const { subscription, allowed, matched, reasons } = answer;
  assert.deepEqual([subscription?.row.id, subscription?.planName], [subscriptionId, "p"]);
  assert.deepEqual([allowed, matched, reasons], [false, true, ["limit_reached"]]);
  const none = { held: 0, gate: null, isCustom: false };
  assert.deepEqual(shown(answer), [
    { ...none, id: "other", why: "event", held: 5, current: 5, gate: 5.6, quota: 7, fit: null },
    { ...none, id: "hd", why: "metadata", current: 0, quota: 5, fit: null },
    { ...none, id: "g", why: "matched", current: 1, quota: 4, isCustom: true, fit: [3.5, 3, false] },
    { ...none, id: "t", why: "matched", current: 0, quota: 100, fit: [100, 100, true] },
    { ...none, id: "c", why: "matched", current: 0, quota: 50, fit: [0, 50, true] },
  ]);
});

Deno.test("a multiplier's room is the share of the rest, and a need of nothing fits where there is any", () => {
  const scene = new Scene([{ ...planOf("p", {}), limits: UNITS, headroom: TWICE }]);
  scene.subscribe("p");
  scene.track({ inputTokens: 51, inputCostCents: 50 });
  const [tokens, cents] = shown(scene.explain({ inputTokens: 24.5 }));
  assert.deepEqual([tokens?.fit, tokens?.gate], [[24.5, 24.5, true], 100]);
  assert.deepEqual([cents?.fit, cents?.gate], [[0, 0, false], 50]);
});

Deno.test("a hold counts as held also on the counter that it left and that still contains it", () => {
  const [old, back] = [planOf("old", { g: 10 }), planOf("back", { g: 20 }, { rank: 2 })];
  const between = planOf("between", { g: 30 }, { onPlanChange: "reset" });
  const scene = new Scene([old, back, between]);
  scene.subscribe("old");
  scene.hold(4);
  for (const plan of ["back", "between", "old"]) scene.subscribe(plan);
  const [group] = shown(scene.explain(1));
  assert.deepEqual([group?.held, group?.current], [4, 4]);
});

Deno.test("holds that meet on a counter hold no more of it than it counts", () => {
  const scene = new Scene([
    planOf("old", { g: 10 }),
    planOf("between", { g: 30 }, { onPlanChange: "reset" }),
  ]);
  scene.subscribe("old");
  scene.hold(4);
  scene.subscribe("between");
  scene.hold(5);
  scene.subscribe("old");
  const [group] = shown(scene.explain(1));
  assert.deepEqual([group?.held, group?.current], [5, 5]);
});

Deno.test("credits are all that can be spent, in order, with what each would pay; none of it where the call is refused", () => {
  const packs = [...PACKS, packOf("other", { matches: [{ event: "y" }], priority: 150 })];
  const scene = new Scene([planOf("p", { g: 10 })], undefined, packs);
  scene.subscribe("p");
  scene.track(9);
  const ids = Object.fromEntries(
    ([["count", 4], ["wallet", 2], ["other", 9], ["first", 3]] as const).map((
      [pack, quantity],
    ) => [pack, scene.fund(pack, quantity)]),
  );
  scene.revoke(scene.fund("cents", 5));
  scene.fund("seconds", 5, { expiresAt: scene.now + 1000 });
  scene.wait(1);
  const payments = (size: number) =>
    scene.explain(size).credits.map(({ row, packName, matches, wouldPay }) => {
      assert.equal(row.id, ids[packName]);
      return [packName, matches, numberOf(wouldPay)];
    });
  assert.deepEqual(payments(6), [
    ["first", true, 3],
    ["other", false, 0],
    ["count", true, 2],
    ["wallet", true, 0],
  ]);
  assert.deepEqual(payments(11).map(([, , wouldPay]) => wouldPay), [0, 0, 0, 0]);
});

const EVENTS = ["a", "b.x", "b.y"] as const;
const STYLES = [undefined, "hd", "sd"] as const;
const amount = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constantFrom(0.000001, 2.5, 7.000001));
const none = fc.constant(undefined);

const rule = fc.record({
  event: fc.constantFrom("*", "a", "b.*", "b.x", "c"),
  metadata: fc.constantFrom(undefined, undefined, { style: "hd" }, { style: "sd", fast: "true" }),
});
const headroom = fc.oneof(
  none,
  fc.record({ mode: fc.constant("percent" as const), value: fc.constantFrom(50, 90) }),
  fc.record({ mode: fc.constant("multiplier" as const), value: fc.constantFrom(1.5, 3) }),
);
const unit = fc.constantFrom("count" as const, "tokens" as const, "cents" as const, "seconds" as const);
const group = fc.record({
  unit,
  quota: amount,
  matches: fc.array(rule, { minLength: 1, maxLength: 3 }),
  headroom,
});
const plan = fc.record({
  limits: fc.array(group, { minLength: 1, maxLength: 4 }),
  headroom,
  onPlanChange: fc.constantFrom("carry" as const, "carry" as const, "reset" as const, "block" as const),
});
const pack = fc.record({ unit, matches: fc.array(rule, { minLength: 1, maxLength: 2 }), amount });
const call = fc.record({
  event: fc.constantFrom(...EVENTS),
  style: fc.constantFrom(...STYLES),
  size: fc.record({
    count: fc.option(amount, { nil: undefined }),
    inputTokens: fc.option(amount, { nil: undefined }),
    inputCostCents: fc.option(amount, { nil: undefined }),
    quantity: fc.option(amount, { nil: undefined }),
  }),
});
const step = fc.oneof(
  fc.record({ do: fc.constantFrom("reserve" as const, "track" as const), call }),
  fc.record({ do: fc.constant("subscribe" as const), plan: fc.nat(1) }),
  fc.record({ do: fc.constant("release" as const), pick: fc.nat(5) }),
);
const story = fc.record({
  plans: fc.tuple(plan, plan),
  packs: fc.array(pack, { maxLength: 4 }),
  isSubscribed: fc.boolean(),
  refusesUnpriced: fc.boolean(),
  custom: fc.option(amount),
  steps: fc.array(step, { maxLength: 12 }),
  call,
});
type Story = typeof story extends fc.Arbitrary<infer Of> ? Of : never;

/** Plays a story up to its last call; labels are texts that no other part of an answer contains. */
function play({ plans, packs, isSubscribed, refusesUnpriced, custom, steps }: Story) {
  const limitsOf = (index: number) =>
    (plans[index] as Story["plans"][0]).limits.map((each, at) => ({
      ...each,
      id: `g${at}`,
      label: `<${index}.${at}>`,
      headroom: each.headroom ?? null,
    }));
  const documents = plans.map(({ headroom, onPlanChange }, index) => ({
    ...planOf(`p${index}`, {}),
    limits: limitsOf(index) as unknown as LimitGroupDocument[],
    headroom: headroom ?? null,
    onPlanChange,
  }));
  const offers = packs.map(({ unit, matches }, at) =>
    packOf(`k${at}`, { unit, matches: matches as LimitGroupDocument["matches"] })
  );
  const settings = refusesUnpriced ? { unpricedModels: "refuse" } as const : {};
  const scene = new Scene(documents, undefined, offers, { settings, isCompared: false });
  if (isSubscribed) {
    const limits = custom === null ? {} : { customLimits: { g0: BigInt(Math.round(custom * 1e6)) } };
    scene.subscribe("p0", limits);
  }
  packs.forEach(({ amount }, at) => scene.fund(`k${at}`, amount));
  const holds: string[] = [];
  for (const each of steps) {
    if (each.do === "subscribe") scene.subscribe(`p${each.plan}`);
    else if (each.do === "release") {
      scene.release(holds[each.pick % Math.max(holds.length, 1)] ?? "rsv_1_none");
    } else {
      const [size, about] = asked(each.call);
      if (each.do === "track") scene.track(size, about);
      else holds.push(scene.reserve(size, about) ?? "rsv_1_none");
    }
  }
  return { scene, holds };
}

function asked({ event, style, size }: Story["call"]): [Size, Call] {
  const members = Object.entries(size).filter(([, value]) => value !== undefined);
  return [Object.fromEntries(members), { event, metadata: style === undefined ? undefined : { style } }];
}

const RUNS = { numRuns: 600 };

Deno.test("explain and can-use never disagree, and its text names the group that refused", () => {
  fc.assert(
    fc.property(story, (told) => {
      const { scene } = play(told);
      const ask = asked(told.call);
      const [can, why] = [scene.canUse(...ask), scene.explain(...ask)];
      assert.deepEqual([why.allowed, why.matched, why.reasons], [can.allowed, can.matched, can.reasons]);
      const covering = why.groups.filter(({ meeting }) => meeting.why === "matched");
      assert.deepEqual(
        covering.map(({ group, quota, counter, gate, window }) => ({ group, quota, counter, gate, window })),
        can.groups.map(({ group, quota, counter, gate, window }) => ({
          group,
          quota,
          counter,
          gate,
          window,
        })),
      );
      const [reason] = why.reasons;
      if (reason !== "limit_reached" && reason !== "reservation_headroom_exceeded") return;
      const named = covering.filter(({ group }) => why.text.includes(group.label));
      assert.ok(named.length > 0, why.text);
      for (const { fit, group } of named) assert.equal(fit?.fits, false, `${group.label} in ${why.text}`);
      assert.ok(named.some(({ group }) => why.text.includes(`by the limit "${group.label}"`)), why.text);
    }),
    RUNS,
  );
});

Deno.test("what explain says that each balance would pay is what a reserve then takes of it", () => {
  fc.assert(
    fc.property(story, (told) => {
      const { scene } = play(told);
      const ask = asked(told.call);
      const { credits, allowed } = scene.explain(...ask);
      assert.equal(scene.reserve(...ask) !== null, allowed);
      for (const { row, wouldPay } of credits) {
        assert.equal(scene.state.balances.get(row.id)?.remaining, row.remaining - wouldPay);
      }
    }),
    RUNS,
  );
});

Deno.test("what explain says is held comes back when every open reservation is released", () => {
  fc.assert(
    fc.property(story, (told) => {
      const { scene, holds } = play(told);
      const ask = asked(told.call);
      const before = scene.explain(...ask).groups;
      for (const id of holds) scene.release(id);
      const after = scene.explain(...ask).groups;
      for (const [at, { counter, held }] of before.entries()) {
        assert.equal(after[at]?.counter.count, counter.count - held);
        assert.equal(after[at]?.held, 0n);
      }
    }),
    RUNS,
  );
});
