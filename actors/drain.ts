// Decides when appended batches are drained into the tables. Batches wait until there are many of them, or the oldest has
// waited long, because a row that many of them change is then written once. A drain spreads its work over time, since
// appends wait for everything that was written to the log before them. A reader who needs the tables starts a drain at
// once, or hurries the running one. The backlog is bounded: at the bound the gate waits before the next append.

import type { Batch } from "./gate.ts";
import type { AppendedBatch, Journal } from "./port.ts";
import { Unavailable } from "./port.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import { RuntimeCounts, secondsSince } from "../src/process/counts/runtime_counts.ts";
import type { Spans } from "../src/process/counts/spans.ts";
import { rest } from "../src/process/rest.ts";

/** What it needs of the journal. */
type DrainedJournal = Pick<Journal, "drain" | "hurry" | "drainChangesMax" | "drainBytesMax" | "isInThread">;

interface Pending {
  readonly batch: Batch;
  readonly appended: AppendedBatch;
  readonly at: number;
}

interface Waiter {
  readonly seq: number;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** Moves appended batches into the tables, in order. */
export class Drain {
  readonly #journal: DrainedJournal;
  readonly #onFault: (error: Error) => void;
  readonly #counts: RuntimeCounts;
  readonly #spans: Spans | null;
  #pending: Pending[] = [];
  #changes = 0;
  #bytes = 0;
  #drainedSeq = -1;
  #appendedSeq = -1;
  #isDraining = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #waiters: Waiter[] = [];
  #roomWaiter: { promise: Promise<void>; resolve: () => void; reject: (reason: Error) => void } | null = null;
  #fault: Error | null = null;

  /** @param spans null without tracing */
  constructor(
    journal: DrainedJournal,
    onFault: (error: Error) => void,
    counts = new RuntimeCounts(),
    spans: Spans | null = null,
  ) {
    this.#journal = journal;
    this.#onFault = onFault;
    this.#counts = counts;
    this.#spans = spans;
  }

  /** Changes appended and not yet in the tables. */
  get backlogChanges(): number {
    return this.#changes;
  }

  /** Characters of journal not yet in the tables. */
  get backlogBytes(): number {
    return this.#bytes;
  }

  /** How long the oldest batch has waited, in seconds; 0 without a backlog. */
  get backlogAgeSeconds(): number {
    const [oldest] = this.#pending;
    return oldest === undefined ? 0 : secondsSince(oldest.at);
  }

  /** Takes a batch that became durable. */
  add(batch: Batch, appended: AppendedBatch): void {
    this.#pending.push({ batch, appended, at: performance.now() });
    this.#changes += appended.changes;
    this.#bytes += appended.bytes;
    this.#appendedSeq = appended.seq;
    this.#schedule();
  }

