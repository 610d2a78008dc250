// Attacks beside another tenant's calls: none of its calls fails, and no attacker achieves anything. `deno task attack`
// measures latency too, on a machine that runs nothing else.

import assert from "node:assert/strict";
import { testServerUrl } from "../support/test_store.ts";
import { isDeep } from "../support/depth.ts";
import { ATTACKS } from "./attacks.ts";
import { faultsOf, runAttack } from "./run.ts";

const SECONDS = isDeep ? 5 : 1.5;
/** A quarter of the task's: other tests run beside. */
const RATE = 50;
/**
 * A slow read only has to outlast others: with these rows it takes some 50 ms. Forty readers wait for it at every moment,
 * and all that still wait at the end of the attack are answered.
 */
const PART = isDeep ? 1 : 0.05;

for (const attack of ATTACKS.slice(1)) {
  Deno.test({
    name: `another tenant is not harmed by ${attack.name}`,
    ignore: attack.needsServer === true && testServerUrl() === null,
    fn: async () => {
      const report = await runAttack(attack, SECONDS, { rate: RATE, part: PART });
      assert.deepEqual(faultsOf(report, { isTimed: false }), [], JSON.stringify(report));
      assert.ok(report.calls > 0);
    },
  });
}
