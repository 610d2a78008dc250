// When the drain runs: at once for a reader, with a bounded backlog, and never past a fault.

import { changedLimits } from "../support/limits.ts";
import assert from "node:assert/strict";
import { Drain } from "../../actors/drain.ts";
import { Batch } from "../../actors/gate.ts";
import { type AppendedBatch, Unavailable } from "../../actors/port.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { barrier, isSettled, startRuntime } from "./runtime.ts";
import { MemoryStore } from "../support/memory_store.ts";

function makeDrain() {
  const drained: number[][] = [];
  const faults: Error[] = [];
  const spreads: number[] = [];
  let hurries = 0;
  const hook: { before?: () => Promise<void>; changesMax?: number; bytesMax?: number } = {};
  const journal = {
    drain: async (batches: readonly AppendedBatch[], spreadMs = 0) => {
      spreads.push(spreadMs);
      await hook.before?.();
      drained.push(batches.map(({ seq }) => seq));
    },
    hurry: () => void hurries++,
    get drainChangesMax() {
      return hook.changesMax ?? Infinity;
    },
    get drainBytesMax() {
      return hook.bytesMax ?? Infinity;
    },
    isInThread: false,
  };
  const drain = new Drain(journal, (error) => faults.push(error));
  let seq = 0;
  const add = (changes: number): Batch => {
    const batch = new Batch();
    drain.add(batch, { seq: seq++, changes, bytes: changes * 10 });
    return batch;
  };
  return { drain, drained, spreads, hurries: () => hurries, faults, hook, add };
}

Deno.test("a flush drains what was added before it, and is done at once when there is nothing", async () => {
  const { drain, drained, add } = makeDrain();
  await drain.flush();
  const batches = [add(1), add(2)];
  await drain.flush();
  assert.deepEqual(drained.flat(), [0, 1]);
  assert.ok(batches.every(({ isDrained }) => isDrained));
  assert.equal(drain.backlogChanges, 0);
  assert.equal(drain.backlogBytes, 0);
  drain.close(new Error("end"));
});

Deno.test("what is added during a drain goes with the next one, in order", async () => {
  const { drain, drained, hook, add } = makeDrain();
  const { wait, open } = barrier();
  hook.before = () => wait;
  add(1);
  const first = drain.flush();
  add(1);
  add(1);
  const all = drain.flush();
  open();
  await first;
  await all;
  assert.deepEqual(drained, [[0], [1, 2]]);
  drain.close(new Error("end"));
});

Deno.test("one transaction takes a bounded number of changes, and at least one batch", async () => {
  const { drain, drained, hook, add } = makeDrain();
  const { wait, open } = barrier();
  hook.before = () => wait;
  const most = RUNTIME_LIMITS.drainChangesMax;
  add(1);
  const first = drain.flush();
  for (const changes of [most - 1, 1, 1, most * 3, 1]) add(changes);
  const all = drain.flush();
  open();
  await first;
  await all;
  assert.deepEqual(drained, [[0], [1, 2], [3], [4], [5]]);
  drain.close(new Error("end"));
});

Deno.test("a drain spreads its work unless a reader waits for it, and hurries for a later reader", async () => {
  const { drain, drained, spreads, hurries, hook, add } = makeDrain();
  const { wait, open } = barrier();
  hook.before = () => wait;
  add(RUNTIME_LIMITS.drainFromChanges);
  assert.deepEqual(spreads, [RUNTIME_LIMITS.drainSpreadMs]);
  assert.equal(hurries(), 0);
  add(1);
  const flushed = drain.flush();
  assert.equal(hurries(), 1);
  open();
  await flushed;
  assert.deepEqual(spreads, [RUNTIME_LIMITS.drainSpreadMs, 0]);
  assert.deepEqual(drained, [[0], [1]]);
  drain.close(new Error("end"));
});

