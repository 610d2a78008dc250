// Runs lives, one of each seed.

import { Random } from "../model/random.ts";
import { Life } from "./life.ts";

const STEPS = 30;

/** Runs lives from a seed on; returns how often each thing was met. A failure names the seed. */
export async function runLives(from: number, lives: number): Promise<Record<string, number>> {
  const met: Record<string, number> = {};
  for (let seed = from; seed < from + lives; seed++) {
    const life = new Life(new Random(seed));
    try {
      await life.live(STEPS);
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
    for (const [what, times] of Object.entries(life.met)) met[what] = (met[what] ?? 0) + times;
  }
  return met;
}
