// An actor: one end user's state in memory with the mailbox that serializes every turn on it. A turn decides,
// applies and hands its changes to the output gate without an await between, so nothing can come between a
// decision and its changes; the answer then waits at the gate.

import type { CommandName, Commands } from "../src/domain/command.ts";
import { decide } from "../src/domain/decide.ts";
import type { IdSource } from "../src/domain/values/ids.ts";
import { refusedAtCap, type RefusedCall } from "../src/domain/state/refused_call.ts";
import { type Decision, refused } from "../src/domain/state/result.ts";
import type { Change, OlderRows, UserState } from "../src/domain/state/user.ts";
import { type MailboxTally, type RuntimeCounts, secondsSince } from "../src/process/counts/runtime_counts.ts";
import type { CallSpans, Spans } from "../src/process/counts/spans.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import { type Budget, isAtCap, NO_SPEND, type Spend, spendOf } from "./budget.ts";
import { type Batch, durableOrNull, type Gate, type Stretch } from "./gate.ts";
import type { FirstAnswer, Idempotency } from "./idempotency.ts";
import { afterCatchUp } from "./catch_up.ts";
import { type Call, isOfOneUser, type Realm, type TurnResult } from "./call.ts";
import { type Below, levelsOf, touchBelow, type Users, Visit, Wait } from "./levels.ts";
import { Mailbox } from "./mailbox.ts";
import { RunBatches } from "./ended_runs.ts";
import {
  loadEnded,
  loadNeeded,
  loadSettled,
  type LoadTerm,
  mustLoad,
  NOTHING_LOADED,
} from "./needed_rows.ts";
import { isSettled, SettledRows } from "./settled.ts";
import { MayNotAnswer, type RowChange, Unavailable } from "./port.ts";

/** Receives the users that may have changed or were erased. */
interface Touched extends Below {
  touch(realm: number, id: string): void;
  endErased(realm: number, id: string): void;
}

