// The hunt for planted bugs: seed after seed until a checker finds what was planted.

import type { PlantedBug } from "./bugs.ts";
import { simulate } from "../simulation.ts";

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
