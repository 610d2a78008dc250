// A customer's own cap on what groups sell.

import assert from "node:assert/strict";
import { amountOf } from "../../../src/domain/values/amount.ts";
import { groupOf, planOf, Scene } from "../scene.ts";

const LIMITS = [{ ...groupOf("g", 10), overage: { max: 5 } }, groupOf("h", 100)];
const PLANS = [
  { ...planOf("p", {}), limits: LIMITS },
  { ...planOf("q", {}), limits: [{ ...groupOf("g", 10), overage: { max: null } }], rank: 2 },
];

function capped(scene: Scene, groupId: string, max: number | null): string {
  return scene.code("spendCap", { groupId, max: max === null ? null : amountOf(max) });
}

Deno.test("a cap is from 0 to the max of a group with overage, of the plan in force", () => {
  const scene = new Scene(PLANS, undefined, [], { isCompared: false });
  assert.equal(capped(scene, "g", 1), "invalid_request", "without a plan");
  scene.subscribe("p");
  for (const [groupId, max] of [["h", 1], ["nope", 1], ["g", 5.000001]] as const) {
    assert.equal(capped(scene, groupId, max), "invalid_request", `${groupId} ${max}`);
  }
  for (const max of [0, 5, null]) assert.equal(capped(scene, "g", max), "ok", `${max}`);
});

Deno.test("the lower of cap and max is in force, below what is used it refuses, and no subscription touches it", () => {
  const scene = new Scene(PLANS, undefined, [], { isCompared: false });
  scene.subscribe("p");
  capped(scene, "g", 2);
  assert.deepEqual([scene.reason(12), scene.reason(13)], ["ok", "limit_reached"]);
  scene.track(12);
  capped(scene, "g", 1);
  assert.equal(scene.reason(1), "limit_reached");
  assert.equal(scene.reason(0), "limit_reached");
  scene.subscribe("q");
  assert.equal(scene.reason(2), "limit_reached", "the cap is still 1");
  scene.cancel();
  scene.subscribe("q", { customLimits: { g: 0n } });
  assert.deepEqual([scene.reason(1), scene.reason(2)], ["ok", "limit_reached"]);
  capped(scene, "g", null);
  assert.equal(scene.reason(1_000), "ok");
});
