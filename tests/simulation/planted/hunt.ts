// The hunt for planted bugs: seed after seed until a checker finds what was planted.

import { PLANTED, type PlantedBug } from "tests/simulation/planted/bugs.ts";
import { simulate } from "tests/simulation/simulation.ts";

/** How a bug was found; null where no seed did. */
export interface Catch {
  readonly seed: number;
  readonly checker: string;
  readonly message: string;
}

/** Plants a bug and looks for it. */
export async function hunt(bug: PlantedBug, seeds: number, steps: number, from = 1): Promise<Catch | null> {
  for (let seed = from; seed < from + seeds; seed++) {
    const takeOut = bug.plant();
    try {
      const { violation } = await simulate({ seed, steps });
      if (violation !== null) return { seed, ...violation };
    } finally {
      takeOut();
    }
  }
  return null;
}

/** The bug of a name. */
export function plantedBug(name: string): PlantedBug {
  const bug = PLANTED.find((each) => each.name === name);
  if (bug === undefined) throw new Error(`No planted bug is called "${name}"`);
  return bug;
}
