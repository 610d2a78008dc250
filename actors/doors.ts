// The doors of the cells: which of them this member owns, who is inside, and who waits. A call enters the cell of its
// workspace before it touches anything of it and leaves when its answer is complete, so a cell with nobody inside can
// be handed over.
//
// The door never passes a call on. A call that waits goes exactly one way, by one synchronous change of state: it comes
// in, it is told that the cell has gone, or it is refused after a bounded wait (rule 4 of the cluster's design). What
// takes long (a generation, a batch, a stream) is pinned: a hand-over of one's own will waits for it with the door open
// (rule 12).

import { Unavailable } from "./port.ts";
import { CELL_LIMITS } from "../src/process/limits.ts";

/** How many cells there are, for ever: the cells of workspaces in the tables are counted by it. */
export const CELLS = 64;

/** Where a cell is. `gone`: with another member, or with nobody. `shut`: here, about to be handed over. */
export type DoorState = "gone" | "open" | "shut";

interface Waiting {
  readonly resolve: (isInside: boolean) => void;
  readonly reject: (reason: Error) => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

class Door {
  state: DoorState = "gone";
  inside = 0;
  pinned = 0;
  waiting: Waiting[] = [];
  /** Told when the last one leaves. */
  onEmpty: (() => void) | null = null;
}

/** Every cell's door in one member. */
export class Doors {
  readonly #doors = Array.from({ length: CELLS }, () => new Door());

  /** Whether a cell is here and its door open. */
  isOpen(cell: number): boolean {
    return this.#of(cell).state === "open";
  }

  /** Whether this member owns a cell. */
  isHere(cell: number): boolean {
    return this.#of(cell).state !== "gone";
  }

  /** The cells that this member owns. */
  get held(): number[] {
    return this.#doors.flatMap(({ state }, cell) => state === "gone" ? [] : [cell]);
  }

  /** Enters an open door at once; whoever came in leaves. */
  tryEnter(cell: number): boolean {
    const door = this.#of(cell);
    if (door.state !== "open") return false;
    door.inside += 1;
    return true;
  }

  /**
   * Enters, waiting where the door is shut; whoever came in leaves.
   *
   * @returns false when the cell is not here, or went while this call waited
   * @throws Unavailable when the wait takes too long
   */
  enter(cell: number): boolean | Promise<boolean> {
    const door = this.#of(cell);
    if (door.state === "gone") return false;
    if (door.state === "open") {
      door.inside += 1;
      return true;
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        door.waiting = door.waiting.filter((other) => other !== waiting);
        reject(new Unavailable("The workspace is being handed over"));
      }, CELL_LIMITS.doorWaitMs);
      const waiting: Waiting = { resolve, reject, timer };
      door.waiting.push(waiting);
    });
  }

  leave(cell: number): void {
    const door = this.#of(cell);
    door.inside -= 1;
    if (door.inside === 0) door.onEmpty?.();
  }

  /** Says that somebody inside will take long; to be taken back before leaving. */
  pin(cell: number): void {
    this.#of(cell).pinned += 1;
  }

  unpin(cell: number): void {
    this.#of(cell).pinned -= 1;
  }

  /** Whether somebody inside may take long. */
  isPinned(cell: number): boolean {
    return this.#of(cell).pinned > 0;
  }

  /** Opens doors: those who waited come in. */
  open(cells: Iterable<number>): void {
    for (const cell of cells) {
      const door = this.#of(cell);
      door.state = "open";
      door.onEmpty?.();
      door.onEmpty = null;
      const waiting = door.waiting;
      door.waiting = [];
      door.inside += waiting.length;
      for (const { resolve, timer } of waiting) {
        clearTimeout(timer);
        resolve(true);
      }
    }
  }

  /** Shuts doors; resolves when nobody is inside any more, or when a door was opened again. */
  async shut(cells: readonly number[]): Promise<void> {
    for (const cell of cells) this.#of(cell).state = "shut";
    await Promise.all(cells.map((cell) => {
      const door = this.#of(cell);
      if (door.inside === 0) return;
      return new Promise<void>((resolve) => door.onEmpty = resolve);
    }));
  }

  /** Gives cells away: those who waited are told. */
  give(cells: Iterable<number>): void {
    for (const cell of cells) {
      const door = this.#of(cell);
      door.state = "gone";
      door.onEmpty = null;
      const waiting = door.waiting;
      door.waiting = [];
      for (const { resolve, timer } of waiting) {
        clearTimeout(timer);
        resolve(false);
      }
    }
  }

  /** Ends every door with the term: those who waited are refused. */
  close(fault: Error): void {
    for (const door of this.#doors) {
      door.state = "gone";
      for (const { reject, timer } of door.waiting) {
        clearTimeout(timer);
        reject(fault);
      }
      door.waiting = [];
    }
  }

  #of(cell: number): Door {
    return this.#doors[cell] as Door;
  }
}
