// A mailbox: one user's turns, one at a time. A turn itself never awaits. The prefetch before a turn may take time, and
// later turns of the same user wait for it, so that no decision runs on rows that were read before an earlier turn's
// changes.

import { Unavailable } from "./port.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import { MailboxTally } from "../src/process/counts/runtime_counts.ts";

interface Entry {
  readonly prefetch: (() => Promise<void> | null) | null;
  readonly turn: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Runs turns in order, at once if no turn is before them. */
export class Mailbox {
  readonly #tally: MailboxTally;
  #waiting: Entry[] = [];
  #isBusy = false;

  /** @param tally the counts of all mailboxes of a term */
  constructor(tally = new MailboxTally()) {
    this.#tally = tally;
  }

  /** Whether no prefetch runs and no turn waits. */
  get isIdle(): boolean {
    return !this.#isBusy && this.#waiting.length === 0;
  }

  /**
   * Runs a turn after all that came before it.
   *
   * @param prefetch loads what the turn needs; returns null if it needs nothing
   */
  run<T>(turn: () => T, prefetch: (() => Promise<void> | null) | null = null): Promise<T> {
    if (this.#waiting.length >= RUNTIME_LIMITS.mailboxTurnsMax) {
      return Promise.reject(new Unavailable("Too many calls wait for this user"));
    }
    return new Promise<T>((resolve, reject) => {
      const run = () => {
        try {
          resolve(turn());
        } catch (error) {
          reject(error);
        }
      };
      this.#waiting.push({ prefetch, turn: run, reject });
      this.#tally.waitingTurns += 1;
      if (!this.#isBusy) this.#work();
    });
  }

  /** Runs turns until one needs a prefetch, and continues after it. */
  #work(): void {
    let entry: Entry | undefined;
    while ((entry = this.#waiting.shift()) !== undefined) {
      this.#tally.waitingTurns -= 1;
      let wait: Promise<void> | null;
      try {
        wait = entry.prefetch?.() ?? null;
      } catch (error) {
        entry.reject(error);
        continue;
      }
      if (wait === null) {
        entry.turn();
        continue;
      }
      this.#isBusy = true;
      this.#tally.busy += 1;
      const { turn, reject } = entry;
      wait.then(turn, reject).finally(() => {
        this.#isBusy = false;
        this.#tally.busy -= 1;
        this.#work();
      });
      return;
    }
  }
}
