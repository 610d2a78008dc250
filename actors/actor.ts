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
import { type Budget, NO_SPEND, type Spend, spendOf, type WorkspaceCaps } from "./budget.ts";
import type { Batch, Gate } from "./gate.ts";
import type { FirstAnswer, Idempotency, IdempotentCall, WireAnswer } from "./idempotency.ts";
import { Mailbox } from "./mailbox.ts";
import { isSettled, SettledRows } from "./settled.ts";
import {
  type BalanceRef,
  MayNotAnswer,
  type Mode,
  type RowChange,
  Unavailable,
  type UserStore,
} from "./port.ts";

/** The realm of a turn. */
export interface Realm {
  readonly realm: number;
  /** The cell of its workspace. */
  readonly cell: number;
  readonly mode: Mode;
  readonly catalog: Catalog;
  readonly caps: WorkspaceCaps;
  /** The webhooks that receive its messages; null for none. */
  readonly outbox: Outbox | null;
  /** The realm's clock. */
  now(): Millis;
}

/** Older rows that a command names: a reservation, or credit balances by id or external reference. */
export type Needed = { readonly reservationId: string } | BalanceRef;

/** A command to a user. */
export interface Call<Name extends CommandName> {
  readonly realm: Realm;
  readonly name: Name;
  readonly input: Commands[Name]["input"];
  /** Whether a workspace at its cap refuses the call: a reserve or a track. */
  readonly isCapped?: boolean | undefined;
  /** The model's cost of the call in cents, for the workspace's AI budget. */
  readonly aiCents?: Amount | undefined;
  /** The app whose gateway budget the cost of a commit counts toward. */
  readonly gatewayApp?: string | undefined;
  /** Rows to load before the turn. */
  readonly needs?: Needed | undefined;
  /** Keeps the first answer; null or absent for a call without an idempotency key. */
  readonly keeping?: Keeping<Commands[Name]["answer"]> | null;
}

/** A call with an idempotency key, and the form of its answer. */
export interface Keeping<Answer> {
  readonly call: IdempotentCall;
  /** Makes the answer to keep; null to keep none. Runs before any change is applied: if it throws, nothing has changed. */
  readonly shape: (result: Result<Answer>) => WireAnswer | null;
}

/** The result of a turn: that of the decision, with the first answer if one was kept together with the changes. */
export type TurnResult<Answer> = Result<Answer> & { readonly kept?: WireAnswer };

/** Receives the users that may have changed or were erased. */
interface Touched {
  touch(realm: number, id: string): void;
  endErased(realm: number, id: string): void;
}

/** The parts of a term that every actor uses. */
export interface ActorTerm {
  readonly gate: Gate;
  readonly budget: Budget;
  readonly ids: IdSource;
  readonly store: Pick<UserStore, "loadReservation" | "loadTexts" | "loadBalances">;
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

/** The result of a turn and the batch that it waits for; null if everything that the turn saw is durable. */
interface Turn<Answer> {
  readonly result: TurnResult<Answer>;
  readonly batch: Batch | null;
}

/** A started actor. */
export class Actor {
  readonly state: UserState;
  /** Set by each turn; reset when the directory looks for idle actors. */
  hadTurn = true;
  /** When the directory last found `hadTurn` set. */
  seenAt = 0;
  /** Set by each turn; reset when the directory looks for actors to unload. */
  isRecent = true;
  /** The actor of the user that this one was merged into; it answers all calls of this one. */
  successor: Actor | null = null;
  /** Set when a bug broke a turn; the directory then unloads the actor. */
  isBroken = false;
  readonly #term: ActorTerm;
  readonly #onBroken: (actor: Actor) => void;
  /** Created for the first call that has to wait: most users never have one, and every object costs a memory access. */
  #mailbox: Mailbox | null = null;
  #lastBatch: Batch | null = null;
  /** The range of the changes of this user's first turn within its last batch. */
  #from = 0;
  #to = 0;
  /** Null for none. */
  #settled: SettledRows | null = null;

  /** @param onBroken called once when a turn threw: the actor runs no further turn and must be unloaded */
  constructor(state: UserState, term: ActorTerm, onBroken: (actor: Actor) => void) {
    this.state = state;
    this.#term = term;
    this.#onBroken = onBroken;
  }

  get mailbox(): Mailbox {
    return this.#mailbox ??= new Mailbox(this.#term.mailboxes);
  }

  /** Whether the tables have everything of this user, and no call waits for a turn. */
  get isIdle(): boolean {
    return this.#hasNoneWaiting && this.isDrained;
  }

  get #hasNoneWaiting(): boolean {
    return this.#mailbox === null || this.#mailbox.isIdle;
  }

