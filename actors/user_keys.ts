// The numbers of new users. They come in blocks that no other member gets, the next one ahead of its time, so that a new
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
  /** The block after this one; null while nobody has asked for it. */
  #ahead: Promise<Block> | null = null;

  /** @param fetch a block that nobody else gets */
  constructor(fetch: () => Promise<Block>) {
    this.#fetch = fetch;
  }

  /** A number, at once where there is one. */
  take(): UserKey | Promise<UserKey> {
    if (this.#next >= this.#end) return this.#takeLater();
    const key = this.#next++;
    // From the middle of a block on, the next one is on its way.
    if (this.#ahead === null && (this.#end - key) * 2 < this.#blockSize) this.#ask();
    return key;
  }

  async #takeLater(): Promise<UserKey> {
    while (this.#next >= this.#end) {
      const asked = this.#ask();
      const block = await asked.catch((cause) => {
        throw new Unavailable("No numbers for new users", { cause });
      });
      // Others waited for the same block; the first of them opens it.
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
