// Actors over time: settled reservations, late commits, crashes and parallel calls.

import assert from "node:assert/strict";
import { ownerOf } from "../../src/domain/values/ids.ts";
import { barrier, type Runtime, settleLoop, startRuntime } from "./runtime.ts";
import { MemoryStore } from "../support/memory_store.ts";

const MINUTE_MS = 60_000;

async function withHold(count: number) {
  const store = new MemoryStore();
  const runtime = await startRuntime(store);
  await runtime.subscribe("u");
  const id = await runtime.reserve("u", count) as string;
  return { store, runtime, id, owner: ownerOf("reservation", id) as number };
}

Deno.test("a second commit is refused, however much of the first one has drained", async () => {
  const { runtime, id, owner } = await withHold(4);
  assert.equal(await runtime.settle("commit", id, owner), "ok");
  assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  await runtime.term.flush();
  assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  assert.equal(await runtime.settle("release", id, owner), "reservation_not_pending");
  runtime.passivate();
  assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  assert.equal(await runtime.count("u"), 4_000_000n);
  runtime.term.fail(new Error("end"));
});

Deno.test("a hold that lapsed and drained can still be committed late, once", async () => {
  const { runtime, id, owner } = await withHold(4);
  runtime.advance(11 * MINUTE_MS);
  assert.equal(await runtime.count("u"), 0n);
  await runtime.term.flush();
  assert.equal(await runtime.settle("commit", id, owner), "ok");
  assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  assert.equal(await runtime.count("u"), 4_000_000n);
  runtime.term.fail(new Error("end"));
});

Deno.test("a late commit is not forgotten when the lapse before it has drained and it has not", async () => {
  const { store, runtime, id, owner } = await withHold(4);
  runtime.advance(11 * MINUTE_MS);
  await runtime.count("u");
  const { wait, open } = barrier();
  let drains = 0;
  store.hooks.drain = () => drains++ === 0 ? undefined : wait;
  // The expiry is not in the tables yet while the commit is decided.
  const flushed = runtime.term.flush();
  assert.equal(await runtime.settle("commit", id, owner), "ok");
  await flushed;
  for (let again = 0; again < 3; again++) {
    assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  }
  assert.equal(await runtime.count("u"), 4_000_000n);
  open();
  runtime.term.fail(new Error("end"));
});

Deno.test("later calls of a user wait while one of them loads a reservation", async () => {
  const { store, runtime, id, owner } = await withHold(4);
  assert.equal(await runtime.settle("commit", id, owner), "ok");
  await runtime.term.flush();
  runtime.passivate();
  await runtime.count("u");
  const { wait, open } = barrier();
  store.hooks.loadReservation = () => wait;
  const order: string[] = [];
  const late = runtime.settle("commit", id, owner).then((code) => order.push(code));
  const next = runtime.reserve("u", 1).then(() => order.push("reserve"));
  await settleLoop();
  assert.deepEqual(order, []);
  open();
  await Promise.all([late, next]);
  assert.deepEqual(order, ["reservation_not_pending", "reserve"]);
  runtime.term.fail(new Error("end"));
});

Deno.test("a reservation whose load fails is unavailable, and then found", async () => {
  const { store, runtime, id, owner } = await withHold(4);
  assert.equal(await runtime.settle("release", id, owner), "ok");
  await runtime.term.flush();
  runtime.passivate();
  store.hooks.loadReservation = () => Promise.reject(new Error("The database is away"));
  await assert.rejects(runtime.settle("commit", id, owner), /load failed/);
  delete store.hooks.loadReservation;
  assert.equal(await runtime.settle("commit", id, owner), "reservation_not_pending");
  runtime.term.fail(new Error("end"));
});

Deno.test("parallel reserves share the quota exactly, over crashes and whatever was in flight", async () => {
  const store = new MemoryStore();
  let runtime: Runtime = await startRuntime(store);
  await runtime.subscribe("u");
  let told = 0;
  for (let round = 0; round < 6; round++) {
    // Every second append is lost before, or its answer after, it became durable.
    let appends = 0;
    store.hooks.append = () => {
      if (round % 3 === 1 && appends++ === 1) throw new Error("lost before");
    };
    store.hooks.appended = () => {
      if (round % 3 === 2 && appends++ === 1) throw new Error("lost after");
    };
    const first = Promise.allSettled([runtime.reserve("u", 1)]);
    await settleLoop();
    const rest = Promise.allSettled(Array.from({ length: 3 }, () => runtime.reserve("u", 1)));
    for (const outcome of [...await first, ...await rest]) {
      if (outcome.status === "fulfilled" && outcome.value !== null) told += 1;
    }
    runtime.term.fail(new Error("a crash"));
    delete store.hooks.append;
    delete store.hooks.appended;
    runtime = await startRuntime(store);
    const count = await runtime.count("u");
    assert.ok(count >= BigInt(told) * 1_000_000n, "every answer that a caller got is kept");
    assert.ok(count <= 10_000_000n, "never over quota");
  }
  runtime.term.fail(new Error("end"));
});
