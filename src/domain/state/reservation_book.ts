// The reservations of one user in memory, by id. An open hold is kept as a text, which holds of one kind share, and is
// parsed when a decision asks for it. As a row with amounts and lines it would be a dozen objects, and the garbage
// collector would visit each of them: with a hundred thousand open holds, every answer would wait for that.
//
// Callers' texts need room (text_room.ts). A reservation without room for its texts is bare.

import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";
import { SmallMap } from "../values/small_map.ts";
import {
  bytesOfText,
  expiryOfText,
  fitsText,
  hasParts,
  type HoldTexts,
  isBareText,
  readHold,
  type RelatedText,
  textOfHold,
} from "./hold_text.ts";
import { mayNeedTexts, type Reservation } from "./reservation.ts";
import { type CallerTexts, textBytes } from "./text_room.ts";

const NO_PARTS: readonly string[] = [];
const NO_ROWS: readonly Reservation[] = [];

/** Reservations by id: open holds, and settled ones while they are needed. */
export class ReservationBook {
  readonly #owner: UserKey;
  readonly #realm: number;
  readonly #shared: HoldTexts;
  readonly #texts = new SmallMap<string | RelatedText>();
  /** Settled reservations, and open ones that do not fit a text; most users have none. */
  #rows: Map<string, Reservation> | null = null;
  /** Bytes of callers' texts here. */
  #bytes = 0;
  #lent: (CallerTexts & { readonly id: string }) | null = null;

  /**
   * @param owner the user of these reservations
   * @param realm the user's realm
   * @param shared texts that the books of all users share
   */
  constructor(owner: UserKey, realm: number, shared: HoldTexts) {
    this.#owner = owner;
    this.#realm = realm;
    this.#shared = shared;
  }

  get(id: string): Reservation | undefined {
    const row = this.stored(id);
    if (row?.isBare !== true || this.#lent?.id !== id) return row;
    const { isBare: _, ...whole } = row;
    const { metadata, prompt } = this.#lent;
    // Settled for good, it has no prompt any more.
    return { ...whole, metadata, prompt: mayNeedTexts(row) ? prompt : null };
  }

  /** Returns a reservation without lent texts. */
  stored(id: string): Reservation | undefined {
    const hold = this.#texts.get(id);
    return hold === undefined ? this.#rows?.get(id) : readHold(id, this.#owner, hold, this.#shared);
  }

  has(id: string): boolean {
    return this.#texts.has(id) || this.#rows?.has(id) === true;
  }

  /** Returns when a reservation was made if its texts have to be read for a settlement; null for any other. */
  bareSince(id: string): Millis | null {
    const text = this.#textOf(id);
    // Nearly every settlement asks, and nearly no text is bare.
    if (text !== undefined && !isBareText(text)) return null;
    const row = this.stored(id);
    return row?.isBare === true && mayNeedTexts(row) ? row.createdAt : null;
  }

  /** Returns the ids of the parts that users above hold of a reservation; empty for none, and for an unknown id. */
  partsOf(id: string): readonly string[] {
    const hold = this.#texts.get(id);
    // Nearly every settlement asks, and nearly no hold has parts.
    if (hold !== undefined && !hasParts(hold)) return NO_PARTS;
    return this.stored(id)?.parts ?? NO_PARTS;
  }

  /** Lends a reservation its texts, which were read for one turn; null ends that. */
  lend(texts: (CallerTexts & { readonly id: string }) | null): void {
    this.#lent = texts;
  }

  /** Returns when an open hold lapses; null for any other id. */
  expiryOf(id: string): Millis | null {
    const text = this.#textOf(id);
    if (text !== undefined) return expiryOfText(id, text);
    const row = this.#rows?.get(id);
    return row?.status === "held" ? row.expiresAt : null;
  }

  set(given: Reservation): void {
    this.#giveRoom(given.id);
    const row = this.#within(given);
    if (row.userKey === this.#owner && fitsText(row)) {
      this.#texts.set(row.id, textOfHold(row, this.#shared));
      this.#rows?.delete(row.id);
    } else {
      (this.#rows ??= new Map()).set(row.id, row);
      this.#texts.delete(row.id);
    }
  }

  delete(id: string): void {
    this.#giveRoom(id);
    this.#texts.delete(id);
    this.#rows?.delete(id);
  }

  /** Gives all room back, because the user leaves memory. */
  leave(): void {
    if (this.#bytes > 0) this.#shared.room.give(this.#realm, this.#bytes);
    this.#bytes = 0;
  }

  *keys(): Iterable<string> {
    yield* this.#texts.keys();
    if (this.#rows !== null) yield* this.#rows.keys();
  }

  *values(): Iterable<Reservation> {
    for (const id of this.keys()) yield this.get(id) as Reservation;
  }

  /** The reservations that are no texts: settled ones, and open ones that left a counter or a balance. */
  apart(): Iterable<Reservation> {
    return this.#rows?.values() ?? NO_ROWS;
  }

  /** Takes room for the texts of a reservation, or leaves them out: without room, and where no decision asks for them. */
  #within(row: Reservation): Reservation {
    const bytes = textBytes(row);
    if (bytes === 0) return row;
    if (mayNeedTexts(row) && this.#shared.room.take(this.#realm, this.#bytes, bytes)) {
      this.#bytes += bytes;
      return row;
    }
    return { ...row, metadata: null, prompt: null, isBare: true };
  }

  #textOf(id: string): string | undefined {
    const hold = this.#texts.get(id);
    return typeof hold === "object" ? hold.text : hold;
  }

  #giveRoom(id: string): void {
    // Without texts here there is nothing to look for.
    if (this.#bytes === 0) return;
    const text = this.#textOf(id);
    const row = this.#rows?.get(id);
    const bytes = text !== undefined ? bytesOfText(text) : row === undefined ? 0 : textBytes(row);
    if (bytes === 0) return;
    this.#shared.room.give(this.#realm, bytes);
    this.#bytes -= bytes;
  }
}
