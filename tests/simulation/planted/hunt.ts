// The hunt for planted bugs: seed after seed until a checker finds what was planted.

import assert from "node:assert/strict";
import type { PlantedBug } from "./plant.ts";
import { simulate } from "../simulation.ts";

/** Calls of one run. */
export const STEPS = 300;
/** Seeds tried for a planted bug. */
export const SEEDS_A_BUG = 60;

/** The first seed at which some bugs show; the others show at once. Only a shortcut: the hunt goes on from there. */
const SHOWS_FROM: Readonly<Record<string, number>> = {
  "a load leaves out the running window": 8,
  "the lease is not looked at before an answer": 26,
  "actors leave memory before the tables have their changes": 8,
  "a term goes on after a failed write": 8,
  "the cap lets one operation more through": 29,
  "a move of the test clock is not kept": 4,
};

/** How a bug was found; null where no seed did. */
export interface Catch {
  readonly seed: number;
  readonly checker: string;
  readonly message: string;
}

/** Plants a bug and looks for it. */
export async function hunt(bug: PlantedBug, from = 1, seeds = SEEDS_A_BUG): Promise<Catch | null> {
  for (let seed = from; seed < from + seeds; seed++) {
    const takeOut = bug.plant();
    try {
      const { violation } = await simulate({ seed, steps: STEPS, members: bug.members });
      if (violation !== null) return { seed, ...violation };
    } finally {
      takeOut();
    }
  }
  return null;
}

/** Registers a test that a bug is found by a seed with which nothing is wrong otherwise. */
export function testFinds(bug: PlantedBug): void {
  Deno.test(`a planted bug is found: ${bug.name}`, async () => {
    const found = await hunt(bug, SHOWS_FROM[bug.name]);
    assert.ok(found !== null, `no seed of ${SEEDS_A_BUG} finds it`);
    const { violation } = await simulate({ seed: found.seed, steps: STEPS, members: bug.members });
    assert.equal(violation, null, `seed ${found.seed} fails without the bug too`);
  });
}
