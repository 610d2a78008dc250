// The numbers of new users. The database gives each node blocks of its own; the next block is fetched ahead, so that a new
// user seldom waits for the database.

import { Unavailable } from "./port.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** Numbers from `first` on. */
interface Block {
  readonly first: UserKey;
  readonly count: number;
}

/** Gives out numbers, each once. */
export class UserKeys {
  readonly #fetch: () => Promise<Block>;
  #next = 0;
  #end = 0;
  #blockSize = 0;
  /** The next block; null until it is fetched. */
  #ahead: Promise<Block> | null = null;

  /** @param fetch reserves a block for this node alone */
  constructor(fetch: () => Promise<Block>) {
    this.#fetch = fetch;
  }

  /** Returns a number, at once if the block has one. */
  take(): UserKey | Promise<UserKey> {
    if (this.#next >= this.#end) return this.#takeLater();
    const key = this.#next++;
    // From the middle of a block on, the next one is fetched.
    if (this.#ahead === null && (this.#end - key) * 2 < this.#blockSize) this.#ask();
    return key;
  }

  async #takeLater(): Promise<UserKey> {
    while (this.#next >= this.#end) {
      const asked = this.#ask();
      const block = await asked.catch((cause) => {
        throw new Unavailable("No numbers for new users", { cause });
      });
      // Several callers wait for the same block; the first of them opens it.
      if (this.#ahead !== asked) continue;
      this.#ahead = null;
      this.#next = block.first;
      this.#end = block.first + block.count;
      this.#blockSize = block.count;
    }
    return this.#next++;
  }

  #ask(): Promise<Block> {
    const asked = this.#ahead ??= this.#fetch();
    asked.catch(() => {
      if (this.#ahead === asked) this.#ahead = null;
    });
    return asked;
  }
}
