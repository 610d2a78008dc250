// The window of a lifetime plan: it begins when any row of the user first had the plan, and never anew.

import assert from "node:assert/strict";
import { planOf, Scene } from "../scene.ts";

const PLANS = [
  planOf("ever", { g: 10 }, { rank: 2, period: { type: "lifetime", anchor: "subscription_start" } }),
  planOf("low", { g: 5 }),
];
const DAY_S = 86_400;
const DAY_MS = DAY_S * 1000;

const windowIn = (scene: Scene) => scene.ask("usage", { event: null }).period?.start;

Deno.test("subscribing again, by whatever row, brings no fresh quota", () => {
  const scene = new Scene(PLANS);
  const start = scene.now;
  scene.subscribe("ever");
  scene.track(8);
  scene.cancel();
  scene.wait(DAY_S).pay("ever", "a");
  assert.deepEqual([windowIn(scene), scene.counts()], [start, { g: 8 }]);
  scene.cancel({ provider: "stripe", externalId: "a" });
  scene.wait(DAY_S).pay("ever", "b");
  assert.deepEqual([windowIn(scene), scene.reason(3)], [start, "limit_reached"]);
});

Deno.test("a change into the plan begins it then, and a change back finds it", () => {
  const scene = new Scene(PLANS);
  scene.subscribe("low");
  scene.track(2);
  const start = scene.wait(DAY_S).now;
  scene.subscribe("ever");
  assert.deepEqual([windowIn(scene), scene.counts()], [start, { g: 2 }]);
  scene.track(6);
  scene.wait(60).subscribe("low");
  scene.wait(60).subscribe("ever");
  assert.deepEqual([windowIn(scene), scene.counts()], [start, { g: 8 }]);
});

Deno.test("a row that started earlier moves the window, and what was used with it", () => {
  const scene = new Scene(PLANS);
  scene.subscribe("ever");
  scene.track(8);
  const startsAt = scene.now - DAY_MS;
  scene.pay("ever", "a", { startsAt });
  assert.deepEqual([windowIn(scene), scene.counts()], [startsAt, { g: 8 }]);
});

Deno.test("a merge takes the earlier start and adds what both used, also where a row has ended", () => {
  const from = new Scene(PLANS);
  const to = new Scene(PLANS, undefined, [], { beside: from, key: 8, id: "v" });
  const start = from.now;
  from.subscribe("ever");
  from.track(3);
  from.cancel();
  to.wait(DAY_S).subscribe("ever");
  to.track(4);
  from.now = to.now;
  from.mergeInto(to);
  assert.deepEqual([windowIn(to), to.counts()], [start, { g: 7 }]);
});
