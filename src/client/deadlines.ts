// Deadlines of calls. Calls with the same time limit end in the order in which they began, so they share one timer: a
// timer for each call would cost more than the rest of the work on its deadline.

/** A pending deadline. */
export interface Deadline {
  /** A moment of `performance.now()`. */
  readonly at: number;
  readonly end: () => void;
}

/** Deadlines with the same time limit, in the order in which they end. */
interface Group {
  readonly ms: number;
  readonly waiting: Set<Deadline>;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** How long a promise is waited for. */
export interface Bounds {
  readonly ms: number;
  /** The error when the time has ended. */
  readonly late: () => Error;
  readonly signal?: AbortSignal | undefined;
  /** Called when the wait ends before the promise has settled. */
  readonly onEnd?: (reason: unknown) => void;
}

/** The deadlines of one client. */
export class Deadlines {
  readonly #groups = new Map<number, Group>();

  /**
   * Calls `end` after a time, unless it is cleared before.
   *
   * @returns a function that clears it
   */
  set(ms: number, end: () => void): () => void {
    let group = this.#groups.get(ms);
    if (group === undefined) this.#groups.set(ms, group = { ms, waiting: new Set(), timer: undefined });
    const { waiting } = group;
    const deadline = { at: performance.now() + ms, end };
    waiting.add(deadline);
    if (group.timer === undefined) this.#arm(group, ms);
    return () => {
      // An unused timer would keep a program from ending.
      if (waiting.delete(deadline) && waiting.size === 0) this.#drop(group);
    };
  }

  /** Settles as a promise does, unless its time ends or the signal is aborted before: then rejects. */
  bound<Value>(promise: Promise<Value>, { ms, late, signal, onEnd }: Bounds): Promise<Value> {
    return new Promise((resolve, reject) => {
      const end = (reason: unknown) => {
        ends();
        reject(reason);
        onEnd?.(reason);
      };
      const onAbort = () => end(signal?.reason);
      const clear = ms < Infinity ? this.set(ms, () => end(late())) : null;
      const ends = () => {
        clear?.();
        signal?.removeEventListener("abort", onAbort);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      promise.then((value) => {
        ends();
        resolve(value);
      }, (error) => {
        ends();
        reject(error);
      });
    });
  }

  #arm(group: Group, ms: number): void {
    group.timer = setTimeout(() => this.#look(group), ms);
  }

  #drop(group: Group): void {
    clearTimeout(group.timer);
    this.#groups.delete(group.ms);
  }

  /** Ends all deadlines that are due. The timer may have been set for one that was cleared. */
  #look(group: Group): void {
    const { waiting } = group;
    // A timer may fire a fraction of a millisecond early.
    const now = performance.now() + 1;
    for (const deadline of waiting) {
      if (deadline.at > now) return this.#arm(group, deadline.at - now + 1);
      waiting.delete(deadline);
      deadline.end();
    }
    this.#drop(group);
  }
}
