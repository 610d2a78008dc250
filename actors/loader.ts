// Loads by key, many in one query: while one query is under way the next one fills, as in the output gate.

import { Unavailable } from "./port.ts";

interface Waiting<Key, Value> {
  readonly key: Key;
  readonly resolve: (value: Value) => void;
  readonly reject: (reason: unknown) => void;
}

/** Batches single loads into queries of bounded size over a bounded queue. */
export class Loader<Key, Value> {
  readonly #loadMany: (keys: Key[]) => Promise<Value[]>;
  readonly #batchMax: number;
  readonly #queueMax: number;
  #queue: Waiting<Key, Value>[] = [];
  #isLoading = false;

  /** @param loadMany answers one value for each key, in its place */
  constructor(loadMany: (keys: Key[]) => Promise<Value[]>, batchMax: number, queueMax: number) {
    this.#loadMany = loadMany;
    this.#batchMax = batchMax;
    this.#queueMax = queueMax;
  }

  load(key: Key): Promise<Value> {
    if (this.#queue.length >= this.#queueMax) {
      return Promise.reject(new Unavailable("Too many loads are waiting"));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ key, resolve, reject });
      if (this.#isLoading) return;
      this.#isLoading = true;
      queueMicrotask(() => this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const taken = this.#queue.splice(0, this.#batchMax);
      try {
        const values = await this.#loadMany(taken.map(({ key }) => key));
        taken.forEach(({ resolve }, index) => resolve(values[index] as Value));
      } catch (error) {
        const fault = new Unavailable("A load failed", { cause: error });
        for (const { reject } of taken) reject(fault);
      }
    }
    this.#isLoading = false;
  }
}
