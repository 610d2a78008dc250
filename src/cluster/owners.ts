// Who owns each cell, as far as this node knows: from the tables, from notifications, and from calls that returned as not
// run. It may be stale, and nothing depends on it: an owner checks its own cells before it runs a call.

import { CELLS } from "../../actors/doors.ts";

/** The owners of all cells. */
export class Owners {
  readonly #terms: (number | null)[] = Array.from({ length: CELLS }, () => null);

  /** The term of the owner; null if none is known. */
  of(cell: number): number | null {
    return this.#terms[cell] ?? null;
  }

  set(cells: Iterable<number>, term: number | null): void {
    for (const cell of cells) this.#terms[cell] = term;
  }

  /** Forgets a node that is gone. */
  forget(term: number): void {
    for (let cell = 0; cell < CELLS; cell++) if (this.#terms[cell] === term) this.#terms[cell] = null;
  }

  /** The term of each cell's owner, indexed by cell; null if none is known. */
  get all(): readonly (number | null)[] {
    return this.#terms;
  }
}
