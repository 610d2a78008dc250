// The wallet: in which order balances are drained, by whom they may be spent, and what a movement does to each.

import assert from "node:assert/strict";
import { compareBalances } from "../../../src/domain/state/credit.ts";
import { packOf, PACKS, planOf, Scene } from "../scene.ts";

Deno.test("balances are drained by priority, then expiry, then grant time, then id, several for one need", () => {
  const scene = new Scene([], undefined, PACKS);
  const inHours = (hours: number) => ({ expiresAt: scene.now + hours * 3_600_000 });
  const wallet = scene.fund("wallet", 5, inHours(1));
  const evergreen = scene.fund("count", 4);
  const later = scene.fund("count", 3, inHours(48));
  const twin = scene.fund("count", 2);
  const first = scene.fund("first", 2);
  const soon = scene.fund("count", 3, inHours(24));
  scene.now += 1;
  const young = scene.fund("count", 1);
  const order = [first, soon, later, evergreen, twin, young, wallet];
  assert.deepEqual(scene.state.balanceOrder.map(({ id }) => id), order);
  const sorted = [...scene.state.balances.values()].reverse().sort(compareBalances);
  assert.deepEqual(sorted.map(({ id }) => id), order, "a total order");
  const left = [2, 3, 3, 4, 2, 1, 5];
  for (const count of [1, 3.5, 1.5, 0.25, 6.75, 7]) {
    const rows: [string, number, string][] = [];
    let need = count;
    order.forEach((id, place) => {
      const taken = Math.min(need, left[place] as number);
      if (taken > 0) rows.push([id, -taken, "reservation_held"]);
      left[place] = (left[place] as number) - taken;
      need -= taken;
    });
    scene.hold(count);
    assert.deepEqual(scene.left(...order), left, `after ${count}`);
    assert.deepEqual(scene.ledger(rows.length), rows);
  }
  assert.equal(scene.reason(1), "no_subscription");
});

Deno.test("a balance pays only for events and metadata that a rule of its item covers, while it is active", () => {
  const flux = { model: "flux" };
  const pack = packOf("bundle", {
    unit: undefined,
    matches: undefined,
    items: [{
      id: "i",
      label: "I",
      unit: "count",
      amount: 5,
      matches: [{ event: "x.render", metadata: flux }],
    }],
  });
  const rows: [
    name: string,
    event: string,
    metadata: Record<string, unknown>,
    prepare: (scene: Scene, id: string) => void,
    answer: string,
  ][] = [
    ["covered", "x.render", { ...flux, size: 1 }, () => {}, "ok"],
    ["another event", "x.other", flux, () => {}, "no_subscription"],
    ["no metadata", "x.render", {}, () => {}, "no_subscription"],
    ["other metadata", "x.render", { model: ["flux"] }, () => {}, "no_subscription"],
    ["revoked", "x.render", flux, (scene, id) => void scene.revoke(id), "no_subscription"],
    ["a millisecond before its end", "x.render", flux, (scene) => void scene.wait(59.999), "ok"],
    ["at its end", "x.render", flux, (scene) => void scene.wait(60), "no_subscription"],
  ];
  for (const [name, event, metadata, prepare, answer] of rows) {
    const scene = new Scene([], undefined, [pack]);
    const [id] = scene.grant("bundle", null, { expiresAt: scene.now + 60_000 });
    prepare(scene, id as string);
    assert.equal(scene.reason(5, { event, metadata }), answer, name);
  }
});

Deno.test("depleted by use, active again by a refund", () => {
  const scene = new Scene([planOf("p", { g: 0 })], undefined, PACKS);
  scene.subscribe("p");
  scene.fund("count", 2);
  const statuses = () => scene.ask("credits", { event: null }).balances.map(({ row }) => row.remaining);
  const id = scene.hold(2);
  assert.deepEqual(statuses(), [0n]);
  scene.release(id);
  assert.deepEqual(statuses(), [2_000_000n]);
});
