// Locks of the simulated server: advisory ones, which a session holds as often as it took them, and those of rows, which
// a transaction holds until its end.

/** A lock that a statement needs. */
export interface Lock {
  readonly key: string;
  /** Whether others may hold it shared as well. */
  readonly isShared: boolean;
}

interface Held {
  shared: number;
  exclusive: number;
}

/** Who holds what. */
export class Locks<Holder> {
  readonly #held = new Map<string, Map<Holder, Held>>();

  /** Whether no other owner holds a conflicting lock. */
  isFree({ key, isShared }: Lock, holder: Holder): boolean {
    const holders = this.#held.get(key);
    if (holders === undefined) return true;
    return [...holders].every(([other, { exclusive }]) => other === holder || isShared && exclusive === 0);
  }

  /** Whether a lock is held. */
  holds({ key }: Lock, holder: Holder): boolean {
    return this.#held.get(key)?.has(holder) === true;
  }

  /** Takes a free lock once more. */
  take({ key, isShared }: Lock, holder: Holder): void {
    let holders = this.#held.get(key);
    if (holders === undefined) this.#held.set(key, holders = new Map());
    let held = holders.get(holder);
    if (held === undefined) holders.set(holder, held = { shared: 0, exclusive: 0 });
    held[isShared ? "shared" : "exclusive"] += 1;
  }

  /** Gives a lock back once. */
  give({ key, isShared }: Lock, holder: Holder): void {
    const held = this.#held.get(key)?.get(holder);
    if (held === undefined) return;
    const mode = isShared ? "shared" : "exclusive";
    held[mode] = Math.max(held[mode] - 1, 0);
    if (held.shared + held.exclusive === 0) this.#drop(key, holder);
  }

  /** Gives everything back. */
  giveAll(holder: Holder): void {
    for (const key of [...this.#held.keys()]) this.#drop(key, holder);
  }

  #drop(key: string, holder: Holder): void {
    const holders = this.#held.get(key);
    holders?.delete(holder);
    if (holders?.size === 0) this.#held.delete(key);
  }
}
