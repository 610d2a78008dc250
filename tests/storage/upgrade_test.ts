// Upgrades from a version with a single writer: its whole journal is replayed before any node serves, new users are numbered
// after all old ones, and the two versions never serve together.

import assert from "node:assert/strict";
import { MIGRATIONS } from "../../sql/migrations.ts";
import type { RowChange } from "../../actors/port.ts";
import { LEASE_LIMITS } from "../../src/process/limits.ts";
import type { Database, PinnedSession } from "../../src/storage/database.ts";
import { firstSeq } from "../../src/storage/journal/ranges.ts";
import { joinCluster, type Writer } from "../../src/storage/journal/writer.ts";
import { KEYS_PER_BLOCK, MEMBER_LOCK, nextKeys } from "../../src/storage/nodes/node_store.ts";
import { migrate } from "../../src/storage/migrate.ts";
import { encodeChanges } from "../../src/storage/rows/tables.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { openTestStore, testServerUrl } from "../support/test_store.ts";
import { counter, joinAlone, LONER, NOW, user } from "./sample.ts";

const MEMBERS = MIGRATIONS.findIndex(({ name }) => name === "0012_members");
const OLD_TERM = 3;
/** The number of the last user that the old version created; it is only in the journal. */
const LAST_KEY = 2_345;
const isEmbedded = testServerUrl() === null;

/** Runs a test on a database in the state after a kill of the previous version. */
async function withOldDatabase(work: (database: Database) => Promise<void>): Promise<void> {
  const store = await openTestStore();
  const { database } = store;
  try {
    await database.script("drop schema public cascade; create schema public");
    await migrate(database, MIGRATIONS.slice(0, MEMBERS));
    await database.query("insert into lease (term) values ($1::bigint)", [OLD_TERM]);
    await database.query("insert into users (key, realm, id) values (7, 1, 'drained')");
    const left: RowChange[][] = [
      [
        { verb: "put", table: "users", row: user({ key: 8, id: "left" }) },
        { verb: "put", table: "counters", row: counter({ userKey: 8, count: 1_000_000n }) },
      ],
      [{ verb: "put", table: "counters", row: counter({ userKey: 8, count: 2_000_000n }) }],
      [{ verb: "put", table: "users", row: user({ key: LAST_KEY, id: "last" }) }],
    ];
    for (const [index, changes] of left.entries()) {
      await database.query("insert into journal (seq, payload) values ($1::bigint, $2)", [
        firstSeq(OLD_TERM) + 1 + index,
        encodeChanges(changes),
      ]);
    }
    await migrate(database, MIGRATIONS);
    await work(database);
  } finally {
    await store.close();
  }
}

/** Runs work without the wait for a process that may still answer; returns how often it would have waited. */
async function withoutWaits(work: () => Promise<void>): Promise<number> {
  const { setTimeout: real } = globalThis;
  let waits = 0;
  globalThis.setTimeout = ((run: () => void, ms = 0) => {
    if (ms !== LEASE_LIMITS.validMs) return real(run, ms);
    waits += 1;
    return real(run, 0);
  }) as typeof setTimeout;
  try {
    await work();
  } finally {
    globalThis.setTimeout = real;
  }
  return waits;
}

function join(database: Database, session: PinnedSession): Promise<Writer | null> {
  return joinCluster(database, session, () => Promise.resolve(LONER));
}

/** Takes the lock like the previous version; returns whether it got it. */
async function lockAsBefore(session: PinnedSession): Promise<boolean> {
  const [row] = await session.query<{ locked: boolean }>(
    "select pg_try_advisory_lock($1::bigint) as locked",
    [
      MEMBER_LOCK,
    ],
  );
  return row?.locked === true;
}

Deno.test("the first node finds all data of the previous version, and numbers new users after its users", () =>
  withOldDatabase(async (database) => {
    const waits = await withoutWaits(async () => {
      const writer = await joinAlone(database, await database.pin(() => {}));
      assert.ok(writer.term > OLD_TERM);
      assert.deepEqual([...await database.query("select seq from journal")], []);
      const loaded = await openUserStore(database).load(
        ["drained", "left", "last"].map((id) => ({ realm: 1, id })),
        NOW,
      );
      assert.deepEqual(loaded.map((rows) => rows?.user.key), [7, 8, LAST_KEY]);
      assert.deepEqual(loaded[1]?.counters, [counter({ userKey: 8, count: 2_000_000n })]);
      const blocks = [await nextKeys(database), await nextKeys(database)];
      assert.ok(blocks.every(({ first }) => first > LAST_KEY));
      assert.ok((blocks[1]?.first as number) >= (blocks[0]?.first as number) + KEYS_PER_BLOCK);
      await writer.close();
    });
    assert.equal(waits, isEmbedded ? 0 : 1, "the last process may answer for a while after it lost its lock");
    assert.equal(
      await withoutWaits(async () => await (await joinAlone(database, await database.pin(() => {}))).close()),
      0,
    );
  }));

Deno.test("a new database counts from its sequence at once, without a wait", async () => {
  const store = await openTestStore();
  try {
    assert.equal(
      await withoutWaits(async () => {
        await (await joinAlone(store.database, await store.database.pin(() => {}))).close();
      }),
      0,
    );
    assert.ok((await nextKeys(store.database)).first > 0);
  } finally {
    await store.close();
  }
});

Deno.test({
  name: "a process of the previous version keeps nodes out while it serves, and they find all that it wrote",
  ignore: isEmbedded,
  fn: () =>
    withOldDatabase(async (database) => {
      const [old, session] = [await database.pin(() => {}), await database.pin(() => {})];
      assert.equal(await lockAsBefore(old), true);
      await withoutWaits(async () => {
        assert.equal(await join(database, session), null);
        assert.equal(
          (await database.query("select seq from journal")).length,
          3,
          "the journal is not ours yet",
        );
        await old.close();
        let writer = await join(database, session);
        while (writer === null) writer = await join(database, session);
        assert.deepEqual([...await database.query("select seq from journal")], []);
        await writer.close();
      });
    }),
});

Deno.test({
  name: "one node, or one of several, keeps a process of the previous version out",
  ignore: isEmbedded,
  fn: () =>
    withOldDatabase(async (database) => {
      const sessions = await Promise.all([1, 2, 3].map(() => database.pin(() => {})));
      const old = sessions[0] as PinnedSession;
      await withoutWaits(async () => {
        // Both find the database unprepared: one prepares it, and the other retries until it is ready.
        const writers = await Promise.all(
          sessions.slice(1).map(async (session) => {
            let writer = await join(database, session);
            while (writer === null) {
              await new Promise((resolve) => setTimeout(resolve, 1 + Math.random() * 20));
              writer = await join(database, session);
            }
            return writer;
          }),
        );
        assert.notEqual(writers[0]?.term, writers[1]?.term);
        for (const writer of writers) {
          assert.equal(await lockAsBefore(old), false);
          await writer.close();
        }
        while (!await lockAsBefore(old)) await new Promise((resolve) => setTimeout(resolve, 5));
      });
      await old.close();
    }),
});
