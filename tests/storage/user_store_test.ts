// Loads: live rows of many users, and the older windows that overdue settlements still need.

import assert from "node:assert/strict";
import type { CreditBalance } from "../../src/domain/state/credit.ts";
import { emptyOverage, type OverageWindow, settledMore } from "../../src/domain/state/overage.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { balance, counter, DAY_MS, NOW, reservation, subscription, user, withWriter } from "./sample.ts";

const OLD = { windowStart: NOW - 40 * DAY_MS, windowEnd: NOW - 30 * DAY_MS };

const OF_GROUP = { groupId: "g", unit: "count" } as const;

const NOTHING = { reservations: [], counters: [], balances: [] };

Deno.test("many users load in one call, by key and by id, each in its place", () =>
  withWriter(async ({ store, write }) => {
    await write([1, 2, 3].flatMap((key) => [
      { verb: "put", table: "users", row: user({ key, id: `u${key}`, realm: key === 3 ? 2 : 1 }) },
      { verb: "append", table: "subscriptions", row: subscription({ id: `sub_${key}`, userKey: key }) },
      { verb: "put", table: "counters", row: counter({ userKey: key, count: BigInt(key) }) },
    ]));
    const loaded = await openUserStore(store.database).load([
      { realm: 1, key: 2 },
      { realm: 1, id: "u1" },
      { realm: 1, id: "unknown" },
      { realm: 2, id: "u3" },
      { realm: 1, id: "u3" },
      { realm: 1, key: 99 },
      { realm: 1, id: "u2" },
      { realm: 1, key: 3 },
      { realm: 2, key: 3 },
    ], NOW);
    assert.deepEqual(loaded.map((rows) => rows?.user.key ?? null), [2, 1, null, 3, null, null, 2, null, 3]);
    for (const rows of loaded) {
      if (rows === null) continue;
      const { key } = rows.user;
      assert.deepEqual(rows.counters.map(({ userKey, count }) => [userKey, count]), [[key, BigInt(key)]]);
      assert.deepEqual(rows.subscriptions.map(({ id }) => id), [`sub_${key}`]);
    }
    assert.deepEqual(await openUserStore(store.database).load([], NOW), []);
  }));

Deno.test("a load contains running and unlimited windows, not ended ones", () =>
  withWriter(async ({ store, write }) => {
    await write([
      { verb: "put", table: "users", row: user() },
      { verb: "put", table: "counters", row: counter() },
      { verb: "put", table: "counters", row: counter({ groupId: "old", ...OLD }) },
      { verb: "put", table: "counters", row: counter({ groupId: "just over", windowEnd: NOW }) },
      { verb: "put", table: "counters", row: counter({ groupId: "lifetime", windowEnd: null }) },
      { verb: "append", table: "reservations", row: reservation() },
      {
        verb: "append",
        table: "reservations",
        row: reservation({ id: "rsv_old", status: "released", settledAt: NOW }),
      },
    ]);
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.counters.map(({ groupId }) => groupId).sort(), ["g", "lifetime"]);
    assert.deepEqual(loaded?.reservations, [reservation()]);
  }));

Deno.test("the window in which an open hold was taken is loaded, however long ago it ended", () =>
  withWriter(async ({ store, write }) => {
    await write([
      { verb: "put", table: "users", row: user({ dueAt: NOW + DAY_MS }) },
      { verb: "put", table: "counters", row: counter({ groupId: "old", ...OLD }) },
      {
        verb: "append",
        table: "reservations",
        row: reservation({ createdAt: OLD.windowEnd - 1, expiresAt: NOW + DAY_MS }),
      },
    ]);
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.counters.map(({ groupId }) => groupId), ["old"]);
  }));

Deno.test("windows of overage that begin together are rows of their own, and loaded while they run", () =>
  withWriter(async ({ store, write }) => {
    const sold = [NOW - 1, NOW + DAY_MS, null].map((end) =>
      settledMore(emptyOverage(1, { ...OF_GROUP, window: { start: NOW - DAY_MS, end } }), 1n, NOW - DAY_MS)
    );
    const put = (row: OverageWindow) => ({ verb: "put", table: "overage_windows", row } as const);
    await write([{ verb: "put", table: "users", row: user() }, ...sold.map(put)]);
    const told = sold.map((row) => ({ ...row, pending: 0n, dueAt: null }));
    await write(told.map(put));
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.overages, told.slice(1));
  }));

