// The hunt for planted bugs: runs until a checker finds what was planted, and the seeds that are written down for it.

import assert from "node:assert/strict";
import { isDeep } from "../../support/depth.ts";
import { simulate } from "../simulation.ts";
import type { Outcome, RunOptions } from "../plans.ts";
import type { Violation } from "../watch.ts";
import type { PlantedBug } from "./plant.ts";
import seeds from "./seeds.json" with { type: "json" };

/** Calls of one run. */
export const STEPS = 300;

/** Writes fresh seeds for the bugs that no longer show where they did. */
const COMMAND = "deno task sim --planted --write";

/** A run in which a bug shows. */
export interface Place {
  readonly seed: number;
  readonly steps: number;
}

/** A run that a checker ended, and how. */
export interface Catch extends Place, Violation {}

/** Kinds of runs in which a bug is looked for, and how many seeds of each: short ones first, which cost a fourth. */
const LENGTHS = [[40, 15], [100, 60], [STEPS, 120]] as const;

/** How many more runs are looked at where a world stands still. */
const MORE_SEEDS = 5;

/** Where a bug showed when that was written down. */
export function knownPlaceOf({ name }: PlantedBug): Place | undefined {
  return (seeds as Readonly<Record<string, Place>>)[name];
}

/**
 * Looks for a run in which a bug shows, and in which nothing is wrong without it; null where no seed has one. A world that
 * stands still says little of a bug, so a few more runs of that length are looked at for one that another checker ends.
 */
export async function hunt(bug: PlantedBug): Promise<Catch | null> {
  const known = knownPlaceOf(bug);
  const shown = known === undefined ? null : await lookAt(bug, known);
  if (shown !== null) return shown;
  for (const [steps, last] of LENGTHS) {
    let still: Catch | null = null;
    for (let seed = 1; seed <= (still === null ? last : still.seed + MORE_SEEDS); seed++) {
      const found = await lookAt(bug, { seed, steps });
      if (found !== null && found.checker !== "liveness") return found;
      still ??= found;
    }
    if (still !== null) return still;
  }
  return null;
}

async function lookAt(bug: PlantedBug, place: Place): Promise<Catch | null> {
  const violation = await violationWith(bug, place);
  const isFound = violation !== null && await violationWithout(bug, place) === null;
  return isFound ? { ...place, ...violation } : null;
}

/** What a checker finds in a run with a bug. */
async function violationWith(bug: PlantedBug, place: Place): Promise<Violation | null> {
  const takeOut = bug.plant();
  try {
    return (await simulate(worldOf(bug, place))).violation;
  } finally {
    takeOut();
  }
}

/** The same without it: many bugs are looked for in the same world. */
const without = new Map<string, Promise<Outcome>>();

async function violationWithout(bug: PlantedBug, place: Place): Promise<Violation | null> {
  const world = worldOf(bug, place);
  const key = JSON.stringify(world);
  const run = without.get(key) ?? simulate(world);
  without.set(key, run);
  return (await run).violation;
}

/**
 * Registers a test that a bug is found in the run that is written down. That run was looked at without the bug when it was
 * written down.
 */
export function testFinds(bug: PlantedBug): void {
  Deno.test(`a planted bug is found: ${bug.name}`, async () => {
    const place = knownPlaceOf(bug);
    assert.ok(place !== undefined, `it has no seed yet: run "${COMMAND}"`);
    const { seed, steps } = place;
    const violation = await violationWith(bug, place);
    assert.ok(
      violation !== null,
      `it does not show in ${steps} steps of seed ${seed}. After a change of the product's course look for another run: "${COMMAND}"`,
    );
    if (isDeep) assert.equal(await violationWithout(bug, place), null, `seed ${seed} fails without it too`);
  });
}

/** The world in which a bug is looked for. */
function worldOf(
  {
    nodes,
    databases = 1,
    troubles,
    stripe = false,
    batches = false,
    trees = false,
    crew = false,
    userKeys = false,
    windows = false,
    overage = false,
    money = false,
    topUps = false,
    calmMs,
  }: PlantedBug,
  { seed, steps }: Place,
): RunOptions {
  const shares = { windows: windows ? 1 : 0, money: money ? 1 : 0 };
  const kinds = { stripe, batches, trees, crew, userKeys, overage, topUps };
  return { seed, steps, nodes, databases, troubles, calmMs, ...shares, ...kinds };
}
