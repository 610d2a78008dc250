// The right to write to a store in memory, and the journal that goes with it.

import type { AppendedBatch, Journal, JournalEntry, Lease } from "../../actors/port.ts";
import { misfitOf } from "../../src/storage/rows/misfits.ts";
import { answerOf, encodeChanges, lineOf } from "../../src/storage/rows/tables.ts";

/** The store of a lease. */
interface LeasedStore {
  append(entries: readonly JournalEntry[], payload: string, isValid: () => boolean): Promise<AppendedBatch>;
  drain(batches: readonly AppendedBatch[]): Promise<void>;
}

/** The right to write to a store in memory. */
export class MemoryLease implements Lease {
  readonly journal: Journal;
  readonly lost: Promise<Error>;
  /** Ends the lease as a dead session would. */
  lose!: (error: Error) => void;
  #isLost = false;
  readonly #isNewest: () => boolean;

  constructor(store: LeasedStore, isNewest: () => boolean) {
    this.#isNewest = isNewest;
    this.lost = new Promise((resolve) => {
      this.lose = (error) => {
        this.#isLost = true;
        resolve(error);
      };
    });
    const isValid = () => this.isValid();
    let last: Promise<unknown> = Promise.resolve();
    this.journal = {
      // One after another, and no further one after a failure.
      append: (entries) => {
        const payload = encodeChanges(entries);
        const copy = [...entries];
        const appended = last.then(() => store.append(copy, payload, isValid));
        last = appended;
        last.catch(() => {});
        return appended;
      },
      lineOf,
      answerOf,
      misfitOf,
      drain: (batches) => store.drain(batches),
      hurry: () => {},
      drainChangesMax: Infinity,
      drainBytesMax: Infinity,
      isInThread: false,
    };
  }

  isValid(): boolean {
    return !this.#isLost && this.#isNewest();
  }

  close(): Promise<void> {
    this.#isLost = true;
    return Promise.resolve();
  }
}
