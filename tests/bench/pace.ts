// When a connection of the generator sends, if the load is to come at a rate, and from when the latency of a call counts.

/** What a pace asks for the time. */
export interface PaceClock {
  /** Milliseconds, as `performance.now()`. */
  now(): number;
  sleep(ms: number): Promise<void>;
}

const CLOCK: PaceClock = {
  now: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** The calls of one connection, evenly in time. */
export class Pace {
  readonly #intervalMs: number;
  readonly #clock: PaceClock;
  /** When the next call is due. */
  nextAt: number;

  constructor(intervalMs: number, firstAt: number, clock = CLOCK) {
    this.#intervalMs = intervalMs;
    this.#clock = clock;
    this.nextAt = firstAt;
  }

  /** One connection's part of so many calls a second; it begins at any moment of its first interval. */
  static of(rate: number, connections: number): Pace {
    const intervalMs = 1000 * connections / rate;
    return new Pace(intervalMs, performance.now() + Math.random() * intervalMs);
  }

  /**
   * Waits until a call is due; answers the moment from which its latency counts. A call that fell due while its
   * connection waited for an answer is sent at once and counts from when it was due: a server that stands still for a
   * second made all calls of that second late, not only one a connection. A call that only our own timer brought late
   * counts from now.
   */
  async wait(): Promise<number> {
    const due = this.nextAt;
    this.nextAt += this.#intervalMs;
    const early = due - this.#clock.now();
    if (early <= 0) return due;
    await this.#clock.sleep(early);
    return this.#clock.now();
  }
}