Deno.test("a drain spreads the less the more has gathered behind it", async () => {
  const { drain, spreads, hook, add } = makeDrain();
  const { wait, open } = barrier();
  hook.before = () => wait;
  add(RUNTIME_LIMITS.drainFromChanges);
  for (let count = 0; count < 3; count++) add(RUNTIME_LIMITS.drainChangesMax / 2);
  open();
  while (spreads.length < 2) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(spreads, [RUNTIME_LIMITS.drainSpreadMs, RUNTIME_LIMITS.drainSpreadMs / 2]);
  drain.close(new Error("end"));
});

Deno.test("where appends and drains share one connection a drain is small", async () => {
  const { drain, drained, hook, add } = makeDrain();
  hook.changesMax = 10;
  for (const changes of [6, 4, 1, 11, 1]) add(changes);
  await drain.flush();
  assert.deepEqual(drained, [[0, 1], [2], [3], [4]]);
  hook.changesMax = Infinity;
  hook.bytesMax = 30;
  for (const changes of [1, 2, 1, 5, 1]) add(changes);
  await drain.flush();
  assert.deepEqual(drained.slice(4), [[5, 6], [7], [8], [9]]);
  drain.close(new Error("end"));
});

Deno.test("more of a large batch waits for the tables before others wait for room", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { batchBacklogBytesMax: 100 });
  const { drain, hook, add } = makeDrain();
  const { wait, open } = barrier();
  hook.before = () => wait;
  add(9);
  await drain.roomForMore(0);
  add(1);
  const more = drain.roomForMore(0);
  assert.equal(drain.room(), null);
  assert.equal(await isSettled(more), false);
  open();
  await more;
  assert.equal(drain.backlogBytes, 0);
  drain.close(new Error("end"));
});

Deno.test("a full backlog has no room until a drain made some", async () => {
  const { drain, hook, add } = makeDrain();
  assert.equal(drain.room(), null);
  const { wait, open } = barrier();
  hook.before = () => wait;
  add(RUNTIME_LIMITS.backlogChangesMax);
  const room = drain.room();
  assert.ok(room !== null);
  assert.equal(await isSettled(room), false);
  open();
  await room;
  assert.equal(drain.room(), null);
  drain.close(new Error("end"));
});

Deno.test("a call does not wait for a drain that stands still, and what must wait goes on", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { flushMs: 5 });
  const store = new MemoryStore();
  const { term, counts } = await startRuntime(store);
  const gate = barrier();
  store.hooks.drain = () => gate.wait;
  await term.spend("ws_1", 1n);
  const drained = term.drained();
  await assert.rejects(term.flush(), Unavailable);
  assert.deepEqual([counts.flushesLate, term.isServing], [1, true]);
  gate.open();
  await drained;
  await term.flush();
  term.fail(new Error("end"));
});

Deno.test("a fault ends the drain: flushes and waits for room fail, and nothing is tried again", async () => {
  const { drain, drained, faults, hook, add } = makeDrain();
  hook.before = () => Promise.reject(new Error("The database is away"));
  const batch = add(RUNTIME_LIMITS.backlogChangesMax);
  const room = drain.room() as Promise<void>;
  const flushed = drain.flush();
  flushed.catch(() => {});
  await isSettled(flushed);
  assert.ok(faults[0] instanceof Unavailable);
  drain.close(faults[0]);
  await assert.rejects(flushed, Unavailable);
  await assert.rejects(room, Unavailable);
  await assert.rejects(drain.flush(), Unavailable);
  assert.equal(batch.isDrained, false);
  assert.deepEqual(drained, []);
});

Deno.test("the gate holds answers back while the backlog is full, and loses none", async () => {
  const store = new MemoryStore();
  const runtime = await startRuntime(store);
  using _limits = changedLimits(RUNTIME_LIMITS, { backlogChangesMax: 3 });
  const { wait, open } = barrier();
  store.hooks.drain = () => wait;
  try {
    await runtime.subscribe("u");
    const late = runtime.reserve("u", 1);
    assert.equal(await isSettled(late), false);
    open();
    assert.notEqual(await late, null);
    assert.equal(await runtime.count("u"), 1_000_000n);
  } finally {
    runtime.term.fail(new Error("end"));
  }
});
