// Who owns each cell, as far as this member has heard: from the tables, from notes, and from calls that came back. It may
// be wrong for a moment, and nothing depends on it: an owner checks its own doors before it runs anything.

import { CELLS } from "../../actors/doors.ts";

/** The owners of all cells. */
export class Owners {
  readonly #terms: (number | null)[] = Array.from({ length: CELLS }, () => null);

  /** The term of the owner; null where nobody is known to own the cell. */
  of(cell: number): number | null {
    return this.#terms[cell] ?? null;
  }

  set(cells: Iterable<number>, term: number | null): void {
    for (const cell of cells) this.#terms[cell] = term;
  }

  /** Forgets a member that is gone. */
  forget(term: number): void {
    for (let cell = 0; cell < CELLS; cell++) if (this.#terms[cell] === term) this.#terms[cell] = null;
  }

  /** Every owner that is known, and null where a cell has none. */
  get all(): readonly (number | null)[] {
    return this.#terms;
  }
}
