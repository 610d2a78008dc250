// The lease and the journal behind it: one writer, a prefix of what was appended, and nothing of it lost.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { LEASE_LIMITS } from "../../src/process/limits.ts";
import { tryLease } from "../../src/storage/journal/lease.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { counter, NOW, user, withWriter } from "./sample.ts";
import { testServerUrl } from "../support/test_store.ts";

/** How long a restarted server has been up; no other wait is as long as what is left then. */
const RESTARTED_MS = 1_234;
const PUT = { verb: "put", table: "counters", row: counter() } as const;

Deno.test({
  name: "a second session cannot take the lease until the first one is gone",
  // The embedded store has one session; its folder's lock keeps other processes out.
  ignore: testServerUrl() === null,
  fn: () =>
    withWriter(async ({ store, lease }) => {
      const second = await store.database.pin(() => {});
      assert.equal(await tryLease(store.database, second), null);
      await lease.close();
      const taken = await tryLease(store.database, second);
      assert.ok(taken !== null && taken.isValid());
      await taken.close();
    }),
});

Deno.test("what the last writer left in the journal is in the tables when the next one has the lease", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    await append([{ verb: "put", table: "users", row: user() }, PUT]);
    const last = await append([{ verb: "put", table: "counters", row: counter({ count: 9_000_000n }) }]);
    await lease.close();
    const session = await store.database.pin(() => {});
    const next = await tryLease(store.database, session);
    assert.ok(next !== null);
    assert.equal(await journalRows(), 0);
    const [loaded] = await openUserStore(store.database).load([{ key: 1 }], NOW);
    assert.deepEqual(loaded?.counters, [counter({ count: 9_000_000n })]);
    const { seq } = await next.journal.append([PUT]);
    assert.ok(seq > last.seq, "the numbers of two terms never meet");
    await next.close();
  }));

Deno.test("a journal of more batches than one step replays whole and in order", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    for (let index = 1; index <= 450; index++) {
      await append([{ verb: "put", table: "counters", row: counter({ count: BigInt(index) }) }]);
    }
    await lease.close();
    const next = await tryLease(store.database, await store.database.pin(() => {}));
    assert.equal(await journalRows(), 0);
    const rows = await store.database.query("select count::text as count from counters");
    assert.deepEqual(
      [...rows],
      [{ count: "0.000450" }].map(({ count }) => ({ count: count.replace(/0+$/, "") })),
    );
    await next?.close();
  }));

Deno.test("an append of a session that lost its term's setting writes nothing and loses the lease", () =>
  withWriter(async ({ session, lease, append, journalRows }) => {
    await append([PUT]);
    await session.query("select set_config('holdfast.seq', '', false)");
    await assert.rejects(append([PUT]), Unavailable);
    assert.equal(await journalRows(), 1);
    assert.equal(lease.isValid(), false);
    assert.ok(await lease.lost instanceof Unavailable);
    await assert.rejects(append([PUT]));
    assert.equal(await journalRows(), 1);
  }));

Deno.test("of appends in flight together, one that fails takes all later ones with it", () =>
  withWriter(async ({ append, journalRows }) => {
    const bad = { verb: "put", table: "users", row: user({ id: "a\0b" }) } as const;
    const outcomes = await Promise.allSettled([append([PUT]), append([bad]), append([PUT]), append([PUT])]);
    assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "rejected", "rejected"]);
    assert.equal(await journalRows(), 1);
  }));

Deno.test("a fenced transaction of a lost lease does nothing", () =>
  withWriter(async ({ store, session, lease }) => {
    await lease.transaction((inner) => inner.query("create table zz (a int)"));
    await session.query("select set_config('holdfast.seq', '', false)");
    await assert.rejects(lease.transaction((inner) => inner.query("insert into zz values (1)")));
    assert.deepEqual([...await store.database.query("select * from zz")], []);
  }));

Deno.test({
  name: "after a restart of the server the writer waits until the last one's sign of life is too old",
  ignore: testServerUrl() === null,
  fn: () =>
    withWriter(async ({ store, lease }) => {
      await lease.close();
      const waits: number[] = [];
      const { setTimeout: real } = globalThis;
      for (const upMs of [RESTARTED_MS, LEASE_LIMITS.validMs]) {
        const session = await store.database.pin(() => {});
        const restarted = {
          ...session,
          query: (async (text: string, params: never[]) =>
            text.includes("pg_postmaster_start_time")
              ? [{ up_ms: upMs }]
              : await session.query(text, params)) as typeof session.query,
        };
        globalThis.setTimeout = ((run: () => void, ms = 0) => {
          if (ms === LEASE_LIMITS.validMs - RESTARTED_MS) waits.push(upMs);
          return real(run, ms);
        }) as typeof setTimeout;
        try {
          const taken = await tryLease(store.database, restarted);
          assert.ok(taken !== null && taken.isValid());
          await taken.close();
        } finally {
          globalThis.setTimeout = real;
        }
      }
      assert.deepEqual(waits, [RESTARTED_MS]);
    }),
});
