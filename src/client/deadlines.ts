// Ends what takes too long. Calls that have the same time share one timer, since they end in the order in which they began:
// to set a timer for each call would cost more than all else that the client does about its time.

/** What ends if it takes too long. */
export interface Deadline {
  /** A moment of `performance.now()`. */
  readonly at: number;
  readonly end: () => void;
}

/** What has the same time, in the order of its end. */
interface Group {
  readonly ms: number;
  readonly waiting: Set<Deadline>;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** The deadlines of one client. */
export class Deadlines {
  readonly #groups = new Map<number, Group>();

  /**
   * Calls `end` after a time, unless it is cleared before.
   *
   * @returns what clears it
   */
  set(ms: number, end: () => void): () => void {
    let group = this.#groups.get(ms);
    if (group === undefined) this.#groups.set(ms, group = { ms, waiting: new Set(), timer: undefined });
    const { waiting } = group;
    const deadline = { at: performance.now() + ms, end };
    waiting.add(deadline);
    if (group.timer === undefined) this.#arm(group, ms);
    return () => {
      // A timer that waits for nothing would keep a program from ending.
      if (waiting.delete(deadline) && waiting.size === 0) this.#drop(group);
    };
  }

  #arm(group: Group, ms: number): void {
    group.timer = setTimeout(() => this.#look(group), ms);
  }

  #drop(group: Group): void {
    clearTimeout(group.timer);
    this.#groups.delete(group.ms);
  }

  /** Ends what is due; the timer was set for a deadline that may have been cleared. */
  #look(group: Group): void {
    const { waiting } = group;
    // A timer may be a part of a millisecond early.
    const now = performance.now() + 1;
    for (const deadline of waiting) {
      if (deadline.at > now) return this.#arm(group, deadline.at - now + 1);
      waiting.delete(deadline);
      deadline.end();
    }
    this.#drop(group);
  }
}
