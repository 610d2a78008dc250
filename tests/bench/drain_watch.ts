// Watches the drain's backlog while a contestant is under load: what an answer did not wait for still has to reach the
// tables, so throughput counts only together with a backlog that stays bounded and empties afterwards.

const EVERY_MS = 250;
const DRAINED_WITHIN_MS = 60_000;

/** The backlog over one run; null where the service does not publish it. */
export interface DrainReport {
  maxChanges: number;
  maxBytes: number;
  endChanges: number;
  endBytes: number;
  /** Seconds from the end of the load to an empty backlog; null when it was not empty within a minute. */
  secondsToEmpty: number | null;
}

interface Sample {
  changes: number;
  bytes: number;
}

/** Samples until finished. */
export class DrainWatch {
  readonly #url: string;
  readonly #samples: Sample[] = [];
  #stopped = false;
  readonly #loop: Promise<void>;

  constructor(url: string) {
    this.#url = url;
    this.#loop = this.#sampleOften();
  }

  /** Ends the sampling under load and waits for the backlog to empty. */
  async finish(): Promise<DrainReport | null> {
    const start = performance.now();
    this.#stopped = true;
    const end = await this.#sample();
    await this.#loop;
    if (end === null) return null;
    this.#samples.push(end);
    let now: Sample | null = end;
    while (now !== null && now.changes > 0 && performance.now() - start < DRAINED_WITHIN_MS) {
      await pause();
      now = await this.#sample();
    }
    return {
      maxChanges: Math.max(...this.#samples.map((each) => each.changes)),
      maxBytes: Math.max(...this.#samples.map((each) => each.bytes)),
      endChanges: end.changes,
      endBytes: end.bytes,
      secondsToEmpty: now?.changes === 0 ? (performance.now() - start) / 1000 : null,
    };
  }

  /** Ends the sampling without a report. */
  abandon(): void {
    this.#stopped = true;
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
      const changes = gauge(text, "holdfast_drain_backlog_changes");
      const bytes = gauge(text, "holdfast_drain_backlog_bytes");
      return changes === null ? null : { changes, bytes: bytes ?? 0 };
    } catch {
      // Too busy to answer in time is a gap in the samples; the load report shows whether requests failed.
      return null;
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, EVERY_MS));
}

/** The value of an unlabelled or labelled gauge in Prometheus text, labelled ones summed. */
function gauge(text: string, name: string): number | null {
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
