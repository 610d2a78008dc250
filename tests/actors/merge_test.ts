// Merges in the runtime: two users stand still while one decision is made, calls that come meanwhile find the
// canonical user, merges that race end in bounded time, and a merge with a lost batch leaves no trace.

import assert from "node:assert/strict";
import { Unavailable } from "../../actors/port.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import type { MergeReport } from "../../src/domain/merging/merge_report.ts";
import { barrier, type Runtime, settleLoop, startRuntime } from "./runtime.ts";
import { MemoryStore } from "../support/memory_store.ts";

const DEADLINE_MS = 5_000;
const WHOLE = 1_000_000n;

/** Merges in a runtime: the report, or the code of a refusal. */
function merge(
  runtime: Runtime,
  from: string,
  to: string,
  isDryRun = false,
): Promise<MergeReport | string> {
  const { realm } = runtime;
  return runtime.term.merge({ realm, from, to, isDryRun, analytics: "linked", keeping: null })
    .then(({ result }) => result.ok ? result.answer : result.refusal.code);
}

/** A store that reads whole users when a test lets it. */
class SlowStore extends MemoryStore {
  beforeWhole: (() => Promise<void>) | null = null;

  override async loadWhole(owner: number) {
    await this.beforeWhole?.();
    return await super.loadWhole(owner);
  }
}

/** Users with one hold each: of 1, 2, 3 and so on. */
async function withUsers(...users: string[]) {
  const store = new SlowStore();
  const runtime = await startRuntime(store);
  const holds: string[] = [];
  for (const [place, user] of users.entries()) {
    await runtime.subscribe(user);
    holds.push(await runtime.reserve(user, place + 1) as string);
  }
  return { store, runtime, holds, end: () => runtime.term.fail(new Error("end")) };
}