/** The parts of a term that every actor uses. */
export interface ActorTerm {
  readonly gate: Gate;
  readonly budget: Budget;
  readonly ids: IdSource;
  readonly realNow: () => number;
  readonly store: LoadTerm["store"];
  readonly idempotency: Pick<Idempotency, "keep" | "remember">;
  readonly watches: Touched;
  /** Finds the users above. */
  readonly users: Users<Actor>;
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

const NOBODY: readonly Actor[] = [];

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
  /** Calls of users below that need this actor in memory. */
  pins = 0;
  readonly #term: ActorTerm;
  readonly #onBroken: (actor: Actor) => void;
  /** Created for the first call that has to wait: most users never have one, and every object costs a memory access. */
  #mailbox: Mailbox | null = null;
  #lastBatch: Batch | null = null;
  /** The first changes in the last batch that have a counter of this user, and whether any have. */
  #from = 0;
  #to = 0;
  #hasCounters = false;
  #settled: SettledRows | null = null;
  /** Null for a user without runs. */
  #runs: RunBatches | null = null;

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
    return this.pins === 0 && this.hasNoneWaiting && this.isDrained;
  }

  /** Whether no call waits for a turn or loads rows for its own. */
  get hasNoneWaiting(): boolean {
    return this.#mailbox === null || this.#mailbox.isIdle;
  }

  /** Runs a call in its turn, and resolves with the answer when everything that it depends on is durable. */
  run<Name extends CommandName>(call: Call<Name>): Promise<TurnResult<Commands[Name]["answer"]>> {
    const spans = this.#term.spans?.call(call.name, call.realm.mode) ?? null;
    let answer: Promise<TurnResult<Commands[Name]["answer"]>>;
    try {
      answer = this.hasNoneWaiting && !this.#mustLoad(call)
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
    if (this.successor !== null || !this.hasNoneWaiting || this.#mustLoad(call)) return null;
    const spans = this.#term.spans?.call(call.name, call.realm.mode) ?? null;
    try {
      const turn = this.#turn(call, spans) as Turn<Commands[Name]["answer"]> | Wait;
      if (turn instanceof Wait) {
        spans?.leaves();
        return null;
      }
      const { result, batch } = turn;
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

  /** Runs a call that has to wait, in its turn and once every level is there. */
  async #runAfter<Name extends CommandName>(
    before: Wait,
    call: Call<Name>,
    spans: CallSpans | null,
  ): Promise<TurnResult<Commands[Name]["answer"]>> {
    const visit = new Visit();
    // No mailbox is kept meanwhile: without this the user might leave memory, and the turn would change a state that is gone.
    visit.pin(this);
    try {
      let wait = before;
      for (let tries = 0; tries < RUNTIME_LIMITS.levelTriesMax; tries++) {
        await wait.over(visit);
        const turn = await this.#runQueued(call, spans, visit);
        if (!(turn instanceof Wait)) return await this.#letOut(call, turn, spans);
        wait = turn;
      }
      throw new Unavailable("The accounts above this user have too much to do");
    } finally {
      visit.end();
    }
  }

  /** Resolves with the answer of a turn when everything that it depends on is durable. */
  #letOut<Name extends CommandName>(
    call: Call<Name>,
    turn: Turn<Commands[Name]["answer"]> | Wait | null,
    spans: CallSpans | null,
  ): Promise<TurnResult<Commands[Name]["answer"]>> {
    if (turn instanceof Wait) return this.#runAfter(turn, call, spans);
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

  /**
   * Runs a turn; null if the user was merged into another one, which must run it instead.
   *
   * @param visit what the call has loaded, after a wait
   * @returns what to wait for if a user above is not there yet; then nothing has happened
   */
  #turn<Name extends CommandName>(
    call: Call<Name>,
    spans: CallSpans | null,
    visit: Visit | null = null,
  ): Turn<Commands[Name]["answer"]> | Wait | null {
    if (this.successor !== null) return null;
    const above = afterCatchUp<Actor>(this, this.#levels(call, visit), call.realm);
    if (above instanceof Wait) return above;
    try {
      return this.#turnAt(call, above, spans);
    } finally {
      visit?.takeBack();
    }
  }

  #turnAt<Name extends CommandName>(
    call: Call<Name>,
    above: readonly Actor[],
    spans: CallSpans | null,
  ): Turn<Commands[Name]["answer"]> | Wait {
    const { gate, budget, counts } = this.#term;
    const { realm, keeping } = call;
    spans?.decides();
    if (call.name === "openRun") (this.#runs ??= new RunBatches()).makeRoom(this.state, call, this.#settled);
    this.#checkBounds(call.name);
    for (const level of above) level.#checkBounds(call.name);
    const refusal = call.isCapped === true ? budget.refusal(realm.caps, realm.mode) : null;
    if (refusal !== null) {
      const { event } = call.input as Commands["reserve" | "track"]["input"];
      this.#countRefused(realm, refusedAtCap(event, refusal.code, realm.now()));
      spans?.decided(refused(refusal));
      return { result: refused(refusal), batch: durableOrNull(gate.tip) };
    }
    const startedAt = counts.turnStarts(call.name);
    const decision = this.#decide(call, above);
    if (decision.lacking.length > 0) return new Wait(() => loadEnded(this.#term, decision.lacking));
    const kept = keeping == null ? null : keeping.shape(decision.result);
    this.finish(
      realm,
      decision,
      keeping == null || kept === null ? null : { ...keeping.call, ...kept, isNew: keeping.isNew === true },
      spendOf(call, decision.result),
      above,
    );
    if (decision.refusedCall !== null) this.#countRefused(realm, decision.refusedCall);
    counts.turnEnds(call.name, realm.mode, decision.result, startedAt);
    spans?.decided(decision.result);
    const result = kept === null ? decision.result : { ...decision.result, kept };
    // Another user's changes may have filled the cap: they must be durable before the refusal is sent.
    // So must those of the users above, whose batches may be newer than this user's.
    const rest = isAtCap(decision.result) || above.length > 0 ? gate.tip : this.#lastBatch;
    return { result, batch: durableOrNull(rest) };
  }

  /** The users above at which a call counts; most users have none. */
  #levels<Name extends CommandName>(call: Call<Name>, visit: Visit | null): readonly Actor[] | Wait {
    const { name, needs, realm, newParent = null } = call;
    const { user, reservations } = this.state;
    const reservationId = needs !== undefined && "reservationId" in needs ? needs.reservationId : "";
    const isAlone = (user.parentKey === null || isOfOneUser(call)) && newParent === null;
    if (isAlone && (reservationId === "" || reservations.partsOf(reservationId).length === 0)) return NOBODY;
    return levelsOf(this.#term.users, this, { name, reservationId, newParent, realm }, visit);
  }

  #decide<Name extends CommandName>({ realm, name, input }: Call<Name>, above: readonly Actor[]) {
    const { budget, ids, realNow } = this.#term;
    try {
      const balancesLeft = budget.balancesLeft(realm.realm, realm.mode, realm.caps);
      const { catalog, outbox } = realm;
      const context = { now: realm.now(), catalog, ids, balancesLeft, outbox, realNow };
      const states = above.length === 0 ? undefined : above.map(({ state }) => state);
      return decide(this.state, name, input, context, states);
    } catch (error) {
      this.breakDown();
      throw error;
    }
  }

  /**
   * Ends a decision on this user, of a turn or of a merge: applies its changes and hands them to the gate, together with
   * the first answer and the totals of the workspace. Where a change does not fit its table, nothing has happened.
   *
   * @param above other users whose states the changes are for
   */
  finish(
    realm: Realm,
    { changes, operations, issued }: Pick<Decision<unknown>, "changes" | "operations" | "issued">,
    first: FirstAnswer | null,
    spend: Spend = NO_SPEND,
    above: readonly Actor[] = NOBODY,
  ): void {
    const { budget, idempotency, gate } = this.#term;
    gate.checkFit(changes);
    try {
      if (realm.catalog.features.types.size > 0) touchBelow(this.#term.watches, [this, ...above], changes);
      this.#apply(changes);
      for (const level of above) level.#apply(changes);
      if (changes.length === 0 && first === null) return;
      let batch: Batch;
      if (first === null) batch = this.#add(changes, above);
      else {
        const row = idempotency.keep(first, this.state.recorded ? this.state.user.key : null);
        const verb = first.isNew === true ? "append" : "put";
        batch = this.#add([...changes, { verb, table: "idempotency", row }], above);
        idempotency.remember(first, batch);
      }
      if (realm.outbox !== null) batch.noteMessages(changes);
      batch.noteTopUps(changes);
      this.#changedIn(batch, changes);
      for (const level of above) level.#changedIn(batch, changes);
      if (operations > 0) budget.takeInto(batch, realm.caps.workspaceId, realm.mode, operations);
      budget.spendAllInto(batch, realm.caps.workspaceId, spend);
      if (issued > 0) budget.issueInto(batch, realm.realm, issued);
    } catch (error) {
      this.breakDown();
      for (const level of above) level.breakDown();
      throw error;
    }
  }

  /** Applies the changes of a turn of this user, or of a user below. */
  #apply(changes: readonly Change[]): void {
    this.hadTurn = true;
    this.isRecent = true;
    this.state.apply(changes);
    // Only now: the call itself may name a settled reservation, which would not be loaded again.
    if (this.#settled?.forgetDrained(this.state) === true) this.#settled = null;
  }

  /** Notes that changes of this user left in a batch. */
  #changedIn(batch: Batch, changes: readonly Change[]): void {
    const { realm, id } = this.state.user;
    this.#term.watches.touch(realm, id);
    if (changes.some(isSettled)) (this.#settled ??= new SettledRows()).retain(changes, batch, this.state);
    if (this.state.runs.size > 0) (this.#runs ??= new RunBatches()).note(changes, batch, this.state);
  }

  /** Hands changes to the gate, and remembers where an open batch has the counters of each user. */
  #add(changes: readonly RowChange[], above: readonly Actor[]): Batch {
    const stretches = above.length === 0 ? undefined : above.flatMap((actor) => actor.#stretch() ?? []);
    const batch = this.#term.gate.add(changes, this.#stretch(), stretches);
    this.#isIn(batch, changes);
    for (const level of above) level.#isIn(batch, changes);
    return batch;
  }

  /** Where the batch that is still open has this user's counters; null without one. */
  #stretch(): Stretch | null {
    const { key: userKey } = this.state.user;
    const batch = this.#lastBatch;
    return batch === null || batch.isSent ? null : { batch, userKey, from: this.#from, to: this.#to };
  }

  #isIn(batch: Batch, changes: readonly RowChange[]): void {
    if (batch === this.#lastBatch && this.#hasCounters) return;
    const { user } = this.state;
    this.#hasCounters = changes.some(({ table, row }) => table === "counters" && row.userKey === user.key);
    this.#to = batch.entries.length;
    this.#from = Math.max(this.#to - changes.length, 0);
    this.#lastBatch = batch;
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
    visit: Visit | null = null,
  ): Promise<Turn<Commands[Name]["answer"]> | Wait | null> {
    const { needs } = call;
    const queuedAt = performance.now();
    let giveBack = NOTHING_LOADED;
    const turn = () => {
      this.#term.counts.mailboxSeconds.observe(secondsSince(queuedAt));
      try {
        return this.#turn(call, spans, visit);
      } finally {
        this.state.reservations.lend(null);
        giveBack();
      }
    };
    return this.mailbox.run(turn, () => {
      if (needs === undefined || !this.#mustLoad(call)) return null;
      return loadNeeded(this.#term, this, needs).then((forget) => void (giveBack = forget));
    });
  }

  #mustLoad({ name, needs }: Pick<Call<CommandName>, "name" | "needs">): boolean {
    return needs !== undefined && this.successor === null && mustLoad(this.state, name, needs);
  }

  /** Loads a settled reservation of this user, with the counters of its lines, for a turn of a user below. */
  async loadSettled(id: string): Promise<OlderRows> {
    return await loadSettled(this.#term, this.state, id);
  }
}