  /** Runs a call in its turn, and resolves with the answer when everything that it depends on is durable. */
  run<Name extends CommandName>(call: Call<Name>): Promise<TurnResult<Commands[Name]["answer"]>> {
    const spans = this.#term.spans?.call(call.name, call.realm.mode) ?? null;
    let answer: Promise<TurnResult<Commands[Name]["answer"]>>;
    try {
      answer = this.#hasNoneWaiting && !this.#mustLoad(call)
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
   * Runs a call at once and returns its result before it is durable. For calls with answers that leave together.
   *
   * @param awaited receives the batch that must be durable before the answer is sent
   * @returns null if the call has to wait for its turn; then nothing has happened
   */
  runNow<Name extends CommandName>(
    call: Call<Name>,
    awaited: Set<Batch>,
  ): TurnResult<Commands[Name]["answer"]> | null {
    if (this.successor !== null || !this.#hasNoneWaiting || this.#mustLoad(call)) return null;
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

  /** Resolves with the answer of a turn when everything that it depends on is durable. */
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

  /** Settles what is due; only while no other turn of this user can run. */
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

  /** The batch that an answer must wait for if it depends on this user's state; null for none. */
  get unwritten(): Batch | null {
    return durableOrNull(this.#lastBatch);
  }

  /** Gives this actor up after a bug. */
  breakDown(): void {
    this.isBroken = true;
    this.#onBroken(this);
  }

  /** Runs a turn; null if the user was merged into another one, which must run it instead. */
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
      spendOf(call, decision.result),
    );
    if (decision.refusedCall !== null) this.#countRefused(realm, decision.refusedCall);
    counts.turnEnds(call.name, realm.mode, decision.result, startedAt);
    spans?.decided(decision.result);
    const result = kept === null ? decision.result : { ...decision.result, kept };
    // Another user's changes may have filled the cap: they must be durable before the refusal is sent.
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
   * Ends a decision on this user, of a turn or of a merge: applies its changes and hands them to the gate, together with
   * the first answer and the totals of the workspace.
   */
  finish(
    realm: Realm,
    { changes, operations, issued }: Pick<Decision<unknown>, "changes" | "operations" | "issued">,
    first: FirstAnswer | null,
    spend: Spend = NO_SPEND,
  ): void {
    const { budget, idempotency, watches } = this.#term;
    this.#noteTurn();
    try {
      this.state.apply(changes);
      // Only now: the call itself may name a settled reservation, which would not be loaded again.
      if (this.#settled?.forgetDrained(this.state) === true) this.#settled = null;
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
      if (changes.some(isSettled)) (this.#settled ??= new SettledRows()).retain(changes, batch, this.state);
      if (operations > 0) budget.takeInto(batch, realm.caps.workspaceId, realm.mode, operations);
      budget.spendAllInto(batch, realm.caps.workspaceId, spend);
      if (issued > 0) budget.issueInto(batch, realm.realm, issued);
    } catch (error) {
      this.breakDown();
      throw error;
    }
  }

  /** Hands changes to the gate, and remembers the range of this user's first changes in an open batch. */
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

  /** Waits for earlier turns, loads the rows that the call names, and drops a loaded reservation that did not change. */
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
        const { reservations } = this.state;
        reservations.lend(null);
        if (loaded !== undefined && reservations.stored(id) === loaded) this.state.forget(id);
      }
    };
    return this.mailbox.run(turn, () => {
      if (needs === undefined || !this.#mustLoad(call)) return null;
      return this.#load(needs).then(() => {
        loaded = this.state.reservations.stored(id);
      });
    });
  }

  #mustLoad<Name extends CommandName>({ name, needs }: Call<Name>): boolean {
    if (needs === undefined || !this.state.recorded || this.successor !== null) return false;
    if ("reservationId" in needs) {
      const { reservations } = this.state;
      const { reservationId: id } = needs;
      // Only a settlement asks for texts.
      return !reservations.has(id) || name !== "prolong" && reservations.bareSince(id) !== null;
    }
    // Of a grant's balances, some may be in memory and others not.
    return "externalRefs" in needs || !this.state.balances.has(needs.balanceId);
  }

  async #load(needs: Needed): Promise<void> {
    const { store } = this.#term;
    const { key } = this.state.user;
    try {
      if ("reservationId" in needs) await this.#loadReservation(needs.reservationId);
      else this.state.admit(await store.loadBalances(key, needs));
    } catch (error) {
      throw new Unavailable("A load failed", { cause: error });
    }
  }

  /** Loads a settled reservation, or the texts of one that is here without them, for the turn that follows. */
  async #loadReservation(id: string): Promise<void> {
    const { store, counts, flush } = this.#term;
    const { reservations, keys } = this.state;
    const bareSince = reservations.bareSince(id);
    if (bareSince === null) {
      const rows = await store.loadReservation(keys, id);
      this.state.admit(rows);
      // There may be no room to keep its texts.
      for (const row of rows.reservations) reservations.lend(row);
      return;
    }
    // The row may still wait for a drain.
    if (!this.isDrained) await flush();
    const texts = await store.loadTexts(keys, id, bareSince);
    if (texts === null) throw new Error(`The tables lack the texts of ${id}`);
    counts.holdTextsLoaded += 1;
    reservations.lend({ id, ...texts });
  }
}

function noteMessages(batch: Batch, changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.table === "webhook_messages") (batch.messages ??= []).push(change.row);
  }
}

/** Whether a cap of the whole workspace refused a decision. */
function isAtCap(result: Result<unknown>): boolean {
  return !result.ok && result.refusal.code === "test_quota_exceeded";
}

function durableOrNull(batch: Batch | null): Batch | null {
  return batch === null || batch.isDurable ? null : batch;
}
