// Taking and handing over cells, in the orders that make them exact.

import assert from "node:assert/strict";
import { monthOf } from "../../actors/budget.ts";
import { Unavailable } from "../../actors/port.ts";
import { handOver, handOverSome } from "../../src/cluster/hand_over.ts";
import { beginTaking, takeCells } from "../../src/cluster/take_over.ts";
import { LEASE_LIMITS } from "../../src/process/limits.ts";
import type { Database } from "../../src/storage/database.ts";
import { firstSeq } from "../../src/storage/journal/ranges.ts";
import { claimCells, readCells } from "../../src/storage/nodes/cell_store.ts";
import { endNode, insertNode } from "../../src/storage/nodes/node_store.ts";
import { encodeChanges } from "../../src/storage/rows/tables.ts";
import { loadClocks } from "../../src/storage/stores/registry_store.ts";
import { isSettled } from "../actors/runtime.ts";
import { LONER, NOW } from "../storage/sample.ts";
import { testServerUrl } from "../support/test_store.ts";
import { CELL, REALM, type TestMember, watch, withMember, WORKSPACE } from "./parts.ts";

const DEAD = 99;
const LIMIT = { perSecond: 1, burst: 1 };
const isEmbedded = testServerUrl() === null;

/** Makes a node that owned the cell, counted an operation there, and is silent from now on. */
async function leaveDead(database: Database): Promise<void> {
  await insertNode(database, DEAD, { ...LONER, address: "10.0.0.1:1" });
  await claimCells(database, [CELL], null, DEAD);
  const row = { workspaceId: WORKSPACE.workspaceId, mode: "live", month: monthOf(NOW), used: 4 } as const;
  await database.query("insert into journal (seq, payload) values ($1::bigint, $2)", [
    firstSeq(DEAD) + 1,
    encodeChanges([{ verb: "put", table: "operations", row }]),
  ]);
}

/** Records the steps of a taking; a call that waits for the cell records `open`. */
function watchTaking({ events, parts }: TestMember): void {
  watch(events, parts.writer, "lockCells", "replay");
  watch(events, parts.changes, "catchUp");
  const { admit } = parts.term;
  parts.term.admit = (totals) => {
    events.push("admit");
    admit.call(parts.term, totals);
  };
  const { doors } = parts.term;
  const { open } = doors;
  doors.open = (cells) => {
    events.push("open");
    open.call(doors, cells);
  };
}

async function ownerOf(database: Database): Promise<number | null | undefined> {
  return (await readCells(database, [CELL]))[0]?.term;
}

Deno.test("a cell that was handed over in order is taken without a replay, with the state of its last owner", () =>
  withMember(async (node) => {
    const { parts, events, notes, store } = node;
    watchTaking(node);
    const side = JSON.stringify({ k: { tokens: 0, at: NOW } });
    await store.database.query("update cells set side = $2 where cell = $1::int", [CELL, side]);
    assert.deepEqual(await takeCells(parts, [CELL]), [CELL]);
    assert.deepEqual(events, ["lockCells", "catchUp", "admit", "open", "taken"]);
    assert.equal(await ownerOf(store.database), parts.writer.term);
    assert.ok(parts.buckets.take(CELL, "k", LIMIT, NOW) > 0);
    assert.deepEqual(notes, [{ cells: [CELL], term: parts.writer.term }]);
    assert.deepEqual([parts.term.doors.held, parts.owners.of(CELL)], [[CELL], parts.writer.term]);
  }));

for (
  const end of [
    "its row says that it ended",
    "its address refuses connections",
    "its last heartbeat is old",
  ] as const
) {
  Deno.test({
    name: `the cell of a dead node opens once ${end}; its journal is replayed, and its counts are loaded`,
    ignore: isEmbedded,
    fn: () =>
      withMember(async (node) => {
        const { parts, events, store: { database } } = node;
        await leaveDead(database);
        watchTaking(node);
        const { setTimeout: real } = globalThis;
        // Called at each wait between two checks of the dead node: only then does the test make it known as dead.
        globalThis.setTimeout = ((run: () => void, ms = 0) => {
          if (ms !== 100) return real(run, ms);
          assert.equal(parts.term.doors.isHere(CELL), false);
          const age = `update members set seen_at = seen_at - interval '${LEASE_LIMITS.validMs} milliseconds'
            where term = $1::bigint`;
          void (async () => {
            assert.equal(
              await ownerOf(database),
              DEAD,
              "no node claims it before the last owner is silent",
            );
            events.push("wait");
            if (end === "its row says that it ended") await endNode(database, DEAD);
            else if (end === "its last heartbeat is old") await database.query(age, [DEAD]);
            else node.probe = "gone";
            run();
          })();
          return 0;
        }) as typeof setTimeout;
        try {
          assert.deepEqual(await takeCells(parts, [CELL]), [CELL]);
        } finally {
          globalThis.setTimeout = real;
        }
        const probes = end === "its address refuses connections"
          ? ["probe", "wait", "probe"]
          : ["probe", "wait"];
        assert.deepEqual(events, ["lockCells", ...probes, "replay", "catchUp", "admit", "open", "taken"]);
        assert.deepEqual([...await database.query("select seq from journal")], []);
        assert.equal(parts.term.budget.used(WORKSPACE.workspaceId, "live"), 4);
        assert.equal(parts.counts.cellsRescued, 1);
        const [dead] = await database.query("select ended_at from members where term = $1::bigint", [DEAD]);
        assert.notEqual((dead as { ended_at: unknown }).ended_at, null);
      }),
  });
}

