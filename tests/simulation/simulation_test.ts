// Short runs of the simulator, and proof that it finds what is planted. A seed that a search found becomes a line
// here, or a test of its own where the bug was.

import assert from "node:assert/strict";
import { hunt, plantedBug } from "tests/simulation/planted/hunt.ts";
import { simulate } from "tests/simulation/simulation.ts";

const STEPS = 200;

Deno.test("a run is a function of its seed", async () => {
  const first = await simulate({ seed: 11, steps: 100 });
  const again = await simulate({ seed: 11, steps: 100 });
  const other = await simulate({ seed: 12, steps: 100 });
  assert.equal(first.trace, again.trace);
  assert.equal(first.events, again.events);
  assert.notEqual(first.trace, other.trace);
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  Deno.test(`nothing is wrong with seed ${seed}`, async () => {
    const { violation } = await simulate({ seed, steps: STEPS });
    assert.equal(violation, null);
  });
}

for (
  const [name, checkers] of [
    ["an answer leaves before its changes are appended", /answers/],
    ["holds never lapse", /liveness|linear/],
    ["a released hold can be committed", /holds/],
    ["the lease is given to everybody", /books|answers/],
    ["an idempotency key answers whoever brings it", /answers/],
    ["the drain loses a row now and then", /books|answers|tables|linear/],
  ] as const
) {
  Deno.test(`what is planted is found: ${name}`, async () => {
    const found = await hunt(plantedBug(name), 3, STEPS);
    assert.match(found?.checker ?? "nothing", checkers);
  });
}