  /** Resolves when the tables hold everything that was durable at the call. */
  flush(): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    if (this.#drainedSeq >= this.#appendedSeq) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ seq: this.#appendedSeq, resolve, reject });
      this.#startNow();
    });
  }

  /**
   * Null while the backlog has room; else resolves after a drain, when it may have.
   *
   * @param bytesMax characters from which the backlog is full
   */
  room(bytesMax: number = RUNTIME_LIMITS.backlogBytesMax): Promise<void> | null {
    if (this.#changes < RUNTIME_LIMITS.backlogChangesMax && this.#bytes < bytesMax) return null;
    this.#startNow();
    if (this.#roomWaiter === null) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      promise.catch(() => {});
      this.#roomWaiter = { promise, resolve, reject };
    }
    return this.#roomWaiter.promise;
  }

  /**
   * Resolves when a large batch may write more: readers of others, who wait for the tables, wait for little of it.
   *
   * @param since when its last piece began, by `performance.now`
   */
  async roomForMore(since: number): Promise<void> {
    const { batchBacklogBytesMax, batchBacklogAloneBytesMax, batchPauseMsMax } = RUNTIME_LIMITS;
    const { isInThread } = this.#journal;
    const bytesMax = isInThread ? batchBacklogAloneBytesMax : batchBacklogBytesMax;
    for (let room = this.room(bytesMax); room !== null; room = this.room(bytesMax)) await room;
    if (isInThread) await rest(Math.min(performance.now() - since, batchPauseMsMax));
  }

  /** Ends the drain; batches that are not in the tables stay in the journal. */
  close(fault: Error): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const waiter of this.#waiters) waiter.reject(fault);
    this.#waiters = [];
    this.#roomWaiter?.reject(fault);
  }

  #schedule(): void {
    const [oldest] = this.#pending;
    if (this.#isDraining || oldest === undefined) return;
    if (this.#changes >= RUNTIME_LIMITS.drainFromChanges) return this.#start();
    const leftMs = oldest.at + RUNTIME_LIMITS.drainAfterMs - performance.now();
    this.#timer ??= setTimeout(() => this.#start(), Math.max(leftMs, 0));
  }

  /** Starts a drain, or hurries the running one. */
  #startNow(): void {
    if (this.#isDraining) this.#journal.hurry();
    else this.#start();
  }

  #start(): void {
    if (this.#isDraining || this.#fault !== null || this.#pending.length === 0) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isDraining = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    try {
      do {
        const taken = this.#take();
        await this.#write(taken);
        if (this.#fault !== null) return;
        this.#finish(taken);
      } while (this.#isWanted());
      this.#isDraining = false;
      if (this.#pending.length > 0) this.#schedule();
    } catch (error) {
      this.#onFault(new Unavailable("A drain failed", { cause: error }));
    }
  }

  async #write(taken: readonly Pending[]): Promise<void> {
    const startedAt = performance.now();
    const span = this.#spans?.drain(taken.map(({ batch }) => batch.span?.context ?? null));
    try {
      await this.#journal.drain(taken.map(({ appended }) => appended), this.#spreadMs());
    } catch (error) {
      span?.end(error);
      throw error;
    }
    const changes = taken.reduce((sum, { appended }) => sum + appended.changes, 0);
    this.#counts.drained(changes, startedAt);
    span?.set("holdfast.changes", changes);
    span?.end();
  }

  /** How long a drain may spread its work: the larger the backlog behind it, the shorter. */
  #spreadMs(): number {
    if (this.#waiters.length > 0 || this.#roomWaiter !== null) return 0;
    const room = 2 - this.#changes / RUNTIME_LIMITS.drainChangesMax;
    return RUNTIME_LIMITS.drainSpreadMs * Math.min(Math.max(room, 0), 1);
  }

  /** Whether the next drain should not wait for the timer. */
  #isWanted(): boolean {
    return this.#pending.length > 0 &&
      (this.#waiters.length > 0 || this.#changes >= RUNTIME_LIMITS.drainFromChanges);
  }

  #take(): Pending[] {
    const { drainChangesMax, drainBytesMax } = this.#journal;
    const changesMax = Math.min(RUNTIME_LIMITS.drainChangesMax, drainChangesMax);
    let changes = 0;
    let bytes = 0;
    let count = 0;
    for (const { appended } of this.#pending) {
      changes += appended.changes;
      bytes += appended.bytes;
      if (count > 0 && (changes > changesMax || bytes > drainBytesMax)) break;
      count += 1;
    }
    return this.#pending.slice(0, count);
  }

  #finish(taken: readonly Pending[]): void {
    this.#pending = this.#pending.slice(taken.length);
    for (const { batch, appended } of taken) {
      batch.isDrained = true;
      this.#changes -= appended.changes;
      this.#bytes -= appended.bytes;
      this.#drainedSeq = appended.seq;
    }
    this.#waiters = this.#waiters.filter((waiter) => {
      if (waiter.seq > this.#drainedSeq) return true;
      waiter.resolve();
      return false;
    });
    const room = this.#roomWaiter;
    this.#roomWaiter = null;
    room?.resolve();
  }
}
