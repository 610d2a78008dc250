// What is due: holds and ends are settled each at its own moment before any command, and the mark that says when a user
// is due next is never too late.

import assert from "node:assert/strict";
import { planOf, Scene } from "../scene.ts";

const PLANS = [planOf("low", { g: 10 }), planOf("top", { g: 20 }, { rank: 2 })];

Deno.test("everything due is settled in the order of its time, at its time, and counted", () => {
  const scene = new Scene(PLANS);
  const start = scene.now;
  scene.pay("low", "a");
  scene.pay("top", "b", { endsAt: start + 30_000 });
  const [late, early] = [scene.hold(2, { ttlMs: 60_000 }), scene.hold(3, { ttlMs: 10_000 })];
  const from = scene.changes.length;
  const settled = scene.wait(600).ask("settle", {});
  assert.deepEqual(settled, { holds: 2, subscriptions: 1 });
  const rows = new Map(
    scene.changes.slice(from).flatMap((each) =>
      each.table === "reservations" ? [[each.row.id, each.row.settledAt]] : []
    ),
  );
  assert.deepEqual([rows.get(early), rows.get(late)], [start + 10_000, start + 60_000]);
  const ends = scene.changes.slice(from).flatMap((each) =>
    each.table === "subscription_events" ? [each.row] : []
  );
  assert.deepEqual(ends.map(({ type, at }) => [type, at]), [["ended", start + 30_000], [
    "promoted",
    start + 30_000,
  ]]);
  assert.deepEqual(scene.ask("settle", {}), { holds: 0, subscriptions: 0 });
});

Deno.test("the mark follows the earliest of holds and ends, and goes when nothing is due", () => {
  const scene = new Scene(PLANS);
  const start = scene.now;
  const dueAt = () => scene.state.user.dueAt === null ? null : (scene.state.user.dueAt - start) / 1000;
  scene.subscribe("low", { endsAt: start + 3_600_000 });
  assert.equal(dueAt(), 3600);
  const id = scene.hold(1, { ttlMs: 60_000 });
  assert.equal(dueAt(), 60);
  scene.hold(1, { ttlMs: 90_000 });
  scene.release(id);
  assert.equal(dueAt(), 60, "an early mark costs one idle look");
  scene.wait(60).ask("settle", {});
  assert.equal(dueAt(), 90);
  scene.wait(30).ask("settle", {});
  assert.equal(dueAt(), 3600);
  scene.wait(3600).ask("settle", {});
  assert.equal(dueAt(), null);
});

Deno.test("a hold that lapses at the instant of an end is refunded before it", () => {
  const scene = new Scene(PLANS);
  scene.subscribe("low", { endsAt: scene.now + 60_000 });
  scene.hold(4, { ttlMs: 60_000 });
  scene.wait(60).subscribe("low");
  assert.deepEqual(scene.counts(), { g: 0 });
});
