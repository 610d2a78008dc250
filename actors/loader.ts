// Loads by key, many in one query: while one query runs, the next one collects keys, as in the output gate. Behind a slow
// query another one begins, so that a large user does not delay all others.

import { Unavailable } from "./port.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";

interface Waiting<Key, Value> {
  readonly keys: readonly Key[];
  /** Takes one value for each key, in its place. */
  readonly resolve: (values: Value[]) => void;
  readonly reject: (reason: unknown) => void;
}

/** Batches loads into queries of bounded size over a bounded queue. */
export class Loader<Key, Value> {
  readonly #loadMany: (keys: Key[]) => Promise<Value[]>;
  readonly #batchMax: number;
  readonly #queueMax: number;
  #queue: Waiting<Key, Value>[] = [];
  #waitingKeys = 0;
  /** Queries that run, and those of them that are not slow yet. */
  #running = 0;
  #fresh = 0;
  #isScheduled = false;

  /**
   * @param loadMany answers one value for each key, in its place
   * @param batchMax keys in one query; those of one `loadAll` are never split
   * @param queueMax keys that may wait
   */
  constructor(loadMany: (keys: Key[]) => Promise<Value[]>, batchMax: number, queueMax: number) {
    this.#loadMany = loadMany;
    this.#batchMax = batchMax;
    this.#queueMax = queueMax;
  }

  /** Loads the value of one key. Rejects with Unavailable when the load fails or too many wait. */
  load(key: Key): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#ask({ keys: [key], resolve: ([value]) => resolve(value as Value), reject });
    });
  }

  /** Loads the values of some keys in one query, with one promise for all. Rejects as `load` does. */
  loadAll(keys: readonly Key[]): Promise<Value[]> {
    return new Promise((resolve, reject) => this.#ask({ keys, resolve, reject }));
  }

  #ask(waiting: Waiting<Key, Value>): void {
    if (this.#waitingKeys + waiting.keys.length > this.#queueMax) {
      waiting.reject(new Unavailable("Too many loads are waiting"));
      return;
    }
    this.#queue.push(waiting);
    this.#waitingKeys += waiting.keys.length;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#fresh > 0 || this.#running >= RUNTIME_LIMITS.loadsMax) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0 && this.#fresh === 0 && this.#running < RUNTIME_LIMITS.loadsMax) {
      const taken = this.#take();
      const keys = taken.flatMap((waiting) => waiting.keys);
      this.#waitingKeys -= keys.length;
      const isOver = this.#begin();
      try {
        const values = await this.#loadMany(keys);
        let from = 0;
        for (const { keys, resolve } of taken) resolve(values.slice(from, from += keys.length));
      } catch (error) {
        const fault = new Unavailable("A load failed", { cause: error });
        for (const { reject } of taken) reject(fault);
      } finally {
        isOver();
      }
    }
  }

  /** Counts a query; returns what to call at its end. */
  #begin(): () => void {
    let isFresh = true;
    const age = () => {
      if (isFresh) this.#fresh -= 1;
      isFresh = false;
    };
    const timer = setTimeout(() => {
      age();
      if (this.#queue.length > 0) this.#schedule();
    }, RUNTIME_LIMITS.loadSlowMs);
    this.#running += 1;
    this.#fresh += 1;
    return () => {
      clearTimeout(timer);
      age();
      this.#running -= 1;
    };
  }

  /** Takes the loads of one query out of the queue: at least one, and as many as fit. */
  #take(): Waiting<Key, Value>[] {
    let size = 0;
    const over = this.#queue.findIndex(({ keys }) => (size += keys.length) > this.#batchMax);
    return this.#queue.splice(0, over < 0 ? this.#queue.length : Math.max(over, 1));
  }
}
