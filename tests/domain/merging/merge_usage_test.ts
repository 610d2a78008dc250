// Usage in a merge: counters of both sides are added up, so that no merge yields a fresh quota. A row a merge.

import assert from "node:assert/strict";
import type { CarriedGroup } from "../../../src/domain/merging/merge_report.ts";
import { groupOf, planOf, Scene } from "../scene.ts";

const PLANS = [
  planOf("free", { g: 10 }),
  {
    ...planOf("pro", {}, { rank: 10 }),
    limits: [
      groupOf("g", 100),
      groupOf("chat", 1000, "tokens", "chat.*"),
      groupOf("only", 50, "count", "only.*"),
    ],
  },
  {
    ...planOf("team", {}, { rank: 20, onPlanChange: "reset" as const }),
    limits: [groupOf("p", 200), groupOf("chat", 5000, "tokens", "chat.*")],
  },
  planOf("daily", { g: 20 }, {
    rank: 10,
    onPlanChange: "block",
    period: { type: "daily", anchor: "subscription_start" },
  }),
  planOf("life", {}, {
    rank: 10,
    limits: [{ ...groupOf("g", 20), period: { type: "lifetime", anchor: "calendar" } }],
  }),
];

type Act = (scene: Scene) => void;

interface Row {
  readonly name: string;
  readonly from: Act;
  readonly to: Act;
  readonly counts: Record<string, number>;
  /** Counters of the alias with usage. */
  readonly moved: number;
  readonly summed?: number;
  readonly carried?: readonly CarriedGroup[];
  readonly unpaired?: readonly string[];
}

const plan = (id: string, count: number, more: Parameters<Scene["subscribe"]>[1] = {}): Act => (scene) => {
  scene.subscribe(id, more);
  if (count > 0) scene.track(count);
};
const none: Act = () => {};
const ended = (id: string, count: number): Act => (scene) => {
  plan(id, count)(scene);
  scene.cancel();
};
const proUsed: Act = (scene) => {
  plan("pro", 7)(scene);
  scene.track({ inputTokens: 30 }, { event: "chat.x" });
  scene.track(2, { event: "only.x" });
};
const g = { fromGroupId: "g", toGroupId: "p" };
const chat = { fromGroupId: "chat", toGroupId: "chat" };
const hoursAgo = (hours: number) => ({
  startsAt: Date.parse("2026-03-10T12:00:00.000Z") - hours * 3_600_000,
});

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  { name: "the same plan on both sides: added up", from: plan("free", 6), to: plan("free", 6), counts: { g: 12 }, moved: 1, summed: 1 },
  { name: "usage of one side alone meets nothing", from: plan("free", 6), to: plan("free", 0), counts: { g: 6 }, moved: 1 },
  { name: "what the canonical user used is in no count", from: none, to: plan("free", 4), counts: { g: 4 }, moved: 0 },
  { name: "an alias without a plan takes the canonical one's", from: none, to: plan("pro", 3), counts: { g: 3, chat: 0, only: 0 }, moved: 0 },
  { name: "the losing plan of the alias is carried by rules and ids, whatever the policy", from: proUsed, to: plan("team", 11), counts: { p: 18, chat: 30 }, moved: 3, carried: [g, chat], unpaired: ["only"] },
  { name: "the losing plan of the canonical user too", from: plan("team", 11), to: proUsed, counts: { p: 18, chat: 30 }, moved: 1, carried: [g, chat], unpaired: ["only"] },
  { name: "one group in running windows that differ: added into the primary's", from: plan("daily", 4, hoursAgo(7)), to: plan("daily", 5, hoursAgo(1)), counts: { g: 9 }, moved: 1, summed: 1 },
  { name: "a lifetime begins when either side first had the plan, also with the later one's as primary", from: plan("life", 4, hoursAgo(1)), to: plan("life", 5, hoursAgo(7)), counts: { g: 9 }, moved: 1, summed: 1 },
  { name: "a lifetime of the alias that began earlier goes on", from: plan("life", 4, hoursAgo(7)), to: plan("life", 5, hoursAgo(1)), counts: { g: 9 }, moved: 1, summed: 1 },
  { name: "also where the alias's is primary", from: plan("daily", 5, hoursAgo(1)), to: plan("daily", 4, hoursAgo(7)), counts: { g: 9 }, moved: 1, summed: 1 },
  { name: "a plan that ended in its running window is carried", from: ended("pro", 5), to: plan("team", 0), counts: { p: 5, chat: 0 }, moved: 1, carried: [g] },
  { name: "without any plan it waits", from: ended("pro", 6), to: none, counts: {}, moved: 1 },
];

