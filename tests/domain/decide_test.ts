// Decide: what is due comes first, a refusal keeps what was settled, and a user's row is written with the first change.

import assert from "node:assert/strict";
import { decide } from "../../src/domain/decide.ts";
import { countedIds } from "./decide_system.ts";
import { planOf, Scene, subscription } from "./scene.ts";

const tablesOf = (scene: Scene, from: number) => scene.changes.slice(from).map(({ table }) => table).sort();

Deno.test("the row of a user is written with the first change, not by reads and refusals", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.counts();
  assert.equal(scene.code("subscribe", subscription("none")), "not_found");
  assert.equal(scene.reason(1), "no_subscription");
  assert.deepEqual([scene.changes, scene.state.recorded], [[], false]);
  scene.track(1);
  assert.deepEqual([tablesOf(scene, 0), scene.state.recorded], [["events", "user_summaries", "users"], true]);
  const from = scene.changes.length;
  scene.track(1);
  assert.deepEqual(tablesOf(scene, from), ["events"]);
});

Deno.test("a refusal keeps what was due, and a command sees the state after it", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.subscribe("p");
  const id = scene.hold(10, { ttlMs: 60_000 });
  const from = scene.wait(60).changes.length;
  assert.equal(scene.release(id), "reservation_not_pending");
  assert.deepEqual(tablesOf(scene, from), ["counters", "reservations", "user_summaries", "users"]);
  assert.equal(scene.reason(10), "ok");
});

Deno.test("a decision changes nothing by itself and is the same when asked again", () => {
  const scene = new Scene([planOf("p", { g: 10 })]);
  scene.subscribe("p");
  const ask = () => {
    const context = {
      now: scene.now,
      catalog: scene.catalog,
      ids: countedIds(99),
      balancesLeft: null,
      outbox: null,
    };
    const size = { quantity: null, count: null, inputTokens: null, inputCostCents: null };
    return decide(scene.state, "reserve", { event: "x.a", metadata: null, size, ttlMs: null }, context);
  };
  assert.deepEqual(ask(), ask());
  assert.deepEqual(scene.counts(), { g: 0 });
});
