// The clock: one of the four doors of nondeterminism. Real time in whole milliseconds that never goes back while
// the process lives, whatever the machine's clock does.

import type { Millis } from "../domain/plans/period.ts";

/** A source of real time. */
export interface Clock {
  now(): Millis;
}

/** The machine's clock, held where it was when it is set back. */
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
