// An actor: one end user's state in memory with the mailbox that serializes every turn on it. A turn decides,
// applies and hands its changes to the output gate without an await between, so nothing can come between a
// decision and its changes; the answer then waits at the gate.

import type { Amount } from "../src/domain/values/amount.ts";
import type { CommandName, Commands } from "../src/domain/command.ts";
import { decide } from "../src/domain/decide.ts";
import type { IdSource } from "../src/domain/values/ids.ts";
import type { Outbox } from "../src/domain/state/outbox.ts";
import { refusedAtCap, type RefusedCall } from "../src/domain/state/refused_call.ts";
import type { Reservation } from "../src/domain/state/reservation.ts";
import type { Catalog } from "../src/domain/catalog/catalog.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { type Decision, refused, type Result } from "../src/domain/state/result.ts";
import type { Change, UserState } from "../src/domain/state/user.ts";
import { type MailboxTally, type RuntimeCounts, secondsSince } from "../src/process/counts/runtime_counts.ts";
import type { CallSpans, Spans } from "../src/process/counts/spans.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { Budget, WorkspaceCaps } from "./budget.ts";
import type { Batch, Gate } from "./gate.ts";
import type { FirstAnswer, Idempotency, IdempotentCall, WireAnswer } from "./idempotency.ts";
import { Mailbox } from "./mailbox.ts";
import {
  type BalanceRef,
  MayNotAnswer,
  type Mode,
  type RowChange,
  Unavailable,
  type UserStore,
} from "./port.ts";

/** What a turn knows of the realm it runs in. */
export interface Realm {
  readonly realm: number;
  /** The cell of its workspace. */
  readonly cell: number;
  readonly mode: Mode;
  readonly catalog: Catalog;
  readonly caps: WorkspaceCaps;
  /** Where its messages go; null where no webhook listens. */
  readonly outbox: Outbox | null;
  /** The realm's clock. */
  now(): Millis;
}

/** Older rows that a command names: a reservation, or credit balances by id or external reference. */
export type Needed = { readonly reservationId: string } | BalanceRef;

/** A command on its way to a user. */
export interface Call<Name extends CommandName> {
  readonly realm: Realm;
  readonly name: Name;
  readonly input: Commands[Name]["input"];
  /** Whether a workspace at its cap refuses the call: a reserve or a track. */
  readonly isCapped?: boolean | undefined;
  /** What a model was paid for the call, for the workspace's AI budget. */
  readonly aiCents?: Amount | undefined;
  /** What must be known before the turn. */
  readonly needs?: Needed | undefined;
  /** How the first answer is kept; null or absent for a call without an idempotency key. */
  readonly keeping?: Keeping<Commands[Name]["answer"]> | null;
}

/** A call with an idempotency key, and the answer that its caller will get. */
export interface Keeping<Answer> {
  readonly call: IdempotentCall;
  /** Null for an answer that is not kept. Runs before anything is applied: if it throws, nothing has changed. */
  readonly shape: (result: Result<Answer>) => WireAnswer | null;
}

/** What a call comes to: the decision's result, and the first answer if one was kept together with the changes. */
export type TurnResult<Answer> = Result<Answer> & { readonly kept?: WireAnswer };

/** Who is told that a user may have changed, or was erased. */
interface Touched {
  touch(realm: number, id: string): void;
  endErased(realm: number, id: string): void;
}

/** What every actor of a term shares. */
export interface ActorTerm {
  readonly gate: Gate;
  readonly budget: Budget;
  readonly ids: IdSource;
  readonly store: Pick<UserStore, "loadReservation" | "loadBalances">;
  readonly idempotency: Pick<Idempotency, "keep" | "remember">;
  readonly watches: Touched;
  /** Counts refused calls of a user, named by its canonical id. */
  readonly refusedCalls: { count(realm: Realm, userId: string, call: RefusedCall): void };
  /** Whether this process may answer. */
  readonly isValid: () => boolean;
  /** Resolves when the tables hold everything that was durable at the call. */
  readonly flush: () => Promise<void>;
  readonly counts: RuntimeCounts;
  readonly mailboxes: MailboxTally;
  /** Null without tracing. */
  readonly spans: Spans | null;
}

/** The outcome of a turn and the batch that it waits for, or null when everything it saw is durable. */
interface Turn<Answer> {
  readonly result: TurnResult<Answer>;
  readonly batch: Batch | null;
}

