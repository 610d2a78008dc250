// The drain: it moves appended batches into the tables, the last value of each row, exactly once.

import assert from "node:assert/strict";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { getEvent } from "../../src/storage/queries/feed.ts";
import { inTime } from "../support/in_time.ts";
import {
  balance,
  counter,
  DAY_MS,
  event,
  HOSTILE_TEXTS,
  NOW,
  reservation,
  run,
  subscription,
  user,
  withWriter,
} from "./sample.ts";

Deno.test("a new user whose number another user has fails, and changes nothing of the other", () =>
  withWriter(async ({ store, lease, append }) => {
    const first = await append([{ verb: "append", table: "users", row: user() }]);
    await inTime(lease.drain([first]));
    const twin = await append([{ verb: "append", table: "users", row: user({ id: "twin", optedOut: 1 }) }]);
    await assert.rejects(inTime(lease.drain([twin])));
    const rows = await store.database.query("select id, opted_out from users");
    assert.deepEqual(rows.map((row) => ({ ...row })), [{ id: user().id, opted_out: user().optedOut }]);
  }));

Deno.test("a row that is appended and put within one drain is written once, with its last value", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    const held = reservation();
    const committed = { ...held, status: "committed", settledAt: NOW } as const;
    const batches = [
      await append([
        { verb: "put", table: "users", row: user() },
        { verb: "append", table: "reservations", row: held },
        { verb: "put", table: "counters", row: counter() },
      ]),
      await append([{ verb: "put", table: "counters", row: counter({ count: 3_000_000n }) }]),
      await append([
        { verb: "put", table: "reservations", row: committed },
        { verb: "put", table: "counters", row: counter({ count: 2_000_001n }) },
        { verb: "put", table: "users", row: user({ dueAt: NOW }) },
      ]),
    ];
    assert.equal(await journalRows(), 3);
    await lease.journal.drain(batches);
    assert.equal(await journalRows(), 0);
    const users = openUserStore(store.database);
    const [loaded] = await users.load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.counters, [counter({ count: 2_000_001n })]);
    assert.deepEqual(loaded?.user, user({ dueAt: NOW }));
    assert.deepEqual(loaded?.reservations, []);
    assert.deepEqual((await users.loadReservation([1], held.id)).reservations, [committed]);
  }));

Deno.test("a new value of a row that an earlier drain wrote replaces it", () =>
  withWriter(async ({ store, write }) => {
    await write([
      { verb: "put", table: "users", row: user() },
      { verb: "append", table: "subscriptions", row: subscription() },
      { verb: "put", table: "counters", row: counter() },
    ]);
    const ended = subscription({
      endsAt: NOW,
      ended: true,
      customLimits: { g: 1_500_000n },
      customFeatures: { sso: true, models: ["a", "b"] },
      cycleAnchorAt: -5,
      quantity: 7,
      scheduled: { at: NOW, planId: "p" },
      trial: { endsAt: NOW, thenPlanId: null },
      trials: ["p"],
      firstHeld: { p: -3 },
      planId: "p",
    });
    await write([
      { verb: "put", table: "subscriptions", row: ended },
      { verb: "put", table: "counters", row: counter({ count: 0n, adjusted: -1_000_000n, costCents: 7n }) },
    ]);
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.subscriptions, [ended]);
    assert.deepEqual(loaded?.counters, [counter({ count: 0n, adjusted: -1_000_000n, costCents: 7n })]);
  }));

Deno.test("a batch is drained once; again, or without its journal row, the whole drain is refused", () =>
  withWriter(async ({ store, lease, append }) => {
    const first = await append([{ verb: "put", table: "counters", row: counter() }]);
    await lease.journal.drain([first]);
    const second = await append([{ verb: "put", table: "counters", row: counter({ count: 2_000_000n }) }]);
    await assert.rejects(lease.journal.drain([first]));
    await assert.rejects(lease.journal.drain([first, second]));
    await store.database.query("delete from journal where seq = $1::bigint", [second.seq]);
    await assert.rejects(lease.journal.drain([second]));
    const rows = await store.database.query("select count::text as count from counters");
    assert.deepEqual([...rows], [{ count: "1" }]);
  }));

Deno.test("a drain that fails in the middle changes neither tables nor journal", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    const good = await append([{ verb: "put", table: "counters", row: counter() }]);
    const bad = await append([{
      verb: "append",
      table: "events",
      row: event({ matchStatus: "nonsense" as never }),
    }]);
    await assert.rejects(
      inTime(lease.journal.drain([good, bad])),
      /check constraint|aborted|failed|did not end/,
    );
    assert.equal(await journalRows(), 2);
    assert.deepEqual([...await store.database.query("select count from counters")], []);
    // On a server the session is given up with the COPY; the next owner replays the rest.
    if (store.url !== null) return;
    await lease.journal.drain([good]);
    assert.equal((await store.database.query("select count from counters")).length, 1);
  }));

Deno.test("a drain of more rows than any buffer holds completes", () =>
  withWriter(async ({ store, lease, append }) => {
    const type = "é😀x".repeat(25);
    const rows = Array.from({ length: 45_000 }, (_, index) => (
      { verb: "append", table: "events", row: event({ id: `evt_${index}`, type }) } as const
    ));
    const batches = [];
    for (let from = 0; from < rows.length; from += 5_000) {
      batches.push(await append(rows.slice(from, from + 5_000)));
    }
    await lease.journal.drain(batches);
    const [counted] = await store.database.query<{ rows: number }>(
      "select count(*)::int as rows from events where type = $1",
      [type],
    );
    assert.equal(counted?.rows, rows.length);
  }));

