// Guards: rates and concurrency limits. They only refuse, in the turn of all other limits. Times are seconds.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { amountOf } from "../../../src/domain/values/amount.ts";
import type { LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { groupOf, packOf, planOf, Scene } from "../scene.ts";
import { correctionOf, usageOf } from "../scene_input.ts";
import { TreeScene } from "../tree_scene.ts";

const START = "2026-03-10T12:00:00.000Z";

const rate = (id: string, quota: number, seconds = 60): LimitGroupDocument => ({
  ...groupOf(id, quota),
  period: { type: "rolling", seconds },
});
const atOnce = (id: string, quota: number): LimitGroupDocument => ({
  ...groupOf(id, quota),
  period: { type: "concurrent" },
});

function sceneOf(...limits: LimitGroupDocument[]): Scene {
  const scene = new Scene([planOf("a", {}, { limits })], START, [packOf("funds")], { isCompared: false });
  scene.subscribe("a");
  return scene;
}

const counts = (scene: Scene) =>
  Object.fromEntries(
    scene.ask("usage", { event: null }).counters.map((
      { group, counter },
    ) => [group.id, Number(counter.count) / 1e6]),
  );

/** What was done before with room for 100, a rate of 4 a minute and 3 at once; then reasons, and when it passes. */
const CALLS: readonly [
  what: string,
  act: (scene: Scene) => unknown,
  need: number,
  why: string,
  after?: number | null,
][] = [
  ["a rate has room", (scene) => scene.track(3), 1, "ok"],
  ["a rate is full", (scene) => scene.track(4), 1, "rate_limit_reached", 61_000],
  [
    "half of it leaves",
    (scene) => {
      scene.track(2);
      scene.wait(30).track(2);
    },
    2,
    "rate_limit_reached",
    31_000,
  ],
  [
    "it leaves one slot late at most",
    (scene) => {
      scene.track(4);
      scene.wait(60);
    },
    1,
    "rate_limit_reached",
    1_000,
  ],
  [
    "it has left",
    (scene) => {
      scene.track(4);
      scene.wait(61);
    },
    3,
    "ok",
  ],
  ["a need above a rate", () => {}, 5, "rate_limit_reached concurrency_limit_reached", null],
  ["a need of 0 below a rate", (scene) => scene.track(3), 0, "ok"],
  ["a need of 0 at a rate", (scene) => scene.track(4), 0, "rate_limit_reached", 61_000],
  ["three at once", (scene) => scene.hold(2), 1, "ok"],
  ["more at once", (scene) => scene.hold(3, { ttlMs: 5_000 }), 1, "concurrency_limit_reached", 5_000],
  [
    "a hold that ends frees the rate as well",
    (scene) => {
      scene.hold(2, { ttlMs: 5_000 });
      scene.track(2);
    },
    1,
    "rate_limit_reached",
    5_000,
  ],
  ["a released hold", (scene) => scene.release(scene.hold(3)), 3, "ok"],
  [
    "a committed hold counts for the rate",
    (scene) => scene.commit(scene.hold(3)),
    2,
    "rate_limit_reached",
    61_000,
  ],
  [
    "a lapsed hold",
    (scene) => {
      scene.hold(3, { ttlMs: 1_000 });
      scene.wait(1);
    },
    3,
    "ok",
  ],
];

for (const [what, act, need, why, after] of CALLS) {
  Deno.test(`guards: ${what}`, () => {
    const scene = sceneOf(groupOf("all", 100), rate("rate", 4), atOnce("open", 3));
    act(scene);
    const before = counts(scene);
    const answer = scene.canUse(need);
    assert.equal(answer.allowed ? "ok" : answer.reasons.join(" "), why);
    assert.equal(answer.retryAfterMs, after);
    if (why === "ok") return;
    assert.equal(scene.reserve(need), null);
    assert.deepEqual(counts(scene), before, "a refused call counts nowhere");
    if (after == null) return;
    scene.now += after - 1;
    assert.equal(scene.reserve(need), null, "a moment before");
    scene.now += 1;
    assert.notEqual(scene.reserve(need), null, "then");
  });
}

Deno.test("a guard alone does not cover a call, and no credit pays for one", () => {
  const alone = sceneOf(rate("rate", 2));
  assert.deepEqual([alone.reason(1), alone.track(1), counts(alone)], ["unmatched_event", "unmatched", {
    rate: 0,
  }]);
  alone.fund("funds", 10);
  assert.equal(alone.track(2), "matched_credits_only");
  assert.deepEqual([alone.reason(1), alone.track(1), counts(alone)], ["rate_limit_reached", "blocked", {
    rate: 2,
  }]);
});

Deno.test("where a quota refuses too, both reasons are listed, and nothing says when to try again", () => {
  const scene = sceneOf(groupOf("all", 1), rate("rate", 1), atOnce("open", 1));
  scene.hold(1);
  const { reasons, retryAfterMs } = scene.canUse(1);
  assert.deepEqual([...reasons, retryAfterMs], [
    "limit_reached",
    "rate_limit_reached",
    "concurrency_limit_reached",
    undefined,
  ]);
});

Deno.test("a commit changes the slot of its hold while that counts, and nothing after", () => {
  const scene = sceneOf(groupOf("all", 100), rate("rate", 9), atOnce("open", 9));
  const [one, other] = [scene.hold(2, { ttlMs: 200_000 }), scene.hold(2, { ttlMs: 200_000 })];
  assert.deepEqual(scene.commit(one, { extra: { count: 3 } }).groups, { all: 7, rate: 7, open: 2 });
  scene.wait(61);
  assert.deepEqual(scene.commit(other, { extra: { count: 3 } }).groups, { all: 10, rate: 0, open: 0 });
  assert.deepEqual(counts(scene), { all: 10, rate: 0, open: 0 });
});

Deno.test("a late commit counts for its slot again, and takes no concurrency", () => {
  const scene = sceneOf(groupOf("all", 100), rate("rate", 9), atOnce("open", 1));
  const late = scene.hold(1, { ttlMs: 1_000 });
  scene.wait(2);
  scene.hold(1);
  assert.deepEqual([scene.commit(late).recharged, counts(scene)], [true, { all: 2, rate: 2, open: 1 }]);
});

Deno.test("a change of plan gives no fresh rate, under any policy, and holds stay in flight", () => {
  for (const onPlanChange of ["carry", "reset", "block"] as const) {
    const limits = [groupOf("all", 100), rate("rate", 4), atOnce("open", 2)];
    const plans = [planOf("a", {}, { limits }), planOf("b", {}, { limits, onPlanChange, rank: 2 })];
    const scene = new Scene(plans, START, [], { isCompared: false });
    scene.subscribe("a");
    scene.track(2);
    const held = scene.hold(2, { ttlMs: 100_000 });
    scene.pay("b", "sub");
    const { rate: used, open } = counts(scene);
    assert.deepEqual([used, open], [4, 2], onPlanChange);
    scene.release(held);
    const { rate: left, open: none } = counts(scene);
    assert.deepEqual([left, none], [2, 0], onPlanChange);
    scene.cancel({ provider: "stripe", externalId: "sub" });
    assert.equal(counts(scene).rate, 2, `back from ${onPlanChange}`);
  }
});

Deno.test("a hold of nothing follows every change of plan, like one of something", () => {
  const limits = (
    quota: number,
  ) => [groupOf("all", 100), { ...rate("rate", quota), unit: "tokens" as const }];
  const plans = [4, 5, 6].map((quota) => planOf(`p${quota}`, {}, { limits: limits(quota) }));
  for (const inputTokens of [1, 0]) {
    const scene = new Scene(plans, START);
    scene.subscribe("p4");
    const held = scene.hold({ inputTokens });
    for (const { id } of plans.slice(1)) scene.subscribe(id);
    const [extra, actual, usage] = [correctionOf(undefined), correctionOf(undefined), usageOf(undefined)];
    const final = { reservationId: held, extra, actual, usage, costCents: null, response: null };
    const settled = scene.ask("commit", final).groups.find(({ groupId }) => groupId === "rate");
    assert.equal(settled?.quota, amountOf(6));
  }
});

Deno.test("a merge adds the slots of both users, each call once", () => {
  const limits = [groupOf("all", 100), rate("rate", 9), atOnce("open", 9)];
  const plans = [planOf("a", {}, { limits }), planOf("b", {}, { limits, rank: 2 })];
  for (const plan of ["a", "b"]) {
    const from = new Scene(plans, START, [], { isCompared: false });
    const to = new Scene(plans, START, [], { key: 8, id: "v", beside: from });
    from.subscribe("a");
    to.pay(plan, "sub");
    from.track(2);
    from.hold(1);
    to.track(3);
    from.mergeInto(to);
    assert.deepEqual(counts(to), { all: 6, rate: 6, open: 1 }, plan);
  }
});

Deno.test("a merge adds slots once that a change of plan carried under any policy", () => {
  const limits = [groupOf("all", 100), rate("rate", 9)];
  for (const onPlanChange of ["carry", "reset", "block"] as const) {
    const plans = [planOf("a", {}, { limits, rank: 2 }), planOf("b", {}, { limits, onPlanChange })];
    const from = new Scene(plans, START, [], { isCompared: false });
    const to = new Scene(plans, START, [], { key: 8, id: "v", beside: from });
    from.pay("a", "sub");
    from.track(1);
    to.subscribe("a");
    to.track(2);
    to.subscribe("b");
    from.mergeInto(to);
    assert.equal(counts(to).rate, 3, onPlanChange);
  }
});

Deno.test("a guard of an account counts all below it, also where only the guard matches", () => {
  const plans = [
    planOf("org", {}, { limits: [atOnce("open", 2), rate("rate", 5)] }),
    planOf("own", { mine: 100 }),
  ];
  const scene = new TreeScene(plans, [packOf("funds")]);
  scene.subscribe("org", "org");
  for (const user of ["u", "v"]) {
    scene.subscribe(user, "own");
    scene.put(user, "org");
  }
  scene.reserve("u", 2);
  assert.equal(scene.reason("v", 1), "concurrency_limit_reached by org");
  scene.track("v", 3);
  assert.equal(scene.reason("u", 0), "rate_limit_reached concurrency_limit_reached by org");
});

Deno.test("a rate is never laxer than a log of all calls, and at most one slot stricter", () => {
  const call = fc.record({ wait: fc.integer({ min: 0, max: 20_000 }), need: fc.integer({ min: 0, max: 3 }) });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
      const scene = sceneOf(groupOf("all", 1e6), rate("rate", 5, 60));
      const log: { at: number; need: number }[] = [];
      for (const { wait, need } of calls) {
        scene.now += wait;
        const within = (ms: number) =>
          log.filter(({ at }) => at > scene.now - ms).reduce((sum, each) => sum + each.need, 0);
        const fits = (ms: number) => need === 0 ? within(ms) < 5 : within(ms) + need <= 5;
        const allowed = scene.track(need) === "matched";
        if (allowed) assert.ok(fits(60_000), "as strict as the log");
        else assert.ok(!fits(61_000), "at most one slot stricter");
        if (allowed) log.push({ at: scene.now, need });
        assert.ok((scene.state.passingOf("a", "rate")?.rows.length ?? 0) <= 61, "a bounded number of slots");
      }
    }),
    { numRuns: 100 },
  );
});
