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
  scene.track(count);
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
  alias.mergeInto(into);
  assert.deepEqual([into.counts(), into.costs()], [{ g: 1 }, { g: 3 }]);
  assert.deepEqual(into.commit(late).groups, { g: 11 }, "4, 5 and the 2 that were held in March");
});
