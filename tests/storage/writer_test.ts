// A node's writer: its range of the journal, which is always a prefix of its appends, and the heartbeat that alone entitles
// it to answer.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { LEASE_LIMITS } from "../../src/process/limits.ts";
import { openSessionDrainer } from "../../src/storage/journal/drainer.ts";
import { lastSeq } from "../../src/storage/journal/ranges.ts";
import { SignOfLife } from "../../src/storage/journal/sign_of_life.ts";
import { endNode, readNodes } from "../../src/storage/nodes/node_store.ts";
import { openUserStore } from "../../src/storage/stores/user_store.ts";
import { counter, joinAlone, LONER, NOW, user, withWriter } from "./sample.ts";
import { testServerUrl } from "../support/test_store.ts";

const PUT = { verb: "put", table: "counters", row: counter() } as const;
const BEAT = { share: 1, registryVersion: 0 } as const;
/** The embedded store has one session; the lock on its folder keeps other processes out. */
const isEmbedded = testServerUrl() === null;

const FROZEN_TERM = 77;

function countOf(count: bigint) {
  return { verb: "put", table: "counters", row: counter({ count }) } as const;
}

Deno.test("a replay moves all that a dead node left into the tables, and the ranges of two nodes do not overlap", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    await append([{ verb: "put", table: "users", row: user() }, PUT]);
    const last = await append([countOf(9_000_000n)]);
    await lease.close();
    const next = await joinAlone(store.database, await store.database.pin(() => {}));
    const { seq } = await next.append([countOf(1n)]);
    assert.ok(last.seq <= lastSeq(lease.term) && lastSeq(lease.term) < seq);

    await next.replay(lease.term);
    assert.equal(await journalRows(), 1, "a replay stays within the range of the dead member");
    const [loaded] = await openUserStore(store.database).load([{ realm: 1, key: 1 }], NOW);
    assert.deepEqual(loaded?.counters, [counter({ count: 9_000_000n })]);
    await next.close();
  }));

Deno.test("a range of more batches than one step replays whole and in order", () =>
  withWriter(async ({ store, lease, append, journalRows }) => {
    for (let index = 1; index <= 450; index++) await append([countOf(BigInt(index))]);
    await lease.replay(lease.term);
    assert.equal(await journalRows(), 0);
    const rows = await store.database.query("select count::text as count from counters");
    assert.deepEqual(
      [...rows],
      [{ count: "0.000450" }].map(({ count }) => ({ count: count.replace(/0+$/, "") })),
    );
  }));

Deno.test({
  name: "while one node replays a dead one's range, others that need it wait",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database }, lease, append, journalRows }) => {
      await append([PUT]);
      await lease.close();
      const [first, second] = await Promise.all([database.pin(() => {}), openSessionDrainer(database)]);
      await first.query("select pg_advisory_lock(461421, $1::int)", [lease.term]);
      const replayed = second.replay(lease.term);
      await new Promise((resolve) => setTimeout(resolve, 200));
      assert.equal(await journalRows(), 1);
      await first.close();
      await replayed;
      assert.equal(await journalRows(), 0);
      await second.close();
    }),
});

Deno.test({
  name: "a node drains its own batches while it waits for another's replay of a dead node",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database }, lease, append, journalRows }) => {
      await append([PUT]);
      await lease.close();
      const other = await database.pin(() => {});
      await other.query("select pg_advisory_lock(461421, $1::int)", [lease.term]);
      const next = await joinAlone(database, await database.pin(() => {}));
      const replayed = next.replay(lease.term);
      const batch = await next.append([countOf(7n)]);
      // Before, the drain waited for the replay, and this test for ever.
      await next.drain([batch]);
      assert.equal(await journalRows(), 1, "the batch of the dead node is left");
      await other.close();
      await replayed;
      assert.equal(await journalRows(), 0);
      await next.close();
    }),
});

Deno.test({
  name: "a node that freezes within a replay blocks no other node once it may not answer any more",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database }, lease, append, journalRows }) => {
      await append([PUT]);
      await lease.close();
      const frozen = await database.named(`holdfast ${FROZEN_TERM}`).pin(() => {});
      await frozen.query("select pg_advisory_lock(461421, $1::int)", [lease.term]);
      await database.query(
        `insert into members (term, share, fingerprints, registry_version, started_at, seen_at)
         values ($1::bigint, 1, '{}', 0, now(), now() - interval '10 s')`,
        [FROZEN_TERM],
      );
      const drainer = await openSessionDrainer(database);
      await drainer.replay(lease.term);
      assert.equal(await journalRows(), 0);
      await drainer.close();
    }),
});

