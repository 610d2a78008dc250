// Watches a service from outside while it is under load, by its metrics. What an answer did not wait for still has to reach
// the tables, so throughput counts only together with a backlog that stays bounded and empties afterwards; and what an
// answer did wait for, the append, says why it was late.

// Metrics are put together on the thread that answers calls, so asking often would be seen in the latencies.
const EVERY_MS = 500;
const DRAINED_WITHIN_MS = 60_000;
/** How far back the longest append and drain look that the service publishes. */
const PEAK_MS = 15_000;

/** The backlog over one run. */
export interface DrainReport {
  maxChanges: number;
  maxBytes: number;
  endChanges: number;
  endBytes: number;
  /** Seconds from the end of the load to an empty backlog; null when it was not empty within a minute. */
  secondsToEmpty: number | null;
}

/** What one kind of write to the store took while calls were measured. */
export interface WriteReport {
  count: number;
  /** The sum of all times, in seconds. Several appends are under way at a time. */
  sumSeconds: number;
  /** The longest one, in milliseconds; null where the run was too short to tell it from those before. */
  longestMs: number | null;
}

/** The writes of a run: appends to the journal, and drains. */
export interface StoreReport {
  appends: WriteReport;
  drains: WriteReport;
}

type Metrics = (name: string) => number | null;

interface Sample {
  readonly at: number;
  readonly metrics: Metrics;
}

/** Samples until finished. */
export class ServiceWatch {
  readonly #url: string;
  readonly #samples: Sample[] = [];
  /** When the measured time begins. */
  readonly #from: number;
  #stopped = false;
  readonly #loop: Promise<void>;

  constructor(url: string, warmupMs: number) {
    this.#url = url;
    this.#from = performance.now() + warmupMs;
    this.#loop = this.#sampleOften();
  }

  /** Ends the sampling under load and waits for the backlog to empty. Both are null where nothing was published. */
  async finish(): Promise<{ drain: DrainReport | null; store: StoreReport | null }> {
    const start = performance.now();
    this.#stopped = true;
    const end = await this.#sample();
    await this.#loop;
    if (end === null) return { drain: null, store: null };
    this.#samples.push(end);
    let now: Sample | null = end;
    while (now !== null && changesOf(now) > 0 && performance.now() - start < DRAINED_WITHIN_MS) {
      await pause();
      now = await this.#sample();
    }
    const drain: DrainReport = {
      maxChanges: Math.max(...this.#samples.map(changesOf)),
      maxBytes: Math.max(...this.#samples.map(bytesOf)),
      endChanges: changesOf(end),
      endBytes: bytesOf(end),
      secondsToEmpty: now !== null && changesOf(now) === 0 ? (performance.now() - start) / 1000 : null,
    };
    return { drain, store: { appends: this.#writes("append"), drains: this.#writes("drain") } };
  }

  /** Ends the sampling without a report. */
  abandon(): void {
    this.#stopped = true;
  }

  #writes(kind: "append" | "drain"): WriteReport {
    const measured = this.#samples.filter(({ at }) => at >= this.#from);
    const grew = (what: string) => {
      const value = (sample: Sample | undefined) => sample?.metrics(`holdfast_${kind}_seconds_${what}`) ?? 0;
      return value(measured.at(-1)) - value(measured[0]);
    };
    // The first sample that knows no write of before the measured time knows all of the measured time until then.
    const peaks = measured.filter(({ at }) => at >= this.#from + PEAK_MS)
      .map(({ metrics }) => (metrics(`holdfast_${kind}_longest_seconds`) ?? 0) * 1000);
    return {
      count: grew("count"),
      sumSeconds: grew("sum"),
      longestMs: peaks.length === 0 ? null : Math.max(...peaks),
    };
  }

  async #sampleOften(): Promise<void> {
    while (!this.#stopped) {
      const sample = await this.#sample();
      if (sample !== null) this.#samples.push(sample);
      await pause();
    }
  }

  async #sample(): Promise<Sample | null> {
    try {
      const answer = await fetch(this.#url, { signal: AbortSignal.timeout(5000) });
      const text = await answer.text();
      if (!answer.ok) return null;
      const metrics = (name: string) => valueIn(text, name);
      return metrics(CHANGES) === null ? null : { at: performance.now(), metrics };
    } catch {
      // Too busy to answer in time is a gap in the samples; the load report shows whether requests failed.
      return null;
    }
  }
}

const CHANGES = "holdfast_drain_backlog_changes";

function changesOf({ metrics }: Sample): number {
  return metrics(CHANGES) ?? 0;
}

function bytesOf({ metrics }: Sample): number {
  return metrics("holdfast_drain_backlog_bytes") ?? 0;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}

/** The value of a metric in Prometheus text, those with labels summed. */
function valueIn(text: string, name: string): number | null {
  let total: number | null = null;
  for (const line of text.split("\n")) {
    if (!line.startsWith(name)) continue;
    const next = line[name.length];
    if (next !== " " && next !== "{") continue;
    const value = Number(line.slice(line.lastIndexOf(" ") + 1));
    if (Number.isFinite(value)) total = (total ?? 0) + value;
  }
  return total;
}
