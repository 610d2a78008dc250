// The output gate: no answer leaves before the batch with its changes is durable. The changes of a turn join the open
// batch. While other batches are being appended the open one fills, so a busy writer appends large batches and an idle one
// appends at once, without a timer.
//
// Why this is safe: batches become durable in the order in which their turns ran (the journal guarantees it), and a
// turn's changes are never split. So the durable changes are always a prefix of the decided ones, and an answer that
// waits for its own batch also waits for every change that it could have seen. A failed append ends the term, and no
// further answer leaves, because only reading the journal again shows whether the batch was written.

import type { AppendedBatch, Journal, JournalEntry, RowChange } from "./port.ts";
import { Unavailable } from "./port.ts";
import type { Counter } from "../src/domain/state/counter.ts";
import type { TopUpIntent } from "../src/domain/state/top_up.ts";
import type { WebhookMessage } from "../src/domain/state/message.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { RuntimeCounts } from "../src/process/counts/runtime_counts.ts";
import type { Spans, WorkSpan } from "../src/process/counts/spans.ts";

/**
 * Changes that become durable together. The actors of a batch keep a reference to it until their next batch, so a durable
 * batch drops everything that it no longer needs.
 */
export class Batch {
  #entries: JournalEntry[] = [];
  #totals = new Map<string, RowChange>();
  /** Null once the batch is durable. */
  #waiting: PromiseWithResolvers<void> | null;
  /** Messages among the changes; null for none. */
  messages: WebhookMessage[] | null = null;
  /** The top-ups that its turns changed; null for none. */
  topUps: TopUpIntent[] | null = null;
  /** Whether it was sent to the journal; then no change can join it. */
  isSent = false;
  isDrained = false;
  /** Its place in the journal, once it is durable. */
  seq = 0;
  /** Null without tracing. */
  span: WorkSpan | null = null;

  constructor() {
    const waiting = Promise.withResolvers<void>();
    // Every waiter handles the failure itself; a batch without one must not end the process.
    waiting.promise.catch(() => {});
    this.#waiting = waiting;
  }

  get isDurable(): boolean {
    return this.#waiting === null;
  }

  /** Empty once the batch was sent. */
  get entries(): JournalEntry[] {
    return this.#entries;
  }

  /** Totals of workspaces after the batch's last turn, by their key: one change each, however many turns add. */
  get totals(): Map<string, RowChange> {
    return this.#totals;
  }

  /** Resolves when the batch is durable; rejects when the term ends first. */
  get durable(): Promise<void> {
    return this.#waiting?.promise ?? DURABLE;
  }

  /** Notes the messages among a turn's changes. */
  noteMessages(changes: readonly RowChange[]): void {
    for (const change of changes) {
      if (change.table === "webhook_messages") (this.messages ??= []).push(change.row);
    }
  }

  /** Notes the top-ups among a turn's changes. */
  noteTopUps(changes: readonly RowChange[]): void {
    for (const change of changes) {
      if (change.table === "top_ups") (this.topUps ??= []).push(change.row);
    }
  }

  /** Gives its changes to the journal, and keeps none: the journal has them as text, and they would outlive an append. */
  send(): readonly JournalEntry[] {
    const entries = this.#entries;
    for (const total of this.#totals.values()) entries.push(total);
    this.isSent = true;
    this.#entries = NO_ENTRIES;
    this.#totals = NO_TOTALS;
    this.span?.set("holdfast.changes", entries.length);
    return entries;
  }

  /** Sends the answers that wait for it. */
  open(): void {
    this.#waiting?.resolve();
    this.#waiting = null;
  }

  /** Refuses the answers that wait for it. */
  fail(reason: Error): void {
    this.#waiting?.reject(reason);
  }
}

/** Values of all durable batches, and of all that were sent. Changes never join a sent batch, so these stay empty. */
const DURABLE = Promise.resolve();
const NO_ENTRIES: JournalEntry[] = [];
const NO_TOTALS = new Map<string, RowChange>();

/** Where a batch has the counters of a user, if any: from a place up to another, exclusive. */
export interface Stretch {
  readonly batch: Batch;
  readonly userKey: UserKey;
  readonly from: number;
  readonly to: number;
}

/** Resolves when all of some batches are durable; rejects when the term ends first. */
export async function allDurable(batches: Iterable<Batch>): Promise<void> {
  for (const { durable } of batches) await durable;
}

/** The parts of a term that the gate uses. */
export interface GateOptions {
  readonly journal: Journal;
  /** Called with each batch that became durable, in order. */
  readonly onAppended: (batch: Batch, appended: AppendedBatch) => void;
  /** Resolves when the drain has room for another batch; null if it has room now. */
  readonly room: () => Promise<void> | null;
  /** Ends the term. */
  readonly onFault: (error: Error) => void;
  readonly counts: RuntimeCounts;
  /** Null without tracing. */
  readonly spans: Spans | null;
}

/** Batches changes into the journal. */
export class Gate {
  readonly #options: GateOptions;
  #filling: Batch[] = [];
  #tip: Batch | null = null;
  #waitingChanges = 0;
  /** An array, since there are only a few: a set would allocate a table again and again. */
  readonly #inFlight: Batch[] = [];
  #isWaitingForRoom = false;
  #isScheduled = false;
  #fault: Error | null = null;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Changes that wait for an append. */
  get waitingChanges(): number {
    return this.#waitingChanges;
  }

  /** The newest batch; null before the first one of this term. */
  get tip(): Batch | null {
    return this.#tip;
  }