for (const row of ROWS) {
  Deno.test(`usage in a merge: ${row.name}`, () => {
    const into = new Scene(PLANS);
    const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
    row.from(alias);
    row.to(into);
    const { conflicts, moved } = alias.mergeInto(into);
    assert.deepEqual(into.counts(), row.counts);
    assert.equal(moved.counters, row.moved);
    assert.deepEqual(conflicts.counters, {
      summed: row.summed ?? 0,
      carried: row.carried ?? [],
      unpaired: row.unpaired ?? [],
    });
  });
}

Deno.test("no fresh quota once a plan comes after a merge without one", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  ended("pro", 6)(alias);
  alias.mergeInto(into);
  into.subscribe("free");
  assert.deepEqual(into.counts(), { g: 6 });
});

Deno.test("usage of a plan that had ended is not carried once its window is over", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  ended("pro", 6)(alias);
  into.subscribe("team");
  for (const scene of [alias, into]) scene.at("2026-04-20T00:00:00.000Z");
  into.track(4);
  const { conflicts, billableOperations } = alias.mergeInto(into);
  assert.deepEqual([conflicts.counters.carried, billableOperations], [[], 0]);
  assert.deepEqual(into.counts(), { p: 4, chat: 0 });
});

Deno.test("a plan that comes after a merge of users without one goes on from the plan that ended last", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  ended("pro", 4)(into);
  for (const scene of [alias, into]) scene.wait(1);
  ended("free", 3)(alias);
  assert.deepEqual(alias.mergeInto(into).conflicts.counters, { summed: 0, carried: [], unpaired: [] });
  into.wait(1).pay("free", "one");
  assert.deepEqual(into.counts(), { g: 3 });
});

Deno.test("a hold that lapsed before the merge is charged again where it was taken", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  alias.subscribe("pro");
  into.subscribe("team");
  const [late, other] = [alias.hold(3, { ttlMs: 10_000 }), alias.hold(1, { ttlMs: 10_000 })];
  for (const scene of [alias, into]) scene.wait(10);
  assert.equal(alias.mergeInto(into).moved.reservations, 2);
  const { recharged, groups } = into.commit(late);
  assert.deepEqual([recharged, groups, into.counts()], [true, { g: 3 }, { p: 0, chat: 0 }]);
  assert.equal(into.release(other), "reservation_not_pending");
});

Deno.test("open holds of both sides settle under the one user, in the group that their usage was carried to", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  alias.subscribe("pro");
  into.subscribe("team");
  const [carried, released, lapsed] = [alias.hold(4), alias.hold(3), alias.hold(11)];
  const unpaired = alias.hold(5, { event: "only.x" });
  const own = into.hold(7);
  const report = alias.mergeInto(into);
  assert.deepEqual([report.moved.reservations, into.counts()], [4, { p: 25, chat: 0 }]);
  assert.deepEqual(into.commit(carried, { actual: { count: 1 } }).groups, { p: 22 });
  assert.deepEqual([into.release(released), into.counts().p], ["ok", 19]);
  assert.deepEqual([into.commit(own).groups, into.release(unpaired)], [{ p: 19 }, "ok"]);
  assert.equal(into.wait(601).counts().p, 8);
  assert.deepEqual(into.commit(lapsed).groups, { p: 19 });
});

Deno.test("past windows are added where they are identical, and the cost goes with the count", () => {
  const into = new Scene(PLANS);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  for (const [scene, count] of [[alias, 4], [into, 5]] as const) {
    scene.subscribe("free");
    scene.track(count, { costCents: count * 10 });
  }
  const late = alias.hold(2);
  for (const scene of [alias, into]) scene.at("2026-04-02T00:00:00Z").ask("settle", {});
  alias.track(1, { costCents: 3 });
  into.track(2, { costCents: 4 });
  const { conflicts, moved } = alias.mergeInto(into);
  assert.deepEqual([conflicts.counters.summed, moved.counters, moved.events], [2, 2, 2]);
  assert.deepEqual([into.counts(), into.costs()], [{ g: 3 }, { g: 7 }]);
  assert.deepEqual(into.commit(late).groups, { g: 11 }, "4, 5 and the 2 that were held in March");
});

/** "home" outranks all but "top", so a user who merges with another one there returns to it. */
const WAYS = [
  planOf("home", { g: 100 }, { rank: 30 }),
  planOf("away", { g: 100 }),
  planOf("anew", { g: 100 }, { onPlanChange: "reset" }),
  planOf("shut", { g: 9 }, { onPlanChange: "block" }),
  planOf("top", { g: 100 }, { rank: 40, onPlanChange: "reset" }),
];

