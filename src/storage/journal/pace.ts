// The pace of a drain. The flush of an append first flushes what a drain has written to the log before it, and a drain
// competes with the answering thread for the cores. So it reads and writes in small pieces with pauses between them, and
// still as one transaction. Whoever waits for the tables hurries it.

/** The longest pause: a drain of few pieces need not take long. */
const PAUSE_MS_MAX = 20;

/** Spreads one drain over time. */
export class Pace {
  /** Whether the drain goes in pieces at all. */
  readonly isSpread: boolean;
  readonly #spreadMs: number;
  readonly #startedAt = performance.now();
  #isHurried: boolean;
  #wake: (() => void) | null = null;

  /** @param spreadMs how long the drain may take, as long as nobody waits for it; 0 for as fast as it can */
  constructor(spreadMs: number) {
    this.#spreadMs = spreadMs;
    this.isSpread = spreadMs > 0;
    this.#isHurried = !this.isSpread;
  }

  /**
   * Waits after a piece until it is time for the next one.
   *
   * @param done the part of the drain that is done, up to 1
   */
  async rest(done: number): Promise<void> {
    const restMs = this.#startedAt + done * this.#spreadMs - performance.now();
    if (this.#isHurried || restMs < 1) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(restMs, PAUSE_MS_MAX));
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Ends the pause, and has no more of them. */
  hurry(): void {
    this.#isHurried = true;
    this.#wake?.();
  }
}
