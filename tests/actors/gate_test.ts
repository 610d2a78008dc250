// The output gate: no answer before what it rests on is durable, and none at all once that is in doubt.

import { changedLimits } from "../support/limits.ts";
import assert from "node:assert/strict";
import { allDurable, type Batch } from "../../actors/gate.ts";
import { Unavailable } from "../../actors/port.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { sizeOf } from "../domain/scene.ts";
import { barrier, isSettled, settleLoop, startRuntime } from "./runtime.ts";
import { readLine } from "../support/journal_line.ts";
import { MemoryStore } from "../support/memory_store.ts";

async function withUser() {
  const store = new MemoryStore();
  const runtime = await startRuntime(store);
  await runtime.subscribe("u");
  return { store, runtime };
}

Deno.test("an answer waits until its changes are in the journal", async () => {
  const { store, runtime } = await withUser();
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const answer = runtime.reserve("u", 1);
  assert.equal(await isSettled(answer), false);
  open();
  assert.notEqual(await answer, null);
  runtime.term.fail(new Error("end"));
});

Deno.test("refusals and reads wait for the hold that they could have seen; other users do not", async () => {
  const { store, runtime } = await withUser();
  await runtime.count("other");
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const allowed = runtime.reserve("u", 10);
  const refused = runtime.reserve("u", 1);
  const read = runtime.count("u");
  assert.equal(await isSettled(Promise.any([allowed, refused, read])), false);
  assert.equal(await runtime.count("other"), 0n);
  open();
  assert.equal(await refused, null);
  assert.equal(await read, 10_000_000n);
  runtime.term.fail(new Error("end"));
});

Deno.test("a counter that several turns of one batch change is written once, with its last value", async () => {
  const { store, runtime } = await withUser();
  await Promise.all([runtime.subscribe("v"), runtime.count("u")]);
  const counts: [number, bigint][] = [];
  let reservations = 0;
  store.hooks.append = (changes) => {
    for (const change of changes) {
      if (typeof change === "string") reservations += Number(readLine(change).table === "reservations");
      else if (change.table === "counters") counts.push([change.row.userKey, change.row.count]);
    }
  };
  await Promise.all(["u", "v", "u", "v", "u"].map((user, place) => runtime.reserve(user, place + 1)));
  assert.deepEqual(counts.map(([, count]) => count), [9_000_000n, 6_000_000n]);
  assert.notEqual(counts[0]?.[0], counts[1]?.[0]);
  assert.equal(reservations, 5);
  await runtime.reserve("u", 1);
  assert.deepEqual(counts.map(([, count]) => count), [9_000_000n, 6_000_000n, 10_000_000n]);
  await runtime.term.flush();
  assert.equal(await runtime.count("u"), 10_000_000n);
  runtime.term.fail(new Error("end"));
});

Deno.test("a call that runs at once says what it waits for, and does not pass those that wait", async () => {
  const { store, runtime } = await withUser();
  const { term, realm } = runtime;
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const actor = term.directory.inMemory(1, "u") ?? assert.fail("the user is in memory");
  const input = { event: "x.make", metadata: null, size: sizeOf({ count: 4 }), costCents: null };
  const awaited = new Set<Batch>();
  const statuses = [1, 2, 3].map(() => {
    const outcome = actor.runNow({ realm, name: "track", input, isCapped: true }, awaited);
    return outcome?.ok === true ? outcome.answer.matchStatus : outcome?.refusal.code;
  });
  assert.deepEqual(statuses, ["matched", "matched", "limit_reached"]);
  const durable = allDurable(awaited);
  assert.equal(await isSettled(durable), false);
  for (const { isSent, entries } of awaited) {
    assert.deepEqual({ isSent, entries }, { isSent: true, entries: [] });
  }
  const ahead = barrier();
  const waiting = actor.mailbox.run(() => {}, () => ahead.wait);
  assert.equal(actor.runNow({ realm, name: "track", input }, awaited), null);
  ahead.open();
  await waiting;
  open();
  await durable;
  runtime.term.fail(new Error("end"));
  assert.throws(() => actor.runNow({ realm, name: "usage", input: { event: null } }, awaited), Unavailable);
});

for (const when of ["append", "appended"] as const) {
  Deno.test(`a failed write (${when}) fails every waiter, ends the term, and nothing runs on`, async () => {
    const { store, runtime } = await withUser();
    const { wait, fail } = barrier();
    store.hooks[when] = () => wait;
    const waiting = [runtime.reserve("u", 1), runtime.reserve("u", 2), runtime.count("u")];
    await settleLoop();
    waiting.push(runtime.reserve("u", 3));
    fail(new Error("The connection was lost"));
    const outcomes = await Promise.allSettled(waiting);
    for (const outcome of outcomes) {
      assert.ok(outcome.status === "rejected" && outcome.reason instanceof Unavailable);
    }
    assert.ok(await runtime.term.ended instanceof Unavailable);
    assert.equal(runtime.term.isServing, false);
    await assert.rejects(runtime.count("u"), Unavailable);
    delete store.hooks[when];
    // The next term knows exactly what the journal has: nothing of the batch, or all of it.
    const next = await startRuntime(store);
    assert.equal(await next.count("u"), when === "append" ? 0n : 3_000_000n);
    next.term.fail(new Error("end"));
  });
}

Deno.test("a lease that is lost in silence answers nothing more", async () => {
  const { runtime } = await withUser();
  runtime.lease.lose(new Error("The session is gone"));
  await assert.rejects(runtime.count("u"), Unavailable);
  assert.equal(runtime.term.isServing, false);
});

Deno.test("an old writer can't append once another has the lease", async () => {
  const { store, runtime } = await withUser();
  using next = await startRuntime(store);
  await assert.rejects(runtime.reserve("u", 1), Unavailable);
  assert.equal(await next.count("u"), 0n);
});

Deno.test("turns that come while an append is under way leave together", async () => {
  const { store, runtime } = await withUser();
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const first = runtime.reserve("u", 0.1);
  await settleLoop();
  const rest = Array.from({ length: 10 }, () => runtime.reserve("u", 0.1));
  const before = store.appends.length;
  open();
  await Promise.all([first, ...rest]);
  assert.equal(store.appends.length - before, 2);
  assert.equal(await runtime.count("u"), 1_100_000n);
  runtime.term.fail(new Error("end"));
});

Deno.test("past the bound of waiting changes a turn is refused as unavailable and changes nothing", async () => {
  const { store, runtime } = await withUser();
  using _limits = changedLimits(RUNTIME_LIMITS, { waitingChangesMax: 6 });
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  try {
    const first = runtime.reserve("u", 1);
    await settleLoop();
    const outcomes = Promise.allSettled(Array.from({ length: 8 }, () => runtime.reserve("u", 1)));
    open();
    const allowed = (await outcomes).filter(({ status }) => status === "fulfilled").length;
    assert.ok(allowed > 0 && allowed < 8, String(allowed));
    await first;
    assert.equal(await runtime.count("u"), BigInt(allowed + 1) * 1_000_000n);
  } finally {
    runtime.term.fail(new Error("end"));
  }
});