/** A settled reservation in memory, and the batch that settled it. */
interface Settled {
  readonly row: Reservation;
  readonly batch: Batch;
}

/** A started actor. */
export class Actor {
  readonly state: UserState;
  /** Set by each turn; the directory takes it back when it looks for idle actors. */
  hadTurn = true;
  /** When the directory last saw that there had been a turn. */
  seenAt = 0;
  /** Set by each turn; the directory takes it back when it looks for actors that may make room. */
  isRecent = true;
  /** The actor of the user that this one was merged into; it answers every call that comes here. */
  successor: Actor | null = null;
  /** Set when a bug broke a turn; the directory then lets the actor go. */
  isBroken = false;
  readonly #term: ActorTerm;
  readonly #onBroken: (actor: Actor) => void;
  /** Made with the first call that has to wait: most users never have one, and each object costs a look into memory. */
  #mailbox: Mailbox | null = null;
  #lastBatch: Batch | null = null;
  /** Where the changes of this user's first turn in its last batch begin, and where they end. */
  #from = 0;
  #to = 0;
  /** Null while there is none. */
  #settled: Settled[] | null = null;
  #forgotten = 0;

  /** @param onBroken called once when a turn threw: the actor runs no further turn and is to be let go */
  constructor(state: UserState, term: ActorTerm, onBroken: (actor: Actor) => void) {
    this.state = state;
    this.#term = term;
    this.#onBroken = onBroken;
  }

  get mailbox(): Mailbox {
    return this.#mailbox ??= new Mailbox(this.#term.mailboxes);
  }

  /** Whether nothing of this user is on its way to the tables or waiting for a turn. */
  get isIdle(): boolean {
    return this.#hasNoneWaiting && this.isDrained;
  }

