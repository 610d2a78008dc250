// First answers by key: kept, replayed, waited for, and never mixed up.

import assert from "node:assert/strict";
import { Batch } from "../../actors/gate.ts";
import { type Flight, Idempotency, type WireAnswer } from "../../actors/idempotency.ts";
import type { IdempotencyRow } from "../../actors/port.ts";
import { answerOf, lineOf } from "../../src/storage/rows/tables.ts";
import { barrier, isSettled } from "./runtime.ts";

const ANSWER: WireAnswer = { status: 200, body: "first" };
const CALL = { realm: 1, key: "k", requestHash: "h" };
const DAY_MS = 24 * 3_600_000;

function make() {
  const stored: IdempotencyRow[] = [];
  const queries: string[][] = [];
  const clock = { now: 1_000 };
  const find = ({ realm, key }: { realm: number; key: string }) =>
    stored.find((row) => row.realm === realm && row.key === key) ?? null;
  const store = {
    loadIdempotency: (keys: readonly { realm: number; key: string }[]) => {
      queries.push(keys.map(({ key }) => key));
      return Promise.resolve(keys.map(find));
    },
  };
  const idempotency = new Idempotency(store, { answerOf }, () => clock.now);
  const row: IdempotencyRow = { ...CALL, ...ANSWER, userKey: 1, at: clock.now };
  return { idempotency, stored, queries, clock, row };
}

function remember(idempotency: Idempotency, row: IdempotencyRow, batch: Batch): void {
  batch.entries.push(lineOf({ verb: "append", table: "idempotency", row }));
  idempotency.remember(row, batch);
}

/** A batch that is in the journal. */
function durable(): Batch {
  const batch = new Batch();
  batch.open();
  return batch;
}

const never = () => Promise.reject(new Error("must not run"));

Deno.test("the first call runs; the same one again gets its answer, from memory or from the tables", async () => {
  const { idempotency, stored, row } = make();
  const batch = durable();
  const first = await idempotency.run(CALL, () => {
    remember(idempotency, row, batch);
    return Promise.resolve(ANSWER);
  });
  assert.equal(first.kind, "first");
  const again = await idempotency.run(CALL, never);
  assert.ok(again.kind === "replayed");
  assert.equal(again.answer.body, "first");
  stored.push(row);
  batch.isDrained = true;
  remember(idempotency, { ...row, key: "other" }, new Batch());
  assert.equal((await idempotency.run(CALL, never)).kind, "replayed");
});

Deno.test("a first answer that is not durable yet is not sent", async () => {
  const { idempotency, row } = make();
  const batch = new Batch();
  remember(idempotency, row, batch);
  const again = idempotency.run(CALL, never);
  assert.equal(await isSettled(again), false);
  batch.open();
  assert.equal((await again).kind, "replayed");
});

Deno.test("another call under the key is a conflict, in flight and later", async () => {
  const { idempotency, stored, row } = make();
  const { wait, open } = barrier();
  const first = idempotency.run(CALL, () => wait.then(() => ANSWER));
  assert.deepEqual(await idempotency.run({ ...CALL, requestHash: "x" }, never), { kind: "conflict" });
  open();
  await first;
  stored.push(row);
  assert.deepEqual(await idempotency.run({ ...CALL, requestHash: "x" }, never), { kind: "conflict" });
});

Deno.test("calls are compared by their bytes if both have a hash of these, else by their values", async () => {
  const same: [string, string][] = [["h", "h"], ["h", "h.v"], ["h.v", "h"], ["h.v", "h.w"], ["h.v", ".v"], [
    ".v",
    "x.v",
  ], [".v", ".v"]];
  const other: [string, string][] = [["h", "x"], ["h", "x.v"], ["h.v", "x.v"], ["h", ".v"], [".v", "h"], [
    "h.v",
    ".w",
  ], [".v", ".w"]];
  for (const [kind, pairs] of [["replayed", same], ["conflict", other]] as const) {
    for (const [kept, asked] of pairs) {
      const { idempotency, stored, row } = make();
      stored.push({ ...row, requestHash: kept });
      const outcome = await idempotency.run({ ...CALL, requestHash: asked }, never);
      assert.equal(outcome.kind, kind, `${kept} and then ${asked}`);
    }
  }
});

Deno.test("calls of a key run in the order of arrival, also a call that arrives while the one before ends", async () => {
  for (let ticks = 0; ticks < 8; ticks++) {
    const { idempotency } = make();
    const order: string[] = [];
    const { wait, open } = barrier();
    // An answer that is not kept, such as that of a cap: the next call runs.
    const runs = (name: string) =>
      idempotency.run(CALL, () => {
        order.push(name);
        return wait.then(() => ANSWER);
      });
    const calls = [runs("first"), runs("waiting")];
    const late = wait.then(async () => {
      for (let tick = 0; tick < ticks; tick++) await null;
      return await runs("late");
    });
    open();
    await Promise.all([...calls, late]);
    assert.deepEqual(order, ["first", "waiting", "late"], `${ticks} ticks later`);
  }
});

Deno.test("a twin in flight waits for the first answer", async () => {
  const { idempotency, row } = make();
  const { wait, open } = barrier();
  const first = idempotency.run(CALL, async () => {
    await wait;
    remember(idempotency, row, durable());
    return ANSWER;
  });
  const twins = [idempotency.run(CALL, never), idempotency.run(CALL, never)];
  assert.equal(await isSettled(Promise.any(twins)), false);
  open();
  assert.equal((await first).kind, "first");
  for (const twin of twins) assert.equal((await twin).kind, "replayed");
});