Deno.test("the window in which a subscription ended is loaded until that end is settled", () =>
  withWriter(async ({ store, write }) => {
    await write([
      { verb: "put", table: "users", row: user({ dueAt: OLD.windowEnd - 1 }) },
      { verb: "put", table: "users", row: user({ key: 2, id: "other" }) },
      { verb: "append", table: "subscriptions", row: subscription({ endsAt: OLD.windowEnd - 1 }) },
      { verb: "put", table: "counters", row: counter({ groupId: "old", ...OLD }) },
    ]);
    const users = openUserStore(store.database);
    const [, loaded] = await users.load([{ realm: 1, key: 2 }, { realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.counters.map(({ groupId }) => groupId), ["old"]);
  }));

Deno.test("a settled reservation is loaded by its owner alone, with the counters of its lines", () =>
  withWriter(async ({ store, write }) => {
    const line = {
      planId: "plan_a",
      groupId: "old",
      window: { start: OLD.windowStart, end: OLD.windowEnd },
      unit: "count",
      taken: 1n,
    } as const;
    const expired = reservation({ status: "expired", settledAt: NOW, lines: [line] });
    await write([
      { verb: "put", table: "users", row: user() },
      { verb: "append", table: "reservations", row: expired },
      { verb: "put", table: "counters", row: counter({ groupId: "old", ...OLD }) },
      { verb: "put", table: "counters", row: counter({ groupId: "old", userKey: 2, ...OLD }) },
      { verb: "put", table: "counters", row: counter() },
    ]);
    const users = openUserStore(store.database);
    assert.deepEqual(await users.loadReservation([1], expired.id), {
      reservations: [expired],
      counters: [counter({ groupId: "old", ...OLD })],
      balances: [],
      overages: [],
    });
    assert.deepEqual(await users.loadReservation([2], expired.id), NOTHING);
    assert.deepEqual(await users.loadReservation([1], "rsv_none"), NOTHING);
  }));

/** A balance of a plan's window that has ended. */
function ofPlan(windowEnd: number | null): Partial<CreditBalance> {
  return {
    expiresAt: NOW - 1,
    origin: "plan",
    ownRef: "ref",
    included: {
      planId: "p",
      subscriptionId: "sub_1_a",
      isAddOn: false,
      windowStart: 0,
      windowEnd,
      state: "open",
      rollsUntil: null,
    },
  };
}

Deno.test("balances are live up to the moment at which they are due or revoked, as long as a hold has a part of them, and those of a plan until their window is over and settled", () =>
  withWriter(async ({ store, write }) => {
    const rows = [
      balance({ id: "crb_1_a" }),
      balance({ id: "crb_1_b", remaining: 0n }),
      balance({ id: "crb_1_c", expiresAt: NOW - 1 }),
      balance({ id: "crb_1_d", expiresAt: NOW }),
      balance({ id: "crb_1_e", expiresAt: NOW - 1, held: 1n }),
      balance({ id: "crb_1_f", remaining: 0n, revokedAt: NOW - 1 }),
      balance({ id: "crb_1_g", remaining: 0n, revokedAt: NOW - 1, held: 1n }),
      balance({ id: "crb_1_h", ...ofPlan(NOW) }),
      balance({ id: "crb_1_i", ...ofPlan(NOW), notified: 4 }),
      balance({ id: "crb_1_j", ...ofPlan(NOW + 1), expiresAt: NOW - 5, notified: 4 }),
      balance({ id: "crb_1_k", ...ofPlan(null), expiresAt: NOW - 5, notified: 4 }),
      balance({ id: "crb_2_a", userKey: 2 }),
    ];
    await write([
      { verb: "put", table: "users", row: user() },
      ...rows.map((row) => ({ verb: "append", table: "credit_balances", row }) as const),
    ]);
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.balances.map(({ id }) => id.at(-1)), ["a", "b", "d", "e", "g", "h", "j", "k"]);
    assert.deepEqual(loaded?.balances[0], rows[0]);
  }));

Deno.test("balances in any state are found by id and by external reference, for their owner alone", () =>
  withWriter(async ({ store, write }) => {
    const gone = { remaining: 0n, revokedAt: NOW - 1 };
    const rows = [
      balance({ id: "crb_1_a", externalRef: "r", ...gone }),
      balance({ id: "crb_1_b", externalRef: "r" }),
      balance({ id: "crb_1_c", externalRef: "R" }),
      balance({ id: "crb_2_a", externalRef: "r", userKey: 2 }),
    ];
    await write(rows.map((row) => ({ verb: "append", table: "credit_balances", row })));
    const users = openUserStore(store.database);
    assert.deepEqual(await users.loadBalances(1, { externalRefs: ["r", "other"] }), {
      ...NOTHING,
      balances: rows.slice(0, 2),
    });
    assert.deepEqual(await users.loadBalances(1, { balanceId: "crb_1_a" }), {
      ...NOTHING,
      balances: [rows[0]],
    });
    assert.deepEqual(await users.loadBalances(1, { balanceId: "crb_2_a" }), NOTHING);
  }));

Deno.test("users that are due are listed earliest first, within their realm and a limit", () =>
  withWriter(async ({ store, write }) => {
    const due: [key: number, realm: number, dueAt: number | null][] = [
      [1, 1, NOW],
      [2, 1, NOW - 5],
      [3, 1, NOW + 1],
      [4, 2, NOW - 9],
      [5, 1, null],
      [6, 1, NOW - 1],
    ];
    await write(due.map(([key, realm, dueAt]) => (
      { verb: "put", table: "users", row: user({ key, realm, id: `u${key}`, dueAt }) }
    )));
    const users = openUserStore(store.database);
    assert.deepEqual(await users.listDue(1, NOW, 10), [2, 6, 1]);
    assert.deepEqual(await users.listDue(1, NOW, 2), [2, 6]);
    assert.deepEqual(await users.listDue(3, NOW, 2), []);
  }));

Deno.test("first answers load each in its place", () =>
  withWriter(async ({ store, write }) => {
    const users = openUserStore(store.database);
    const row = { realm: 1, key: "k", requestHash: "h", status: 200, body: "{}", userKey: null, at: NOW };
    await write([{ verb: "put", table: "idempotency", row }]);
    const asked = [{ realm: 2, key: "k" }, { realm: 1, key: "k" }, { realm: 1, key: "K" }];
    assert.deepEqual(await users.loadIdempotency(asked), [null, row, null]);
  }));