Deno.test("a drain that is spread over time writes every row, with appends between its pieces, and hurries on request", () =>
  withWriter(async ({ store, lease, append }) => {
    const range = [...Array(2_600).keys()];
    const changes = (count: bigint) =>
      range.map((
        index,
      ) => ({ verb: "put", table: "counters", row: counter({ userKey: index, count }) } as const));
    const events = range.map((index) => (
      { verb: "append", table: "events", row: event({ id: `evt_${index}` }) } as const
    ));
    await lease.journal.drain([await append([...changes(1_000_000n), ...events])], 300);
    const taken = await append(changes(2_000_000n));
    const drained = lease.journal.drain([taken], 3_600_000);
    const later = await append([{ verb: "put", table: "counters", row: counter({ userKey: 9_999 }) }]);
    lease.journal.hurry();
    await inTime(drained);
    await lease.journal.drain([later]);
    const [sums] = await store.database.query(
      `select count(*)::int as counters, sum(count)::int as used, (select count(*)::int from events) as events
       from counters`,
    );
    assert.deepEqual({ ...sums }, { counters: 2_601, used: 5_201, events: 2_600 });
  }));

Deno.test("hostile text survives journal, drain and tables unchanged", () =>
  withWriter(async ({ store, write }) => {
    const users = openUserStore(store.database);
    for (const [index, text] of HOSTILE_TEXTS.entries()) {
      const key = index + 1;
      const id = `rsv_${key}`;
      const lines = [{
        planId: text,
        groupId: text,
        window: { start: NOW, end: null },
        unit: "count" as const,
        taken: 1n,
      }];
      const rows = {
        user: user({ key, id: text }),
        subscription: subscription({
          id: `sub_${key}`,
          userKey: key,
          planId: text,
          provider: text,
          externalId: text,
          customLimits: { [text]: 1n },
          customFeatures: { [text]: [text] },
        }),
        counter: counter({ userKey: key, planId: text, groupId: text }),
        reservation: reservation({
          id,
          userKey: key,
          event: text,
          metadata: JSON.stringify({ [text]: text }),
          lines,
        }),
        event: event({
          id: `evt_${key}`,
          userKey: key,
          type: text,
          metadata: JSON.stringify({ [text]: [text] }),
          reason: text,
          errorCode: text,
        }),
        run: run({ id: `run_${key}`, userKey: key, name: text, metadata: JSON.stringify({ [text]: text }) }),
      };
      const granted = balance({
        id: `crb_${key}`,
        userKey: key,
        packId: text,
        packName: text,
        packItemId: text,
        matches: [{ event: text, metadata: { [text]: text } }],
        externalRef: text,
        notes: text,
        ownRef: text,
      });
      const idempotency = {
        realm: 1,
        key: text,
        requestHash: text,
        status: 200,
        body: JSON.stringify(text),
        userKey: key,
        at: NOW,
      };
      await write([
        { verb: "put", table: "users", row: rows.user },
        { verb: "append", table: "subscriptions", row: rows.subscription },
        { verb: "put", table: "counters", row: rows.counter },
        { verb: "append", table: "reservations", row: rows.reservation },
        { verb: "append", table: "credit_balances", row: granted },
        { verb: "append", table: "events", row: rows.event },
        { verb: "append", table: "runs", row: rows.run },
        { verb: "put", table: "idempotency", row: idempotency },
      ]);
      // The same values again as puts, which go through temporary tables.
      await write([
        { verb: "put", table: "users", row: { ...rows.user, dueAt: NOW } },
        { verb: "put", table: "counters", row: { ...rows.counter, count: 5n } },
        { verb: "put", table: "subscriptions", row: rows.subscription },
        { verb: "put", table: "reservations", row: rows.reservation },
        { verb: "put", table: "credit_balances", row: { ...granted, remaining: 7n } },
        { verb: "put", table: "runs", row: { ...rows.run, metadata: null, openHolds: 1 } },
        { verb: "put", table: "idempotency", row: { ...idempotency, status: 404 } },
      ]);
      const what = JSON.stringify(text.slice(0, 40));
      const [loaded] = await users.load([{ realm: 1, id: text }], NOW);
      assert.deepEqual(loaded, {
        user: { ...rows.user, dueAt: NOW },
        subscriptions: [rows.subscription],
        counters: [{ ...rows.counter, count: 5n }],
        reservations: [rows.reservation],
        balances: [{ ...granted, remaining: 7n }],
        aliases: [],
        runs: [{ ...rows.run, openHolds: 1 }],
      }, what);
      assert.deepEqual(await users.loadIdempotency([{ realm: 1, key: text }]), [{
        ...idempotency,
        status: 404,
      }]);
      const shown = await getEvent(store.database, 1, rows.event.id, { isOn: true, keptFrom: 0 });
      assert.deepEqual(
        [shown?.endUserId, shown?.eventType, shown?.metadata, shown?.reason, shown?.errorCode],
        [text, text, { [text]: [text] }, text, text],
        what,
      );
    }
  }));

Deno.test("thousands of rows of every table go in one drain", () =>
  withWriter(async ({ store, write }) => {
    const range = [...Array(2_500).keys()];
    await write(range.flatMap((index) => [
      { verb: "put", table: "users", row: user({ key: index + 1, id: `u${index}` }) },
      { verb: "put", table: "counters", row: counter({ userKey: index + 1, windowStart: NOW - DAY_MS }) },
      { verb: "append", table: "events", row: event({ id: `evt_${index}`, userKey: index + 1 }) },
    ]));
    await write(range.map((index) => (
      { verb: "put", table: "counters", row: counter({ userKey: index + 1, count: BigInt(index) }) }
    )));
    const [sum] = await store.database.query(
      "select count(*)::int as rows, sum(count)::text as sum from counters",
    );
    assert.deepEqual(sum, { rows: 2_500, sum: "3.123750" });
  }));
