// Reads shared out among apps: each has its share, and waits behind its own reads alone.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { READ_LIMITS } from "../../src/process/connection_limits.ts";
import type { Database } from "../../src/storage/database.ts";
import { FairReads } from "../../src/storage/fair_reads.ts";
import { openPostgres } from "../../src/storage/postgres_database.ts";
import { settleLoop } from "../actors/runtime.ts";
import { changedLimits } from "../support/limits.ts";
import { testServerUrl } from "../support/test_store.ts";

/** A database whose reads end when the test lets them. */
function slowDatabase() {
  const running: { readonly text: string; readonly end: () => void; readonly fail: () => void }[] = [];
  const query = (text: string) =>
    new Promise((resolve, reject) => {
      const drop = () => running.splice(running.findIndex((each) => each.text === text), 1);
      running.push({
        text,
        end: () => (drop(), resolve([])),
        fail: () => (drop(), reject(new Error("A test"))),
      });
    });
  const counts = { readsRefused: 0 };
  const reads = new FairReads({ query } as unknown as Database, counts);
  return { reads, counts, running, names: () => running.map(({ text }) => text) };
}

Deno.test("an app's slow reads take its share and no more, and others begin at once", async () => {
  const { reads, running, names } = slowDatabase();
  const all = Array.from({ length: 40 }, (_, index) => reads.of("app_a").query(`a${index}`));
  await settleLoop();
  assert.deepEqual([names(), reads.waiting], [["a0", "a1"], 38]);
  all.push(reads.of("app_b").query("b"), reads.of(null).query("own"));
  await settleLoop();
  assert.deepEqual(names(), ["a0", "a1", "b", "own"]);
  // All connections of apps are in use: the next one goes to the app that waits and has none.
  all.push(reads.of("app_c").query("c"));
  running[0]?.end();
  await settleLoop();
  assert.deepEqual(names().slice(0, 3), ["a1", "b", "own"]);
  while (reads.running > 0) {
    running[0]?.end();
    await settleLoop();
  }
  await Promise.all(all);
  assert.deepEqual([reads.running, reads.waiting, running.length], [0, 0, 0]);
});

Deno.test("an app's reads that wait are bounded in number and time; a failed read gives its connection back", async () => {
  using _limits = changedLimits(READ_LIMITS, { waitingOfAppMax: 2, waitMs: 20 });
  const { reads, counts, running } = slowDatabase();
  const app = reads.of("app_a");
  const first = [app.query("1"), app.query("2")];
  const waiting = Promise.allSettled([app.query("3"), app.query("4")]);
  await assert.rejects(
    app.query("5"),
    (error) => error instanceof Unavailable && /Too many reads/.test(error.message),
  );
  assert.deepEqual((await waiting).map(({ status }) => status), ["rejected", "rejected"]);
  assert.deepEqual([counts.readsRefused, reads.waiting], [3, 0]);
  const failed = assert.rejects(first[0] as Promise<unknown>, /A test/);
  running[0]?.fail();
  await failed;
  const next = app.query("6");
  await settleLoop();
  assert.equal(running.length, 2);
  for (const { end } of [...running]) end();
  await Promise.all([first[1], next]);
});

Deno.test({
  name: "no statement waits behind one that runs while another connection is free",
  ignore: testServerUrl() === null,
  fn: async () => {
    const database = openPostgres(testServerUrl() as string, 2);
    try {
      let isSlowDone = false;
      const slow = database.query("select pg_sleep(2)").then(() => isSlowDone = true);
      for (let burst = 0; burst < 5; burst++) {
        await Promise.all(Array.from({ length: 5 }, () => database.query("select 1")));
        await database.transaction((session) => session.query("select 1"));
      }
      assert.equal(isSlowDone, false);
      await slow;
    } finally {
      await database.close();
    }
  },
});

Deno.test({
  name: "the server ends a statement at its time limit, and the error is retryable",
  ignore: testServerUrl() === null,
  fn: async () => {
    const database = openPostgres(testServerUrl() as string, 1).named("limited", {
      connections: 1,
      statementMs: 20,
    });
    try {
      await assert.rejects(database.query("select pg_sleep(60)"), Unavailable);
      assert.equal((await database.query("select 1")).length, 1);
    } finally {
      await database.close();
    }
  },
});
