// Aliases and credits: balances move with a ledger row each, two copies of one grant become one that pays for what both
// used, and what was held, revoked or expired stays exact.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { Town } from "./alias_support.ts";

const service = serviceOfFile();

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

const EVENT = "free.x";
const REF = { externalRef: "order-1" };

async function balanceOf(town: Town, userId: string, id: string): Promise<Data> {
  const row = (await town.credits(userId)).find(({ balanceId }) => balanceId === id);
  return [row?.remaining, row?.status];
}

/** The rows that the last merge wrote, oldest first. */
async function mergeRows(town: Town, userId: string): Promise<[string, number, string][]> {
  const rows = (await town.ledger(userId)).filter(({ reason }) => reason.startsWith("merge"));
  for (const row of rows) {
    assert.deepEqual([row.eventId, row.reservationId, row.notes], [null, null, null]);
    assert.equal(row.occurredAt, new Date(service.clock.now()).toISOString());
  }
  return rows.reverse().map(({ balanceId, delta, reason }) => [balanceId, delta, reason]);
}

Deno.test("balances in any state move, each with one ledger row of 0 that is billed, and keep their state", async () => {
  const town = await Town.open(service);
  const active = await town.grant("a", 5);
  const depleted = await town.grant("a", 2, { packId: "cpk_other", expiresAt: "2031-01-01T00:00:00Z" });
  await town.track("a", EVENT, { count: 2 });
  const revoked = await town.grant("a", 7);
  await dataOf(town.ask("POST", "/credits/revoke", { balanceId: revoked }));
  const expired = await town.grant("a", 9, { expiresAt: new Date(service.clock.now() + 1000).toISOString() });
  const own = await town.grant("b", 3);
  await town.pass(2);
  const report = await town.merge("a", "b");
  assert.deepEqual([report.billableOperations, report.moved.creditBalances], [4, 4]);
  assert.deepEqual(report.conflicts.credits, []);
  assert.deepEqual(
    await mergeRows(town, "b"),
    [active, depleted, revoked, expired].sort().map((id) => [id, 0, "merged_from_alias"]),
  );
  for (const user of ["a", "b"]) {
    assert.deepEqual(await balanceOf(town, user, active), [5, "active"]);
    assert.deepEqual(await balanceOf(town, user, depleted), [0, "depleted"]);
    assert.deepEqual(await balanceOf(town, user, revoked), [0, "revoked"]);
    assert.deepEqual(await balanceOf(town, user, expired), [9, "expired"]);
  }
  await town.track("a", EVENT, { count: 8 });
  assert.deepEqual([await balanceOf(town, "b", active), await balanceOf(town, "a", own)], [[0, "depleted"], [
    0,
    "depleted",
  ]]);
  assertRefused(
    await town.ask("POST", "/credits/revoke", { balanceId: "crb_1_x" }),
    404,
    "credit_balance_not_found",
  );
  await dataOf(town.ask("POST", "/credits/revoke", { balanceId: active }));
  const { entries } = await town.get(`/credits/history?userId=b&balanceId=${active}`);
  assert.equal(entries[0].reason, "admin_adjust");
});

for (const isRestarted of [false, true]) {
  Deno.test(`two copies of one grant become one that both have used${isRestarted ? ", from the tables" : ""}`, async () => {
    const town = await Town.open(service);
    const [ofA, ofB] = [await town.grant("a", 10, REF), await town.grant("b", 10, REF)];
    await town.track("a", EVENT, { count: 3 });
    await town.track("b", EVENT, { count: 4 });
    if (isRestarted) await service.restart();
    const report = await town.merge("a", "b");
    assert.deepEqual(report.conflicts.credits, [
      { externalRef: "order-1", survivorId: ofB, droppedId: ofA, remaining: 3, overage: 0 },
    ]);
    assert.deepEqual([report.billableOperations, report.moved.creditBalances], [2, 1]);
    assert.deepEqual(await mergeRows(town, "a"), [[ofB, -3, "merge_dedupe"], [ofA, -7, "merge_dedupe"]]);
    assert.deepEqual(await balanceOf(town, "a", ofB), [3, "active"]);
    assert.deepEqual(await balanceOf(town, "a", ofA), [0, "revoked"]);
    if (isRestarted) await service.restart();
    for (const user of ["a", "b"]) {
      const again = await town.post("/credits/grant", {
        userId: user,
        packId: "cpk_credits",
        quantity: 10,
        ...REF,
      });
      assert.deepEqual([again.balanceId, again.remaining, again.balances.length], [ofB, 3, 1]);
    }
    const blocked = await town.post("/reserve", { userId: "a", event: EVENT, count: 4 });
    assert.equal(blocked.allowed, false, "credits are not fresh after a merge");
  });
}