Deno.test("after a first call that failed without an answer, one twin takes its place", async () => {
  const { idempotency, row } = make();
  const { wait, fail } = barrier();
  let runs = 0;
  const run = () =>
    idempotency.run(CALL, async () => {
      if (runs++ === 0) await wait;
      remember(idempotency, row, durable());
      return ANSWER;
    });
  const calls = [run(), run(), run()];
  fail(new Error("unavailable"));
  const outcomes = await Promise.allSettled(calls);
  assert.equal(outcomes[0]?.status, "rejected");
  const kinds = outcomes.slice(1).map((each) => each.status === "fulfilled" && each.value.kind);
  assert.deepEqual(kinds.sort(), ["first", "replayed"]);
  assert.equal(runs, 2);
});

Deno.test("keys of two realms, and keys that differ in case, are apart", async () => {
  const { idempotency, stored, row } = make();
  stored.push(row);
  for (const other of [{ ...CALL, realm: 2 }, { ...CALL, key: "K" }]) {
    assert.equal((await idempotency.run(other, () => Promise.resolve(ANSWER))).kind, "first");
  }
});

Deno.test("a first answer holds for 24 hours to the millisecond", async () => {
  const { idempotency, stored, clock, row } = make();
  stored.push(row);
  clock.now = row.at + DAY_MS - 1;
  assert.equal((await idempotency.run(CALL, never)).kind, "replayed");
  clock.now += 1;
  assert.equal((await idempotency.run(CALL, () => Promise.resolve(ANSWER))).kind, "first");
});

Deno.test("calls that come together are looked up with one query, and what is in memory is not asked for", async () => {
  const { idempotency, stored, queries, row } = make();
  stored.push({ ...row, key: "stored" });
  const batch = new Batch();
  remember(idempotency, { ...row, key: "recent" }, batch);
  const flights = ["free", "recent", "stored", "other"].map((key) =>
    idempotency.begin({ ...CALL, key, requestHash: key === "other" ? "x" : "h" }) as Flight
  );
  stored.push({ ...row, key: "other" });
  const looked = idempotency.lookUp(flights);
  // What was known stays known, also when memory lets go of it before the tables have answered.
  batch.isDrained = true;
  remember(idempotency, { ...row, key: "later" }, new Batch());
  await looked;
  assert.deepEqual(queries, [["free", "stored", "other"]]);
  const awaited = new Set<Batch>();
  const kinds = flights.map((flight) => idempotency.outcomeNow(flight, awaited)?.kind ?? "free");
  assert.deepEqual(kinds, ["free", "replayed", "replayed", "conflict"]);
  assert.deepEqual([...awaited], [batch], "the first answer in memory is not durable yet");
});

Deno.test("a call that has begun keeps others of its key waiting until it ends", async () => {
  const { idempotency, row } = make();
  const flight = idempotency.begin(CALL) as Flight;
  assert.equal(idempotency.begin({ ...CALL, requestHash: "x" }), null);
  const behind = idempotency.begin(CALL) as Flight;
  assert.ok(flight.before === null && behind.before !== null);
  const last = idempotency.run(CALL, never);
  const second = idempotency.runBegun(behind, () => {
    remember(idempotency, row, durable());
    return Promise.resolve(ANSWER);
  });
  assert.equal(await isSettled(second), false);
  idempotency.end(flight);
  assert.deepEqual([(await second).kind, (await last).kind], ["first", "replayed"]);
});

Deno.test("a new key with the prefix of its realm needs no query; once used, it is looked up when memory forgot it", async () => {
  const { idempotency, stored, queries, row } = make();
  const key = `${idempotency.keyPrefixOf(1)}k`;
  const batch = durable();
  const run = () =>
    idempotency.run({ ...CALL, key }, () => {
      remember(idempotency, { ...row, key }, batch);
      return Promise.resolve(ANSWER);
    });
  assert.deepEqual([(await run()).kind, (await run()).kind], ["first", "replayed"]);
  assert.deepEqual(queries, []);
  stored.push({ ...row, key });
  batch.isDrained = true;
  remember(idempotency, { ...row, key: "other" }, new Batch());
  assert.equal((await run()).kind, "replayed");
  assert.deepEqual(queries, [[key]]);
});

Deno.test("a key whose first call failed, and one with a prefix of another realm or stay, are looked up", async () => {
  const { idempotency, stored, queries, row } = make();
  const prefix = idempotency.keyPrefixOf(1);
  const key = `${prefix}k`;
  const fails = () => Promise.reject(new Error("no answer"));
  await assert.rejects(idempotency.run({ ...CALL, key }, fails));
  stored.push({ ...row, key });
  assert.equal((await idempotency.run({ ...CALL, key }, never)).kind, "replayed");
  idempotency.keyPrefixOf(2);
  await assert.rejects(idempotency.run({ ...CALL, realm: 2, key }, fails));
  // The realm goes to another node, which answers a call of the key, and comes back.
  assert.equal(idempotency.sizeOf(1), 1);
  [...idempotency.dropRealms(new Set([1]))];
  assert.equal(idempotency.sizeOf(1), 0);
  assert.notEqual(idempotency.keyPrefixOf(1), prefix);
  stored.push({ ...row, key: `${prefix}away` });
  assert.equal((await idempotency.run({ ...CALL, key: `${prefix}away` }, never)).kind, "replayed");
  assert.equal(queries.length, 3);
});

Deno.test("first answers leave memory when the tables have them", () => {
  const { idempotency, row } = make();
  const batches = [durable(), durable()];
  for (const [place, batch] of batches.entries()) {
    for (const name of ["a", "b"]) remember(idempotency, { ...row, key: `${place}${name}` }, batch);
    batch.isDrained = true;
  }
  assert.equal(idempotency.sizeOf(1), 2);
  remember(idempotency, { ...row, key: "last" }, durable());
  assert.equal(idempotency.sizeOf(1), 1);
});
