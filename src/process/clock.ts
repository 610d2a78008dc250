// Real time in whole milliseconds. It never goes back while the process lives, even when the machine's clock is set
// back. Where members share a server, each follows the server's clock, so that no user's time jumps when the cell of its
// workspace changes hands (rule 11 of the cluster's design). Tests put a clock of their own in its place.

import type { Millis } from "../domain/values/period.ts";

/** A source of real time. */
export interface Clock {
  now(): Millis;
}

/** A clock that can be led. */
export interface LedClock extends Clock {
  /** Follows another clock that has just said this. It then runs on by the monotonic clock of the machine. */
  follow(said: Millis): void;
  /** Goes on from a moment that others have seen, where that is later. */
  raise(floor: Millis): void;
}

/** The machine's clock until it is led; while that is behind an earlier reading, the earlier reading. */
export function systemClock(): LedClock {
  let last = 0;
  /** What to add to monotonic time; null while nobody leads. */
  let base: number | null = null;
  return {
    now() {
      const now = base === null ? Date.now() : Math.floor(base + performance.now());
      if (now > last) last = now;
      return last;
    },
    // What was said lies in the past by the way of the answer. So no member is ever ahead of the server.
    follow: (said) => base = said - performance.now(),
    raise: (floor) => last = Math.max(last, floor),
  };
}

/** Whether a clock can be led. */
export function isLed(clock: Clock): clock is LedClock {
  return "follow" in clock;
}
