// A histogram of fixed buckets: an array that a hot path adds to and a scrape reads. Nothing is allocated and no
// label is looked up when something is observed.

/** Counts of values by upper bound. */
export class Histogram {
  /** Upper bounds, ascending; a last bucket without a bound follows them. */
  readonly bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** Sum of the values observed. */
  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    const { bounds } = this;
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) index += 1;
    (this.#counts[index] as number) += 1;
    this.#sum += value;
  }

  /** How many values were at or below each bound, and last how many there were in all. */
  cumulative(): number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => total += count);
  }
}

/** Bounds in seconds of what happens in memory: 5 microseconds to 50 milliseconds. */
export const MEMORY_SECONDS = [
  0.000_005,
  0.000_01,
  0.000_025,
  0.000_05,
  0.000_1,
  0.000_25,
  0.000_5,
  0.001,
  0.005,
  0.01,
  0.05,
];

/** Bounds in seconds of what waits for the store or the network: a quarter of a millisecond to 10 seconds. */
export const STORE_SECONDS = [
  0.000_25,
  0.000_5,
  0.001,
  0.002_5,
  0.005,
  0.01,
  0.025,
  0.05,
  0.1,
  0.25,
  0.5,
  1,
  2.5,
  5,
  10,
];

/** Bounds of how many changes one batch or one drain has. */
export const BATCH_CHANGES = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 50_000, 100_000];
