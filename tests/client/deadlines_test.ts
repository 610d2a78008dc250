// What takes too long is ended, in the order of its time, with one timer for all that have the same.

import assert from "node:assert/strict";
import { Deadlines } from "../../src/client/deadlines.ts";

Deno.test("what is not cleared ends, in the order of its begin; what is cleared does not, and leaves no timer", async () => {
  const deadlines = new Deadlines();
  const ended: string[] = [];
  const last = Promise.withResolvers<void>();
  const clearFirst = deadlines.set(5, () => ended.push("first"));
  const clearSecond = deadlines.set(5, () => ended.push("second"));
  deadlines.set(5, () => {
    ended.push("third");
    clearFourth();
    // It ends a call, which begins again.
    deadlines.set(5, () => {
      ended.push("again");
      last.resolve();
    });
  });
  const clearFourth = deadlines.set(5, () => ended.push("fourth"));
  clearFirst();
  await last.promise;
  clearSecond();
  assert.deepEqual(ended, ["second", "third", "again"]);
  // A timer that stayed would fail this test.
  deadlines.set(60_000, () => {})();
});
