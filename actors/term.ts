// A term: the runtime of this process from joining as a node until its end. A fault ends the whole term: actors, gate and
// drain are dropped together, nothing is repaired in place, and the next term starts from the journal and the tables.
// Within a term cells come and go; with a cell everything of its workspaces is dropped.

import type { ActorTerm } from "./actor.ts";
import { BatchRoom } from "./batch_room.ts";
import { Budget } from "./budget.ts";
import { Directory } from "./directory.ts";
import { Doors } from "./doors.ts";
import { Drain } from "./drain.ts";
import { Gate } from "./gate.ts";
import { type FirstAnswer, Idempotency } from "./idempotency.ts";
import { type MergeCall, type Merged, type MergeTerm, mergeUsers } from "./merge.ts";
import type { CellParts, Lease, RefusalStore, Totals, UserStore } from "./port.ts";
import { MayNotAnswer, Unavailable } from "./port.ts";
import { TreeChanges } from "./tree.ts";
import { Watches } from "./watches.ts";
import { RefusedCalls } from "./refused_calls.ts";
import type { Amount } from "../src/domain/values/amount.ts";
import type { IdSource, UserKey } from "../src/domain/values/ids.ts";
import type { AppOfRealm } from "../src/domain/state/text_room.ts";
import type { TopUpIntent } from "../src/domain/state/top_up.ts";
import type { WebhookMessage } from "../src/domain/state/message.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { MailboxTally, RuntimeCounts } from "../src/process/counts/runtime_counts.ts";
import type { Spans } from "../src/process/counts/spans.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import { within } from "../src/process/rest.ts";
import { Steps } from "../src/process/steps.ts";

/** The parts that a term is made of. */
export interface TermOptions {
  readonly lease: Lease;
  readonly store: UserStore;
  readonly refusalStore: RefusalStore;
  readonly ids: IdSource;
  readonly realNow: () => Millis;
  readonly appOf?: AppOfRealm;
  /** The counts of the process; by default new ones. */
  readonly counts?: RuntimeCounts;
  /** Null without tracing. */
  readonly spans?: Spans | null;
  /** Receives the messages of each durable batch. */
  readonly onMessages?: (messages: readonly WebhookMessage[]) => void;
  /** Receives the top-ups that a durable batch changed. */
  readonly onTopUps?: (topUps: readonly TopUpIntent[]) => void;
}

/** The runtime of one node. */
export class Term {
  /** The cells that this node owns, and the calls inside. */
  readonly doors = new Doors();
  readonly directory: Directory;
  readonly budget: Budget;
  readonly gate: Gate;
  readonly drain: Drain;
  readonly idempotency: Idempotency;
  /** Room for what batches of events write. */
  readonly batchRoom = new BatchRoom();
  /** Waits for users to change. */
  readonly watches = new Watches(this);
  readonly refusedCalls: RefusedCalls;
  /** Changes of the trees of users. */
  readonly tree: TreeChanges;
  readonly mailboxes = new MailboxTally();
  /** Resolves with the fault that ended the term. */
  readonly ended: Promise<Error>;
  readonly #counts: RuntimeCounts;
  readonly #lease: Lease;
  readonly #merging: MergeTerm;
  #end!: (fault: Error) => void;
  #fault: Error | null = null;

