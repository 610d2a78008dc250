// Watches: what a reading means for a caller that has seen another one; that no change is missed, whenever it comes;
// and that a watch keeps nothing when its cell or its term goes.

import { changedLimits } from "../support/limits.ts";
import assert from "node:assert/strict";
import { CellGone, Unavailable } from "../../actors/port.ts";
import { type Mark, nextAfter, type Reading, type Watched, Watches } from "../../actors/watches.ts";
import { WATCH_LIMITS } from "../../src/process/limits.ts";
import { MemoryStore } from "../support/memory_store.ts";
import { barrier, startRuntime } from "./runtime.ts";

const mark = (id: string, key: number | null, digest: string, passing: readonly string[] = []): Mark => {
  return { id, key, digest, passing };
};
const reading = (
  id: string,
  key: number | null,
  digest: string,
  passing: readonly string[] = [],
): Reading => {
  return { ...mark(id, key, digest, passing), text: digest, changesAt: null, dependsOn: [] };
};

Deno.test("another canonical id is a merge, another key of a stored user an erasure, another digest a state", () => {
  const rows: [seen: Mark, now: Reading, next: string | null][] = [
    [mark("u", 1, "a"), reading("u", 1, "a"), null],
    [mark("u", 1, "a"), reading("u", 1, "b"), "state"],
    [mark("u", 1, "a"), reading("v", 2, "a"), "merged"],
    [mark("u", null, "a"), reading("v", 2, "a"), "merged"],
    [mark("u", 1, "a"), reading("u", 2, "b"), "erased"],
    [mark("u", 1, "a"), reading("u", null, "a"), "erased"],
    [mark("u", null, "a"), reading("u", null, "a"), null],
    [mark("u", null, "a"), reading("u", 2, "b"), "state"],
    [mark("u", 1, "a", ["1", "2"]), reading("u", 1, "a", ["2"]), null],
    [mark("u", 1, "a", ["1", "2"]), reading("u", 1, "a", ["2", "3"]), "state"],
  ];
  for (const [seen, now, next] of rows) {
    assert.equal(nextAfter(seen, now)?.kind ?? null, next, JSON.stringify([seen, now]));
  }
});

/** Watches of one user whose readings a test makes up. */
async function scene() {
  const { term, realm } = await startRuntime(new MemoryStore());
  term.doors.open([realm.cell]);
  const watches = new Watches(term);
  let state = "a";
  let reads = 0;
  let gate: Promise<void> = Promise.resolve();
  const watched: Watched = {
    realm,
    id: "u",
    variant: "",
    read: async () => {
      reads += 1;
      // The state at the begin of the reading, from a turn with a batch that is not durable yet.
      const seen = reading("u", 1, state);
      await gate;
      return seen;
    },
  };
  return {
    term,
    realm,
    watches,
    next: (digest: string, variant = "") => watches.next({ ...watched, variant }, mark("u", 1, digest)),
    set: (to: string) => {
      state = to;
      watches.touch(realm.realm, "u");
    },
    hold: (until: Promise<void>) => gate = until,
    reads: () => reads,
  };
}

const untilRead = async (reads: () => number, count: number) => {
  while (reads() < count) await new Promise((resolve) => setTimeout(resolve, 1));
};

Deno.test("a late caller gets the changes since, and a waiting caller gets a change that a reading has missed", async () => {
  const { next, set, hold, reads, watches, term } = await scene();
  set("b");
  assert.deepEqual(await next("a"), { kind: "state", reading: reading("u", 1, "b") });
  assert.equal(watches.size, 0);
  const { wait, open } = barrier();
  hold(wait);
  const late = next("b");
  await untilRead(reads, 2);
  set("c");
  open();
  assert.deepEqual(await late, { kind: "state", reading: reading("u", 1, "c") });
  assert.equal(watches.size, 0);
  term.fail(new Error("over"));
});

Deno.test("those who have seen the same share a reading", async () => {
  const { next, set, reads, term } = await scene();
  const first = next("a");
  await untilRead(reads, 1);
  const others = Array.from({ length: 50 }, () => next("a"));
  set("b");
  for (const { kind } of await Promise.all([first, ...others])) assert.equal(kind, "state");
  assert.ok(reads() <= 3, `${reads()} readings`);
  term.fail(new Error("over"));
});

Deno.test("a wait ends with its time, its cell, its user and its term, and leaves nothing behind", async () => {
  const { next, watches, realm, term } = await scene();
  {
    using _limits = changedLimits(WATCH_LIMITS, { waitMs: 0 });
    assert.deepEqual(await next("a"), { kind: "same" });
  }
  const dropped = next("a");
  watches.dropRealms([realm.realm]);
  await assert.rejects(dropped, CellGone);
  const erased = next("a");
  watches.endErased(realm.realm, "u");
  assert.deepEqual(await erased, { kind: "erased" });
  const gone = next("a");
  term.doors.give([realm.cell]);
  await assert.rejects(gone, CellGone);
  const ended = next("a");
  watches.close(new Unavailable("The term ended"));
  await assert.rejects(ended, Unavailable);
  assert.deepEqual([watches.size, watches.sizeOf(realm.realm)], [0, 0]);
  term.fail(new Error("over"));
  await assert.rejects(next("a"), Unavailable);
});

Deno.test("a user has few different readings: all of them are made after every change", async () => {
  using _limits = changedLimits(WATCH_LIMITS, { variantsMax: 2, readEveryMs: 0 });
  const { next, set, watches, term } = await scene();
  const waiting = ["", "image.*", ""].map((variant) => next("a", variant));
  await assert.rejects(next("a", "chat.*"), Unavailable);
  assert.equal(watches.size, 2);
  set("b");
  for (const one of await Promise.all(waiting)) assert.equal(one.kind, "state");
  assert.equal((await next("a", "chat.*")).kind, "state");
  term.fail(new Error("over"));
});
