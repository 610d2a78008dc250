// The pace of a drain. The flush of an append first flushes what a drain has written to the log before it, so a drain
// writes in small pieces with pauses between them, and still as one transaction. Whoever waits for the tables hurries it.

/** The longest pause: a drain of few pieces need not take long. */
const PAUSE_MS_MAX = 20;

/** Spreads one drain over time. */
export class Pace {
  readonly #startedAt = performance.now();
  readonly #pieceMs: number;
  #pieces = 0;
  #isHurried = false;
  #wake: (() => void) | null = null;

  /**
   * @param pieces of how many pieces the drain is
   * @param spreadMs how long it may take, as long as nobody waits for it
   */
  constructor(pieces: number, spreadMs: number) {
    this.#pieceMs = Math.min(PAUSE_MS_MAX, spreadMs / Math.max(pieces, 1));
  }

  /** Waits after a piece until it is time for the next one. */
  async rest(): Promise<void> {
    this.#pieces += 1;
    const restMs = this.#startedAt + this.#pieces * this.#pieceMs - performance.now();
    if (this.#isHurried || restMs < 1) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, restMs);
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