Deno.test("what two copies used beyond one grant is overage, and refunds reduce it first", async () => {
  const town = await Town.open(service);
  const [ofA, ofB] = [await town.grant("a", 10, REF), await town.grant("b", 10, REF)];
  await town.track("a", EVENT, { count: 5 });
  const held = await town.hold("a", EVENT, { count: 4 });
  const kept = await town.hold("b", EVENT, { count: 6 });
  const report = await town.merge("a", "b");
  assert.deepEqual(report.conflicts.credits[0], {
    externalRef: "order-1",
    survivorId: ofB,
    droppedId: ofA,
    remaining: 0,
    overage: 5,
  });
  assert.equal(report.moved.reservations, 1);
  assert.deepEqual(await balanceOf(town, "a", ofB), [0, "depleted"]);
  // 4 come back: all of it is overage.
  await town.post("/release", { reservationId: held });
  assert.deepEqual(await balanceOf(town, "a", ofB), [0, "depleted"]);
  const [adjust, refund] = (await town.ledger("a")).slice(0, 2);
  assert.deepEqual([refund.reason, refund.delta, refund.balanceId], ["reservation_released", 4, ofB]);
  assert.deepEqual([adjust.reason, adjust.delta, adjust.balanceId], ["admin_adjust", -4, ofB]);
  // 3 of 6 come back: one is overage, two can be spent.
  await town.post("/commit", { reservationId: kept, actual: { count: 3 } });
  assert.deepEqual(await balanceOf(town, "a", ofB), [2, "active"]);
  assert.deepEqual(await balanceOf(town, "b", ofA), [0, "revoked"]);
  await town.track("b", EVENT, { count: 2 });
  assert.deepEqual(await balanceOf(town, "a", ofB), [0, "depleted"]);
});

Deno.test("holds on a copy that was closed settle on the survivor: exact, more, less, lapsed and late", async () => {
  const town = await Town.open(service);
  const [ofA, ofB] = [await town.grant("a", 100, REF), await town.grant("b", 100, REF)];
  const holds: string[] = [];
  for (let made = 0; made < 5; made++) holds.push(await town.hold("a", EVENT, { count: 10 }));
  const report = await town.merge("a", "b");
  assert.deepEqual(report.conflicts.credits[0].remaining, 50);
  await service.restart();
  const [exact, more, less, released, lapsed] = holds;
  const left = async () => (await balanceOf(town, "a", ofB))[0];
  await town.post("/commit", { reservationId: exact });
  assert.equal(await left(), 50);
  await town.post("/commit", { reservationId: more, extra: { count: 5 } });
  assert.equal(await left(), 45);
  await town.post("/commit", { reservationId: less, actual: { count: 4 } });
  assert.equal(await left(), 51);
  await town.post("/release", { reservationId: released });
  assert.equal(await left(), 61);
  await town.pass(601);
  assert.equal(await left(), 71);
  assert.equal((await town.post("/commit", { reservationId: lapsed })).recharged, true);
  assert.equal(await left(), 61);
  assert.deepEqual(await balanceOf(town, "a", ofA), [0, "revoked"]);
});

for (const side of ["a", "b"]) {
  Deno.test(`a copy that was revoked at ${side === "a" ? "the alias" : "the canonical user"} revokes the survivor`, async () => {
    const town = await Town.open(service);
    const ids = { a: await town.grant("a", 10, REF), b: await town.grant("b", 10, REF) };
    await town.track("a", EVENT, { count: 2 });
    const held = await town.hold(side === "a" ? "b" : "a", EVENT, { count: 3 });
    await dataOf(
      town.ask("POST", "/credits/revoke", { balanceId: ids[side as "a" | "b"], reason: "refund" }),
    );
    const report = await town.merge("a", "b");
    const { remaining, overage, survivorId } = report.conflicts.credits[0];
    assert.deepEqual([remaining, overage, survivorId], [0, 0, ids.b]);
    for (const id of [ids.a, ids.b]) assert.deepEqual(await balanceOf(town, "b", id), [0, "revoked"]);
    await town.post("/release", { reservationId: held });
    for (const id of [ids.a, ids.b]) assert.deepEqual(await balanceOf(town, "b", id), [0, "revoked"]);
    const again = await town.post("/credits/grant", {
      userId: "a",
      packId: "cpk_credits",
      quantity: 10,
      ...REF,
    });
    assert.deepEqual([again.balanceId, again.remaining], [ids.b, 0]);
  });
}

