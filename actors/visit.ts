// Visits: work beside the calls enters the door of the cell that it works on, as a call does, so that a hand-over never
// meets it. Where the cell is not here, or goes while the visit waits at a shut door, nothing is done and nothing fails:
// the cell's next owner does the work. Whoever is inside already visits nothing, since a shut door would make it wait for
// itself.

import type { Doors } from "./doors.ts";
import { Unavailable } from "./port.ts";
import type { Realm } from "./actor.ts";

/** What visits use of a term. */
export interface VisitedTerm {
  readonly doors: Pick<Doors, "enter" | "tryEnter" | "leave" | "pin" | "unpin" | "isHere" | "isOpen">;
  readonly isServing: boolean;
}

/** Runs a bounded step of work inside a cell; null where the cell is not here any more. */
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
 * Runs long work inside a cell; null where the cell is not here any more. A hand-over of this member's own will waits for
 * it with the door open. A stop shuts the door all the same, so the work asks between its steps whether it may go on.
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

/** Runs a bounded step of work inside all of some cells that are open now; the others are left out. */
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

/** The realms of cells that this member owns. */
export function realmsHere<Some extends Realm>({ doors }: VisitedTerm, realms: Iterable<Some>): Some[] {
  return [...realms].filter(({ cell }) => doors.isHere(cell));
}

/** False where the cell has gone, or is about to go and takes its time. */
async function hasEntered(doors: VisitedTerm["doors"], cell: number): Promise<boolean> {
  try {
    return await doors.enter(cell);
  } catch (error) {
    if (error instanceof Unavailable) return false;
    throw error;
  }
}