  /** Whether new turns must be refused until the journal has caught up. */
  get isFull(): boolean {
    return this.#waitingChanges >= RUNTIME_LIMITS.waitingChangesMax;
  }

  /** Throws for changes that a table would refuse: no drain could write their batch, or any batch behind it. */
  checkFit(changes: readonly RowChange[]): void {
    const misfit = this.#options.journal.misfitOf(changes);
    if (misfit !== null) throw new TypeError(`A row does not fit its table: ${misfit}`);
  }

  /**
   * Adds a turn's changes to the batch that leaves next. A counter that an earlier turn wrote into the same batch is written
   * once, with its last value. All other changes become lines at once: as rows they and their parts would outlive
   * collections of the young generation, which copies what is in use.
   *
   * @param earlier where the user's counters are
   * @param others the same of users above
   */
  add(
    changes: readonly RowChange[],
    earlier: Stretch | null = null,
    others: readonly Stretch[] = NO_STRETCHES,
  ): Batch {
    if (this.#fault !== null) throw this.#fault;
    const { journal } = this.#options;
    // First all of them: if one could not be encoded, none may be in the batch.
    const entries = changes.map((change) => change.table === "counters" ? change : journal.lineOf(change));
    let batch = this.#filling.at(-1);
    if (batch === undefined || batch.entries.length >= RUNTIME_LIMITS.batchChangesMax) {
      batch = new Batch();
      batch.span = this.#options.spans?.batch() ?? null;
      this.#filling.push(batch);
      this.#tip = batch;
    }
    const before = batch.entries.length;
    if (others.length > 0) addOver(batch, earlier === null ? others : [earlier, ...others], entries);
    else if (earlier?.batch === batch) addOver(batch, [earlier], entries);
    else for (const entry of entries) batch.entries.push(entry);
    this.#waitingChanges += batch.entries.length - before;
    if (!this.#isScheduled && this.#maySend()) {
      this.#isScheduled = true;
      setImmediate(() => this.#send());
    }
    return batch;
  }

  /** Ends the gate: every waiter gets the fault. */
  close(fault: Error): void {
    if (this.#fault !== null) return;
    this.#fault = fault;
    for (const batch of [...this.#inFlight, ...this.#filling]) {
      batch.fail(fault);
      endBatch(batch, fault);
    }
    this.#filling = [];
  }

  /**
   * Whether to send the open batch: at once if no other is in flight; beside others only if it is large enough for an
   * append of its own.
   */
  #maySend(): boolean {
    const next = this.#filling[0];
    if (next === undefined || this.#isWaitingForRoom || this.#fault !== null) return false;
    if (this.#inFlight.length === 0) return true;
    return this.#inFlight.length < RUNTIME_LIMITS.appendsInFlightMax &&
      next.entries.length >= RUNTIME_LIMITS.batchWorthChanges;
  }

  #send(): void {
    this.#isScheduled = false;
    while (this.#maySend()) {
      const room = this.#options.room();
      if (room !== null) {
        this.#waitForRoom(room);
        return;
      }
      void this.#append(this.#filling.shift() as Batch);
    }
  }

  #waitForRoom(room: Promise<void>): void {
    this.#isWaitingForRoom = true;
    room.then(() => {
      this.#isWaitingForRoom = false;
      this.#send();
    }, () => {});
  }

  async #append(batch: Batch): Promise<void> {
    const { journal, onAppended, onFault, counts } = this.#options;
    this.#inFlight.push(batch);
    this.#waitingChanges -= batch.entries.length;
    const startedAt = performance.now();
    try {
      const appended = await journal.append(batch.send());
      this.#inFlight.splice(this.#inFlight.indexOf(batch), 1);
      if (this.#fault !== null) return;
      batch.seq = appended.seq;
      counts.appended(appended, startedAt);
      onAppended(batch, appended);
      endBatch(batch);
      batch.open();
      this.#send();
    } catch (error) {
      const fault = error instanceof Unavailable
        ? error
        : new Unavailable("An append failed", { cause: error });
      this.close(fault);
      onFault(fault);
    }
  }
}

const NO_STRETCHES: readonly Stretch[] = [];

/**
 * Adds changes to a batch; a counter within the stretch of its user is replaced. A counter of an account is not looked for
 * among the changes of its members: it may be there, and again in those of a later turn, which would then count as newer.
 */
function addOver(batch: Batch, stretches: readonly Stretch[], entries: readonly JournalEntry[]): void {
  for (const entry of entries) {
    const place = typeof entry === "string" || entry.table !== "counters"
      ? -1
      : placeIn(batch, stretches, entry.row);
    if (place < 0) batch.entries.push(entry);
    else batch.entries[place] = entry;
  }
}

function placeIn(batch: Batch, stretches: readonly Stretch[], { key, userKey }: Counter): number {
  const own = stretches.find((stretch) => stretch.userKey === userKey);
  if (own?.batch !== batch) return -1;
  for (let place = own.from; place < own.to; place++) {
    const entry = batch.entries[place] as JournalEntry;
    if (typeof entry === "string" || entry.table !== "counters") continue;
    if (entry.row.key === key && entry.row.userKey === userKey) return place;
  }
  return -1;
}

/** Ends the span of a batch that became durable or failed. */
function endBatch({ span }: Batch, fault?: Error): void {
  span?.end(fault);
}

/** A batch that an answer must wait for; null for none. */
export function durableOrNull(batch: Batch | null): Batch | null {
  return batch === null || batch.isDurable ? null : batch;
}
