// Runs of the simulator over more seeds, and the bugs planted in worlds of any number of nodes; cluster_long_test.ts plants
// the others. A seed that a search found becomes a line here, or a test of its own where the bug was.

import assert from "node:assert/strict";
import { PLANTED } from "./planted/bugs.ts";
import { STEPS, testFinds } from "./planted/hunt.ts";
import { simulate } from "./simulation.ts";
import { seedsFrom } from "../support/depth.ts";

// In 676 other users have turns while a merge reads, all at one moment, and join its users' ledger later.
// In 20353 a reserve that its client had given up arrives when all calls are over, and holds for another day.
// In 463 a message is due again as it lands, while its webhook is looked at.
// All of them are of worlds without Stripe, without keys of users, and without members who call at once.
for (const seed of [...seedsFrom(3, 1, 16), 463, 676, 20353]) {
  Deno.test(`nothing is wrong with seed ${seed}`, async () => {
    const kinds = { stripe: false, userKeys: false, crew: false, money: 0 };
    assert.equal((await simulate({ seed, steps: STEPS, ...kinds })).violation, null);
  });
}

for (const seed of seedsFrom(11, 1, 16)) {
  Deno.test(`nothing is wrong with seed ${seed} where some pay by Stripe`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS })).violation, null);
  });
}

for (const seed of seedsFrom(2, 2)) {
  Deno.test(`nothing is wrong with seed ${seed} where members of an organisation call at once`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS, crew: true, stripe: false })).violation, null);
  });
}

// In 2 a group has sold and holds more than its quota after a merge; in 8 a merge cuts rollovers.
for (const seed of [2, 8, ...seedsFrom(14, 1)]) {
  Deno.test(`nothing is wrong with seed ${seed} where all have rates, overage or included packs`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS, money: 1 })).violation, null);
  });
}

for (const seed of seedsFrom(10, 1)) {
  Deno.test(`nothing is wrong with seed ${seed} where groups sell past their quotas`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS, overage: true, money: 0 })).violation, null);
  });
}

// In those with an even number all trouble is of one database.
for (const seed of seedsFrom(5, 2, 24)) {
  Deno.test(`nothing is wrong with seed ${seed} where a service has two databases`, async () => {
    assert.equal((await simulate({ seed, steps: STEPS, databases: 2 })).violation, null);
  });
}

// In 26 the clock of one machine is half an hour ahead, and its cells go to others.
Deno.test("nothing is wrong with seed 26 where some buy automatically", async () => {
  assert.equal((await simulate({ seed: 26, steps: STEPS, money: 0 })).violation, null);
});

// In 149 a grant is refused because of another user's, which is lost with its term.
Deno.test("nothing is wrong with three nodes and seed 149", async () => {
  assert.equal(
    (await simulate({ seed: 149, steps: STEPS, nodes: 3, stripe: false, userKeys: false, money: 0 }))
      .violation,
    null,
  );
});

for (const bug of PLANTED) if (bug.nodes === undefined) testFinds(bug);
