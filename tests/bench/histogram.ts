// A latency histogram in the manner of HdrHistogram: linear steps inside each power of two, so that a value is known
// to better than one percent at any size and recording is one array increment. It owns counting and percentiles,
// nothing about requests.
import type { CallReport } from "./load_plan.ts";

/** A power of two is cut into half as many steps: 128 of them, each less than 0.8 % of the values in it. */
const STEPS_BITS = 8;
const STEPS = 1 << STEPS_BITS;
/** The longest duration that has a bucket of its own, 35 minutes; longer ones count there. */
const LONGEST_US = 2 ** 31 - 1;

/** Counts durations in microseconds. */
export class Histogram {
  readonly #buckets = new Uint32Array(bucketOf(LONGEST_US) + 1);
  #count = 0;
  #maxUs = 0;

  /** How many durations were recorded. */
  get count(): number {
    return this.#count;
  }

  /** The longest duration, in milliseconds. */
  get maxMs(): number {
    return this.#maxUs / 1000;
  }

  /** Records one duration in microseconds. */
  record(us: number): void {
    const index = bucketOf(us);
    this.#buckets[index] = this.#buckets[index]! + 1;
    this.#count += 1;
    if (us > this.#maxUs) this.#maxUs = us;
  }

  /** Adds what another histogram counted. */
  add(other: Histogram): void {
    for (let i = 0; i < this.#buckets.length; i++) this.#buckets[i] = this.#buckets[i]! + other.#buckets[i]!;
    this.#count += other.#count;
    this.#maxUs = Math.max(this.#maxUs, other.#maxUs);
  }

  /** The duration in milliseconds that the given share (0 to 1) of all durations stays at or under. */
  percentileMs(share: number): number {
    const wanted = Math.ceil(this.#count * share);
    let seen = 0;
    for (let i = 0; i < this.#buckets.length; i++) {
      seen += this.#buckets[i]!;
      if (seen >= wanted && seen > 0) return Math.min(topOf(i), this.#maxUs) / 1000;
    }
    return 0;
  }
}

function bucketOf(us: number): number {
  const whole = us < 0 ? 0 : Math.min(Math.floor(us), LONGEST_US);
  if (whole < STEPS) return whole;
  // The highest bit says which power of two; the STEPS_BITS - 1 bits under it say which step inside it.
  const shift = 31 - Math.clz32(whole) - (STEPS_BITS - 1);
  return shift * (STEPS >> 1) + (whole >>> shift);
}

/** The largest number of microseconds that falls into a bucket. */
function topOf(index: number): number {
  if (index < STEPS) return index;
  const half = STEPS >> 1;
  const shift = Math.floor(index / half) - 1;
  const step = index - shift * half;
  return (step + 1) * 2 ** shift - 1;
}

/** What a run reports of the calls that a histogram has. */
export function callReport(histogram: Histogram, seconds: number): CallReport {
  return {
    requests: histogram.count,
    requestsPerSecond: histogram.count / seconds,
    p50Ms: histogram.percentileMs(0.5),
    p99Ms: histogram.percentileMs(0.99),
    p999Ms: histogram.percentileMs(0.999),
    maxMs: histogram.maxMs,
  };
}
