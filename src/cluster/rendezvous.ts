// Which node should own which cell, by rendezvous hashing: every node gets the same result from the same list, and when
// a node joins or leaves, only the cells move that it gets or had.

import { CELLS } from "../../actors/doors.ts";

/** The term of the node that should own each cell, indexed by cell; null if the list is empty. */
export function wantedOwners(terms: readonly number[]): (number | null)[] {
  return Array.from({ length: CELLS }, (_, cell) => {
    let best: number | null = null;
    let bestWeight = -1;
    for (const term of terms) {
      const weight = weightOf(cell, term);
      // Of equal weights the lower term wins, so that the order of the list does not matter.
      if (weight > bestWeight || weight === bestWeight && term < (best as number)) {
        best = term;
        bestWeight = weight;
      }
    }
    return best;
  });
}

/** Hashes a cell and a term by the finishing steps of MurmurHash3, so that every bit of both counts. */
function weightOf(cell: number, term: number): number {
  let hash = Math.imul(term, 0x9e3779b1) ^ Math.imul(cell + 1, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
  hash = Math.imul(hash ^ hash >>> 13, 0xc2b2ae35);
  return (hash ^ hash >>> 16) >>> 0;
}
