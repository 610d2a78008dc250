// Removing rows in bounded steps while the term lasts, resting between steps, and what sweeps use of a term.

import type { Realm } from "../../../actors/actor.ts";
import type { Term } from "../../../actors/term.ts";
import { SWEEP_LIMITS } from "../../process/limits.ts";
import type { InCell } from "../../storage/members/cell_store.ts";

/** What the removal of old rows uses of a running term. */
export interface RetentionWorld {
  readonly term: Pick<Term, "isServing" | "doors">;
  readonly inCell: InCell;
  readonly registry: { readonly realms: ReadonlyMap<number, Realm> };
}

/** Runs steps that each remove up to `limit` rows until one removes fewer; answers how many went in all. */
export async function removeInSteps(
  term: Pick<Term, "isServing">,
  step: (limit: number) => Promise<number>,
): Promise<number> {
  let removed = 0;
  while (term.isServing) {
    const rows = await step(SWEEP_LIMITS.stepRowsMax);
    removed += rows;
    if (rows < SWEEP_LIMITS.stepRowsMax) break;
  }
  return removed;
}
