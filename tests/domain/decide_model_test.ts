// `decide` alone under the model's workload: answers as predicted, pure and repeatable, with balanced books at every
// step, and the same whether due things are settled at once or late, and whether state stayed in memory or was
// loaded again (laws 1, 2, 4, 5 and 6 of the architecture).

import assert from "node:assert/strict";
import { DecideSystem } from "./decide_system.ts";
import { catalogs } from "../model/catalogs.ts";
import { drive } from "../model/drive.ts";
import { Workload } from "../model/workload.ts";

const STEPS = 3_000;

for (const [name, catalog] of Object.entries(catalogs)) {
  Deno.test(`decide answers over "${name}" as the model predicts, with balanced books`, async () => {
    for (const seed of [1, 2, 3]) {
      const system = new DecideSystem({ catalog });
      await drive({ catalog, seed, steps: STEPS, send: (request, now) => system.send(request, now) });
      assert.ok(system.auditor.counters.size > 10);
    }
  });

  Deno.test(`a state that is loaded again over "${name}" answers as one that stayed`, async () => {
    for (const seed of [4, 5]) {
      const system = new DecideSystem({ catalog, reloadEvery: 3 });
      await drive({ catalog, seed, steps: STEPS, send: (request, now) => system.send(request, now) });
    }
  });

  Deno.test(`settling at each due moment over "${name}" gives what settling at the next call gives`, () => {
    for (const seed of [6, 7]) {
      const lazy = new DecideSystem({ catalog });
      const eager = new DecideSystem({ catalog, eager: true });
      const workload = new Workload({ catalog, seed });
      for (let index = 0; index < STEPS; index++) {
        const step = workload.next();
        const late = lazy.send(structuredClone(step.request), workload.nowMs);
        const prompt = eager.send(structuredClone(step.request), workload.nowMs);
        assert.deepEqual(prompt, late, `seed ${seed}, step ${index}`);
        workload.observe(step, late);
      }
      lazy.settleEagerly(workload.nowMs);
      eager.settleEagerly(workload.nowMs);
      assert.deepEqual(booksOf(eager), booksOf(lazy));
    }
  });
}

/** Everything that was written, without the marks that say when to look next. */
function booksOf(system: DecideSystem) {
  return {
    counters: system.auditor.counters,
    reservations: system.auditor.reservations,
    events: system.events.map(({ id }) => id).sort(),
    history: system.history,
    operations: system.operations,
    entitlements: [...system.states.values()].map(({ user }) => user.entitlement),
    subscriptions: [...system.states.values()].map(({ subscriptions }) => subscriptions),
  };
}
