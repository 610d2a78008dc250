// The doors of the cells: which cells this node owns, and which calls are inside or wait. A call enters the cell of its
// workspace before it touches anything of it, and leaves when its answer is complete, so an empty cell can be handed over.
//
// A door never passes a call on: a call must not run on two nodes. A waiting call ends in exactly one way, by one
// synchronous change of state: it enters, it learns that the cell has gone, or it is refused after a bounded wait. Long
// work (a generation, a batch) pins its cell: a voluntary hand-over waits for it with the door open, a stop does
// not.

import { Unavailable } from "./port.ts";
import { CELL_LIMITS } from "../src/process/limits.ts";

/** The number of cells. It must never change: it decides the cell of each stored workspace. */
export const CELLS = 64;

/** The state of a door. `gone`: this node does not own the cell. `shut`: it owns it, and is handing it over. */
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
  /** Called when the last call leaves, or the door opens again. */
  onEmpty: (() => void)[] = [];

  /** Notifies all that wait for the door to be empty. */
  wake(): void {
    for (const notify of this.onEmpty.splice(0)) notify();
  }
}

/** Every cell's door in one node. */
export class Doors {
  readonly #doors = Array.from({ length: CELLS }, () => new Door());
  #isSealed = false;

  /** Whether no door opens any more. */
  get isSealed(): boolean {
    return this.#isSealed;
  }

  /** Whether a cell is here and its door open. */
  isOpen(cell: number): boolean {
    return this.#of(cell).state === "open";
  }

  /** Whether this node owns a cell. */
  isHere(cell: number): boolean {
    return this.#of(cell).state !== "gone";
  }

  /** Whether no call is inside of a cell. */
  isEmpty(cell: number): boolean {
    return this.#of(cell).inside === 0;
  }

  /** The cells that this node owns. */
  get held(): number[] {
    return this.#doors.flatMap(({ state }, cell) => state === "gone" ? [] : [cell]);
  }

  /** Enters an open door at once; true if it did, then `leave` must follow. */
  tryEnter(cell: number): boolean {
    const door = this.#of(cell);
    if (door.state !== "open") return false;
    door.inside += 1;
    return true;
  }

  /**
   * Enters, after a wait if the door is shut. After true, `leave` must follow.
   *
   * @returns false if the cell is not here, or went while this call waited
   * @throws Unavailable if the wait takes too long
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

  /** Enters once more, from inside of a cell: for work that goes on after its answer. `leave` must follow. */
  remain(cell: number): void {
    this.#of(cell).inside += 1;
  }

  leave(cell: number): void {
    const door = this.#of(cell);
    door.inside -= 1;
    if (door.inside === 0) door.wake();
  }

  /** Marks long work inside a cell; `unpin` must follow before `leave`. */
  pin(cell: number): void {
    this.#of(cell).pinned += 1;
  }

  unpin(cell: number): void {
    this.#of(cell).pinned -= 1;
  }

  /** Whether long work is inside a cell. */
  isPinned(cell: number): boolean {
    return this.#of(cell).pinned > 0;
  }

  /** Opens doors and lets waiting calls in; no effect once they are sealed. */
  open(cells: Iterable<number>): void {
    if (this.#isSealed) return;
    for (const cell of cells) {
      const door = this.#of(cell);
      door.state = "open";
      door.wake();
      const waiting = door.waiting;
      door.waiting = [];
      door.inside += waiting.length;
      for (const { resolve, timer } of waiting) {
        clearTimeout(timer);
        resolve(true);
      }
    }
  }

  /** Shuts doors; resolves when all are empty, or were opened again. */
  async shut(cells: readonly number[]): Promise<void> {
    for (const cell of cells) this.#of(cell).state = "shut";
    await Promise.all(cells.map((cell) => {
      const door = this.#of(cell);
      if (door.inside === 0) return;
      return new Promise<void>((resolve) => door.onEmpty.push(resolve));
    }));
  }

  /** Shuts all doors for the rest of the term, so that work which still runs cannot open one again. */
  seal(): void {
    this.#isSealed = true;
    for (const door of this.#doors) if (door.state === "open") door.state = "shut";
  }

  /** Gives cells away; waiting calls learn that the cell has gone. */
  give(cells: Iterable<number>): void {
    for (const cell of cells) {
      const door = this.#of(cell);
      door.state = "gone";
      door.onEmpty = [];
      const waiting = door.waiting;
      door.waiting = [];
      for (const { resolve, timer } of waiting) {
        clearTimeout(timer);
        resolve(false);
      }
    }
  }

  /** Ends every door with the term; waiting calls are refused. */
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