Deno.test({
  name: "cells of other last owners are taken while a dead one is replayed",
  ignore: isEmbedded,
  fn: () =>
    withMember(async ({ parts, store: { database } }) => {
      await leaveDead(database);
      await endNode(database, DEAD);
      const replay = Promise.withResolvers<void>();
      parts.writer.replay = () => replay.promise;
      const other = (CELL + 1) % 64;
      const takings = await beginTaking(parts, [CELL, other]);
      const long = takings.find(({ isLong }) => isLong);
      await takings.find(({ isLong }) => !isLong)?.done;
      assert.deepEqual([long?.cells, parts.term.doors.held], [[CELL], [other]]);
      replay.reject(new Unavailable("The database was away"));
      await assert.rejects(long?.done as Promise<void>, Unavailable);
      assert.deepEqual([await ownerOf(database), parts.term.isServing], [DEAD, true]);
    }),
});

Deno.test({
  name: "a cell with a lock of another session is not taken, and not even read",
  ignore: isEmbedded,
  fn: () =>
    withMember(async (node) => {
      const { parts, events, store: { database } } = node;
      watchTaking(node);
      const other = await database.pin(() => {});
      await other.query("select pg_advisory_lock(461420, $1::int)", [CELL]);
      assert.deepEqual(await takeCells(parts, [CELL]), []);
      assert.deepEqual(events, ["lockCells"]);
      await other.close();
    }),
});

Deno.test("a cell with something left in memory is not opened", () =>
  withMember(async ({ parts }) => {
    await parts.changes.catchUp();
    parts.term.budget.take(WORKSPACE.workspaceId, "live", 1);
    await assert.rejects(takeCells(parts, [CELL]), /still in memory/);
    assert.equal(parts.term.doors.isHere(CELL), false);
  }));

/** Makes a node that owns the cell and has counted in it; a call waits there as soon as its door is shut. */
async function ownCell({ parts }: TestMember): Promise<void> {
  await takeCells(parts, [CELL]);
  const batch = parts.term.gate.add([]);
  parts.term.budget.takeInto(batch, WORKSPACE.workspaceId, "live", 3);
  parts.term.budget.issueInto(batch, REALM, 1);
  parts.buckets.take(CELL, "k", LIMIT, NOW);
  await batch.durable;
}

Deno.test("a cell is handed over with everything in the tables and nothing in memory, before the notification", () =>
  withMember(async (node) => {
    const { parts, notes, store: { database } } = node;
    await ownCell(node);
    const { doors, budget } = parts.term;
    doors.tryEnter(CELL);
    const done = handOver(parts, [CELL], { to: 7 });
    while (doors.isOpen(CELL)) await new Promise((resolve) => setTimeout(resolve, 1));
    const waiting = Promise.resolve(doors.enter(CELL)).then(async (isInside) => ({
      isInside,
      owner: await ownerOf(database),
      used: budget.used(WORKSPACE.workspaceId, "live"),
    }));
    assert.equal(await isSettled(done), false, "a call is still inside");
    assert.equal(await ownerOf(database), parts.writer.term);
    notes.length = 0;
    doors.leave(CELL);
    assert.equal(await done, true);
    assert.deepEqual(await waiting, { isInside: false, owner: null, used: 0 });
    assert.deepEqual([...await database.query("select seq from journal")], []);
    const [row] = await readCells(database, [CELL]);
    assert.deepEqual([row?.term, row?.clockMs], [null, NOW]);
    assert.deepEqual(JSON.parse(row?.side as string), { k: { tokens: 0, at: NOW } });
    assert.deepEqual(notes, [{ cells: [CELL], term: null }]);
    assert.deepEqual([parts.owners.of(CELL), doors.held], [null, []]);
    // The next owner, this node included, goes on from there.
    await takeCells(parts, [CELL]);
    assert.equal(budget.used(WORKSPACE.workspaceId, "live"), 3);
    assert.equal(budget.balancesLeft(REALM, "test", { ...WORKSPACE, testCreditBalanceCap: 2 }), 1);
    assert.ok(parts.buckets.take(CELL, "k", LIMIT, NOW) > 0);
  }));

