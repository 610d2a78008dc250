// The counters of one group that count for a time: its sessions, or the slots of its rate. What the slots count together is
// kept beside them, so that most decisions of a rate add up nothing.

import type { Amount } from "../values/amount.ts";
import type { Millis } from "../values/period.ts";
import type { Counter } from "./counter.ts";

/**
 * When a session or a slot of a rate ends. An earlier catalog may have given its group longer ones.
 *
 * @param lasts how long those of the group last now, in milliseconds
 */
export function endOf({ windowStart, windowEnd }: Counter, lasts: number): Millis {
  return Math.min(windowEnd ?? Infinity, windowStart + lasts);
}

/** Whether a counter is a slot of a rate that still counts. */
export function isCounting(row: Counter, now: Millis, lasts = Infinity): boolean {
  return row.kind === "rate" && endOf(row, lasts) > now;
}

/** Adds up what slots of a rate count now. */
export function countOf(rows: readonly Counter[], now: Millis, lasts = Infinity): Amount {
  let count = 0n;
  for (const row of rows) if (isCounting(row, now, lasts)) count += row.count;
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
  /** How long the longest slot counts. */
  #longest = 0;

  get rows(): readonly Counter[] {
    return this.#rows;
  }

  /** What the slots of a rate count at a moment. */
  countAt(now: Millis, lasts = Infinity): Amount {
    const isKnown = now < this.#until && this.#longest <= lasts;
    return isKnown ? this.#count : countOf(this.#rows, now, lasts);
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
    this.#longest = 0;
    for (const each of this.#rows) {
      if (each.kind !== "rate") continue;
      const end = each.windowEnd ?? Infinity;
      this.#until = Math.min(this.#until, end);
      this.#longest = Math.max(this.#longest, end - each.windowStart);
    }
    return dropped;
  }
}

const NONE: readonly never[] = [];
