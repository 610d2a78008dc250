// What a stop waits for before it frees its cells.

import assert from "node:assert/strict";
import { visit } from "../../actors/visit.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { rest } from "../../src/process/rest.ts";
import { ManualClock, startProcess, TEST_FEATURES } from "../support/test_service.ts";
import { openTestStore } from "../support/test_store.ts";

const CELL = 7;

Deno.test("a stop in the middle of a sweep's step waits for it, and frees every cell", async () => {
  const store = await openTestStore();
  const clock = new ManualClock();
  const ids = makeIdSource(clock);
  const { service } = await startProcess({ store, clock, ids, features: TEST_FEATURES });
  try {
    const { term } = service.requireServing();
    const step = visit(term, CELL, async () => {
      while (term.doors.isOpen(CELL)) await rest(5);
      await rest(60);
    });
    await service.stop();
    await step;
    const [left] = await store.database.query(
      "select count(*)::int as cells from cells where term is not null",
    );
    assert.deepEqual(left, { cells: 0 });
  } finally {
    await store.close();
  }
});
