// Short runs of the simulator, and proof that it finds bugs that are planted; simulation_long_test.ts plants them all.

import assert from "node:assert/strict";
import { PLANTED } from "./planted/bugs.ts";
import { STEPS, testFinds } from "./planted/hunt.ts";
import { simulate } from "./simulation.ts";

Deno.test("three nodes pass calls on and hand cells over, and nothing is wrong", async () => {
  const { violation, moves } = await simulate({ seed: 1, steps: STEPS, nodes: 3 });
  assert.equal(violation, null);
  for (const name of ["passedOn", "sentAgain", "cellsHandedOver", "cellsRescued"]) {
    assert.ok(moves.some((each) => (each[name] ?? 0) > 0), `no process has counted ${name}`);
  }
});

Deno.test("a run is a function of its seed", async () => {
  const first = await simulate({ seed: 11, steps: 100 });
  const again = await simulate({ seed: 11, steps: 100 });
  const other = await simulate({ seed: 12, steps: 100 });
  assert.equal(first.trace, again.trace);
  assert.equal(first.events, again.events);
  assert.notEqual(first.trace, other.trace);
});

Deno.test("nothing is wrong with seed 1", async () => {
  const { violation, stripe } = await simulate({ seed: 1, steps: STEPS });
  assert.equal(violation, null);
  assert.ok((stripe.get("taken") ?? 0) > 0, "some pay by Stripe");
});

Deno.test("nothing is wrong where every workspace has rates, overage or included packs", async () => {
  assert.equal((await simulate({ seed: 5, steps: STEPS, money: 1 })).violation, null);
});

Deno.test("nothing is wrong where a service has two databases, and all trouble is of one", async () => {
  const { violation, faults, moves } = await simulate({ seed: 4, steps: 150, databases: 2 });
  assert.equal(violation, null);
  assert.ok(["away", "frozen", "unreachable", "cut"].some((kind) => faults.has(kind)), "there is trouble");
  assert.ok(moves.some(({ passedOn = 0 }) => passedOn > 0), "calls are passed on");
});

// One of the output gate, one of cells, one of Stripe.
const SOME = [
  "an answer leaves before its changes are appended",
  "caps are not loaded with the cell",
  "a refund looks only for what is known when it comes",
];
for (const bug of PLANTED) if (SOME.includes(bug.name)) testFinds(bug);
