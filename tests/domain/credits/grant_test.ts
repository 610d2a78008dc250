// Grant and revoke: which balances a grant issues and on which terms, that a known reference issues nothing again, and
// what a revoke takes.

import assert from "node:assert/strict";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { packOf, Scene } from "../scene.ts";

const DAY_MS = 86_400_000;
const item = (id: string, amount: number) => {
  return { id, label: id, unit: "count", amount, matches: [{ event: `${id}.*` }] } as const;
};
const BUNDLE = packOf("cpk_bundle", {
  name: "Bundle",
  priority: 150,
  defaultExpiryDays: 90,
  unit: undefined,
  matches: undefined,
  items: [item("one", 10), item("two", 5)],
});
const WALLET = packOf("cpk_wallet", { name: "Wallet", kind: "generic" });
const OLD = packOf("cpk_old", { name: "Old", archived: true });
const PACKS = [BUNDLE, WALLET, OLD, packOf("cpk_topup", { name: "cpk_wallet" })];

const sceneOf = () => new Scene([], undefined, PACKS);

Deno.test("which pack, which amounts, which expiry: a row a grant", () => {
  const from = Date.parse("2026-03-10T12:00:00.000Z");
  type Balance = [item: string | null, amount: number, priority: number, expiresAt: number | null];
  // deno-fmt-ignore: a row a grant
  const rows: [name: string, args: Parameters<Scene["grant"]>, balances: Balance[] | string][] = [
    ["a balance for each item, by id", ["cpk_bundle"], [["one", 10, 150, from + 90 * DAY_MS], ["two", 5, 150, from + 90 * DAY_MS]]],
    ["by name in any case, quantity ignored", ["BUNDLE", "malformed", { expiresAt: null }], [["one", 10, 150, null], ["two", 5, 150, null]]],
    ["an id before another pack's name", ["cpk_wallet", 2.5], [[null, 2.5, 0, null]]],
    ["a name of another pack in another case", ["CPK_WALLET", 3], [[null, 3, 100, null]]],
    ["an expiry of its own", ["wallet", 1, { expiresAt: from + 1 }], [[null, 1, 0, from + 1]]],
    ["an expiry at this moment", ["wallet", 1, { expiresAt: from }], "invalid_request"],
    ["no such pack", ["cpk_none", 0, { expiresAt: 0 }], "credit_pack_not_found"],
    ["an archived pack", ["Old", 1], "credit_pack_not_found"],
    ["no quantity", ["wallet", null, { expiresAt: 0 }], "invalid_quantity"],
    ["a quantity of 0", ["wallet", 0], "invalid_quantity"],
    ["a quantity below 0", ["wallet", -1], "invalid_quantity"],
    ["an invalid quantity", ["wallet", "malformed"], "invalid_request"],
    ["the sandbox has room for all", ["cpk_bundle", null, { balancesLeft: 2 }], [["one", 10, 150, from + 90 * DAY_MS], ["two", 5, 150, from + 90 * DAY_MS]]],
    ["the sandbox has room for one of two", ["cpk_bundle", null, { balancesLeft: 1 }], "test_quota_exceeded"],
    ["the order of refusals ends with the sandbox", ["wallet", 1, { expiresAt: 0, balancesLeft: 0 }], "invalid_request"],
  ];
  for (const [name, args, expected] of rows) {
    const scene = sceneOf();
    const ids = scene.grant(...args);
    if (typeof expected === "string") {
      assert.deepEqual([ids, scene.changes], [[expected], []], name);
      continue;
    }
    const shown = ids.map((id) => scene.state.balances.get(id)).map((
      row,
    ) => [row?.packItemId, numberOf(row?.remaining ?? 0n), row?.priority, row?.expiresAt]);
    assert.deepEqual(shown, expected, name);
    assert.deepEqual(scene.ledger(), ids.map((id, place) => [id, expected[place]?.[1], "grant"]), name);
  }
});

Deno.test("a pack that expires past the year 9999 expires at its end", () => {
  for (const defaultExpiryDays of [1e7, 1e12, 1e300]) {
    const scene = new Scene([], undefined, [packOf("far", { defaultExpiryDays })]);
    const row = scene.state.balances.get(scene.fund("far", 1));
    assert.equal(row?.expiresAt, Date.parse("9999-12-31T23:59:59.999Z"));
  }
});

Deno.test("a known reference answers before every other check, also when pack or balances have ended", () => {
  const scene = sceneOf();
  const ids = scene.grant("cpk_bundle", null, { externalRef: "r" });
  const [one, two] = ids as [string, string];
  const written = scene.changes.length;
  const again = (pack = "cpk_bundle", more: Parameters<Scene["grant"]>[2] = {}) =>
    scene.grant(pack, 0, { externalRef: "r", expiresAt: 0, balancesLeft: 0, ...more });
  assert.deepEqual(again(), ids);
  assert.deepEqual(again("bundle"), ids, "by name");
  scene.catalog = compileCatalog({
    packs: [{ ...BUNDLE, archived: true, items: [item("two", 1), item("one", 1)] }],
  }, 2);
  assert.deepEqual(again(), [two, one], "archived, in the present order of its items");
  scene.catalog = compileCatalog({}, 3);
  assert.deepEqual([again(), again("BUNDLE")], [ids, ids], "removed");
  assert.equal(scene.changes.length, written, "nothing is written");
  scene.catalog = compileCatalog({ packs: PACKS }, 4);
  scene.revoke(one);
  scene.wait(91 * 86_400);
  assert.deepEqual(again(), ids, "revoked and expired");
  assert.deepEqual(scene.grant("cpk_bundle", null, { externalRef: "R" }).length, 2, "exact");
  assert.notDeepEqual(scene.grant("cpk_wallet", 1, { externalRef: "r" }), ids, "of its pack");
});

Deno.test("without a reference every call grants anew, and a balance keeps the terms of its grant", () => {
  const scene = sceneOf();
  const first = scene.fund("wallet", 5, { source: "manual", notes: "thanks" });
  assert.notEqual(scene.fund("wallet", 5), first);
  scene.catalog = compileCatalog({ packs: [{ ...WALLET, name: "Purse", priority: 7, unit: "tokens" }] }, 2);
  const { row, packName } = scene.ask("credits", { event: null }).balances[0] ?? {};
  assert.deepEqual([row?.unit, row?.priority, row?.source, row?.notes, packName], [
    "count",
    0,
    "manual",
    "thanks",
    "Purse",
  ]);
});

Deno.test("a revoke takes what is left, a second one writes a row of 0, and an unknown balance is refused", () => {
  const scene = sceneOf();
  const id = scene.fund("wallet", 5);
  scene.track(2);
  const at = scene.now;
  assert.equal(scene.revoke(id, "refund"), "ok");
  scene.wait(5);
  assert.equal(scene.revoke(id, "again"), "ok");
  assert.deepEqual(scene.ledger(2), [[id, -3, "admin_adjust"], [id, 0, "admin_adjust"]]);
  const notes = scene.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row.notes] : []);
  assert.deepEqual(notes.slice(-2), ["refund", "again"]);
  const row = scene.state.balances.get(id);
  assert.deepEqual([row?.remaining, row?.revokedAmount, row?.revokedAt], [0n, 3_000_000n, at]);
  assert.equal(scene.revoke("crb_7_00000000000000000099"), "credit_balance_not_found");
  assert.equal(scene.operations, 1, "the tracked event: neither grant nor revoke is a metering operation");
});
