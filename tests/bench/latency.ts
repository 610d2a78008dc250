// Latencies in bounded memory. Buckets grow with the value, so a percentile is exact to one part in 64, however many
// latencies were measured. The largest is kept exactly.

const STEPS = 64;
/** Buckets for up to 2^36 microseconds, which is 19 hours. */
const BUCKETS = STEPS * 31;

/** Percentiles in milliseconds. */
export interface LatencySummary {
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** A histogram of durations. */
export class Latencies {
  readonly #buckets = new Float64Array(BUCKETS);
  #measured = 0;
  #maxMs = 0;

  add(ms: number): void {
    const index = bucketOf(Math.max(0, Math.round(ms * 1000)));
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    this.#measured++;
    this.#maxMs = Math.max(this.#maxMs, ms);
  }

  /** null when nothing was measured. */
  summary(): LatencySummary | null {
    if (this.#measured === 0) return null;
    const at = (share: number) => rounded(Math.min(this.#percentile(share), this.#maxMs));
    return { p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: rounded(this.#maxMs) };
  }

  #percentile(share: number): number {
    let left = Math.ceil(this.#measured * share);
    const index = this.#buckets.findIndex((count) => (left -= count) <= 0);
    return upperEnd(index) / 1000;
  }
}

/** Values below 64 have a bucket each; above, each power of two is cut into 64. */
function bucketOf(micros: number): number {
  if (micros < STEPS) return micros;
  const power = Math.floor(Math.log2(micros)) - Math.log2(STEPS);
  return Math.min(BUCKETS - 1, (power + 1) * STEPS + Math.floor(micros / 2 ** power) - STEPS);
}

function upperEnd(index: number): number {
  if (index < STEPS) return index;
  const power = Math.floor(index / STEPS) - 1;
  return ((index % STEPS) + STEPS + 1) * 2 ** power - 1;
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
