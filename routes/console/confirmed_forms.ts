// Results of confirmed forms, so that a second click on a button gets the result of the first.

import type { PageResult } from "./parts/page_context.ts";

const KEPT_MAX = 200;

/** The newest results of confirmed forms in this process. */
export class ConfirmedForms {
  readonly #results = new Map<string, Promise<PageResult>>();

  /**
   * Runs an action, or returns the result of the run with the same key. An action that failed may run again.
   *
   * @param key of the session and the form
   */
  once(key: string, run: () => Promise<PageResult> | PageResult): Promise<PageResult> {
    const earlier = this.#results.get(key);
    if (earlier !== undefined) return earlier;
    const result = Promise.resolve(run());
    this.#results.set(key, result);
    for (const [oldest] of this.#results) {
      if (this.#results.size <= KEPT_MAX) break;
      this.#results.delete(oldest);
    }
    result.then(
      (end) => "isDone" in end ? undefined : this.#results.delete(key),
      () => this.#results.delete(key),
    );
    return result;
  }
}
