// Who owns each cell, as far as this node knows: from the tables, from notifications, and from calls that returned as not
// run. It may be stale, and nothing depends on it: an owner checks its own cells before it runs a call.

import { CELLS } from "../../actors/doors.ts";

/** The owners of all cells. */
export class Owners {
  readonly #terms: (number | null)[] = Array.from({ length: CELLS }, () => null);
  /** The cells that another store serves: they never have an owner here. */
  readonly #moved = new Set<number>();

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

  /** Notes that another store serves a cell, for ever. */
  move(cell: number): void {
    this.#moved.add(cell);
    this.#terms[cell] = null;
  }

  isMoved(cell: number): boolean {
    return this.#moved.has(cell);
  }

  /** How many cells this store serves. */
  get cells(): number {
    return CELLS - this.#moved.size;
  }

  /** The terms of the owners of all cells that this store serves; null if none is known. */
  get all(): readonly (number | null)[] {
    return this.#terms.filter((_, cell) => !this.#moved.has(cell));
  }
}
