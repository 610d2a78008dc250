// Extend: which new expiries are taken, the new place of the balance in the order, and that every expiry is
// reported.

import assert from "node:assert/strict";
import { compareBalances, NOTIFIED } from "../../../src/domain/state/credit.ts";
import { packOf, Scene } from "../scene.ts";

const HOUR_MS = 3_600_000;
const extend = (scene: Scene, balanceId: string, expiresAt: number | null) =>
  scene.code("extend", { balanceId, expiresAt, reason: null });

const WALLET = packOf("cpk_wallet", { name: "Wallet", kind: "generic" });

Deno.test("which expiries a balance takes: a row a case", () => {
  const later = 5 * HOUR_MS;
  // Both in milliseconds from the grant; the call comes an hour after it.
  const rows: [name: string, before: number | null, after: number | null, expected: string][] = [
    ["a later one", later, later + 1, "ok"],
    ["none any more", later, null, "ok"],
    ["the same", later, later, "ok"],
    ["none, where it has none", null, null, "ok"],
    ["an earlier one", later, later - 1, "invalid_request"],
    ["one, where it has none", null, later, "invalid_request"],
    ["what has expired, to later", 1, later, "ok"],
    ["what has expired, to none", 1, null, "ok"],
    ["what has expired, to now", 1, HOUR_MS, "invalid_request"],
    ["what has expired, to the past", 1, 2, "invalid_request"],
  ];
  for (const [name, before, after, expected] of rows) {
    const scene = new Scene([], undefined, [WALLET]);
    const from = scene.now;
    const moment = (offset: number | null) => offset === null ? null : from + offset;
    const id = scene.fund("wallet", 5, { expiresAt: moment(before) });
    scene.wait(3600);
    const entries = scene.ledger().length;
    assert.equal(extend(scene, id, moment(after)), expected, name);
    const isChanged = expected === "ok" && before !== after;
    assert.equal(scene.state.balances.get(id)?.expiresAt, moment(isChanged ? after : before), name);
    assert.deepEqual(scene.ledger().slice(entries), isChanged ? [[id, 0, "admin_adjust"]] : [], name);
  }
});

Deno.test("a revoked balance and an unknown one are refused", () => {
  const scene = new Scene([], undefined, [WALLET]);
  const id = scene.fund("wallet", 5);
  scene.revoke(id);
  assert.equal(extend(scene, id, null), "invalid_request");
  assert.equal(extend(scene, "crb_7_00000000000000000099", null), "credit_balance_not_found");
});

Deno.test("an extended balance is spent at the place of its new expiry, and the others stay where they were", () => {
  const scene = new Scene([], undefined, [WALLET]);
  const ids = [1, 2, 3, 4].map((hours) =>
    scene.fund("wallet", 1, { expiresAt: scene.now + hours * HOUR_MS })
  ) as [string, string, string, string];
  assert.equal(extend(scene, ids[0], scene.now + 3.5 * HOUR_MS), "ok");
  assert.equal(extend(scene, ids[1], null), "ok");
  const { balanceOrder } = scene.state;
  assert.deepEqual(balanceOrder.map(({ id }) => id), [ids[2], ids[0], ids[3], ids[1]]);
  assert.deepEqual(balanceOrder, balanceOrder.toSorted(compareBalances));
  scene.track(2);
  assert.deepEqual(scene.left(...ids), [0, 1, 0, 1]);
});

Deno.test("what had expired can be spent again, and its new expiry is settled as the first one was", () => {
  const scene = new Scene([], undefined, [WALLET]);
  const id = scene.fund("wallet", 5, { expiresAt: scene.now + HOUR_MS });
  const notified = () => (scene.state.balances.get(id)?.notified ?? 0) & NOTIFIED.expired;
  scene.wait(3600);
  scene.left(id);
  assert.equal(notified(), NOTIFIED.expired);
  assert.equal(extend(scene, id, scene.now + HOUR_MS), "ok");
  assert.equal(notified(), 0);
  scene.track(2);
  assert.deepEqual(scene.left(id), [3]);
  scene.wait(3600);
  scene.left(id);
  assert.equal(notified(), NOTIFIED.expired);
});
