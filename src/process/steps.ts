// Long work of the answering thread in steps.

import { RUNTIME_LIMITS } from "./limits.ts";

/** The time of the running step; other work of the event loop runs between two steps. */
export class Steps {
  #startedAt = performance.now();

  /** Whether the running step has taken so long that other work should have its turn. */
  get isLong(): boolean {
    return performance.now() - this.#startedAt >= RUNTIME_LIMITS.stepMs;
  }

  /** Lets other work of the event loop run, then begins another step. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#startedAt = performance.now();
  }
}
