// Links that are in the journal and not yet in the tables. A metering alias answers when its merge is in the journal. Calls
// that read linked ids from the tables wait here until the merge has drained, so they see every acknowledged link.

import type { PeopleWorld } from "./world.ts";

type DrainingTerm = Pick<PeopleWorld["term"], "flush">;

/** By term: the drain of the last merge that linked ids. */
const draining = new WeakMap<DrainingTerm, Promise<void>>();

/** Starts to drain a merge that linked ids. */
export function drainLinks(term: DrainingTerm): Promise<void> {
  const drained = term.flush();
  // When it fails the term ends, and the next one starts with everything in the tables.
  const ended = drained.catch(() => {}).then(() => {
    if (draining.get(term) === ended) draining.delete(term);
  });
  draining.set(term, ended);
  return drained;
}

/** Resolves when the tables have every link that was acknowledged before. */
export async function linksDrained({ term }: Pick<PeopleWorld, "term">): Promise<void> {
  await draining.get(term);
}
