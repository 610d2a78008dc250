// Release and expiry: both give everything back where it was taken; a release leaves a row in the feed.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { PACKS, planOf, Scene } from "../scene.ts";

/** A scene with a plan that is used up, balances of 3, 4 and 5 in consumption order, and a hold of 9 on them. */
function held() {
  const scene = new Scene([planOf("p", { g: 10 })], undefined, PACKS);
  scene.subscribe("p");
  scene.track(10);
  const ids = [scene.fund("first", 3), scene.fund("count", 4), scene.fund("count", 5)];
  return { scene, ids, id: scene.hold({ count: 9, inputCostCents: 9 }, { ttlMs: 60_000 }) };
}

Deno.test("a release and a lapse give every balance back what the hold took, in hold order", () => {
  for (
    const [reason, settle] of [
      ["reservation_released", (scene: Scene, id: string) => void scene.release(id)],
      ["reservation_expired", (scene: Scene) => void scene.wait(3600)],
    ] as const
  ) {
    const { scene, ids, id } = held();
    const lapse = scene.now + 60_000;
    assert.deepEqual(scene.left(...ids), [0, 0, 3]);
    settle(scene, id);
    assert.deepEqual(scene.left(...ids), [3, 4, 5]);
    assert.deepEqual(scene.ledger(3), [[ids[0], 3, reason], [ids[1], 4, reason], [ids[2], 2, reason]]);
    const rows = scene.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row] : []).slice(-3);
    for (const row of rows) {
      assert.deepEqual([row.eventId, row.reservationId], [null, id]);
      assert.equal(
        row.at,
        reason === "reservation_expired" ? lapse : scene.now,
        "at the instant of its end",
      );
    }
    assert.deepEqual(scene.counts(), { g: 10 });
  }
});

Deno.test("a release is a row of the feed that counts nowhere: no cost, no groups, no operation", () => {
  const { scene, id } = held();
  const before = scene.operations;
  scene.ask("release", { reservationId: id, reason: "why", errorCode: null });
  const { matchStatus, costCents, lines, reason, reservationId, quantity } = scene.event();
  assert.deepEqual([matchStatus, costCents, lines, reason, reservationId], ["released", 0n, [], "why", id]);
  assert.deepEqual([numberOf(quantity), scene.operations - before], [9, 0]);
});

Deno.test("what comes back to a balance that ended meanwhile: shown when expired, taken again when revoked", () => {
  const { scene, ids: [a, b], id } = held();
  scene.revoke(a as string, "refunded");
  scene.release(id);
  assert.deepEqual(scene.ledger(4).slice(0, 2), [[a, 3, "reservation_released"], [a, -3, "admin_adjust"]]);
  assert.deepEqual(scene.left(a as string, b as string), [0, 4]);

  const expiring = new Scene([], undefined, PACKS);
  const old = expiring.fund("count", 5, { expiresAt: expiring.now + 60_000 });
  const taken = expiring.hold(2);
  expiring.wait(60).release(taken);
  assert.deepEqual(expiring.left(old), [5]);
  assert.equal(expiring.reason(1), "no_subscription", "not spendable");
  for (const delta of [-5, 0]) {
    assert.equal(expiring.revoke(old), "ok");
    assert.deepEqual(expiring.ledger(1), [[old, delta, "admin_adjust"]]);
  }
});

Deno.test("a refund that comes by a lapse is spent by the very call that finds it", () => {
  const scene = new Scene([], undefined, PACKS);
  const id = scene.fund("count", 2);
  scene.hold(2, { ttlMs: 10_000 });
  assert.equal(scene.reserve(2), null);
  scene.wait(10).hold(2);
  assert.deepEqual(scene.ledger(3).map(([, delta]) => delta), [-2, 2, -2]);
  assert.deepEqual(scene.left(id), [0]);
});
