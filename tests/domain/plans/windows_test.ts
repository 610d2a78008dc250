// Windows of limit groups: periods of their own, and sessions. Times are minutes after the start.

import assert from "node:assert/strict";
import type { GroupPeriodDocument, LimitGroupDocument } from "../../../src/domain/catalog/catalog.ts";
import { shownCount } from "../../../src/domain/state/counter.ts";
import { groupOf, packOf, planOf, Scene } from "../scene.ts";

const START = "2026-03-10T12:00:00.000Z";
const SESSION: GroupPeriodDocument = { type: "session", seconds: 3_600 };

const withPeriod = (id: string, quota: number, period: GroupPeriodDocument, event = "x.*") => ({
  ...groupOf(id, quota, "count", event),
  period,
});

function sceneOf(limits: readonly LimitGroupDocument[]): Scene {
  const scene = new Scene([planOf("a", {}, { limits })], START, [packOf("funds")], { isCompared: false });
  scene.subscribe("a");
  return scene;
}

/** The counters of a user: count, start and end in minutes after the start; null between two sessions. */
function shown(scene: Scene) {
  const from = Date.parse(START);
  const minutes = (at: number | null) => at === null ? null : (at - from) / 60_000;
  return Object.fromEntries(
    scene.ask("usage", { event: null }).counters.map(({ group, counter, window }) => [
      group.id,
      window.isNext ? null : [Number(shownCount(counter)) / 1e6, minutes(window.start), minutes(window.end)],
    ]),
  );
}

Deno.test("each group counts in the window of its own period", () => {
  const scene = sceneOf([
    withPeriod("hour", 2, { type: "hourly", anchor: "calendar" }),
    withPeriod("day", 3, { type: "daily", anchor: "subscription_start" }),
    groupOf("month", 9),
  ]);
  assert.deepEqual([1, 1, 1].map((count) => scene.track(count)), ["matched", "matched", "blocked"]);
  scene.wait(3_600);
  assert.deepEqual([scene.reserve(1) !== null, scene.reserve(1)], [true, null], "the day is used up");
  const day = 24 * 60;
  const april = (Date.parse("2026-04-01") - Date.parse(START)) / 60_000;
  const march = (Date.parse("2026-03-01") - Date.parse(START)) / 60_000;
  assert.deepEqual(shown(scene), { hour: [1, 60, 120], day: [3, 0, day], month: [3, march, april] });
});

/** What is done with a group of 10 an hour from first use, after 10 minutes, and what its counter shows then. */
const SESSIONS: readonly [what: string, act: (scene: Scene) => unknown, after: unknown][] = [
  ["nothing was used", () => {}, null],
  ["a reserve", (scene) => scene.hold(3), [3, 10, 70]],
  ["a track", (scene) => scene.track(3), [3, 10, 70]],
  ["a call of nothing", (scene) => scene.track(0), [0, 10, 70]],
  ["a call that credits pay in part", (scene) => {
    scene.fund("funds", 5);
    scene.track(12);
  }, [10, 10, 70]],
  ["a refused call", (scene) => scene.track(11), null],
  ["can-use", (scene) => scene.canUse(1), null],
  ["a call of another event", (scene) => scene.track(1, { event: "y" }), null],
  ["a released hold", (scene) => scene.release(scene.hold(3)), [0, 10, 70]],
  ["calls in one session", (scene) => {
    scene.track(1);
    scene.wait(3_599).track(1);
  }, [2, 10, 70]],
  ["calls in two sessions", (scene) => {
    scene.track(1);
    scene.wait(3_600);
  }, null],
  ["a late call", (scene) => {
    scene.track(1);
    scene.wait(3_600).track(2);
  }, [2, 70, 130]],
];

for (const [what, act, after] of SESSIONS) {
  Deno.test(`session: ${what}`, () => {
    const scene = sceneOf([withPeriod("g", 10, SESSION), groupOf("other", 99, "count", "y")]).wait(600);
    act(scene);
    assert.deepEqual(shown(scene).g, after);
  });
}

/** The policy of the entered plan, what its own session has used of it, and what it shows after the change. */
const CHANGES: readonly [policy: "carry" | "reset" | "block", own: number | null, after: unknown][] = [
  ["carry", null, [3, 10, 70]],
  ["carry", 2, [3, 10, 70]],
  ["carry", 3, [3, 0, 60]],
  ["carry", 4, [4, 0, 60]],
  ["reset", null, null],
  ["reset", 4, null],
  ["block", null, null],
  ["block", 4, [10, 0, 60]],
];

for (const [onPlanChange, own, after] of CHANGES) {
  Deno.test(`session: ${onPlanChange} with ${own ?? "no"} calls in the entered plan`, () => {
    const limits = [withPeriod("g", 10, SESSION)];
    const plans = [
      planOf("a", {}, { limits, onPlanChange: "reset" }),
      planOf("b", {}, { limits, onPlanChange, rank: 2 }),
    ];
    const scene = new Scene(plans, START, [], { isCompared: false });
    if (own !== null) {
      scene.pay("b", "sub");
      scene.track(own);
      scene.cancel({ provider: "stripe", externalId: "sub" });
    }
    scene.subscribe("a");
    scene.wait(600);
    const held = scene.hold(3);
    scene.pay("b", "sub");
    assert.deepEqual(shown(scene).g, after);
    // The hold followed where usage was carried.
    scene.release(held);
    const left = onPlanChange === "carry" && Array.isArray(after) ? [after[0] - 3, ...after.slice(1)] : after;
    assert.deepEqual(shown(scene).g, left);
    scene.track(1);
    assert.equal(scene.track(10), "blocked");
  });
}

Deno.test("two sessions become one by a merge: that of the primary subscription, with both counts", () => {
  const limits = [withPeriod("g", 10, SESSION)];
  for (const [paid, window] of [["from", [0, 60]], ["to", [10, 70]]] as const) {
    const plans = [planOf("a", {}, { limits })];
    const from = new Scene(plans, START, [], { isCompared: false });
    const to = new Scene(plans, START, [], { key: 8, id: "v", beside: from });
    (paid === "from" ? from : to).pay("a", "sub");
    (paid === "from" ? to : from).subscribe("a");
    from.track(2);
    to.now = from.wait(600).now;
    to.track(3);
    from.mergeInto(to);
    assert.deepEqual(shown(to).g, [5, ...window], paid);
  }
});
