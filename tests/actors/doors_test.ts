// The doors of cells: every waiting call ends in exactly one way, and a cell is handed over only when it is empty.

import assert from "node:assert/strict";
import { Doors } from "../../actors/doors.ts";
import { Unavailable } from "../../actors/port.ts";
import { isSettled } from "./runtime.ts";

const CELL = 7;
const OTHER = 8;

function openDoors(): Doors {
  const doors = new Doors();
  doors.open([CELL, OTHER]);
  return doors;
}

/** Doors with a shut cell at which a call waits. */
function doorsWithWaiting(): { doors: Doors; waiting: Promise<boolean> } {
  const doors = openDoors();
  void doors.shut([CELL]);
  const waiting = doors.enter(CELL);
  assert.ok(waiting instanceof Promise);
  return { doors, waiting };
}

/** Runs a test that fires the timers itself. */
async function withTimers(work: (runTimers: () => void) => Promise<void>): Promise<void> {
  const { setTimeout: realSet, clearTimeout: realClear } = globalThis;
  const timers = new Map<number, () => void>();
  let last = 0;
  globalThis.setTimeout = ((run: () => void) => {
    timers.set(++last, run);
    return last;
  }) as unknown as typeof setTimeout;
  globalThis.clearTimeout = ((id: number) => timers.delete(id)) as unknown as typeof clearTimeout;
  try {
    await work(() => {
      for (const run of timers.values()) run();
    });
  } finally {
    Object.assign(globalThis, { setTimeout: realSet, clearTimeout: realClear });
  }
}

Deno.test("a call enters an open door at once, and a cell that is not here never", () => {
  const doors = openDoors();
  assert.equal(doors.enter(CELL), true);
  assert.equal(doors.tryEnter(CELL), true);
  assert.equal(doors.enter(CELL + 2), false);
  assert.equal(doors.tryEnter(CELL + 2), false);
  assert.deepEqual(doors.held, [CELL, OTHER]);
});

Deno.test("a shut door lets no call in, its cell is still here, and its neighbours stay open", async () => {
  const { doors, waiting } = doorsWithWaiting();
  assert.equal(doors.tryEnter(CELL), false);
  assert.deepEqual([doors.isOpen(CELL), doors.isHere(CELL)], [false, true]);
  assert.equal(doors.tryEnter(OTHER), true);
  assert.equal(await isSettled(waiting), false);
  doors.give([CELL]);
});

Deno.test("shutting ends when the last one inside has left every cell", async () => {
  const doors = openDoors();
  doors.tryEnter(CELL);
  doors.tryEnter(CELL);
  doors.tryEnter(OTHER);
  const shut = doors.shut([CELL, OTHER, 9]);
  doors.leave(CELL);
  doors.leave(OTHER);
  assert.equal(await isSettled(shut), false);
  doors.leave(CELL);
  assert.equal(await isSettled(shut), true);
});

Deno.test("work that remains after its call keeps a cell here, also behind a shut door", async () => {
  const doors = openDoors();
  doors.tryEnter(CELL);
  const shut = doors.shut([CELL]);
  doors.remain(CELL);
  doors.leave(CELL);
  assert.equal(await isSettled(shut), false);
  doors.leave(CELL);
  assert.equal(await isSettled(shut), true);
});

Deno.test("who waits comes in when the door opens again, and counts as inside", async () => {
  const { doors, waiting } = doorsWithWaiting();
  doors.open([CELL]);
  assert.equal(await waiting, true);
  const shut = doors.shut([CELL]);
  assert.equal(await isSettled(shut), false, "it is still inside");
  doors.leave(CELL);
  assert.equal(await isSettled(shut), true);
});

Deno.test("a waiting call learns that the cell is given away, and does not enter", async () => {
  const { doors, waiting } = doorsWithWaiting();
  doors.give([CELL]);
  assert.equal(await waiting, false);
  assert.deepEqual([doors.isHere(CELL), doors.isHere(OTHER), doors.held], [false, true, [OTHER]]);
  doors.open([CELL]);
  assert.equal(await isSettled(doors.shut([CELL])), true, "no call is inside");
});

Deno.test("who waits too long is refused once, and neither opening nor giving reaches it any more", () =>
  withTimers(async (runTimers) => {
    const { doors, waiting } = doorsWithWaiting();
    runTimers();
    doors.open([CELL]);
    await assert.rejects(waiting, Unavailable);
    assert.equal(await isSettled(doors.shut([CELL])), true, "it never came in");
  }));

Deno.test("a call that entered, or learned that the cell has gone, is not refused later", () =>
  withTimers(async (runTimers) => {
    const first = doorsWithWaiting();
    first.doors.open([CELL]);
    const second = doorsWithWaiting();
    second.doors.give([CELL]);
    runTimers();
    assert.deepEqual(await Promise.all([first.waiting, second.waiting]), [true, false]);
  }));

Deno.test("the end of a term refuses who waits with the term's fault, and every cell is gone", async () => {
  const { doors, waiting } = doorsWithWaiting();
  const fault = new Unavailable("The term ended");
  doors.close(fault);
  await assert.rejects(waiting, fault);
  assert.deepEqual(doors.held, []);
  assert.equal(doors.enter(OTHER), false);
});

Deno.test("a cell is pinned until the last long call in it has ended", () => {
  const doors = openDoors();
  doors.pin(CELL);
  doors.pin(CELL);
  doors.unpin(CELL);
  assert.deepEqual([doors.isPinned(CELL), doors.isPinned(OTHER)], [true, false]);
  doors.unpin(CELL);
  assert.equal(doors.isPinned(CELL), false);
});

Deno.test("a door that is opened again before it is empty leaves nothing of its shutting behind", async () => {
  const doors = openDoors();
  doors.tryEnter(CELL);
  const dropped = doors.shut([CELL]);
  doors.open([CELL]);
  assert.equal(await isSettled(dropped), true, "the wait for an empty cell ends");
  const again = doors.shut([CELL]);
  assert.equal(await isSettled(again), false);
  doors.leave(CELL);
  assert.equal(await isSettled(again), true);
});

Deno.test("all that wait for a door to be empty are notified", async () => {
  const doors = openDoors();
  doors.tryEnter(CELL);
  const first = doors.shut([CELL]);
  const second = doors.shut([CELL]);
  doors.leave(CELL);
  assert.deepEqual([await isSettled(first), await isSettled(second)], [true, true]);
});

Deno.test("a sealed door does not open again, and neither does that of a cell that comes later", async () => {
  const { doors, waiting } = doorsWithWaiting();
  doors.seal();
  doors.open([CELL, 9]);
  assert.equal(await isSettled(waiting), false);
  assert.deepEqual([doors.tryEnter(CELL), doors.tryEnter(OTHER), doors.isHere(9)], [false, false, false]);
  assert.deepEqual(doors.held, [CELL, OTHER]);
  doors.give([CELL]);
  assert.equal(await waiting, false);
});