Deno.test("an append of a session that lost its term's setting writes nothing and ends the term", () =>
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

Deno.test("when one of several appends in flight fails, all later ones fail too", () =>
  withWriter(async ({ append, journalRows }) => {
    const bad = { verb: "put", table: "users", row: user({ id: "a\0b" }) } as const;
    const outcomes = await Promise.allSettled([append([PUT]), append([bad]), append([PUT]), append([PUT])]);
    assert.deepEqual(outcomes.map(({ status }) => status), ["fulfilled", "rejected", "rejected", "rejected"]);
    assert.equal(await journalRows(), 1);
  }));

Deno.test("a heartbeat publishes its values and returns the version of the registry", () =>
  withWriter(async ({ store, lease }) => {
    await store.database.query("update registry set version = 7");
    await store.database.query("update members set seen_at = seen_at - interval '1 minute'");
    const { version, now } = await lease.beat({ share: 0, registryVersion: 3 });
    assert.equal(version, 7);
    const [clock] = await store.database.query<{ now: number }>(
      "select (extract(epoch from clock_timestamp()) * 1000)::bigint as now",
    );
    assert.ok(Math.abs((clock?.now as number) - now) < 60_000, "the database's clock, in milliseconds");
    const [member] = await readNodes(store.database);
    assert.ok(member !== undefined && member.silentMs < 60_000, "it was seen just now");
    assert.deepEqual(
      [member.term, member.share, member.registryVersion, member.hasEnded, member.address],
      [lease.term, 0, 3, false, LONER.address],
    );
  }));

Deno.test({
  name: "the last heartbeat with a version in force decides whether a node may answer, not its appends",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ lease, append }) => {
      const { now } = Date;
      let lateMs = 0;
      Date.now = () => now() + lateMs;
      try {
        const early = await lease.beat(BEAT);
        assert.equal(lease.isValid(), true);
        lateMs += LEASE_LIMITS.validMs;
        await append([PUT]);
        assert.equal(lease.isValid(), false, "an append proves nothing about the registry");
        early.prove();
        assert.equal(lease.isValid(), false, "a beat counts from when it was sent");
        const { prove } = await lease.beat(BEAT);
        assert.equal(lease.isValid(), false, "its version is not in force yet");
        prove();
        assert.equal(lease.isValid(), true);
        early.prove();
        assert.equal(lease.isValid(), true, "an older heartbeat has no effect");
      } finally {
        Date.now = now;
      }
    }),
});

for (
  const [what, end] of [
    ["that another one has declared dead", "members"],
    ["whose session lost its term's setting", "session"],
  ] as const
) {
  Deno.test(`the heartbeat of a node ${what} ends its term`, () =>
    withWriter(async ({ store, session, lease }) => {
      if (end === "members") await endNode(store.database, lease.term);
      else await session.query("select set_config('holdfast.seq', '', false)");
      await assert.rejects(lease.beat(BEAT), Unavailable);
      assert.ok(await lease.lost instanceof Unavailable);
      assert.equal(lease.isValid(), false);
    }));
}

Deno.test({
  name: "a node that sends heartbeats but cannot put the registry in force ends its term",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ lease }) => {
      let end: Error | null = null;
      void lease.lost.then((error) => end = error);
      const looks = LEASE_LIMITS.unprovedMs / LEASE_LIMITS.beatEveryMs;
      for (let look = 0; look < 3 * looks; look++) {
        lease.lookAtLife();
        const { prove } = await lease.beat(BEAT);
        prove();
      }
      assert.equal(end, null);
      for (let look = 0; look <= looks; look++) {
        await lease.beat(BEAT);
        lease.lookAtLife();
      }
      await Promise.resolve();
      assert.match(String(end), /registry/);
    }),
});

Deno.test({
  name: "work that holds the answering thread does not end its signs of life, for a bounded time",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database }, lease }) => {
      const silence = async () =>
        (await readNodes(database)).find(({ term }) => term === lease.term)?.silentMs as number;
      await lease.beat(BEAT);
      const heldMs = 6_000;
      for (const until = performance.now() + heldMs; performance.now() < until;);
      assert.ok(await silence() < heldMs - 1_000, "another thread has written signs of life");
      assert.equal(lease.isValid(), false, "they entitle to no answer");
      let now = 0;
      const written: number[] = [];
      const { performance: real } = globalThis;
      Object.defineProperty(globalThis, "performance", { value: { now: () => now }, configurable: true });
      try {
        const query = () => Promise.resolve(void written.push(now)) as Promise<never>;
        const life = new SignOfLife({ query }, lease.term, () => {});
        for (const at of [1_000, 1_600, 14_000, 16_000]) {
          now = at;
          await life.look();
        }
        life.close();
      } finally {
        Object.defineProperty(globalThis, "performance", { value: real, configurable: true });
      }
      assert.deepEqual(written, [1_600, 14_000]);
    }),
});
