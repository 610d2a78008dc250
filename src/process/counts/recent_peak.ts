// The largest value of the last seconds. A histogram says how many values were large, not how large the largest was, and a
// peak since the start of the process says nothing a day later.

/** How far back a peak looks, in whole seconds. */
export const PEAK_SECONDS = 15;

/** Keeps the largest value of each of the last seconds. */
export class RecentPeak {
  readonly #peaks = new Float64Array(PEAK_SECONDS);
  /** The whole second that was seen last. */
  #second = -Infinity;

  /**
   * Takes a value of this moment.
   *
   * @param atMs a moment of `performance.now()`, never before that of the call before
   */
  record(value: number, atMs = performance.now()): void {
    const slot = this.#advance(atMs);
    if (value > (this.#peaks[slot] as number)) this.#peaks[slot] = value;
  }

  /** The largest value of the second that runs and of the fourteen before it; 0 without any. */
  read(atMs = performance.now()): number {
    this.#advance(atMs);
    return Math.max(...this.#peaks);
  }

  /** Empties the slots of the seconds that have passed; answers the slot of this one. */
  #advance(atMs: number): number {
    const second = Math.floor(atMs / 1000);
    const passed = Math.min(second - this.#second, PEAK_SECONDS);
    for (let back = 0; back < passed; back++) this.#peaks[(second - back) % PEAK_SECONDS] = 0;
    this.#second = Math.max(this.#second, second);
    return this.#second % PEAK_SECONDS;
  }
}
