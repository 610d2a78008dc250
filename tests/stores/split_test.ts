// A split without servers: what a copy of a database may serve at each step, and what is left of the rows on both sides.

import assert from "node:assert/strict";
import type { Database } from "../../src/storage/database.ts";
import { nextKeys } from "../../src/storage/nodes/node_store.ts";
import { readStoreFacts, type StoreRow } from "../../src/storage/nodes/store_numbers.ts";
import { moveStore } from "../../src/storage/stores/move_store.ts";
import { deleteMovedRows } from "../../src/storage/stores/moved_rows.ts";
import { readSplits, releaseStores, requestSplit } from "../../src/storage/stores/split_store.ts";
import { sweepAll } from "../../src/operations/sweeps/sweeps.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { until } from "../crash/program.ts";
import { CATALOG, dataOf } from "../routes/support.ts";
import { send, type TestApp } from "../support/test_service.ts";
import { listOf, openSwitched, StoresProcess, type SwitchedDatabase } from "./support.ts";

const MOVED = Array.from({ length: 32 }, (_, place) => 32 + place);
const isMoved = ({ workspaceId }: { readonly workspaceId: string }) => MOVED.includes(cellOf(workspaceId));
const EU2: StoreRow = { number: 1, name: "eu2", clusterId: "cluster-of-eu2", state: "planned" };

/** A copy, as a standby is once it is promoted. */
async function copyOf({ database }: SwitchedDatabase): Promise<SwitchedDatabase> {
  const copy = await openSwitched();
  await moveStore(database, copy.store.database);
  return copy;
}

async function plan({ database }: SwitchedDatabase): Promise<void> {
  await database.query("insert into stores values (1, 'eu2', $1, 'planned')", [EU2.clusterId]);
}

/** Gives the old database its number. */
async function openAlone(old: SwitchedDatabase): Promise<void> {
  const list = listOf({ eu1: old });
  for (const store of list.stores) await list.open(store);
}

/** Opens a copy as the new database beside the old one; answers why it cannot be served, or nothing. */
async function refusalOf(old: SwitchedDatabase, copy: SwitchedDatabase): Promise<string> {
  const list = listOf({ eu1: old, eu2: copy });
  try {
    for (const store of list.stores) await list.open(store);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

async function ownCells(database: Database): Promise<number[]> {
  const rows = await database.query<{ cell: number }>(
    `select cell from cells where store = (select number from stores join registry using (cluster_id)) order by cell`,
  );
  return rows.map(({ cell }) => cell);
}

Deno.test("a copy serves nothing that was not released to it, whenever it was made; then it is another database", async () => {
  const old = await openSwitched();
  const copies: SwitchedDatabase[] = [];
  const made = async () => {
    const copy = await copyOf(old);
    copies.push(copy);
    return copy;
  };
  try {
    await openAlone(old);
    assert.match(await refusalOf(old, await made()), /the URL of "eu2" leads to the database "eu1"/);
    await plan(old);
    assert.match(await refusalOf(old, await made()), /"eu2" was promoted before "eu1" had handed/);
    await requestSplit(old.database, { cells: MOVED, to: EU2 });
    await requestSplit(old.database, { cells: MOVED, to: EU2 });
    assert.match(await refusalOf(old, await made()), /"eu2" was promoted before "eu1" had handed/);
    assert.equal(await releaseStores(old.database), false, "cells are left");
    await old.database.query("update cells set store = moves_to, moves_to = null where moves_to is not null");
    assert.match(await refusalOf(old, await made()), /"eu2" was promoted before "eu1" had handed/);
    assert.equal(await releaseStores(old.database), true);
    await old.database.query("insert into journal (seq, payload) values (1, '[]')");
    const last = await made();
    assert.equal(await refusalOf(old, last), "");
    assert.equal(await refusalOf(old, last), "", "again, as after a kill");
    const { own, clusterId } = await readStoreFacts(last.database);
    assert.deepEqual([own?.number, own?.state, clusterId], [1, "open", EU2.clusterId]);
    assert.deepEqual(await ownCells(last.database), MOVED);
    assert.deepEqual(await ownCells(old.database), MOVED.map((cell) => cell - 32));
    assert.deepEqual([...await last.database.query("select from journal")], []);
    assert.equal((await nextKeys(last.database)).first, 2 ** 47 + 1);
    await until("the old one knows it", 5_000, async () => {
      const [split] = await readSplits(old.database);
      return split?.state === "open" ? true : null;
    });
  } finally {
    for (const { store } of [old, ...copies]) await store.close();
  }
});

Deno.test("a split is refused where it could not be whole", async () => {
  const old = await openSwitched();
  try {
    await openAlone(old);
    await plan(old);
    const all = Array.from({ length: 64 }, (_, cell) => cell);
    const refused = (cells: number[], to: StoreRow) =>
      assert.rejects(requestSplit(old.database, { cells, to }));
    await refused(all, EU2);
    await refused([1], { ...EU2, state: "open" });
    await requestSplit(old.database, { cells: [1, 2], to: EU2 });
    await refused([1], EU2);
    await old.database.query("insert into stores values (2, 'eu3', 'other', 'planned')");
    await refused([3], { ...EU2, number: 2, name: "eu3" });
  } finally {
    await old.store.close();
  }
});

/** The rows of each table that belong to a workspace, by what they belong to. */
async function countOwned(database: Database): Promise<Map<string, number>> {
  const tables = await database.query<{ name: string; owner: string }>(
    `select c.relname as name, a.attname as owner from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and a.attnum > 0
       and a.attname in ('user_key', 'realm', 'app_id', 'workspace_id')`,
  );
  const counts = new Map<string, number>();
  for (const { name } of [...tables, { name: "workspaces" }]) {
    const [row] = await database.query<{ rows: number }>(`select count(*) as rows from ${name}`);
    counts.set(name, row?.rows ?? 0);
  }
  // It is append-only: what was there before the split is on both.
  counts.delete("audit");
  return counts;
}

async function use(app: TestApp): Promise<void> {
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }));
  await dataOf(app.call("POST", "/commit", { reservationId }));
  await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }));
  await dataOf(app.call("POST", "/users/u/keys", {}));
  await dataOf(app.call("POST", "/identify", { distinctId: "u", properties: { a: 1 } }));
}

