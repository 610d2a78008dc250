// First answers that the tables may lack. Nearly all of them leave memory without having been asked for, so they are kept as
// the journal's lines, those of one batch as bytes: as rows, each would outlive collections of the young generation, and be
// visited by those of the old. With the first look for a key that may be known they become rows, by key.

import type { Batch } from "./gate.ts";
import type { IdempotencyRow, Journal } from "./port.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** A first answer and its batch. */
export interface RecentAnswer {
  readonly row: IdempotencyRow;
  readonly batch: Batch;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The first answers of one batch. */
class Pack {
  readonly batch: Batch;
  /** The realm of each answer. */
  readonly realms: number[] = [];
  /** Empty once it is closed. */
  #lines: string[] = [];
  #bytes: Uint8Array | null = null;

  constructor(batch: Batch) {
    this.batch = batch;
  }

  add(realm: number, line: string): void {
    this.realms.push(realm);
    this.#lines.push(line);
  }

  /** Makes the lines bytes; no other line may follow. */
  close(): void {
    this.#bytes = encoder.encode(this.#lines.join("\n"));
    this.#lines = [];
  }

  get lines(): readonly string[] {
    return this.#bytes === null ? this.#lines : decoder.decode(this.#bytes).split("\n");
  }
}

/** First answers in memory, until the tables have them. */
export class FirstAnswers {
  /** Packs that were not looked into yet, the oldest first. Rows may still be added to the last one. */
  #packs: Pack[] = [];
  readonly #byName = new Map<string, RecentAnswer>();
  /** How many each realm has. */
  readonly #counts = new Map<number, number>();
  readonly #answerOf: Journal["answerOf"];

  constructor(journal: Pick<Journal, "answerOf">) {
    this.#answerOf = (line) => journal.answerOf(line);
  }

  /** How many a realm has. */
  sizeOf(realm: number): number {
    return this.#counts.get(realm) ?? 0;
  }

  /** Adds an answer of a realm, the last change of a batch. */
  add(realm: number, batch: Batch): void {
    let pack = this.#packs.at(-1);
    if (pack?.batch !== batch) {
      pack?.close();
      // Once for each batch: a search at every answer would cost more than the memory.
      this.#forgetDrained();
      this.#packs.push(pack = new Pack(batch));
    }
    pack.add(realm, batch.entries.at(-1) as string);
    this.#count(realm, 1);
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
      const { lines, batch } = pack;
      for (const line of lines) {
        const row = this.#answerOf(line);
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
      for (const realm of pack.realms) this.#count(realm, -1);
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
