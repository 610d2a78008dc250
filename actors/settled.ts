// The settled reservations of an actor that the tables may lack. They stay in memory until their batch is drained: a load
// could not see them before.

import type { Reservation } from "../src/domain/state/reservation.ts";
import type { Change, UserState } from "../src/domain/state/user.ts";
import type { Batch } from "./gate.ts";

/** A settled reservation in memory, and the batch that settled it. */
interface Settled {
  readonly row: Reservation;
  readonly batch: Batch;
}

/** The settled reservations of one actor, in the order of their batches. */
export class SettledRows {
  #rows: Settled[] = [];
  #forgotten = 0;

  /** Adds the settled reservations among changes that were applied. */
  retain(changes: readonly Change[], batch: Batch, { reservations }: UserState): void {
    for (const change of changes) {
      if (!isSettled(change)) continue;
      const row = reservations.stored(change.row.id);
      if (row !== undefined) this.#rows.push({ row, batch });
    }
  }

  /** Drops those that the tables have; returns whether none is left. */
  forgetDrained(state: UserState): boolean {
    const rows = this.#rows;
    let next = rows[this.#forgotten];
    while (next?.batch.isDrained === true) {
      // A newer value of the same row waits for a drain of its own.
      if (state.reservations.stored(next.row.id) === next.row) state.forget(next.row.id);
      this.#forgotten += 1;
      next = rows[this.#forgotten];
    }
    if (next !== undefined && this.#forgotten > 1000 && this.#forgotten * 2 > rows.length) {
      this.#rows = rows.slice(this.#forgotten);
      this.#forgotten = 0;
    }
    return next === undefined;
  }
}

/** Whether a change settles a reservation. */
export function isSettled(
  change: Change,
): change is Extract<Change, { readonly table: "reservations" }> {
  return change.table === "reservations" && change.row.status !== "held";
}
