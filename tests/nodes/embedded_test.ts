// The embedded store has one process at a time: a start right after a kill takes everything at once.

import assert from "node:assert/strict";
import { CELLS } from "../../actors/doors.ts";
import { makeIdSource } from "../../src/process/id_source.ts";
import { CELL_LIMITS } from "../../src/process/limits.ts";
import { ManualClock, startProcess, TEST_FEATURES } from "../support/test_service.ts";
import { limitsOfFile } from "../support/limits.ts";
import { openTestStore, testServerUrl } from "../support/test_store.ts";

// A process that misses an owner is not ready at once.
limitsOfFile(CELL_LIMITS, { unreachableMs: 0 });

Deno.test({
  name: "a start right after a kill owns every cell, with other settings too",
  ignore: testServerUrl() !== null,
  fn: async () => {
    const store = await openTestStore();
    const clock = new ManualClock();
    const parts = { store, clock, ids: makeIdSource(clock), features: TEST_FEATURES };
    // Never stopped: its row has a recent heartbeat.
    const killed = await startProcess(parts);
    const features = { ...TEST_FEATURES, publicUrl: "https://other.example.com" };
    const { service } = await startProcess({ ...parts, features });
    assert.equal(service.requireServing().term.doors.held.length, CELLS);
    assert.equal(service.isReady, true, "the cells of the killed process are counted once they are here");
    await service.stop();
    await killed.service.stop();
    await store.close();
  },
});
