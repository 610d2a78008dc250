// Short runs of the simulator, and proof that it finds bugs that are planted; simulation_long_test.ts plants them all.

import assert from "node:assert/strict";
import { PLANTED } from "./planted/bugs.ts";
import { STEPS, testFinds } from "./planted/hunt.ts";
import { simulate } from "./simulation.ts";

Deno.test("a run is a function of its seed", async () => {
  const first = await simulate({ seed: 11, steps: 100 });
  const again = await simulate({ seed: 11, steps: 100 });
  const other = await simulate({ seed: 12, steps: 100 });
  assert.equal(first.trace, again.trace);
  assert.equal(first.events, again.events);
  assert.notEqual(first.trace, other.trace);
});

for (const seed of [1, 2]) {
  Deno.test(`nothing is wrong with seed ${seed}`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS })).violation, null);
  });
}

// One of the output gate, one of the drain, one of the rules.
const SOME = [
  "an answer leaves before its changes are appended",
  "a batch is drained again after a takeover",
  "a quota counts twice",
];
for (const bug of PLANTED) if (SOME.includes(bug.name)) testFinds(bug);
