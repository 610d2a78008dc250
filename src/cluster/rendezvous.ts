// Which member should have which cell: rendezvous hashing. Every member comes to the same result from the same list, and
// when a member comes or goes only the cells move that it gets or had.

import { CELLS } from "../../actors/doors.ts";

/** The term of the member that should have each cell, in its place; null where nobody takes any. */
export function wantedOwners(terms: readonly number[]): (number | null)[] {
  return Array.from({ length: CELLS }, (_, cell) => {
    let best: number | null = null;
    let bestWeight = -1;
    for (const term of terms) {
      const weight = weightOf(cell, term);
      // Of equal weights the lower term, so that the order of the list says nothing.
      if (weight > bestWeight || weight === bestWeight && term < (best as number)) {
        best = term;
        bestWeight = weight;
      }
    }
    return best;
  });
}

/** A number from a cell and a term in which every bit of both counts: the finishing steps of MurmurHash3. */
function weightOf(cell: number, term: number): number {
  let hash = Math.imul(term, 0x9e3779b1) ^ Math.imul(cell + 1, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
  return (hash ^ hash >>> 16) >>> 0;
}