Deno.test("workspaces are on one of both databases afterwards, whole, and their keys and numbers go on", async () => {
  const old = await openSwitched();
  let copy: SwitchedDatabase | null = null;
  try {
    const apps: TestApp[] = [];
    {
      await using process = await StoresProcess.on({ eu1: { ...old, store: { ...old.store, close: keep } } });
      while (apps.filter(isMoved).length < 2 || apps.length - apps.filter(isMoved).length < 2) {
        apps.push(await process.app("eu1", CATALOG));
      }
      for (const app of apps) await use(app);
      await plan(old);
      await requestSplit(old.database, { cells: MOVED, to: EU2 });
      const { serving } = process.of("eu1");
      const isDone = async () => {
        serving?.node.wake();
        const [split] = await readSplits(old.database);
        return split?.state === "released" ? true : null;
      };
      await until("the cells are handed over", 10_000, isDone);
      const listed: { workspaceId: string }[] = await dataOf(process.admin("GET", "/workspaces"));
      assert.deepEqual(listed.filter(isMoved), []);
      assert.equal(listed.length, apps.filter((app) => !isMoved(app)).length);
      const created = [];
      for (let count = 0; count < 8; count++) {
        created.push(await dataOf(process.admin("POST", "/workspaces", { name: "W" })));
      }
      assert.deepEqual(created.filter(isMoved), [], "new workspaces are in cells that stay");
    }
    const before = await countOwned(old.database);
    copy = await copyOf(old);
    await using process = await StoresProcess.on({ eu1: old, eu2: copy });
    await until("both serve", 10_000, () => process.stores.terms.length === 2 ? true : null);
    const listed: { workspaceId: string; store: string }[] = await dataOf(
      process.admin("GET", "/workspaces"),
    );
    assert.equal(listed.length, apps.length + 8);
    for (const { workspaceId, store } of listed) {
      assert.equal(store, isMoved({ workspaceId }) ? "eu2" : "eu1");
    }
    const drifts: string[] = [];
    const prove = async () => {
      for (const { database } of [old, copy as SwitchedDatabase]) {
        await reconcile(database, ({ text }) => drifts.push(text));
      }
    };
    // Half of the way, some tables have rows of a user and others have not.
    for (const { database } of [old, copy]) {
      await database.transaction((session) => deleteMovedRows(session, 1));
    }
    await prove();
    for (const { serving } of process.stores.services) {
      while ((await sweepAll(serving!)).movedRows > 0);
    }
    const sides = await Promise.all([old, copy].map(({ database }) => countOwned(database)));
    for (const [table, rows] of before) {
      const [stayed = 0, moved = 0] = sides.map((side) => side.get(table));
      assert.equal(stayed + moved, rows, table);
    }
    await prove();
    assert.deepEqual(drifts, []);
    for (const app of apps) {
      assert.equal(process.stores.find(app.secretLive).world.storeName, isMoved(app) ? "eu2" : "eu1");
      const track = { userId: "u", event: "image.x" };
      const tracked = await dataOf(
        send(process.http, "POST", "/api/v1/track", track, { key: app.secretLive }),
      );
      assert.equal(tracked.counters[0].count, 3);
    }
  } finally {
    await old.store.close();
    await copy?.store.close();
  }
});

function keep(): Promise<void> {
  return Promise.resolve();
}