type Stay = readonly [plan: string, used: number, costCents?: number];

/** Users that enter one plan after the other, on their default row, and use so much on each. */
function usersOf(...ways: readonly (readonly Stay[])[]): Scene[] {
  const first = new Scene(WAYS);
  return ways.map((stays, place) => {
    const scene = new Scene([], undefined, [], { beside: first, key: 8 + place, id: `user_${place}` });
    for (const [plan, used, costCents = 0] of stays) {
      scene.subscribe(plan);
      if (used > 0) scene.track(used, { costCents });
    }
    return scene;
  });
}

// deno-fmt-ignore: a row a merge
const RETURNS: readonly (readonly [name: string, from: readonly Stay[], to: readonly Stay[], count: number])[] = [
  ["what one user left under carry counts once: 5 and 2 on the way, beside 3", [["home", 5], ["away", 2]], [["home", 3]], 10],
  ["on the canonical side too", [["home", 3]], [["home", 5], ["away", 2]], 10],
  ["over several plans", [["home", 5], ["away", 2], ["home", 1], ["away", 0]], [["home", 3]], 11],
  ["a plan entered by reset contains nothing of the one before: added", [["home", 5], ["anew", 2]], [["home", 3]], 10],
  ["nor does one entered by block, and its filler is not usage", [["home", 5], ["shut", 0]], [["home", 3]], 8],
  ["a user who was nowhere before brings what is there", [["away", 7]], [["home", 3]], 10],
];

for (const [name, from, to, count] of RETURNS) {
  Deno.test(`a merge that brings a user back: ${name}`, () => {
    const [alias, into] = usersOf(from, to) as [Scene, Scene];
    alias.mergeInto(into);
    assert.deepEqual(into.counts(), { g: count });
  });
}

Deno.test("a merge that brings a user back takes the larger cost as well", () => {
  const [alias, into] = usersOf([["home", 1, 50], ["away", 1, 7]], [["home", 1, 3]]) as [Scene, Scene];
  alias.mergeInto(into);
  assert.deepEqual(into.costs(), { g: 60 });
});

Deno.test("a plan that gave way keeps its count: its subscription finds it when it is primary again", () => {
  const plans = [
    planOf("month", { g: 10 }),
    planOf("day", { g: 10 }, { rank: 2, period: { type: "daily", anchor: "calendar" } }),
  ];
  const into = new Scene(plans);
  const alias = new Scene([], undefined, [], { beside: into, key: 8, id: "from" });
  alias.pay("month", "1");
  alias.track(7);
  into.pay("day", "2", { endsAt: into.now + 86_400_000 });
  alias.mergeInto(into);
  assert.deepEqual(into.counts(), { g: 7 });
  into.wait(86_400);
  assert.deepEqual(into.counts(), { g: 7 }, "on the plan of a month, a day later");
});

Deno.test("a second merge adds nothing twice that the first one carried, whatever the plans' policy", () => {
  for (const between of ["home", "top"]) {
    const ways: Stay[][] = [[["away", 5]], [[between, 3]], [["away", 1]]];
    const [first, second, third] = usersOf(...ways) as [Scene, Scene, Scene];
    first.mergeInto(second);
    assert.deepEqual(second.counts(), { g: 8 });
    second.cancel();
    second.mergeInto(third);
    assert.deepEqual(third.counts(), { g: 9 }, between);
  }
});

Deno.test("a hold that left a counter corrects it also when a merge has brought others onto it", () => {
  const [alias, into] = usersOf([["home", 1]], [["home", 3]]) as [Scene, Scene];
  const hold = alias.hold(4);
  alias.subscribe("away");
  alias.mergeInto(into);
  assert.deepEqual(into.counts(), { g: 8 });
  into.release(hold);
  assert.deepEqual(into.counts(), { g: 4 });
  into.subscribe("away");
  assert.deepEqual(into.counts(), { g: 4 }, "the counter that gave way was corrected too");
});

Deno.test("a plan entered by reset contains nothing of the one before, also after it has survived a merge", () => {
  const ways: Stay[][] = [[["anew", 1]], [["home", 5], ["anew", 2]], [["home", 1]]];
  const [first, second, third] = usersOf(...ways) as [Scene, Scene, Scene];
  first.mergeInto(second);
  assert.deepEqual(second.counts(), { g: 3 });
  second.mergeInto(third);
  assert.deepEqual(third.counts(), { g: 9 });
});
