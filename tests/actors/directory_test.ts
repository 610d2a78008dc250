// The directory: one actor for each user, whatever it is called and however often, and only as long as needed.

import assert from "node:assert/strict";
import { changedLimits } from "../support/limits.ts";
import { Loader } from "../../actors/loader.ts";
import { ownerOf as ownerOfId } from "../../src/domain/values/ids.ts";
import { RUNTIME_LIMITS } from "../../src/process/limits.ts";
import { barrier, isSettled, settleLoop, startRuntime } from "./runtime.ts";
import { sizeOf } from "../domain/scene.ts";
import { MemoryStore } from "../support/memory_store.ts";

function ownerOf(reservationId: string | null): number {
  return ownerOfId("reservation", reservationId as string) as number;
}

Deno.test("many callers of one unknown user start one actor with one load", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  await Promise.all(Array.from({ length: 50 }, () => runtime.subscribe("u")));
  assert.deepEqual(store.loads, [1]);
  assert.equal(runtime.term.directory.size, 1);
  assert.equal(store.tables.users().length + store.journal.size > 0, true);
  await runtime.term.flush();
  assert.equal(store.tables.users().length, 1);
});

Deno.test("many users load in few calls, and ids are exact and case-sensitive", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  await Promise.all(["a", "A", "a ", "ä", "a\u0308", "b"].map((id) => runtime.subscribe(id)));
  assert.equal(runtime.term.directory.size, 6);
  assert.deepEqual(store.loads.reduce((sum, size) => sum + size, 0), 6);
  assert.ok(store.loads.length <= 2);
  await runtime.term.flush();
  assert.equal(new Set(store.tables.users().map(({ key }) => key)).size, 6);
});

Deno.test("a user that is asked for by id and by key at the same time has one actor", async () => {
  const store = new MemoryStore();
  const first = await startRuntime(store);
  await first.subscribe("u");
  const id = await first.reserve("u", 4);
  first.term.fail(new Error("a crash"));
  using second = await startRuntime(store);
  const { wait, open } = barrier();
  store.hooks.loaded = () => wait;
  const settled = second.settle("release", id as string, ownerOf(id));
  const read = second.count("u");
  await settleLoop();
  open();
  assert.equal(await settled, "ok");
  assert.ok([0n, 4_000_000n].includes(await read));
  assert.equal(await second.count("u"), 0n);
  assert.equal(second.term.directory.size, 1);
});

Deno.test("an id that only was looked at leaves no row, and its number may go to another user", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  assert.equal(await runtime.count("looked-at"), 0n);
  assert.equal(await runtime.reserve("refused", 1), null);
  await runtime.subscribe("u");
  await runtime.term.flush();
  assert.deepEqual(store.tables.users().map(({ id }) => id), ["u"]);
  runtime.passivate();
  assert.equal(runtime.term.directory.size, 0);
  await runtime.subscribe("looked-at");
  await runtime.term.flush();
  assert.equal(new Set(store.tables.users().map(({ key }) => key)).size, 2);
});

Deno.test("a key of no user, or of a user of another realm, finds no user", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  await runtime.subscribe("u");
  const id = await runtime.reserve("u", 1);
  assert.equal(await runtime.settle("commit", id as string, 99), "no user");
  const call = {
    realm: { ...runtime.realm, realm: 2 },
    name: "release",
    input: { reservationId: id as string, reason: null, errorCode: null },
    needs: { reservationId: id as string },
  } as const;
  assert.equal(await runtime.term.directory.runByKey(ownerOf(id), call), null);
  assert.equal(await runtime.count("u"), 1_000_000n);
});

Deno.test("an actor leaves memory only when the tables have everything of it", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  const { wait, open } = barrier();
  store.hooks.drain = () => wait;
  await runtime.subscribe("u");
  runtime.passivate();
  assert.equal(runtime.term.directory.size, 1);
  const flushed = runtime.term.flush();
  assert.equal(await isSettled(flushed), false);
  runtime.passivate();
  assert.equal(runtime.term.directory.size, 1);
  open();
  await flushed;
  runtime.passivate();
  assert.equal(runtime.term.directory.size, 0);
  assert.notEqual(await runtime.reserve("u", 1), null);
});

Deno.test("an actor stays while the same user is loaded under another name", async () => {
  const store = new MemoryStore();
  const first = await startRuntime(store);
  await first.subscribe("u");
  const id = await first.reserve("u", 4);
  first.term.fail(new Error("a crash"));
  using second = await startRuntime(store);
  await second.count("u");
  second.passivate();
  const { wait, open } = barrier();
  store.hooks.loaded = () => wait;
  const byKey = second.settle("commit", id as string, ownerOf(id));
  const byId = second.reserve("u", 6);
  await settleLoop();
  open();
  assert.equal(await byKey, "ok");
  assert.notEqual(await byId, null);
  assert.equal(await second.reserve("u", 1), null);
});

Deno.test("a load that fails fails its callers alone, and the next call loads again", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  store.hooks.loaded = () => Promise.reject(new Error("The database is away"));
  await assert.rejects(runtime.count("u"), /load failed/);
  delete store.hooks.loaded;
  assert.equal(await runtime.count("u"), 0n);
});

Deno.test("a bug in one user's turn is that user's alone, and its state is loaded again", async () => {
  const store = new MemoryStore();
  using runtime = await startRuntime(store);
  await runtime.subscribe("u");
  await runtime.subscribe("other");
  const bad = { event: null as never, metadata: null, size: sizeOf(), ttlMs: null };
  await assert.rejects(runtime.call("u", "reserve", bad));
  assert.notEqual(await runtime.reserve("other", 1), null);
  await runtime.term.flush();
  await settleLoop();
  assert.notEqual(await runtime.reserve("u", 10), null);
  assert.equal(await runtime.reserve("u", 1), null);
});

Deno.test("past the bound each start lets idle actors go, and those that are called for stay", async () => {
  const runtime = await startRuntime(new MemoryStore());
  const { directory } = runtime.term;
  await runtime.subscribe("busy");
  const busy = await directory.actorOf(1, "busy");
  for (let index = 0; index < RUNTIME_LIMITS.actorsMax * 1.2; index++) {
    await runtime.call(`u${index}`, "usage", { event: null });
    if (index % 100 === 0) await runtime.call("busy", "usage", { event: null });
  }
  assert.ok(directory.size <= RUNTIME_LIMITS.actorsMax, `${directory.size} actors`);
  assert.equal(await directory.actorOf(1, "busy"), busy);
});

Deno.test("behind a slow load another one begins, and no more than that", async () => {
  using _limits = changedLimits(RUNTIME_LIMITS, { loadSlowMs: 5 });
  const running: { readonly keys: readonly string[]; readonly end: () => void }[] = [];
  const loader = new Loader<string, string>(
    (keys) => new Promise((resolve) => running.push({ keys, end: () => resolve(keys) })),
    10,
    100,
  );
  const until = async (count: number) => {
    while (running.length < count) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  const slow = loader.load("slow");
  await until(1);
  const others = ["a", "b"].map((key) => loader.load(key));
  await until(2);
  assert.deepEqual(running[1]?.keys, ["a", "b"]);
  const last = loader.load("c");
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(running.length, 2, "a third one waits");
  running[1]?.end();
  assert.deepEqual(await Promise.all(others), ["a", "b"]);
  await until(3);
  for (const { end } of running) end();
  assert.deepEqual([await slow, await last], ["slow", "c"]);
});
