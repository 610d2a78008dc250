// Visits: background work enters the door of its cell like a call does, so that it never runs during a hand-over. If the
// cell is not here, or goes while the visit waits at a shut door, the work is skipped without an error: the next owner does
// it. Work inside a cell must not visit a cell: at a shut door it would wait for itself.

import type { Doors } from "./doors.ts";
import { Unavailable } from "./port.ts";
import type { Realm } from "./call.ts";

/** The parts of a term that visits use. */
export interface VisitedTerm {
  readonly doors: Pick<Doors, "enter" | "tryEnter" | "leave" | "pin" | "unpin" | "isHere" | "isOpen">;
  readonly isServing: boolean;
}

/** Runs a bounded step of work inside a cell; null if the cell is not here. */
export async function visit<T>(
  { doors }: VisitedTerm,
  cell: number,
  step: () => Promise<T>,
): Promise<T | null> {
  if (!await hasEntered(doors, cell)) return null;
  try {
    return await step();
  } finally {
    doors.leave(cell);
  }
}

/**
 * Runs long work inside a cell; null if the cell is not here. A voluntary hand-over waits for it with the door open. A stop
 * shuts the door all the same, so the work checks between its steps whether it may go on.
 */
export async function stay<T>(
  term: VisitedTerm,
  cell: number,
  work: (mayGoOn: () => boolean) => Promise<T>,
): Promise<T | null> {
  const { doors } = term;
  return await visit(term, cell, async () => {
    doors.pin(cell);
    try {
      return await work(() => term.isServing && doors.isOpen(cell));
    } finally {
      doors.unpin(cell);
    }
  });
}

/** Runs a bounded step of work inside the cells of a list that are open now. */
export async function visitAll<T>(
  { doors }: VisitedTerm,
  cells: Iterable<number>,
  step: (inside: readonly number[]) => Promise<T>,
): Promise<T> {
  const inside = [...cells].filter((cell) => doors.tryEnter(cell));
  try {
    return await step(inside);
  } finally {
    for (const cell of inside) doors.leave(cell);
  }
}

/** The realms of cells that this node owns. */
export function realmsHere<Some extends Realm>({ doors }: VisitedTerm, realms: Iterable<Some>): Some[] {
  return [...realms].filter(({ cell }) => doors.isHere(cell));
}

/** False if the cell has gone, or its hand-over takes too long. */
async function hasEntered(doors: VisitedTerm["doors"], cell: number): Promise<boolean> {
  try {
    return await doors.enter(cell);
  } catch (error) {
    if (error instanceof Unavailable) return false;
    throw error;
  }
}
