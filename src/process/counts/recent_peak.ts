// The largest value of the last seconds. A histogram counts large values but not the largest one, and a peak since the start
// of the process is stale a day later.

/** How far back a peak looks, in whole seconds. */
const PEAK_SECONDS = 15;

/** Keeps the largest value of each of the last seconds. */
export class RecentPeak {
  readonly #peaks = new Float64Array(PEAK_SECONDS);
  /** The last whole second with a value or a reading. */
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

  /** Returns the largest value of the current second and the fourteen before it; 0 without any. */
  read(atMs = performance.now()): number {
    this.#advance(atMs);
    return Math.max(...this.#peaks);
  }

  /** Empties the slots of seconds that have passed; returns the slot of the current one. */
  #advance(atMs: number): number {
    const second = Math.floor(atMs / 1000);
    const passed = Math.min(second - this.#second, PEAK_SECONDS);
    for (let back = 0; back < passed; back++) this.#peaks[(second - back) % PEAK_SECONDS] = 0;
    this.#second = Math.max(this.#second, second);
    return this.#second % PEAK_SECONDS;
  }
}
