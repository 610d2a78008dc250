// The pace of a drain. An append's flush must first flush what a drain wrote to the write-ahead log before it, and a drain
// competes with the answering thread for the cores. So a drain reads and writes in small pieces with pauses between them,
// still as one transaction. A caller that waits for the tables hurries it.

/** The longest pause, so that a drain of few pieces does not take long. */
const PAUSE_MS_MAX = 20;

/** Spreads one drain over time. */
export class Pace {
  /** Whether the drain works in pieces. */
  readonly isSpread: boolean;
  readonly #spreadMs: number;
  readonly #startedAt = performance.now();
  #isHurried: boolean;
  #wake: (() => void) | null = null;

  /** @param spreadMs how long the drain may take while no caller waits for it; 0 for full speed */
  constructor(spreadMs: number) {
    this.#spreadMs = spreadMs;
    this.isSpread = spreadMs > 0;
    this.#isHurried = !this.isSpread;
  }

  /**
   * Waits after a piece until it is time for the next.
   *
   * @param done the finished part of the drain, up to 1
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

  /** Ends the pause and skips all later ones. */
  hurry(): void {
    this.#isHurried = true;
    this.#wake?.();
  }
}
