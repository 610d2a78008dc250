// The hunt for planted bugs: seed after seed until a checker finds what was planted.

import assert from "node:assert/strict";
import type { PlantedBug } from "./plant.ts";
import { type RunOptions, simulate } from "../simulation.ts";

/** Calls of one run. */
export const STEPS = 300;
/** Seeds tried for a planted bug. */
export const SEEDS_A_BUG = 60;

/** A seed at which a bug shows soon; the others show at the first. Only a shortcut: the hunt goes on from there. */
const SHOWS_FROM: Readonly<Record<string, number>> = {
  "a batch is drained again after a takeover": 4,
  "users do not stand still while they are merged": 5,
  "an idempotency key answers whoever brings it": 2,
  "the lease is not looked at before an answer": 16,
  "the locks of cells are given to everybody": 34,
  "actors leave memory before the tables have their changes": 5,
  "the cap lets one operation more through": 4,
  "a move of the test clock is not kept": 10,
  "a term whose last drain left nothing is not replayed": 17,
  "a cell is handed over without the drain": 15,
  "a term is replayed once more after its cells have changed hands": 2,
  "a version of the registry is confirmed before it is in force": 103,
  "calls that wait at a door are forgotten at a hand-over": 11,
  "calls that wait at a door run here although the cell has gone": 15,
  "a call whose answer was lost is sent again": 5,
  "a member's cells are served while it may still answer": 174,
  "a user is loaded by key alone": 16,
  "refunds go to balances in the wrong order": 3,
  "an owner runs what it is passed without a look at its cell": 3,
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
      const { violation } = await simulate(worldOf(bug, seed));
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
    const { violation } = await simulate(worldOf(bug, found.seed));
    assert.equal(violation, null, `seed ${found.seed} fails without the bug too`);
  });
}

/** The world in which a bug is looked for. */
function worldOf({ members, troubles, stripe = false }: PlantedBug, seed: number): RunOptions {
  return { seed, steps: STEPS, members, troubles, stripe };
}
