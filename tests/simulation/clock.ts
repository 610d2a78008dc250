// The clock of a simulated process: the product's own, which follows the server's clock by the beats. Leaps of the
// calendar come from outside every clock, so every process sees them at once.

import { type LedClock, systemClock } from "../../src/process/clock.ts";
import type { VirtualTime } from "./time.ts";

/** The clock of one life. */
export class SimClock implements LedClock {
  readonly #clock = systemClock();
  readonly #time: VirtualTime;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  now(): number {
    return this.#clock.now() + this.#time.leaptMs;
  }

  /** @param said the server's clock without leaps, from a beat */
  follow(said: number): void {
    this.#clock.follow(said);
  }

  raise(floor: number): void {
    this.#clock.raise(floor - this.#time.leaptMs);
  }
}
