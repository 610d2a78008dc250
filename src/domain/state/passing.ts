// The counters of one group that count for a time: its sessions, or the slots of its rate. What the slots count together is
// kept beside them, so that most decisions of a rate add up nothing.

import type { Amount } from "../values/amount.ts";
import type { Millis } from "../values/period.ts";
import type { Counter } from "./counter.ts";

/** Whether a counter is a slot of a rate that still counts. */
export function isCounting({ kind, windowEnd }: Counter, now: Millis): boolean {
  return kind === "rate" && windowEnd !== null && windowEnd > now;
}

/** Adds up what slots of a rate count now. */
export function countOf(rows: readonly Counter[], now: Millis): Amount {
  let count = 0n;
  for (const row of rows) if (isCounting(row, now)) count += row.count;
  return count;
}

/** The sessions of a group, or the slots of its rate, that may still count. */
export class PassingCounters {
  /** The newest last. */
  #rows: Counter[] = [];
  /** What all slots count together. */
  #count: Amount = 0n;
  /** When the first slot stops to count. */
  #until: Millis = Infinity;

  get rows(): readonly Counter[] {
    return this.#rows;
  }

  /** What the slots of a rate count at a moment. */
  countAt(now: Millis): Amount {
    return now < this.#until ? this.#count : countOf(this.#rows, now);
  }

  /** Replaces a counter by its new value, or adds it. Returns those that no longer count, and were dropped. */
  put(row: Counter): readonly Counter[] {
    let place = this.#rows.length - 1;
    while (place >= 0 && this.#rows[place]?.key !== row.key) place -= 1;
    const known = this.#rows[place];
    if (known?.kind === "rate" && row.kind === "rate" && known.windowEnd === row.windowEnd) {
      this.#rows[place] = row;
      this.#count += row.count - known.count;
      return NONE;
    }
    let dropped: readonly Counter[] = NONE;
    if (known !== undefined) this.#rows.splice(place, 1, ...row.kind === undefined ? NONE : [row]);
    else if (row.kind !== undefined) {
      const counts = ({ windowEnd }: Counter) => windowEnd === null || windowEnd > row.windowStart;
      dropped = this.#rows.filter((each) => !counts(each));
      this.#rows = [...this.#rows.filter(counts), row];
    }
    this.#count = countOf(this.#rows, -Infinity);
    this.#until = Infinity;
    for (const each of this.#rows) {
      if (isCounting(each, -Infinity)) this.#until = Math.min(this.#until, each.windowEnd ?? Infinity);
    }
    return dropped;
  }
}

const NONE: readonly never[] = [];
