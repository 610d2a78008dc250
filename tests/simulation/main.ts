// The simulator's command line: `--seed N --steps M` repeats one run, `--minutes N` searches seed after seed.

import { simulate } from "tests/simulation/simulation.ts";
import { storyOf } from "tests/simulation/story.ts";

/** The value of an option, or what stands in for it. */
function option(name: string, otherwise: number): number {
  const place = Deno.args.indexOf(`--${name}`);
  const value = place < 0 ? otherwise : Number(Deno.args[place + 1]);
  if (!Number.isFinite(value)) throw new Error(`--${name} needs a number`);
  return value;
}

const seed = option("seed", 1);
const steps = option("steps", 300);
const outcome = await simulate({ seed, steps });
console.log(`seed ${seed}, ${steps} steps, ${outcome.events} events, trace ${outcome.trace.slice(0, 16)}`);
if (outcome.violation !== null) {
  console.log(`${outcome.violation.checker}: ${outcome.violation.message}`);
  for (const line of storyOf(outcome.calls, outcome.notes, outcome.violation.message)) console.log(line);
  Deno.exit(1);
}