/** The value of each promise; an error where they take too long, as in a deadlock. */
async function inTime<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("The merges did not end")), DEADLINE_MS);
  });
  try {
    return await Promise.race([Promise.all(promises), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether a promise is settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await settleLoop();
  return settled;
}

async function identityOf(
  runtime: Runtime,
  userId: string,
): Promise<[canonicalId: string, aliases: string[]]> {
  const result = await runtime.call(userId, "user", {});
  if (!result.ok) throw new Error(result.refusal.code);
  return [result.answer.userId, result.answer.aliases.map(({ id }) => id).sort()];
}

async function assertApart(runtime: Runtime, counts: Record<string, bigint>): Promise<void> {
  for (const [user, count] of Object.entries(counts)) {
    assert.deepEqual(await identityOf(runtime, user), [user, []]);
    assert.equal(await runtime.count(user), count * WHOLE, user);
  }
}

const isMerge = (outcome: MergeReport | string) => typeof outcome === "object" && !outcome.alreadyMerged;

Deno.test("calls for either id wait while a merge reads, and then run on the canonical user", async () => {
  const { store, runtime, holds, end } = await withUsers("a", "b");
  const { wait, open } = barrier();
  store.beforeWhole = () => wait;
  const merging = merge(runtime, "a", "b");
  await settleLoop();
  const [ofA] = holds as [string];
  const calls = [
    runtime.reserve("a", 4),
    runtime.reserve("b", 2),
    runtime.settle("commit", ofA, ownerOf("reservation", ofA) as number),
    runtime.count("a"),
    runtime.count("b"),
  ] as const;
  for (const call of [merging, ...calls]) assert.equal(await isSettled(call), false);
  runtime.passivate();
  open();
  assert.ok(isMerge(await merging));
  const [first, second, commit, ...counts] = await Promise.all(calls);
  assert.equal(ownerOf("reservation", first as string), ownerOf("reservation", second as string));
  assert.equal(commit, "ok");
  // 1 + 2 held before, 4 + 2 after; the commit changed nothing. Each id saw its own reserve.
  assert.ok(counts.every((count) => count >= 5n * WHOLE), String(counts));
  assert.equal(await runtime.count("a"), 9n * WHOLE);
  assert.equal(await runtime.reserve("a", 2), null, "no quota is fresh");
  assert.equal(
    await runtime.settle("commit", ofA, ownerOf("reservation", ofA) as number),
    "reservation_not_pending",
  );
  end();
});

Deno.test("calls of either id after a merge are answered only when the merge is durable", async () => {
  const { store, runtime, holds, end } = await withUsers("a", "b");
  await runtime.term.flush();
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const merging = merge(runtime, "a", "b");
  await settleLoop();
  const [ofA] = holds as [string];
  const calls: Promise<unknown>[] = [
    runtime.count("a"),
    runtime.count("b"),
    runtime.settle("release", ofA, ownerOf("reservation", ofA) as number),
    merge(runtime, "a", "b"),
    merge(runtime, "a", "b", true),
  ];
  for (const call of [merging, ...calls]) assert.equal(await isSettled(call), false);
  open();
  assert.ok(isMerge(await merging));
  const [countA, countB, release] = await Promise.all(calls);
  assert.deepEqual([countA, countB, release], [3n * WHOLE, 3n * WHOLE, "ok"]);
  end();
});

Deno.test("a refusal that rests on a merge waits until the merge is durable", async () => {
  const { store, runtime, end } = await withUsers("a", "b", "c");
  await runtime.term.flush();
  const { wait, open } = barrier();
  store.hooks.append = () => wait;
  const merging = merge(runtime, "a", "b");
  await settleLoop();
  const [cycle, conflict] = [merge(runtime, "b", "a"), merge(runtime, "a", "c")];
  assert.equal(await isSettled(merging), false);
  assert.equal(await isSettled(cycle), false, "alias_cycle reveals a merge that may yet be lost");
  assert.equal(await isSettled(conflict), false, "alias_conflict reveals a merge that may yet be lost");
  open();
  assert.deepEqual(await Promise.all([cycle, conflict]), ["alias_cycle", "alias_conflict"]);
  end();
});

Deno.test("two merges of one pair at once are one merge and one repeated call", async () => {
  for (const users of [["a", "b"], ["a"], ["b"], []]) {
    for (const isAway of [false, true]) {
      const { store, runtime, end } = await withUsers(...users);
      await runtime.term.flush();
      if (isAway) runtime.passivate();
      const both = await inTime([merge(runtime, "a", "b"), merge(runtime, "a", "b")]);
      const [first, second] = both as [MergeReport, MergeReport];
      assert.deepEqual(both.map(isMerge).sort(), [false, true]);
      assert.equal(first.mergeId, second.mergeId);
      assert.deepEqual(await identityOf(runtime, "a"), ["b", ["a"]]);
      await runtime.term.flush();
      assert.equal(store.tables.list("merges").length, 1);
      end();
    }
  }
});

Deno.test("merges both ways at once are one merge and one cycle", async () => {
  for (const isAway of [false, true]) {
    for (const pairs of [[["a", "b"], ["b", "a"]], [["b", "a"], ["a", "b"]]] as const) {
      const { runtime, end } = await withUsers("a", "b");
      await runtime.term.flush();
      if (isAway) runtime.passivate();
      const outcomes = await inTime(pairs.map(([from, to]) => merge(runtime, from, to)));
      assert.equal(outcomes.filter(isMerge).length, 1);
      assert.equal(outcomes.filter((outcome) => outcome === "alias_cycle").length, 1);
      assert.equal(await runtime.count("a"), 3n * WHOLE);
      assert.deepEqual(await identityOf(runtime, "a"), await identityOf(runtime, "b"));
      end();
    }
  }
});

Deno.test("merges in a circle end, in any order and with any user in memory: two merges and one cycle", async () => {
  const circle = [["a", "b"], ["b", "c"], ["c", "a"]] as const;
  const orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] as const;
  for (const order of orders) {
    for (const isAway of [false, true]) {
      const { runtime, end } = await withUsers("a", "b", "c");
      await runtime.term.flush();
      if (isAway) runtime.passivate();
      const outcomes = await inTime(
        order.map((place) => merge(runtime, circle[place][0], circle[place][1])),
      );
      assert.equal(outcomes.filter(isMerge).length, 2);
      assert.deepEqual(outcomes.filter((outcome) => typeof outcome === "string"), ["alias_cycle"]);
      const [canonicalId, aliases] = await identityOf(runtime, "a");
      assert.deepEqual([canonicalId, ...aliases].sort(), ["a", "b", "c"]);
      for (const user of ["a", "b", "c"]) assert.equal(await runtime.count(user), 6n * WHOLE);
      end();
    }
  }
});

Deno.test("all merges of many users at once, with calls between, leave one user with everything", async () => {
  const users = ["a", "b", "c", "d", "e", "f", "g"];
  const store = new MemoryStore();
  let runtime = await startRuntime(store);
  for (const user of users) await runtime.subscribe(user);
  await runtime.term.flush();
  runtime.passivate();
  const pairs = users.flatMap((from) => users.filter((to) => to !== from).map((to) => [from, to] as const));
  const merges = pairs.map(([from, to]) => merge(runtime, from, to));
  const reserves = pairs.map(([from], place) => runtime.reserve(from, place % 2 === 0 ? 0.25 : 0.5));
  const outcomes = await inTime(merges);
  const held = await inTime(reserves);
  assert.equal(outcomes.filter(isMerge).length, users.length - 1);
  const sum = held.reduce((all, id, place) => id === null ? all : all + (place % 2 === 0 ? 25n : 50n), 0n);
  const [canonicalId] = await identityOf(runtime, "a");
  for (let restart = 0; restart < 2; restart++) {
    for (const user of users) {
      assert.equal((await identityOf(runtime, user))[0], canonicalId);
      assert.equal(await runtime.count(user), sum * WHOLE / 100n);
    }
    runtime.term.fail(new Error("a crash"));
    runtime = await startRuntime(store);
  }
  runtime.term.fail(new Error("end"));
});

Deno.test("a merge whose append fails leaves two users, and the next term knows of none", async () => {
  const { store, runtime, holds } = await withUsers("a", "b");
  await runtime.term.flush();
  store.hooks.append = () => {
    throw new Error("The disk is full");
  };
  const merging = merge(runtime, "a", "b");
  merging.catch(() => {});
  await assert.rejects(merging, Unavailable);
  await assert.rejects(runtime.count("a"), Unavailable);
  delete store.hooks.append;
  using next = await startRuntime(store);
  await assertApart(next, { a: 1n, b: 2n });
  const [ofA] = holds as [string];
  assert.equal(await next.settle("release", ofA, ownerOf("reservation", ofA) as number), "ok");
  assert.ok(isMerge(await merge(next, "a", "b")));
  assert.equal(await next.count("a"), 2n * WHOLE);
});

Deno.test("a merge that was appended and not told is whole in the next term", async () => {
  const { store, runtime, holds } = await withUsers("a", "b");
  await runtime.term.flush();
  store.hooks.appended = () => {
    throw new Error("The answer was lost");
  };
  await assert.rejects(merge(runtime, "a", "b"), Unavailable);
  delete store.hooks.appended;
  using next = await startRuntime(store);
  for (const user of ["b", "a"]) {
    assert.deepEqual(await identityOf(next, user), ["b", ["a"]]);
    assert.equal(await next.count(user), 3n * WHOLE);
  }
  const again = await merge(next, "a", "b") as MergeReport;
  assert.equal(again.alreadyMerged, true);
  for (const hold of holds) {
    assert.equal(await next.settle("release", hold, ownerOf("reservation", hold) as number), "ok");
  }
  assert.equal(await next.count("a"), 0n);
});

Deno.test("a term that fails while a merge waits fails the merge and what waits behind it", async () => {
  const { store, runtime } = await withUsers("a", "b", "c");
  const { wait, open } = barrier();
  store.hooks.drain = () => wait;
  const calls: Promise<unknown>[] = [merge(runtime, "a", "b"), merge(runtime, "b", "c")];
  await settleLoop();
  calls.push(runtime.reserve("a", 1), runtime.count("b"));
  calls.forEach((call) => call.catch(() => {}));
  await settleLoop();
  runtime.term.fail(new Error("a crash"));
  for (const outcome of await inTime([Promise.allSettled(calls)])) {
    for (const each of outcome) {
      assert.ok(each.status === "rejected" && each.reason instanceof Unavailable, JSON.stringify(each));
    }
  }
  delete store.hooks.drain;
  open();
  await settleLoop();
  using next = await startRuntime(store);
  await assertApart(next, { a: 1n, b: 2n, c: 3n });
});

Deno.test("a merge whose reads fail is unavailable, changes nothing, and works when sent again", async () => {
  const { store, runtime, end } = await withUsers("a", "b");
  store.beforeWhole = () => Promise.reject(new Error("The database is away"));
  await assert.rejects(merge(runtime, "a", "b"), Unavailable);
  await assertApart(runtime, { a: 1n, b: 2n });
  store.beforeWhole = null;
  assert.ok(isMerge(await merge(runtime, "a", "b")));
  end();
});

Deno.test("a merge waits for the calls before it, and what they load is settled for the canonical user", async () => {
  const { store, runtime, holds, end } = await withUsers("a", "b");
  const [ofA] = holds as [string];
  const owner = ownerOf("reservation", ofA) as number;
  runtime.advance(11 * 60_000);
  await runtime.count("a");
  await runtime.term.flush();
  runtime.passivate();
  await runtime.count("a");
  const { wait, open } = barrier();
  store.hooks.loadReservation = () => wait;
  const late = runtime.settle("commit", ofA, owner);
  const merging = merge(runtime, "a", "b");
  const again = runtime.settle("commit", ofA, owner);
  assert.equal(await isSettled(merging), false);
  open();
  assert.equal(await late, "ok");
  assert.equal((await merging as MergeReport).moved.reservations, 1);
  assert.equal(await again, "reservation_not_pending");
  assert.equal(await runtime.count("b"), 1n * WHOLE);
  end();
});

Deno.test("a user whose state broke is unavailable to merges that wait, and comes back", async () => {
  const { store, runtime, end } = await withUsers("a", "b", "c");
  const { wait, open } = barrier();
  store.beforeWhole = () => wait;
  const dry = merge(runtime, "a", "b", true);
  await settleLoop();
  const broken: Runtime["realm"] = {
    ...runtime.realm,
    now: () => {
      throw new Error("a bug");
    },
  };
  const bug = runtime.term.directory.runById("a", { realm: broken, name: "usage", input: { event: null } });
  const waiting = [merge(runtime, "a", "b"), merge(runtime, "c", "a"), runtime.count("a")];
  for (const call of [bug, ...waiting]) call.catch(() => {});
  open();
  assert.equal((await dry as MergeReport).dryRun, true);
  await assert.rejects(bug, /a bug/);
  for (const outcome of (await inTime([Promise.allSettled(waiting)])).flat()) {
    if (outcome.status === "rejected") {
      assert.ok(outcome.reason instanceof Unavailable, String(outcome.reason));
    }
  }
  await runtime.term.flush();
  await settleLoop();
  const outcome = await merge(runtime, "a", "b");
  assert.equal(typeof outcome, "object");
  end();
});

Deno.test("a hold that lapses while a merge reads is in its report like all others", async () => {
  const { store, runtime, end } = await withUsers("from", "to");
  store.beforeWhole = () => {
    runtime.advance(3_600_000);
    return Promise.resolve();
  };
  const report = await merge(runtime, "from", "to") as MergeReport;
  assert.equal(report.moved.reservations, 1);
  end();
});
