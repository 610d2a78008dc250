// The clock of a simulated process: the product's own, which follows the server's clock by the beats. Leaps of the
// calendar come from outside every clock, so every process sees them at once. It must not be read before it follows: it
// never goes back, so a machine's clock that is ahead would stay ahead.

import { type LedClock, systemClock } from "../../src/process/clock.ts";
import type { VirtualTime } from "./time.ts";

/** The clock of one life. */
export class SimClock implements LedClock {
  readonly #clock = systemClock();
  readonly #time: VirtualTime;
  #follows = false;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  now(): number {
    if (!this.#follows) throw new Error("The clock was read before it followed the server's");
    return this.#clock.now() + this.#time.leaptMs;
  }

  /** @param said the server's clock without leaps, from a beat */
  follow(said: number): void {
    this.#follows = true;
    this.#clock.follow(said);
  }

  raise(floor: number): void {
    this.#clock.raise(floor - this.#time.leaptMs);
  }
}
