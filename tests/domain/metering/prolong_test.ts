// Prolonging a hold: its expiry moves later and nothing else does, and what was due before is not due any more.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { planOf, Scene } from "../scene.ts";

function sceneWithPlan(): Scene {
  const scene = new Scene([planOf("p", { g: 100 })]);
  scene.subscribe("p");
  return scene;
}

/** Prolongs a hold by seconds; the seconds until it lapses, or the code of the refusal. */
function prolong(scene: Scene, reservationId: string, seconds: number): number | string {
  const { result } = scene.do("prolong", { reservationId, ttlMs: seconds * 1000 });
  return result.ok ? (result.answer.expiresAt - scene.now) / 1000 : result.refusal.code;
}

const statusOf = (scene: Scene, id: string) => scene.state.reservations.get(id)?.status;

Deno.test("a prolonged hold lapses at its later time, and its amounts stay held until then", () => {
  const scene = sceneWithPlan();
  const id = scene.hold(7, { ttlMs: 60_000 });
  assert.equal(prolong(scene.wait(59), id, 60), 60);
  assert.deepEqual(scene.wait(59).counts(), { g: 7 });
  assert.equal(statusOf(scene, id), "held");
  assert.deepEqual(scene.wait(1).counts(), { g: 0 });
  assert.equal(statusOf(scene, id), "expired");
});

Deno.test("a hold is never shortened, and a settled or lapsed hold stays so", () => {
  const scene = sceneWithPlan();
  const long = scene.hold(1, { ttlMs: 600_000 });
  assert.equal(prolong(scene, long, 10), 600);
  const settled = scene.hold(1);
  scene.commit(settled);
  assert.equal(prolong(scene, settled, 10), "reservation_not_pending");
  const lapsed = scene.hold(1, { ttlMs: 10_000 });
  assert.equal(prolong(scene.wait(10), lapsed, 60), "reservation_not_pending");
  assert.equal(prolong(scene, "rsv_unknown", 60), "not_found");
});

Deno.test("a prolonged hold is committed without a recharge", () => {
  const scene = sceneWithPlan();
  const id = scene.hold(7, { ttlMs: 10_000 });
  prolong(scene.wait(9), id, 10);
  const { recharged, groups } = scene.wait(9).commit(id, { actual: { count: 3 } });
  assert.deepEqual({ recharged, groups }, { recharged: false, groups: { g: 3 } });
});

Deno.test("holds lapse exactly when their last expiry comes, however they were prolonged", () => {
  const step = fc.record({ hold: fc.nat(3), seconds: fc.integer({ min: 1, max: 60 }), wait: fc.nat(40) });
  fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const scene = sceneWithPlan();
    const expiry = new Map([10, 20, 30, 40].map((ttl) => {
      return [scene.hold(1, { ttlMs: ttl * 1000 }), scene.now + ttl * 1000];
    }));
    const ids = [...expiry.keys()];
    for (const { hold, seconds, wait } of steps) {
      const id = ids[hold] as string;
      if (typeof prolong(scene, id, seconds) === "number") {
        expiry.set(id, Math.max(expiry.get(id) as number, scene.now + seconds * 1000));
      }
      scene.wait(wait);
      const held = ids.filter((each) => (expiry.get(each) as number) > scene.now);
      assert.deepEqual(scene.counts(), { g: held.length });
    }
  }));
});
