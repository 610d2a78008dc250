// The rows of cells: one owner at a time, and only the owner writes beside the journal.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { claimCells, freeCells, inCellOf, keepTime, readCells } from "../../src/storage/nodes/cell_store.ts";
import { readNodes } from "../../src/storage/nodes/node_store.ts";
import { NOW, untilWaiting, withWriter } from "./sample.ts";
import { testServerUrl } from "../support/test_store.ts";
import { barrier } from "../actors/runtime.ts";

const [FIRST, SECOND] = [5, 6];
const isEmbedded = testServerUrl() === null;

Deno.test("if two nodes claim a cell after the same owner, one gets it", () =>
  withWriter(async ({ store: { database } }) => {
    const claims = await Promise.all([FIRST, SECOND].map((term) => claimCells(database, [1, 2], null, term)));
    assert.deepEqual(claims.map((taken) => taken.length).sort(), [0, 2]);
    const [winner, loser] = claims[0]?.length === 2 ? [FIRST, SECOND] : [SECOND, FIRST];
    assert.deepEqual((await readCells(database, [1, 2])).map(({ term }) => term), [winner, winner]);
    assert.equal((await claimCells(database, [1], winner, loser)).length, 1);
  }));

Deno.test("only the owner of a cell hands it over, and its clock never goes back", () =>
  withWriter(async ({ store: { database } }) => {
    await claimCells(database, [1], null, FIRST);
    await assert.rejects(
      freeCells(database, { term: SECOND, batches: [0, 0], clockMs: NOW, sides: new Map([[1, "theirs"]]) }),
    );
    assert.deepEqual([...await readCells(database, [1])], [{
      cell: 1,
      term: FIRST,
      clockMs: 0,
      side: null,
      isMoved: false,
      movesTo: null,
    }]);
    await freeCells(database, { term: FIRST, batches: [0, 0], clockMs: NOW, sides: new Map([[1, "mine"]]) });
    assert.deepEqual([...await readCells(database, [1])], [{
      cell: 1,
      term: null,
      clockMs: NOW,
      side: "mine",
      isMoved: false,
      movesTo: null,
    }]);
    await claimCells(database, [1], null, SECOND);
    await freeCells(database, {
      term: SECOND,
      batches: [0, 0],
      clockMs: NOW - 5,
      sides: new Map([[1, null]]),
    });
    assert.deepEqual([...await readCells(database, [1])], [{
      cell: 1,
      term: null,
      clockMs: NOW,
      side: null,
      isMoved: false,
      movesTo: null,
    }]);
  }));

Deno.test("a cell is not handed over while the journal has a batch with its changes", () =>
  withWriter(async ({ store: { database } }) => {
    await claimCells(database, [1], null, FIRST);
    await database.query("insert into journal (seq, payload) values (20::bigint, '')");
    const free = (batches: readonly [number, number]) =>
      freeCells(database, { term: FIRST, batches, clockMs: NOW, sides: new Map([[1, null]]) });
    await assert.rejects(free([10, 20]), /only in the journal/);
    assert.equal((await readCells(database, [1]))[0]?.term, FIRST);
    await free([10, 19]);
    assert.equal((await readCells(database, [1]))[0]?.term, null);
  }));

Deno.test("a write beside the journal fails if another node owns the cell, or none does", () =>
  withWriter(async ({ store: { database } }) => {
    await claimCells(database, [1], null, FIRST);
    let runs = 0;
    const write = (term: number, cell: number) =>
      inCellOf(database, term)(cell, () => Promise.resolve(++runs));
    assert.equal(await write(FIRST, 1), 1);
    await assert.rejects(write(SECOND, 1), Unavailable);
    await assert.rejects(write(FIRST, 2), Unavailable);
    assert.equal(runs, 1);
  }));

Deno.test({
  name: "a cell changes its owner only after the fenced writes of the last owner have ended",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database } }) => {
      await claimCells(database, [1], null, FIRST);
      const [entered, ending] = [barrier(), barrier()];
      const writing = inCellOf(database, FIRST)(1, async (session) => {
        entered.open();
        await ending.wait;
        await session.query("update lease set term = term");
      });
      await entered.wait;
      const claimed = claimCells(database, [1], FIRST, SECOND);
      await untilWaiting(database, claimed);
      assert.equal((await readCells(database, [1]))[0]?.term, FIRST);
      ending.open();
      await writing;
      assert.equal((await claimed).length, 1);
    }),
});

Deno.test({
  name: "the lock of a cell is free when its node hands it over or its session ends",
  ignore: isEmbedded,
  fn: () =>
    withWriter(async ({ store: { database }, lease }) => {
      assert.deepEqual(await lease.lockCells([1, 2, 3]), [1, 2, 3]);
      const other = await database.pin(() => {});
      const free = async () => {
        const rows = await other.query<{ cell: number }>(
          `select cell from generate_series(1, 3) as cell where pg_try_advisory_xact_lock(461420, cell)`,
        );
        return rows.map(({ cell }) => cell);
      };
      assert.deepEqual(await free(), []);
      await lease.unlockCells([2]);
      assert.deepEqual(await free(), [2]);
      await lease.close();
      while ((await free()).length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
      await other.close();
    }),
});

Deno.test("after a failover to a server with a slower clock no cell's time goes back, and dead nodes grow silent", () =>
  withWriter(async ({ store: { database } }) => {
    const session = await database.pin(() => {});
    const hourAhead = "update members set seen_at = clock_timestamp() + interval '1 hour' returning seen_at";
    await keepTime(session);
    const untouched = await readCells(database, [1, 2]);
    assert.ok(untouched.every(({ clockMs }) => clockMs === 0), "a clock that is right changes nothing");
    await database.query(hourAhead);
    const [seen] = await database.query<{ at: number }>(
      "select ceil(extract(epoch from max(seen_at)) * 1000)::bigint as at from members",
    );
    await keepTime(session);
    const cells = await readCells(database);
    assert.ok(cells.every(({ clockMs }) => clockMs === seen?.at));
    const nodes = await readNodes(database);
    assert.ok(nodes.every(({ silentMs }) => silentMs >= 0));
    await session.close();
  }));

Deno.test("a new owner with a clock ahead of the database's stores it for the owners after it", () =>
  withWriter(async ({ store: { database } }) => {
    await claimCells(database, [1], null, FIRST, NOW);
    await claimCells(database, [1], FIRST, SECOND, NOW - 5);
    assert.equal((await readCells(database, [1]))[0]?.clockMs, NOW);
  }));
