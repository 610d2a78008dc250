// Idempotency keys that are certainly new, so that no look-up has to show it.
//
// A realm has a prefix of random letters. It is made here and sent to the callers, so no earlier key can begin with it.
// Until the realm leaves this node, every call of the realm is decided here, and its key passes `take` before. So a key
// with the prefix that `take` has not marked has no first answer.
//
// Marks are bits of a hash. If two keys have the same bits, the later one is looked up in vain: that takes a query, and makes
// rows of the first answers in memory, so it is very rare. No mark is lost while its prefix is in force. Every other key is
// looked up, also one with the prefix of another node or of an older generation.

import { RUNTIME_LIMITS } from "../src/process/limits.ts";

/** Bits for each key, and how many of them a key marks: of keys that are new, fewer than one in 100,000 is looked up. */
const BITS_OF_KEY = 32;
const PROBES = 8;
const PREFIX_LENGTH = 12;
const LETTERS = "0123456789abcdefghijklmnopqrstuv";

/** The keys of one prefix. */
class Generation {
  readonly prefix = newPrefix();
  /** How many keys it is made for; a power of two. */
  readonly capacity: number;
  readonly #bits: Uint32Array;
  readonly #mask: number;
  #marked = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#bits = new Uint32Array(capacity * BITS_OF_KEY / 32);
    this.#mask = capacity * BITS_OF_KEY - 1;
  }

  get isFull(): boolean {
    return this.#marked >= this.capacity;
  }

  /** Marks a key with the prefix. @returns whether it was certainly not marked before */
  mark(key: string): boolean {
    // FNV-1a, and a second hash for the steps between the probes, which is odd.
    let hash = 0x811c9dc5;
    for (let index = this.prefix.length; index < key.length; index++) {
      hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
    }
    const step = Math.imul(hash ^ hash >>> 15, 0x2c1b3c6d) | 1;
    let isNew = false;
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = (hash ^ hash >>> 16) & this.#mask;
      const word = this.#bits[bit >>> 5] as number;
      const set = word | 1 << (bit & 31);
      if (set >>> 0 !== word) {
        isNew = true;
        this.#bits[bit >>> 5] = set;
      }
      hash = hash + step | 0;
    }
    if (isNew) this.#marked += 1;
    return isNew;
  }
}

/** The prefixes of one realm in force; callers receive the newer one. */
interface Prefixes {
  readonly now: Generation;
  /** Null for the first one. */
  readonly before: Generation | null;
}

/** Knows which keys are certainly new. */
export class FreshKeys {
  readonly #realms = new Map<number, Prefixes>();

  /** Returns what the keys of new calls of a realm should begin with. Its owner alone may ask. */
  prefixOf(realm: number): string {
    const known = this.#realms.get(realm);
    if (known !== undefined && !known.now.isFull) return known.now.prefix;
    const { freshKeysMin, freshKeysMax, freshRealmsMax } = RUNTIME_LIMITS;
    const capacity = known === undefined ? freshKeysMin : Math.min(known.now.capacity * 4, freshKeysMax);
    const made = { now: new Generation(capacity), before: known?.now ?? null };
    this.#realms.delete(realm);
    const [oldest] = this.#realms.keys();
    if (oldest !== undefined && this.#realms.size >= freshRealmsMax) this.#realms.delete(oldest);
    this.#realms.set(realm, made);
    return made.now.prefix;
  }

  /** Marks the key of a call before it is decided. @returns whether the key is certainly new */
  take(realm: number, key: string): boolean {
    const known = this.#realms.get(realm);
    if (known === undefined) return false;
    const { now, before } = known;
    if (key.startsWith(now.prefix)) return now.mark(key);
    return before !== null && key.startsWith(before.prefix) && before.mark(key);
  }

  /** Ends the prefixes of a realm: another node may decide its calls from now on. */
  drop(realm: number): void {
    this.#realms.delete(realm);
  }

  /** Prefixes in force of a realm. */
  sizeOf(realm: number): number {
    const known = this.#realms.get(realm);
    return known === undefined ? 0 : known.before === null ? 1 : 2;
  }
}

function newPrefix(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(PREFIX_LENGTH));
  return `${Array.from(bytes, (byte) => LETTERS[byte & 31]).join("")}.`;
}
