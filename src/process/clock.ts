// Real time in whole milliseconds. It never goes back while the process lives, even when the machine's clock is set
// back. Tests put a clock of their own in its place.

import type { Millis } from "../domain/plans/period.ts";

/** A source of real time. */
export interface Clock {
  now(): Millis;
}

/** The machine's clock; while that is behind an earlier reading, the earlier reading. */
export function systemClock(): Clock {
  let last = 0;
  return {
    now() {
      const now = Date.now();
      if (now > last) last = now;
      return last;
    },
  };
}
