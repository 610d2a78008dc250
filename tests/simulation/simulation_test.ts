// Short runs of the simulator: what it finds in a longer search becomes a seed here or a test of its own.

import assert from "node:assert/strict";
import { simulate } from "tests/simulation/simulation.ts";

Deno.test("a run is a function of its seed", async () => {
  const first = await simulate({ seed: 11, steps: 150 });
  const again = await simulate({ seed: 11, steps: 150 });
  const other = await simulate({ seed: 12, steps: 150 });
  assert.equal(first.trace, again.trace);
  assert.equal(first.events, again.events);
  assert.notEqual(first.trace, other.trace);
});

for (const seed of [1, 2, 3, 4]) {
  Deno.test(`nothing is wrong with seed ${seed}`, async () => {
    const { violation } = await simulate({ seed, steps: 250 });
    assert.equal(violation, null);
  });
}
