// The reservations of one user in memory, by id. An open hold is kept as a text, which holds of one kind share, and is
// parsed when a decision asks for it. As a row with amounts and lines it would be a dozen objects, and the garbage
// collector would visit each of them: with a hundred thousand open holds, every answer would wait for that.

import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";
import { expiryOfText, fitsText, type HoldTexts, readHold, textOfHold } from "./hold_text.ts";
import type { Reservation } from "./reservation.ts";

/** Reservations by id: open holds, and settled ones while they are needed. */
export class ReservationBook {
  readonly #owner: UserKey;
  readonly #shared: HoldTexts;
  readonly #texts = new Map<string, string>();
  /** Settled reservations, and open ones that do not fit a text; most users have none. */
  #rows: Map<string, Reservation> | null = null;

  /**
   * @param owner the user of these reservations
   * @param shared texts that the books of all users share
   */
  constructor(owner: UserKey, shared: HoldTexts) {
    this.#owner = owner;
    this.#shared = shared;
  }

  get(id: string): Reservation | undefined {
    const text = this.#texts.get(id);
    return text === undefined ? this.#rows?.get(id) : readHold(id, this.#owner, text);
  }

  has(id: string): boolean {
    return this.#texts.has(id) || this.#rows?.has(id) === true;
  }

  /** Returns when an open hold lapses; null for any other id. */
  expiryOf(id: string): Millis | null {
    const text = this.#texts.get(id);
    if (text !== undefined) return expiryOfText(id, text);
    const row = this.#rows?.get(id);
    return row?.status === "held" ? row.expiresAt : null;
  }

  set(row: Reservation): void {
    if (row.userKey === this.#owner && fitsText(row)) {
      this.#texts.set(row.id, textOfHold(row, this.#shared));
      this.#rows?.delete(row.id);
    } else {
      (this.#rows ??= new Map()).set(row.id, row);
      this.#texts.delete(row.id);
    }
  }

  delete(id: string): void {
    this.#texts.delete(id);
    this.#rows?.delete(id);
  }

  *keys(): Iterable<string> {
    yield* this.#texts.keys();
    if (this.#rows !== null) yield* this.#rows.keys();
  }

  *values(): Iterable<Reservation> {
    for (const id of this.keys()) yield this.get(id) as Reservation;
  }
}