Deno.test("a hand-over with a slow last call is dropped: the door opens, and waiting calls enter", () =>
  withMember(async (node) => {
    const { parts, store: { database } } = node;
    await ownCell(node);
    const { doors } = parts.term;
    doors.tryEnter(CELL);
    const done = handOver(parts, [CELL], { to: null, closedMs: 20 });
    while (doors.isOpen(CELL)) await new Promise((resolve) => setTimeout(resolve, 1));
    const waiting = doors.enter(CELL);
    assert.equal(await done, false);
    assert.equal(await waiting, true);
    assert.deepEqual([doors.isOpen(CELL), await ownerOf(database)], [true, parts.writer.term]);
    assert.equal(parts.counts.handOversDropped, 1);
  }));

Deno.test("a hand-over that is dropped once the term ends opens no door", () =>
  withMember(async (node) => {
    const { parts } = node;
    await ownCell(node);
    const { doors } = parts.term;
    doors.tryEnter(CELL);
    const done = handOver(parts, [CELL], { to: null, closedMs: 20 });
    while (doors.isOpen(CELL)) await new Promise((resolve) => setTimeout(resolve, 1));
    const waiting = Promise.allSettled([doors.enter(CELL)]);
    doors.seal();
    const empty = doors.shut([CELL]);
    assert.equal(await done, false);
    assert.equal(await isSettled(waiting), false);
    doors.leave(CELL);
    await empty;
    parts.term.fail(new Error("The term ends"));
    assert.equal((await waiting)[0]?.status, "rejected");
  }));

Deno.test("a hand-over without the drain frees no cell, and ends the term", () =>
  withMember(async (node) => {
    const { parts, store: { database } } = node;
    await takeCells(parts, [CELL]);
    const batch = parts.term.gate.add([]);
    parts.term.budget.takeInto(batch, WORKSPACE.workspaceId, "live", 3);
    await batch.durable;
    parts.term.flush = () => Promise.resolve();
    await assert.rejects(handOver(parts, [CELL], { to: null }), /only in the journal/);
    assert.deepEqual([await ownerOf(database), parts.term.hasEnded], [parts.writer.term, true]);
  }));

Deno.test("a hand-over with a failed flush opens the door again", () =>
  withMember(async (node) => {
    const { parts } = node;
    await ownCell(node);
    const { flush } = parts.term;
    let flushes = 0;
    parts.term.flush = () =>
      ++flushes === 1 ? flush.call(parts.term) : Promise.reject(new Unavailable("late"));
    await assert.rejects(handOver(parts, [CELL], { to: null }), Unavailable);
    assert.equal(parts.term.doors.isOpen(CELL), true);
  }));

Deno.test("cells without calls are handed over at once, before one with a call inside, which is tried alone", () =>
  withMember(async ({ parts, notes }) => {
    const { doors } = parts.term;
    const busy = [CELL, (CELL + 1) % 64];
    const idle = [(CELL + 2) % 64, (CELL + 3) % 64];
    await takeCells(parts, [...busy, ...idle]);
    notes.length = 0;
    for (const cell of busy) doors.tryEnter(cell);
    const all = [...busy, ...idle];
    assert.deepEqual(await handOverSome(parts, all, { to: 7, closedMs: 20 }), { cells: idle, isDone: true });
    assert.deepEqual(notes, [{ cells: idle, term: null }]);
    assert.deepEqual(await handOverSome(parts, busy, { to: 7, closedMs: 20 }), {
      cells: [CELL],
      isDone: false,
    });
    assert.deepEqual([busy.map((cell) => doors.isOpen(cell)), notes.length], [[true, true], 1]);
  }));

Deno.test("a hand-over that fails after memory was emptied ends the term, and waiting calls are refused", () =>
  withMember(async (node) => {
    const { parts } = node;
    await ownCell(node);
    parts.writer.unlockCells = () => Promise.reject(new Unavailable("The session was lost"));
    const { doors } = parts.term;
    doors.tryEnter(CELL);
    const done = handOver(parts, [CELL], { to: null });
    while (doors.isOpen(CELL)) await new Promise((resolve) => setTimeout(resolve, 1));
    const waiting = Promise.allSettled([doors.enter(CELL)]);
    doors.leave(CELL);
    await assert.rejects(done, Unavailable);
    const [{ status }] = await waiting;
    assert.equal(status, "rejected");
    assert.equal(parts.term.isServing, false);
    assert.deepEqual(doors.held, []);
  }));

Deno.test("the clock of a realm is loaded with the real time of the last event in its sums by day", () =>
  withMember(async ({ store: { database } }) => {
    await database.query(
      "insert into workspaces (id, name, created_at_ms, changed_in) values ('w', 'w', 0, 0)",
    );
    await database.query(
      "insert into apps (id, workspace_id, name, identity_secret, created_at_ms, changed_in) values ('a', 'w', 'a', '', 0, 0)",
    );
    await database.query(
      "insert into realms (realm, app_id, mode, clock_offset_ms) values (71, 'a', 'test', 500)",
    );
    await database.query("insert into daily_use_marks (realm, at_ms, event_id) values (71, 1700, 'e')");
    assert.deepEqual([...await loadClocks(database, [71])], [{ realm: 71, offsetMs: 500, usedMs: 1200 }]);
  }));