Deno.test("an active copy survives an expired one, whichever side it comes from", async () => {
  for (const expiring of ["a", "b"]) {
    const town = await Town.open(service);
    const expiresAt = new Date(service.clock.now() + 1000).toISOString();
    const ids: Record<string, string> = {};
    for (const user of ["a", "b"]) {
      ids[user] = await town.grant(user, 10, { ...REF, ...(user === expiring ? { expiresAt } : {}) });
      await town.track(user, EVENT, { count: user === "a" ? 2 : 3 });
    }
    await town.pass(2);
    const report = await town.merge("a", "b");
    const [survivor, dropped] = expiring === "b" ? [ids.a, ids.b] : [ids.b, ids.a];
    const { survivorId, droppedId, remaining } = report.conflicts.credits[0];
    assert.deepEqual([survivorId, droppedId, remaining], [survivor, dropped, 5]);
    assert.deepEqual(await balanceOf(town, "a", survivor as string), [5, "active"]);
    const rows = await mergeRows(town, "b");
    const moved = expiring === "b" ? [[survivor, 0, "merged_from_alias"]] : [];
    const deltas = expiring === "b" ? [-3, -7] : [-2, -8];
    assert.deepEqual(rows, [...moved, [survivor, deltas[0], "merge_dedupe"], [
      dropped,
      deltas[1],
      "merge_dedupe",
    ]]);
    assert.equal(report.billableOperations, rows.length);
    await town.track("a", EVENT, { count: 5 });
    assert.deepEqual(await balanceOf(town, "b", survivor as string), [0, "depleted"]);
  }
});

Deno.test("only the same pack, item and reference is a copy; a bundle is one item by item", async () => {
  const town = await Town.open(service);
  const bundle = (userId: string, externalRef: string | null) =>
    town.post("/credits/grant", { userId, packId: "cpk_bundle", externalRef });
  const [ofA, ofB] = [await bundle("a", "r"), await bundle("b", "r")];
  await bundle("a", null);
  await bundle("b", null);
  await town.grant("a", 1, { externalRef: "r" });
  await town.grant("b", 1, { externalRef: "r", packId: "cpk_other" });
  await town.grant("b", 1, { externalRef: "R" });
  const report = await town.merge("a", "b");
  const pairs = report.conflicts.credits.map((row: Data) => [row.survivorId, row.droppedId]);
  const idOf = (grant: Data, item: string) =>
    grant.balances.find((row: Data) => row.packItemId === item).balanceId;
  assert.deepEqual(
    pairs.sort(),
    ["cpi_one", "cpi_two"].map((item) => [idOf(ofB, item), idOf(ofA, item)]).sort(),
  );
  assert.deepEqual([report.moved.creditBalances, report.billableOperations], [5, 3 + 2 * 2]);
  const again = await bundle("a", "r");
  assert.deepEqual(
    again.balances.map((row: Data) => row.balanceId),
    ofB.balances.map((row: Data) => row.balanceId),
  );
});

Deno.test("a copy that was closed is never a copy again: a third merge meets the survivor alone", async () => {
  const town = await Town.open(service);
  const ids: Record<string, string> = {};
  for (const [place, user] of ["a", "b", "c"].entries()) {
    ids[user] = await town.grant(user, 10, REF);
    await town.track(user, EVENT, { count: place + 1 });
  }
  await town.merge("a", "b");
  const report = await town.merge("b", "c");
  assert.deepEqual(report.conflicts.credits, [
    { externalRef: "order-1", survivorId: ids.c, droppedId: ids.b, remaining: 4, overage: 0 },
  ]);
  // The copy that the first merge closed moves like any other balance.
  assert.deepEqual([report.moved.creditBalances, report.billableOperations], [2, 1 + 2]);
  for (const user of ["a", "b", "c"]) {
    assert.deepEqual(await balanceOf(town, user, ids.c as string), [4, "active"]);
  }
});

Deno.test("in test mode the cap on issued balances does not stop a merge, and a merge issues none", async () => {
  const town = await Town.open(service, { testCreditBalanceCap: 3 }, "test");
  await town.grant("a", 1, REF);
  await town.grant("a", 1);
  await town.grant("b", 1, REF);
  const report = await town.merge("a", "b");
  assert.equal(report.moved.creditBalances, 2);
  const grant = await town.ask("POST", "/credits/grant", { userId: "a", packId: "cpk_credits", quantity: 1 });
  assertRefused(grant, 429, "test_quota_exceeded");
  await service.admin("PATCH", `/workspaces/${town.app.workspaceId}`, { testCreditBalanceCap: 4 });
  await town.grant("a", 1);
});