  constructor(options: TermOptions) {
    const { lease, store, refusalStore, ids, realNow, appOf } = options;
    const { counts = new RuntimeCounts(), spans = null, onMessages, onTopUps } = options;
    this.#lease = lease;
    this.#counts = counts;
    this.ended = new Promise((resolve) => this.#end = resolve);
    const onFault = (fault: Error) => this.fail(fault);
    this.drain = new Drain(lease.journal, onFault, counts, spans);
    this.gate = new Gate({
      journal: lease.journal,
      onAppended: (batch, appended) => {
        this.drain.add(batch, appended);
        if (batch.messages !== null) onMessages?.(batch.messages);
        if (batch.topUps !== null) onTopUps?.(batch.topUps);
      },
      room: () => this.drain.room(),
      onFault,
      counts,
      spans,
    });
    this.budget = new Budget(realNow);
    this.idempotency = new Idempotency(store, lease.journal, realNow);
    this.refusedCalls = new RefusedCalls({ term: this, store: refusalStore, counts });
    const isValid = () => this.#fault === null && lease.isValid();
    const users: ActorTerm["users"] = {
      inMemoryByKey: (key) => this.directory.inMemoryByKey(key),
      actorByKey: (realm, key) => this.directory.actorByKey(realm, key),
    };
    const forActors: ActorTerm = {
      users,
      gate: this.gate,
      budget: this.budget,
      ids,
      realNow,
      store,
      isValid,
      flush: () => this.flush(),
      idempotency: this.idempotency,
      watches: this.watches,
      refusedCalls: this.refusedCalls,
      counts,
      mailboxes: this.mailboxes,
      spans,
    };
    const drained = () => this.drained();
    this.directory = new Directory({ term: forActors, store, realNow, drained, appOf });
    const { directory, budget } = this;
    this.tree = new TreeChanges({ directory, store, flush: forActors.flush });
    this.#merging = { directory, budget, ids, store, isValid, flush: forActors.flush, tree: this.tree };
    void lease.lost.then(onFault);
  }

  /** Whether the term still serves. */
  get isServing(): boolean {
    return this.#fault === null && this.#lease.isValid();
  }

  /** Whether a fault ended the term: its memory is dropped, and it takes no further cells. */
  get hasEnded(): boolean {
    return this.#fault !== null;
  }

  /**
   * Resolves when the tables hold everything that was decided before the call.
   *
   * @throws Unavailable if that takes too long
   */
  async flush(): Promise<void> {
    const { gate, drain } = this;
    if (gate.tip?.isDrained === false) {
      if (!await within(RUNTIME_LIMITS.flushMs, this.drained())) {
        this.#counts.flushesLate += 1;
        throw new Unavailable("The tables do not have the newest changes yet; retry");
      }
    } else await drain.flush();
    if (!this.isServing) throw new MayNotAnswer();
  }

  /** Resolves when the tables hold everything that was decided before the call, however long that takes. */
  async drained(): Promise<void> {
    await this.gate.tip?.durable;
    await this.drain.flush();
  }

  /** Adds the stored totals of a cell's workspaces, before its door opens. */
  admit(totals: Totals): void {
    this.budget.admit(totals);
  }

  /**
   * Drops everything of a cell, in steps between which other work of the event loop has its turn. Its door is shut, no call
   * is inside, and the tables have everything, including the counts of refused calls.
   *
   * @throws Error if anything of the cell is left in memory: the next owner would not know of it, and this node might
   *   use a stale copy when the cell returns
   */
  async drop(parts: CellParts): Promise<void> {
    const { workspaces, realms } = parts;
    const steps = new Steps();
    for (const _ of this.idempotency.dropRealms(realms)) if (steps.isLong) await steps.next();
    for (const realm of realms) {
      for (const _ of this.directory.dropRealm(realm)) if (steps.isLong) await steps.next();
      this.watches.dropRealms([realm]);
      this.tree.drop(realm);
    }
    for (const workspaceId of workspaces) {
      this.budget.drop(workspaceId);
      this.#assertEmptyWorkspace(workspaceId);
      if (steps.isLong) await steps.next();
    }
    for (const realm of realms) {
      this.budget.dropRealm(realm);
      this.#assertEmptyRealm(realm);
      if (steps.isLong) await steps.next();
    }
  }

  /** @throws Error if anything of a cell is in memory */
  assertEmpty({ workspaces, realms }: CellParts): void {
    for (const realm of realms) this.#assertEmptyRealm(realm);
    for (const workspaceId of workspaces) this.#assertEmptyWorkspace(workspaceId);
  }

  #assertEmptyWorkspace(workspaceId: string): void {
    if (this.budget.sizeOf(workspaceId) === 0) return;
    throw new Error(`Something of workspace "${workspaceId}" is still in memory`);
  }

  #assertEmptyRealm(realm: number): void {
    const left = this.directory.sizeOf(realm) + this.idempotency.sizeOf(realm) +
      this.refusedCalls.sizeOf(realm) + this.watches.sizeOf(realm);
    if (left > 0) throw new Error(`Something of realm ${realm} is still in memory`);
  }

  /** Merges a user into another, or reports what a merge would do. */
  merge(call: MergeCall): Promise<Merged> {
    return mergeUsers(this.#merging, call);
  }

  /** Makes the first answer of a call without a turn durable. */
  async keepAnswer(first: FirstAnswer, userKey: UserKey | null): Promise<void> {
    const row = this.idempotency.keep(first, userKey);
    const batch = this.gate.add([{ verb: "put", table: "idempotency", row }]);
    this.idempotency.remember(first, batch);
    await batch.durable;
  }

  /** Makes the cost of a model's call durable that no turn meters. */
  async spend(workspaceId: string, cents: Amount): Promise<void> {
    const batch = this.gate.add([]);
    this.budget.spendInto(batch, workspaceId, cents);
    await batch.durable;
  }

  /** Ends the term; all waiting calls get the fault. */
  fail(fault: Error): void {
    if (this.#fault !== null) return;
    this.#fault = fault instanceof Unavailable ? fault : new Unavailable("The term ended", { cause: fault });
    this.gate.close(this.#fault);
    this.drain.close(this.#fault);
    this.doors.close(this.#fault);
    this.watches.close(this.#fault);
    this.directory.close();
    this.refusedCalls.close();
    this.#end(fault);
  }
}
