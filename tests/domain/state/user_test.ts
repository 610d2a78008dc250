// A user's state: what apply, admit and forget do to it.

import assert from "node:assert/strict";
import { PACKS, planOf, Scene } from "../scene.ts";

Deno.test("older rows are admitted where memory has no newer value", () => {
  const scene = new Scene([planOf("p", { g: 10 })], undefined, PACKS, { isCompared: false });
  scene.subscribe("p");
  const balance = scene.fund("count", 5);
  const id = scene.hold(12);
  const [row, held] = [scene.state.balances.get(balance), scene.state.reservations.get(id)];
  assert.ok(row !== undefined && held !== undefined);
  const counters = [...scene.state.counters.values()];
  scene.state.admit({
    balances: [{ ...row, remaining: 0n }],
    counters: counters.map((counter) => ({ ...counter, count: 0n })),
    reservations: [{ ...held, status: "released", settledAt: 1 }],
  });
  assert.deepEqual([scene.left(balance), scene.counts(), scene.state.openHolds], [[3], { g: 10 }, 1]);
  scene.state.admit({
    balances: [{ ...row, id: "crb_old" }],
    counters: [],
    reservations: [{ ...held, id: "rsv_old" }],
  });
  assert.deepEqual([scene.left("crb_old"), scene.state.openHolds, scene.state.isOpen("rsv_old")], [
    [3],
    2,
    true,
  ]);
});

Deno.test("a settled reservation is forgotten, an open one stays", () => {
  const scene = new Scene([planOf("p", { g: 10 })], undefined, [], { isCompared: false });
  scene.subscribe("p");
  const id = scene.hold(1);
  scene.state.forget(id);
  assert.equal(scene.state.isOpen(id), true);
  scene.release(id);
  scene.state.forget(id);
  assert.equal(scene.release(id), "not_found");
});

Deno.test("rows of another user are not taken, and a user merged into this one becomes its alias", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.subscribe("p");
  scene.track(1);
  const [counter] = scene.state.counters.values();
  assert.ok(counter !== undefined);
  const stranger = { ...scene.state.user, key: 8, id: "other" };
  scene.state.apply([
    { verb: "put", table: "counters", row: { ...counter, userKey: 8, count: 0n } },
    { verb: "put", table: "users", row: { ...stranger, mergedInto: 9 } },
  ]);
  assert.deepEqual([scene.counts(), scene.state.aliases, scene.state.keys], [{ g: 1 }, [], [7]]);
  scene.state.apply([{ verb: "put", table: "users", row: { ...stranger, mergedInto: 7 } }]);
  assert.deepEqual([scene.state.aliases, scene.state.keys], [[{ key: 8, id: "other" }], [7, 8]]);
});
