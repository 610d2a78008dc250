// Real time in whole milliseconds. It never goes back while the process lives, even when the machine's clock is set
// back. Processes that share a server follow the server's clock, so that no user's time jumps when the cell of its workspace
// changes its owner. Tests use a clock of their own.

import type { Millis } from "../domain/values/period.ts";

/** A source of real time. */
export interface Clock {
  now(): Millis;
}

/** A clock that can follow another one. */
export interface LedClock extends Clock {
  /** Follows another clock, from a reading taken now. It then advances with the machine's monotonic clock. */
  follow(now: Millis): void;
  /** Moves forward to a time that other processes have seen, if that is later. */
  raise(floor: Millis): void;
}

/** The machine's clock until it follows another; never earlier than an earlier reading. */
export function systemClock(): LedClock {
  let last = 0;
  /** The offset to monotonic time; null while it follows no other clock. */
  let base: number | null = null;
  /** The machine's clock at the last reading. Asking it costs a third of asking monotonic time, and turns ask twice. */
  let asked = NaN;
  return {
    now() {
      const wall = Date.now();
      if (wall === asked) return last;
      asked = wall;
      const now = base === null ? wall : Math.floor(base + performance.now());
      if (now > last) last = now;
      return last;
    },
    // The reading is older by the time of the answer's transport, so no process is ever ahead of the server.
    follow: (now) => {
      base = now - performance.now();
      asked = NaN;
    },
    raise: (floor) => last = Math.max(last, floor),
  };
}

/** Whether a clock can follow another one. */
export function isLed(clock: Clock): clock is LedClock {
  return "follow" in clock;
}
