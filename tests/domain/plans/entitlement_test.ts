// What entering a plan does to counters and open holds, where the workload gets seldom.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import type { LimitGroupDocument, PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { planOf, Scene } from "../scene.ts";

function group(id: string, ...events: string[]): LimitGroupDocument {
  return { id, label: id, unit: "count", quota: 10, matches: events.map((event) => ({ event })) };
}

function withGroups(id: string, limits: readonly LimitGroupDocument[]): PlanDocument {
  return { ...planOf(id, {}), limits };
}

function commitOf(reservationId: string) {
  return { reservationId, extra: {}, actual: {}, costCents: 5_000_000n };
}

Deno.test("a hold whose two parts were carried onto one counter is charged and shown there once", () => {
  // first -> h by its rules -> k by its first pattern -> second by its id: both parts then lie on "second".
  const scene = new Scene([
    withGroups("plan_a", [group("first", "x.*"), group("second", "x.a", "x.b*")]),
    withGroups("plan_b", [group("h", "x.*")]),
    withGroups("plan_c", [group("second", "x.*", "z")]),
  ]);
  scene.subscribe("plan_a");
  const id = scene.reserve(2, { event: "x.b" }) as string;
  scene.subscribe("plan_b");
  scene.subscribe("plan_c");
  scene.subscribe("plan_a");
  const { groups } = scene.ask("commit", commitOf(id));
  const { counters } = scene.ask("usage", { event: null });
  const second = counters.find(({ group }) => group.id === "second");
  assert.equal(new Set(groups.map(({ groupId }) => groupId)).size, groups.length);
  assert.equal(numberOf(second?.counter.costCents as bigint), 5);
});

Deno.test("the usage of a window is found again when another window with the same start took its place", () => {
  const daily = planOf("plan_a", { g: 10 }, { period: { type: "daily", anchor: "calendar" } });
  const weekly = planOf("plan_a", { g: 10 }, { period: { type: "weekly", anchor: "calendar" } });
  const scene = new Scene([daily], "2026-03-09T12:00:00.000Z");
  scene.subscribe("plan_a");
  scene.reserve(4, { ttlMs: 86_400_000 });
  const counterAt = (scene: Scene) => [...scene.state.counters.values()].map((row) => row.windowEnd);
  assert.deepEqual(counterAt(scene), [Date.parse("2026-03-10T00:00Z")]);
  scene.catalog = new Scene([weekly]).catalog;
  scene.reserve(3, { ttlMs: 86_400_000 });
  // A counter that is loaded only while its window runs must know the end of the window that is counted on.
  const [week] = scene.ask("usage", { event: null }).counters;
  assert.equal(week?.counter.windowEnd, Date.parse("2026-03-16T00:00Z"));
});

Deno.test("a hold that follows no pairing settles where it was taken", () => {
  const scene = new Scene([
    planOf("plan_a", { g: 10 }),
    planOf("plan_b", { g: 10 }, { onPlanChange: "reset" }),
    planOf("plan_c", { g: 10 }, { onPlanChange: "block" }),
  ]);
  scene.subscribe("plan_a");
  const id = scene.reserve(4) as string;
  scene.subscribe("plan_b");
  assert.deepEqual(scene.counts(), { g: 0 });
  scene.ask("release", { reservationId: id, reason: null, errorCode: null });
  assert.deepEqual(scene.counts(), { g: 0 });
  scene.subscribe("plan_c");
  assert.deepEqual([scene.counts(), scene.reason(1)], [{ g: 10 }, "limit_reached"]);
  assert.deepEqual(scene.at("2026-04-01T00:00:00.000Z").counts(), { g: 0 }, "full for that window alone");
});

Deno.test("carry takes usage, cost and open holds to the group of the same rules, and the others start at 0", () => {
  const scene = new Scene([
    withGroups("plan_a", [group("a", "x.*")]),
    withGroups("plan_b", [group("b", "x.*"), group("alone", "y")]),
  ]);
  scene.subscribe("plan_a");
  scene.track(1, { costCents: 2 });
  const id = scene.hold(4);
  scene.subscribe("plan_b");
  assert.deepEqual(scene.counts(), { b: 5, alone: 0 });
  scene.commit(id, { extra: { count: -1 }, costCents: 3 });
  assert.deepEqual([scene.counts(), scene.costs()], [{ b: 4, alone: 0 }, { b: 5, alone: 0 }]);
  assert.deepEqual(scene.event().lines.map(({ groupId }) => groupId), ["b"]);
  assert.deepEqual(scene.history(), ["created", "plan_changed"]);
});

const ENTERED = [planOf("low", { g: 5 }, { onPlanChange: "block" }), planOf("top", { g: 9 }, { rank: 2 })];

Deno.test("a plan entered after an end is a change while the old window runs, and a start after it", () => {
  for (const [back, count] of [["2026-03-31T23:59:59.999Z", 5], ["2026-04-01T00:00:00.000Z", 0]] as const) {
    const scene = new Scene(ENTERED);
    scene.subscribe("top");
    scene.cancel();
    scene.at(back).pay("low", "a");
    assert.deepEqual(scene.counts(), { g: count });
  }
});

Deno.test("a default row that takes over enters under its plan's policy, and is not promoted", () => {
  const scene = new Scene(ENTERED);
  scene.subscribe("low");
  scene.pay("top", "a");
  scene.cancel({ provider: "stripe", externalId: "a" });
  assert.deepEqual([scene.counts(), scene.operations], [{ g: 5 }, 0]);
  assert.deepEqual(scene.history(), ["created", "created", "canceled"]);
});

Deno.test("an upsert brings a row back when it had ended or takes its end away, not when it moves the end", () => {
  const scene = new Scene([planOf("plan_a", { g: 10 })]);
  const typesOf = () =>
    scene.changes.flatMap((each) => each.table === "subscription_events" ? [each.row.type] : []);
  scene.subscribe("plan_a", { endsAt: scene.now + 1000 });
  scene.subscribe("plan_a", { endsAt: scene.now + 2000 });
  assert.deepEqual(typesOf(), ["created"]);
  scene.track(3);
  scene.wait(2).ask("settle", {});
  scene.subscribe("plan_a");
  scene.ask("cancel", { provider: null, externalId: null, endsAt: scene.now + 1000, reason: null });
  scene.subscribe("plan_a");
  assert.deepEqual(typesOf(), ["created", "ended", "reactivated", "canceled", "reactivated"]);
  assert.deepEqual(scene.counts(), { g: 3 }, "its usage is found again");
});

Deno.test("a primary that ends at the instant of another row's end still promotes the paid duplicate, once", () => {
  for (const order of [["low", "high"], ["high", "low"]] as const) {
    const scene = new Scene([
      planOf("low", { g: 5 }),
      planOf("mid", { g: 5 }, { rank: 2 }),
      planOf("high", { g: 5 }, { rank: 3 }),
    ]);
    const endsAt = scene.now + 60_000;
    for (const plan of order) {
      const paid = plan === "high" ? { provider: "apple", externalId: "1" } : {};
      scene.wait(1).subscribe(plan, { ...paid, endsAt });
    }
    scene.wait(1).subscribe("mid", { provider: "stripe", externalId: "2" });
    scene.wait(120).do("settle", {});
    const types = scene.changes.flatMap((change) =>
      change.table === "subscription_events" && change.row.type !== "created" ? [change.row.type] : []
    );
    assert.deepEqual(types.toSorted(), ["ended", "ended", "promoted"], order.join(" before "));
  }
});
