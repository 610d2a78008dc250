// `deno task attack`: attacks the real program and shows how another tenant fared. Exits with status 1 where a call of
// that tenant failed, its p99 or the memory passed the bound, or an attacker achieved something.

import { parseArgs } from "node:util";
import { testServerUrl } from "../support/test_store.ts";
import { ATTACKS } from "./attacks.ts";
import { type AttackReport, faultsOf, runAttack } from "./run.ts";

const HELP = `deno task attack [--seconds N] [--only TEXT]

  --seconds N   how long each attack goes on (default: 15)
  --only TEXT   only attacks with this in their name

HOLDFAST_TEST_DATABASE_URL names a PostgreSQL server; without it, the embedded store is attacked.

${ATTACKS.map(({ name }) => `  ${name}`).join("\n")}`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "15" },
    only: { type: "string", default: "" },
    help: { type: "boolean" },
  },
});
if (values.help) {
  console.log(HELP);
  Deno.exit(0);
}
let failed = 0;
for (const attack of ATTACKS) {
  if (!attack.name.includes(values.only) || attack.needsServer && testServerUrl() === null) continue;
  const report = await runAttack(attack, Number(values.seconds));
  const faults = faultsOf(report, { isTimed: true });
  console.log(lineOf(report));
  for (const fault of faults) console.log(`    ${fault}`);
  failed += faults.length > 0 ? 1 : 0;
}
console.log(failed === 0 ? "No attack harmed the other tenant." : `${failed} attacks did harm.`);
Deno.exit(failed === 0 ? 0 : 1);

function lineOf({ name, calls, p50Ms, p99Ms, maxMs, rssMb }: AttackReport): string {
  const times = `p50 ${p50Ms.toFixed(1)}  p99 ${p99Ms.toFixed(0)}  max ${maxMs.toFixed(0)} ms`;
  return `${name.padEnd(40)} ${String(calls).padStart(5)} calls  ${times}  ${rssMb} MB`;
}
