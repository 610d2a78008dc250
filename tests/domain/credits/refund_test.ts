// Refund: every balance of a paid grant goes, once, whatever was used of it; and how much a paid grant gives.

import assert from "node:assert/strict";
import { packOf, Scene } from "../scene.ts";

const item = (id: string, amount: number) => {
  return { id, label: id, unit: "count", amount, matches: [{ event: `${id}.*` }] } as const;
};
const BUNDLE = packOf("bundle", {
  unit: undefined,
  matches: undefined,
  items: [item("one", 10), item("two", 5)],
});
const PACKS = [BUNDLE, packOf("wallet"), packOf("old", { archived: true }), {
  ...BUNDLE,
  id: "huge",
  name: "huge",
  items: [item("one", 1e12)],
}];
const sceneOf = () => new Scene([], undefined, PACKS, { listensTo: ["*"] });
const refund = (scene: Scene, externalRef: string) =>
  scene.ask("refund", { externalRef, reason: "Stripe: the payment was refunded" }).balanceIds;

Deno.test("a refund ends every balance of its reference, and a second one writes nothing", () => {
  const scene = sceneOf();
  const bundle = scene.grant("bundle", null, { externalRef: "cs_1", paidPacks: 1 });
  const other = scene.fund("wallet", 3, { externalRef: "cs_2" });
  scene.track(4, { event: "one.x" });
  const hold = scene.hold(2, { event: "two.x" });
  const from = { ledger: scene.ledger().length, messages: scene.messages.length };
  assert.deepEqual(refund(scene, "cs_1"), [...bundle].sort());
  assert.deepEqual(scene.left(...bundle, other), [0, 0, 3]);
  assert.deepEqual(scene.ledger().slice(from.ledger).map(([, delta, reason]) => [delta, reason]), [
    [-6, "admin_adjust"],
    [-3, "admin_adjust"],
  ]);
  const told = scene.messages.slice(from.messages);
  assert.deepEqual(told.map(({ type }) => type), ["credits.revoked", "credits.revoked"]);
  const changes = scene.changes.length;
  assert.deepEqual(refund(scene, "cs_1"), [...bundle].sort());
  assert.deepEqual(scene.changes.slice(changes).filter(({ table }) => table !== "users"), []);
  assert.equal(scene.release(hold), "ok");
  assert.deepEqual(scene.left(...bundle), [0, 0], "what a hold gives back goes too");
});

Deno.test("a refund of nothing that this user has changes nothing", () => {
  const scene = sceneOf();
  scene.fund("wallet", 3);
  const changes = scene.changes.length;
  assert.deepEqual(refund(scene, "cs_1"), []);
  assert.equal(scene.changes.length, changes);
});

// deno-fmt-ignore: a row a grant
const PAID: readonly (readonly [name: string, pack: string, packs: number, quantity: number | null, left: readonly number[] | string])[] = [
  ["one", "bundle", 1, null, [10, 5]],
  ["three: each item three times", "bundle", 3, null, [30, 15]],
  ["units of a pack without items", "wallet", 1, 40, [40]],
  ["an archived pack", "old", 1, 2, [2]],
  ["as much as an amount may be", "huge", 1, null, [1e12]],
  ["more than an amount may be", "huge", 2, null, "invalid_quantity"],
  ["no such pack", "none", 1, null, "credit_pack_not_found"],
];

Deno.test("what a paid grant gives: a row a purchase", () => {
  for (const [name, pack, paidPacks, quantity, left] of PAID) {
    const scene = sceneOf();
    const grant = () => scene.grant(pack, quantity, { externalRef: "il_1", paidPacks });
    const ids = grant();
    assert.deepEqual(typeof left === "string" ? ids[0] : scene.left(...ids), left, name);
    if (typeof left === "string") continue;
    assert.deepEqual(grant(), ids, `${name}, again`);
    assert.deepEqual(scene.messages.map(({ type }) => type), left.map(() => "credits.granted"), name);
  }
});
