// `decide` and `merge` under the model's workload with merging users: answers as predicted, dry runs that report what
// the real run then reports, balanced books over aliases, and the same when every state is loaded again.

import assert from "node:assert/strict";
import { DecideSystem } from "./decide_system.ts";
import { catalogs } from "../model/catalogs.ts";
import { drive } from "../model/drive.ts";

const STEPS = 2_000;

for (const [name, catalog] of Object.entries(catalogs)) {
  Deno.test(`merges over "${name}" answer as the model predicts, with balanced books`, async () => {
    for (const seed of [1, 2, 3]) {
      const system = new DecideSystem({ catalog, merges: true });
      const send = (request: Parameters<DecideSystem["send"]>[0], now: number) => system.send(request, now);
      await drive({ catalog, seed, steps: STEPS, merges: true, send });
      assert.ok(system.aliases.size > 5);
    }
  });

  Deno.test(`users merged over "${name}" and loaded again answer as those that stayed`, async () => {
    for (const seed of [4, 5]) {
      const system = new DecideSystem({ catalog, merges: true, reloadEvery: 3 });
      const send = (request: Parameters<DecideSystem["send"]>[0], now: number) => system.send(request, now);
      await drive({ catalog, seed, steps: STEPS, merges: true, send });
    }
  });
}
