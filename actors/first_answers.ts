// First answers that the tables may lack. Nearly all of them leave memory without having been asked for, so those of one
// batch are one text: as rows, each would outlive collections of the young generation, and be visited by those of the old.
// With the first look for a key that may be known they become rows again, by key.

import type { Batch } from "./gate.ts";
import type { IdempotencyRow } from "./port.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** A first answer and its batch. */
export interface RecentAnswer {
  readonly row: IdempotencyRow;
  readonly batch: Batch;
}

/** The numbers of a row in a pack: realm, status, user or NaN, time, and the lengths of its three texts. */
const NUMBERS = 7;
const NO_NUMBERS = new Float64Array();

/** The first answers of one batch. */
class Pack {
  readonly batch: Batch;
  /** Empty once it is closed. */
  #rows: IdempotencyRow[] = [];
  #text = "";
  #numbers = NO_NUMBERS;

  constructor(batch: Batch) {
    this.batch = batch;
  }

  add(row: IdempotencyRow): void {
    this.#rows.push(row);
  }

  /** Makes the rows one text; no other row may follow. */
  close(): void {
    const rows = this.#rows;
    const numbers = new Float64Array(rows.length * NUMBERS);
    const texts: string[] = [];
    for (const [place, { realm, key, requestHash, status, body, userKey, at }] of rows.entries()) {
      texts.push(key, requestHash, body);
      const { length } = body;
      numbers.set(
        [realm, status, userKey ?? NaN, at, key.length, requestHash.length, length],
        place * NUMBERS,
      );
    }
    this.#text = texts.join("");
    this.#numbers = numbers;
    this.#rows = [];
  }

  /** The realm of each row. */
  *realms(): Iterable<number> {
    for (const { realm } of this.#rows) yield realm;
    for (let at = 0; at < this.#numbers.length; at += NUMBERS) yield this.#numbers[at] as number;
  }

  get rows(): readonly IdempotencyRow[] {
    if (this.#rows.length > 0) return this.#rows;
    const rows: IdempotencyRow[] = [];
    let from = 0;
    const take = (length = 0) => this.#text.slice(from, from += length);
    for (let place = 0; place < this.#numbers.length; place += NUMBERS) {
      const [realm = 0, status = 0, user = NaN, at = 0, ...lengths] = this.#numbers.slice(
        place,
        place + NUMBERS,
      );
      const [key = "", requestHash = "", body = ""] = lengths.map(take);
      rows.push({ realm, key, requestHash, status, body, userKey: Number.isNaN(user) ? null : user, at });
    }
    return rows;
  }
}

/** First answers in memory, until the tables have them. */
export class FirstAnswers {
  /** Packs that were not looked into yet, the oldest first. Rows may still be added to the last one. */
  #packs: Pack[] = [];
  readonly #byName = new Map<string, RecentAnswer>();
  /** How many each realm has. */
  readonly #counts = new Map<number, number>();

  /** How many a realm has. */
  sizeOf(realm: number): number {
    return this.#counts.get(realm) ?? 0;
  }

  add(row: IdempotencyRow, batch: Batch): void {
    let pack = this.#packs.at(-1);
    if (pack?.batch !== batch) {
      pack?.close();
      // Once for each batch: a search at every answer would cost more than the memory.
      this.#forgetDrained();
      this.#packs.push(pack = new Pack(batch));
    }
    pack.add(row);
    this.#count(row.realm, 1);
  }

  /** Returns the newest first answer of a name, or undefined. */
  get(name: string): RecentAnswer | undefined {
    for (const _ of this.#unpack());
    return this.#byName.get(name);
  }

  /** Forgets the first answers of erased users. */
  forget(users: readonly UserKey[]): void {
    this.#forgetDrained();
    for (const _ of this.#unpack());
    for (const [name, { row, batch }] of this.#byName) {
      // An answer without a user may still name one, so it is forgotten too, once the tables have it.
      const isGone = row.userKey === null ? batch.isDrained : users.includes(row.userKey);
      if (isGone) this.#remove(name, row);
    }
  }

  /**
   * Forgets the first answers of realms that another node owns from now on, in steps. The tables have them, and all others
   * that are drained, which are forgotten too: so the search is short for the realms that follow.
   */
  *dropRealms(realms: ReadonlySet<number>): Iterable<void> {
    this.#forgetDrained();
    yield* this.#unpack();
    for (const [name, { row, batch }] of this.#byName) {
      if (batch.isDrained || realms.has(row.realm)) this.#remove(name, row);
      yield;
    }
  }

  /** Makes the packs of now rows again, one at each step. */
  *#unpack(): Iterable<void> {
    for (let left = this.#packs.length; left > 0; left--) {
      const pack = this.#packs.shift();
      if (pack === undefined) return;
      const { rows, batch } = pack;
      for (const row of rows) {
        const name = nameOf(row);
        if (this.#byName.has(name)) this.#count(row.realm, -1);
        this.#byName.set(name, { row, batch });
      }
      yield;
    }
  }

  #forgetDrained(): void {
    for (const [name, { row, batch }] of this.#byName) {
      if (!batch.isDrained) break;
      this.#remove(name, row);
    }
    const kept = this.#packs.findIndex(({ batch }) => !batch.isDrained);
    for (const pack of this.#packs.splice(0, kept < 0 ? this.#packs.length : kept)) {
      for (const realm of pack.realms()) this.#count(realm, -1);
    }
  }

  #remove(name: string, { realm }: IdempotencyRow): void {
    if (this.#byName.delete(name)) this.#count(realm, -1);
  }

  #count(realm: number, more: number): void {
    const left = this.sizeOf(realm) + more;
    if (left === 0) this.#counts.delete(realm);
    else this.#counts.set(realm, left);
  }
}

/** The name of a key, unique over all realms. */
export function nameOf({ realm, key }: { readonly realm: number; readonly key: string }): string {
  return `${realm}/${key}`;
}