  get #hasNoneWaiting(): boolean {
    return this.#mailbox === null || this.#mailbox.isIdle;
  }

  /** Puts a call into the mailbox and lets its answer out when what it rests on is durable. */
  run<Name extends CommandName>(call: Call<Name>): Promise<TurnResult<Commands[Name]["answer"]>> {
    const spans = this.#term.spans?.call(call.name, call.realm.mode) ?? null;
    let answer: Promise<TurnResult<Commands[Name]["answer"]>>;
    try {
      answer = this.#hasNoneWaiting && !this.#mustLoad(call.needs)
        ? this.#letOut(call, this.#turn(call, spans), spans)
        : this.#runQueued(call, spans).then((turn) => this.#letOut(call, turn, spans));
    } catch (error) {
      answer = Promise.reject(error);
    }
    return spans === null ? answer : answer.catch((error) => {
      spans.leaves(error);
      throw error;
    });
  }

  /**
   * Runs a call at once and answers what it comes to, before that is durable. For calls whose answers leave together.
   *
   * @param awaited takes the batch that must be durable before anybody is told
   * @returns null where the call has to wait for its turn; nothing has happened then
   */
  runNow<Name extends CommandName>(
    call: Call<Name>,
    awaited: Set<Batch>,
  ): TurnResult<Commands[Name]["answer"]> | null {
    if (this.successor !== null || !this.#hasNoneWaiting || this.#mustLoad(call.needs)) return null;
    const spans = this.#term.spans?.call(call.name, call.realm.mode) ?? null;
    try {
      const { result, batch } = this.#turn(call, spans) as Turn<Commands[Name]["answer"]>;
      if (batch !== null) {
        awaited.add(batch);
        spans?.waits(batch).catch((error) => spans.leaves(error));
      } else if (!this.#term.isValid()) throw new MayNotAnswer();
      return result;
    } catch (error) {
      spans?.leaves(error);
      throw error;
    }
  }

  /** The answer of a turn, when what it rests on is durable. */
  #letOut<Name extends CommandName>(
    call: Call<Name>,
    turn: Turn<Commands[Name]["answer"]> | null,
    spans: CallSpans | null,
  ): Promise<TurnResult<Commands[Name]["answer"]>> {
    if (turn === null) {
      spans?.leaves();
      return (this.successor as Actor).run(call);
    }
    const { result, batch } = turn;
    if (batch !== null) return (spans === null ? batch.durable : spans.waits(batch)).then(() => result);
    if (!this.#term.isValid()) throw new MayNotAnswer();
    return Promise.resolve(result);
  }

  /** Settles what is due now; only while nothing else can run on this user. */
  settle(realm: Realm): void {
    this.#turn({ realm, name: "settle", input: {} }, null);
  }

  /** Counts a call that was refused without a turn, after all turns that came before it. */
  async countRefused(realm: Realm, call: RefusedCall): Promise<void> {
    const successor = await this.mailbox.run(() => {
      if (this.isBroken) throw new Unavailable("This user's state is being loaded again");
      if (this.successor === null) this.#countRefused(realm, call);
      return this.successor;
    });
    await successor?.countRefused(realm, call);
  }

  #countRefused(realm: Realm, call: RefusedCall): void {
    this.#term.refusedCalls.count(realm, this.state.user.id, call);
  }

  /** Whether the tables have everything of this user. */
  get isDrained(): boolean {
    return this.#lastBatch?.isDrained ?? true;
  }

  /** What the answer to a call waits for that saw this user's state. */
  get unwritten(): Batch | null {
    return durableOrNull(this.#lastBatch);
  }

  /** Lets go of this actor after a bug. */
  breakDown(): void {
    this.isBroken = true;
    this.#onBroken(this);
  }

  /** Null when the user was merged into another, whose turn it is then. */
  #turn<Name extends CommandName>(
    call: Call<Name>,
    spans: CallSpans | null,
  ): Turn<Commands[Name]["answer"]> | null {
    if (this.successor !== null) return null;
    const { gate, budget, counts } = this.#term;
    const { realm } = call;
    spans?.decides();
    this.#checkBounds(call.name);
    const refusal = call.isCapped === true ? budget.refusal(realm.caps, realm.mode) : null;
    if (refusal !== null) {
      const { event } = call.input as Commands["reserve" | "track"]["input"];
      this.#countRefused(realm, refusedAtCap(event, refusal.code, realm.now()));
      spans?.decided(refused(refusal));
      return { result: refused(refusal), batch: durableOrNull(gate.tip) };
    }

    const startedAt = counts.turnStarts(call.name);
    const decision = this.#decide(call);
    const { keeping } = call;
    const kept = keeping == null ? null : keeping.shape(decision.result);
    this.finish(
      realm,
      decision,
      keeping == null || kept === null ? null : { ...keeping.call, ...kept },
      call,
    );
    if (decision.refusedCall !== null) this.#countRefused(realm, decision.refusedCall);
    counts.turnEnds(call.name, realm.mode, decision.result, startedAt);
    spans?.decided(decision.result);
    const result = kept === null ? decision.result : { ...decision.result, kept };
    // What fills a cap of the workspace may be another user's, and must be durable before anybody is told.
    const rest = isAtCap(decision.result) ? gate.tip : this.#lastBatch;
    return { result, batch: durableOrNull(rest) };
  }

  #decide<Name extends CommandName>({ realm, name, input }: Call<Name>) {
    const { budget, ids } = this.#term;
    try {
      const balancesLeft = budget.balancesLeft(realm.realm, realm.mode, realm.caps);
      const { catalog, outbox } = realm;
      return decide(this.state, name, input, { now: realm.now(), catalog, ids, balancesLeft, outbox });
    } catch (error) {
      this.breakDown();
      throw error;
    }
  }

  /**
   * Ends a decision over this user, of a turn or of a merge: applies its changes and hands them to the gate, together
   * with the first answer and with the totals that the decision adds to.
   */
  finish(
    realm: Realm,
    { changes, operations, issued }: Pick<Decision<unknown>, "changes" | "operations" | "issued">,
    first: FirstAnswer | null,
    { aiCents }: { readonly aiCents?: Amount | undefined } = NO_SPEND,
  ): void {
    const { budget, idempotency, watches } = this.#term;
    this.#noteTurn();
    try {
      this.state.apply(changes);
      // Only now: the call itself may name one of them, and nothing would load it again.
      this.#forgetSettled();
      if (changes.length === 0 && first === null) return;
      watches.touch(this.state.user.realm, this.state.user.id);
      let batch: Batch;
      if (first === null) batch = this.#add(changes);
      else {
        const { user, recorded } = this.state;
        const row = idempotency.keep(first, recorded ? user.key : null);
        batch = this.#add([...changes, { verb: "put", table: "idempotency", row }]);
        idempotency.remember(row, batch);
      }
      if (realm.outbox !== null) noteMessages(batch, changes);
      this.#retainSettled(changes, batch);
      if (operations > 0) budget.takeInto(batch, realm.caps.workspaceId, realm.mode, operations);
      if (aiCents !== undefined) budget.spendInto(batch, realm.caps.workspaceId, aiCents);
      if (issued > 0) budget.issueInto(batch, realm.realm, issued);
    } catch (error) {
      this.breakDown();
      throw error;
    }
  }

  /** Hands changes to the gate, and remembers where the first ones of this user stand in a batch that is still open. */
  #add(changes: readonly RowChange[]): Batch {
    const { gate } = this.#term;
    const last = this.#lastBatch;
    const isOpen = last !== null && !last.isSent;
    const batch = gate.add(changes, isOpen ? { batch: last, from: this.#from, to: this.#to } : null);
    if (batch === last) return batch;
    this.#to = batch.changes.length;
    this.#from = this.#to - changes.length;
    return this.#lastBatch = batch;
  }

  #noteTurn(): void {
    this.hadTurn = true;
    this.isRecent = true;
  }

  #checkBounds(name: CommandName): void {
    if (this.isBroken) throw new Unavailable("This user's state is being loaded again");
    if (this.#term.gate.isFull) throw new Unavailable("The journal has too much to write");
    if (name === "reserve" && this.state.openHolds >= RUNTIME_LIMITS.openHoldsMax) {
      throw new Unavailable("This user has too many open holds");
    }
  }

  /** Waits for earlier turns, loads what the call names, and lets go of a reservation that did not change. */
  #runQueued<Name extends CommandName>(
    call: Call<Name>,
    spans: CallSpans | null,
  ): Promise<Turn<Commands[Name]["answer"]> | null> {
    const { needs } = call;
    const queuedAt = performance.now();
    const id = needs !== undefined && "reservationId" in needs ? needs.reservationId : "";
    let loaded: Reservation | undefined;
    const turn = () => {
      this.#term.counts.mailboxSeconds.observe(secondsSince(queuedAt));
      try {
        return this.#turn(call, spans);
      } finally {
        if (loaded !== undefined && this.state.reservations.get(id) === loaded) this.state.forget(id);
      }
    };
    return this.mailbox.run(turn, () => {
      if (needs === undefined || !this.#mustLoad(needs)) return null;
      return this.#load(needs).then(() => {
        loaded = this.state.reservations.get(id);
      });
    });
  }

  #mustLoad(needs: Needed | undefined): boolean {
    if (needs === undefined || !this.state.recorded || this.successor !== null) return false;
    if ("reservationId" in needs) return !this.state.reservations.has(needs.reservationId);
    // A grant by reference may have left balances in memory and others not.
    return "externalRef" in needs || !this.state.balances.has(needs.balanceId);
  }

  async #load(needs: Needed): Promise<void> {
    const { store } = this.#term;
    const { user: { key }, keys } = this.state;
    try {
      this.state.admit(
        "reservationId" in needs
          ? await store.loadReservation(keys, needs.reservationId)
          : await store.loadBalances(key, needs),
      );
    } catch (error) {
      throw new Unavailable("A load failed", { cause: error });
    }
  }

  /** Settled reservations stay in memory until the tables have them: a prefetch could not see them before. */
  #retainSettled(changes: readonly Change[], batch: Batch): void {
    for (const change of changes) {
      if (change.table === "reservations" && change.row.status !== "held") {
        (this.#settled ??= []).push({ row: change.row, batch });
      }
    }
  }

  #forgetSettled(): void {
    const settled = this.#settled;
    if (settled === null) return;
    let next = settled[this.#forgotten];
    while (next?.batch.isDrained === true) {
      // A newer value of the same row waits for a drain of its own.
      if (this.state.reservations.get(next.row.id) === next.row) this.state.forget(next.row.id);
      this.#forgotten += 1;
      next = settled[this.#forgotten];
    }
    if (next === undefined) this.#settled = null;
    else if (this.#forgotten > 1000 && this.#forgotten * 2 > settled.length) {
      this.#settled = settled.slice(this.#forgotten);
    } else return;
    this.#forgotten = 0;
  }
}

const NO_SPEND = {};

function noteMessages(batch: Batch, changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.table === "webhook_messages") (batch.messages ??= []).push(change.row);
  }
}

/** Whether a decision was refused because of what the whole workspace has. */
function isAtCap(result: Result<unknown>): boolean {
  return !result.ok && result.refusal.code === "test_quota_exceeded";
}

function durableOrNull(batch: Batch | null): Batch | null {
  return batch === null || batch.isDurable ? null : batch;
}
