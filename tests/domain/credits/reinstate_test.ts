// Reinstatement: what was revoked of a paid grant is granted again, once, with the expiry that it had.

import assert from "node:assert/strict";
import { amountOf } from "../../../src/domain/values/amount.ts";
import { packOf, Scene } from "../scene.ts";

const DAY_S = 86_400;
const item = (id: string, amount: number) => {
  return { id, label: id, unit: "count", amount, matches: [{ event: `${id}.*` }] } as const;
};
const PACKS = [
  packOf("bundle", {
    ...{ unit: undefined, matches: undefined, items: [item("one", 10), item("two", 5)] },
    defaultExpiryDays: 30,
  }),
];

/** A user with a bundle that was paid for. */
function sceneOf(): Scene {
  const scene = new Scene([], undefined, PACKS, { listensTo: ["*"] });
  scene.grant("bundle", null, { externalRef: "cs_1", paidPacks: 1 });
  return scene;
}
const refund = (scene: Scene, externalRef: string) => scene.ask("refund", { externalRef, reason: "Stripe" });
const back = (scene: Scene, dispute: string, earlier: readonly string[] = []) =>
  scene.left(
    ...scene.ask("reinstate", {
      externalRef: "cs_1",
      earlierRefs: earlier.map((id) => `cs_1:${id}`),
      newRef: `cs_1:${dispute}`,
    }).balanceIds,
  );

Deno.test("what was left comes back, once, with its expiry and a message", () => {
  const scene = sceneOf();
  scene.track(4, { event: "one.x" });
  refund(scene, "cs_1");
  const from = scene.messages.length;
  assert.deepEqual(back(scene.wait(10 * DAY_S), "dp_1"), [6, 5]);
  assert.deepEqual(scene.messages.slice(from).map(({ type }) => type), [
    "credits.granted",
    "credits.granted",
  ]);
  const changes = scene.changes.length;
  assert.deepEqual(back(scene, "dp_1"), [6, 5], "the same again");
  assert.deepEqual(scene.changes.slice(changes).filter(({ table }) => table !== "users"), []);
  const expiries = [...scene.state.balances.values()].map(({ expiresAt }) => expiresAt);
  assert.equal(new Set(expiries).size, 1);
});

// deno-fmt-ignore: a row a case
const ROWS: readonly (readonly [name: string, before: (scene: Scene) => void, left: readonly number[], earlier?: readonly string[]])[] = [
  ["nothing was revoked", () => {}, []],
  ["one item was used up", (scene) => { scene.track(10, { event: "one.x" }); refund(scene, "cs_1"); }, [5]],
  ["a hold gave some back later", (scene) => { const hold = scene.hold(2, { event: "two.x" }); refund(scene, "cs_1"); scene.release(hold); }, [10, 5]],
  ["a second dispute took it again", (scene) => { refund(scene, "cs_1"); back(scene, "dp_1"); scene.track(4, { event: "one.x" }); refund(scene, "cs_1:dp_1"); }, [6, 5], ["dp_1"]],
  ["an earlier one gave it back", (scene) => { refund(scene, "cs_1"); back(scene, "dp_1"); }, [], ["dp_1"]],
  ["a hold is open", (scene) => { scene.hold(2, { event: "two.x" }); refund(scene, "cs_1"); }, [10, 3]],
  ["a hold has all of it", (scene) => { scene.hold(5, { event: "two.x" }); refund(scene, "cs_1"); }, [10, 0]],
  ["it would have expired", (scene) => { refund(scene, "cs_1"); scene.wait(30 * DAY_S); }, []],
];

Deno.test("what comes back: a row a case", () => {
  for (const [name, before, left, earlier] of ROWS) {
    const scene = sceneOf();
    before(scene);
    assert.deepEqual(back(scene, "dp_2", earlier), left, name);
  }
});

Deno.test("what a hold took before the dispute comes back with what was revoked", () => {
  for (const [used, left] of [[0, 5], [3, 2], [5, 0]] as const) {
    const scene = sceneOf();
    const hold = scene.hold(4, { event: "two.x" });
    refund(scene, "cs_1");
    assert.deepEqual(back(scene, "dp_1"), [10, 1]);
    refund(scene, "cs_1:dp_1");
    assert.deepEqual(back(scene, "dp_2", ["dp_1"]), [10, 1], "a second dispute");
    if (used === 0) scene.release(hold);
    else scene.commit(hold, { actual: { count: used } });
    const balances = [...scene.state.balances.values()].filter(({ packItemId }) => packItemId === "two");
    const remaining = balances.reduce((sum, row) => sum + row.remaining, 0n);
    assert.equal(remaining, amountOf(left), `${used} used`);
    assert.deepEqual(balances.map(({ held }) => held), [0n, 0n, 0n]);
    refund(scene, "cs_1:dp_2");
    const again = left > 0 ? [10, left] : [10];
    assert.deepEqual(back(scene, "dp_3", ["dp_1", "dp_2"]), again, "a third dispute");
  }
});

Deno.test("the cap of balances in test mode holds for what comes back", () => {
  const scene = sceneOf();
  refund(scene, "cs_1");
  const input = { externalRef: "cs_1", earlierRefs: [], newRef: "cs_1:dp_1" };
  const { result } = scene.do("reinstate", input, 1);
  assert.equal(result.ok ? "ok" : result.refusal.code, "test_quota_exceeded");
  assert.equal(scene.do("reinstate", input, 2).result.ok, true);
});
