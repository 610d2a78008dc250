// Balances: their status and what a list shows.

import assert from "node:assert/strict";
import {
  type CreditBalance,
  isSpendable,
  listBalances,
  packNameOf,
  statusOf,
} from "../../../src/domain/state/credit.ts";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { packOf, Scene } from "../scene.ts";

function balanceOf(more: Partial<CreditBalance> = {}): CreditBalance {
  const scene = new Scene([], undefined, [packOf("a", { matches: [{ event: "x.*" }, { event: "y" }] })]);
  return { ...scene.state.balances.get(scene.fund("a", 5)) as CreditBalance, ...more };
}

Deno.test("a status follows from amounts and the moment: revoked before expired before depleted before active", () => {
  const rows: [more: Partial<CreditBalance>, status: string][] = [
    [{}, "active"],
    [{ remaining: 0n }, "depleted"],
    [{ remaining: 0n, held: 5_000_000n }, "depleted"],
    [{ expiresAt: 101 }, "active"],
    [{ expiresAt: 100 }, "expired"],
    [{ expiresAt: 100, remaining: 0n }, "expired"],
    [{ expiresAt: 100, revokedAt: 1 }, "revoked"],
    [{ remaining: 0n, revokedAt: 1 }, "revoked"],
  ];
  for (const [more, status] of rows) {
    const row = balanceOf(more);
    assert.equal(statusOf(row, 100), status);
    assert.equal(isSpendable(row, "x.a", null, 100), status === "active");
  }
});

Deno.test("a list shows active and depleted ones, with includeExpired all, and a filter looks at names alone", () => {
  const rows = [
    balanceOf({ id: "a" }),
    balanceOf({ id: "b", remaining: 0n }),
    balanceOf({ id: "c", expiresAt: 1 }),
    balanceOf({ id: "d", revokedAt: 1 }),
    balanceOf({ id: "e", matches: [{ event: "*" }] }),
    balanceOf({ id: "f", matches: [{ event: "x.a", metadata: { k: "v" } }] }),
  ];
  const cases: [event: string | null, includeExpired: boolean, ids: string][] = [
    [null, false, "abef"],
    [null, true, "cabdef"],
    ["x.a", false, "abef"],
    ["x.b", false, "abe"],
    ["x.*", false, "abe"],
    ["x.a*", false, "abe"],
    ["y", false, "abe"],
    ["x*", false, "e"],
    ["X.a", false, "e"],
    ["*", true, "e"],
  ];
  for (const [event, includeExpired, ids] of cases) {
    const shown = listBalances(rows, { event, includeExpired }, 100).map(({ id }) => id).join("");
    assert.equal(shown, ids, `${event} ${includeExpired}`);
  }
});

Deno.test("credits and usage show the balances that an event's name selects", () => {
  const ruled = (id: string, ...matches: { event: string; metadata?: Record<string, string> }[]) =>
    packOf(id, { matches });
  const packs = [
    ruled("wallet", { event: "x.*" }),
    ruled("narrow", { event: "x.make", metadata: { size: "5" } }, { event: "z" }),
    ruled("talk", { event: "chat" }),
  ];
  const scene = new Scene([], undefined, packs);
  for (const { id } of packs) scene.fund(id, 1);
  scene.track(1);
  scene.revoke(scene.fund("wallet", 1));
  const rows: [event: string | null, packs: string][] = [
    [null, "wallet narrow talk"],
    ["x.make", "wallet narrow"],
    ["x.*", "wallet"],
    ["*", ""],
    ["z", "narrow"],
  ];
  for (const [event, shown] of rows) {
    const { balances } = scene.ask("credits", { event });
    assert.equal(balances.map(({ row }) => row.packId).join(" "), shown);
    assert.deepEqual(scene.ask("usage", { event }).credits.balances, balances);
  }
});

Deno.test("a pack's name is its present one, else that of the grant", () => {
  const row = balanceOf();
  assert.equal(packNameOf(compileCatalog({ packs: [packOf("a", { name: "New" })] }, 2), row), "New");
  assert.equal(packNameOf(compileCatalog({}, 2), row), "a");
});
