// What a simulated process takes for the time: the product's own clock, which follows the server's by what beats tell it.
// The calendar's leaps are no clock's doing, so every process sees them at once.

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

  /** @param said the server's clock without leaps, as a beat hears it */
  follow(said: number): void {
    this.#clock.follow(said);
  }

  raise(floor: number): void {
    this.#clock.raise(floor - this.#time.leaptMs);
  }
}
