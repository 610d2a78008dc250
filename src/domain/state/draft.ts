// A draft: one user's state with the changes of a decision over it. Decisions read and write drafts. The state itself
// changes only when the draft's changes are applied; a dry run drops them. Each row is in the changes once, with its last
// value.

import type { Amount } from "../values/amount.ts";
import { type Counter, type CounterRef, emptyCounter } from "./counter.ts";
import { compareBalances, type CreditBalance, expiryDueOf, type LedgerEntry } from "./credit.ts";
import type { MeteringEvent } from "./event.ts";
import {
  type Message,
  type MessageData,
  type MessageType,
  type SubscriptionData,
  subscriptionData,
} from "./message.ts";
import type { UserKey } from "../values/ids.ts";
import { type GuardedHold, guardedHold, heldBy } from "./in_flight.ts";
import { emptyOverage, overageKey, type OverageRef, type OverageWindow } from "./overage.ts";
import { over, type Overlay } from "../values/overlay.ts";
import type { Millis } from "../values/period.ts";
import { countOf } from "./passing.ts";
import type { RefusedCall } from "./refused_call.ts";
import type { Line, Reservation } from "./reservation.ts";
import type { Run } from "./run.ts";
import type { TopUpIntent } from "./top_up.ts";
import { emptyShare, laterEnd, type Share, shareKey, type ShareRef } from "./share.ts";
import { nextDueOf, type Subscription, type SubscriptionEvent } from "./subscription.ts";
import type { Change, User, UserState } from "./user.ts";

/** Every empty list of a draft: most drafts have one kind of changes or two. */
const NONE: readonly never[] = [];

/** A change of what a line's counter sold past its quota. */
export interface Sale {
  readonly line: Line;
  /** By how much the overage of the counter rose, or fell where it is below 0. */
  readonly more: Amount;
}

/** Changes of one decision over one user's state. */
export class Draft {
  readonly state: UserState;
  /** Drafts of the users above that the command counts at, nearest first. */
  readonly above: readonly Draft[];
  /**
   * Metering operations that the changes cost: one for each counted event, and for each row of type `merged`, `promoted`,
   * `merged_from_alias` and `merge_dedupe`.
   */
  operations = 0;
  /** Credit balances that the changes issue. */
  issued = 0;
  /** The refusal to count; null for a call that was not refused. */
  refusedCall: RefusedCall | null = null;
  /** Whether the decision read a counter or a share that may be in the tables alone: then they must be loaded first. */
  lacksEnded = false;
  /** Whether what is due is being settled now, which no bound can refuse. */
  isSettlingDue = false;
  #user: User | null = null;
  #subscriptions: Overlay<Subscription> | null = null;
  #counters: Overlay<Counter> | null = null;
  #reservations: Overlay<Reservation> | null = null;
  #balances: Overlay<CreditBalance> | null = null;
  #movesBalances = false;
  #runs: Overlay<Run> | null = null;
  #shares: Overlay<Share> | null = null;
  #topUps: Overlay<TopUpIntent> | null = null;
  #overages: Overlay<OverageWindow> | null = null;
  #sales: Sale[] | null = null;
  #records: Change[] | null = null;
  #messages: Message[] | null = null;

  constructor(state: UserState, above: readonly Draft[] = NONE) {
    this.state = state;
    this.above = above;
  }

  /** Returns the draft of this user or one above by its number or that of an alias, or null. */
  levelOf(key: UserKey): Draft | null {
    if (this.state.keys.includes(key)) return this;
    return this.above.find(({ state }) => state.keys.includes(key)) ?? null;
  }

  get user(): User {
    return this.#user ?? this.state.user;
  }

  putUser(part: Partial<User>): void {
    this.#user = { ...this.user, ...part };
  }

  /** The subscriptions, with this draft's changes. */
  subscriptions(): Iterable<Subscription> {
    const over = this.#subscriptions;
    if (over === null) return this.state.subscriptions.values();
    const rows = new Map(this.state.subscriptions);
    for (const row of over.rows) rows.set(row.id, row);
    return rows.values();
  }

  subscription(id: string): Subscription | undefined {
    return this.#subscriptions?.get(id) ?? this.state.subscriptions.get(id);
  }

  /** Whether this draft has changes of subscriptions. */
  get changesSubscriptions(): boolean {
    return this.#subscriptions !== null;
  }

  putSubscription(row: Subscription): void {
    this.#subscriptions = over(this.#subscriptions, row.id, row);
  }

  /**
   * Returns the counter of a group and window, an empty one if need be. Windows that start at the same time share a
   * counter. Its end is the latest of theirs, so that it is loaded as long as any of them runs.
   */
  counter(ref: CounterRef): Counter {
    const row = this.storedCounter(ref);
    if (row === undefined) return emptyCounter(this.user.key, ref, this.#keyOf(ref));
    const { end } = ref.window;
    const isLater = row.windowEnd !== null && (end === null || end > row.windowEnd);
    return isLater ? { ...row, windowEnd: end } : row;
  }

  /** Returns the counter of a group and window by its last value; undefined where nothing was counted yet. */
  storedCounter(ref: CounterRef): Counter | undefined {
    const key = this.#keyOf(ref);
    const row = this.#counters?.get(key) ?? this.state.counters.get(key);
    const { start, kind } = ref.window;
    if (row === undefined && kind === undefined && start < this.state.endedUntil) this.lacksEnded = true;
    return row;
  }

  #keyOf({ planId, groupId, window }: CounterRef): string {
    return this.state.shared.counterKey(planId, groupId, window.start);
  }

  /** The counters in memory, with this draft's changes. */
  *counters(): Iterable<Counter> {
    for (const row of this.state.counters.values()) yield this.#counters?.get(row.key) ?? row;
    for (const row of this.#counters?.rows ?? NONE) {
      if (!this.state.counters.has(row.key)) yield row;
    }
  }

  /** The sessions of a group, or the slots of a rate, that may still count, with this draft's changes. */
  passing(planId: string, groupId: string): readonly Counter[] {
    const known = this.state.passingOf(planId, groupId)?.rows ?? NONE;
    const over = this.#counters;
    if (over === null) return known;
    const latest = known.map((row) => over.get(row.key) ?? row);
    const isNew = (row: Counter) =>
      row.groupId === groupId && row.planId === planId &&
      this.state.counters.get(row.key)?.kind === undefined;
    return [...latest, ...over.rows.filter(isNew)].filter(({ kind }) => kind !== undefined);
  }

  /** What the slots of a rate count at a moment, if each lasts so many milliseconds. */
  countOfRate(planId: string, groupId: string, now: Millis, lasts: number): Amount {
    return this.#counters === null
      ? this.state.passingOf(planId, groupId)?.countAt(now, lasts) ?? 0n
      : countOf(this.passing(planId, groupId), now, lasts);
  }

  /** What open holds hold of a concurrency limit. */
  heldOf(planId: string, groupId: string): Amount {
    const { inFlight } = this.state;
    let held = inFlight?.heldOf(planId, groupId) ?? 0n;
    for (const row of this.#reservations?.rows ?? NONE) {
      held += heldBy(guardedHold(row), planId, groupId) - heldBy(inFlight?.get(row.id), planId, groupId);
    }
    return held;
  }

  /** The open holds that count at guards. */
  *guardedHolds(): Iterable<GuardedHold> {
    for (const hold of this.state.inFlight?.holds ?? NONE) {
      if (this.#reservations?.get(hold.id) === undefined) yield hold;
    }
    for (const row of this.#reservations?.rows ?? NONE) {
      const hold = guardedHold(row);
      if (hold !== null) yield hold;
    }
  }

  /** The counters that this draft has changed, each with its last value. */
  changedCounters(): readonly Counter[] {
    return this.#counters === null ? NONE : this.#counters.rows.slice();
  }

  putCounter(row: Counter): void {
    this.#counters = over(this.#counters, row.key, row);
  }

  /**
   * Returns the stored share, or an empty one without any and after a newer reset. Null for a `ref` from before the last
   * reset: its amount counts nowhere.
   */
  share(ref: ShareRef): Share | null {
    const key = shareKey(ref);
    const row = this.storedShare(key);
    if (row === undefined && ref.window.start < this.state.endedUntil) this.lacksEnded = true;
    if (row === undefined) return emptyShare(this.user.key, this.user.id, ref);
    if (row.since > ref.since) return null;
    const windowEnd = laterEnd(row.windowEnd, ref.window.end);
    if (row.since < ref.since) return { ...emptyShare(this.user.key, this.user.id, ref), windowEnd };
    return windowEnd === row.windowEnd ? row : { ...row, windowEnd };
  }

  /** Returns a share by its key, without regard to resets. */
  storedShare(key: string): Share | undefined {
    return this.#shares?.get(key) ?? this.state.shares.get(key);
  }

  /** The shares in memory, with this draft's changes. */
  *shares(): Iterable<Share> {
    for (const row of this.state.shares.values()) yield this.#shares?.get(row.key) ?? row;
    for (const row of this.#shares?.rows ?? NONE) {
      if (!this.state.shares.has(row.key)) yield row;
    }
  }

  putShare(row: Share): void {
    this.#shares = over(this.#shares, row.key, row);
  }

  /** Returns a window of overage, an empty one if need be. */
  overage(ref: OverageRef): OverageWindow {
    const key = overageKey(ref);
    return this.#overages?.get(key) ?? this.state.overages.get(key) ?? emptyOverage(this.user.key, ref);
  }

  /** What this turn sold past quotas, in its order. */
  get sales(): readonly Sale[] {
    return this.#sales ?? NONE;
  }

  /** Notes that the turn changed the overage of a line's counter. */
  noteSale(sale: Sale): void {
    (this.#sales ??= []).push(sale);
  }

  /** The windows of overage in memory, with this draft's changes. */
  *overages(): Iterable<OverageWindow> {
    for (const row of this.state.overages.values()) yield this.#overages?.get(row.key) ?? row;
    for (const row of this.#overages?.rows ?? NONE) {
      if (!this.state.overages.has(row.key)) yield row;
    }
  }

  putOverage(row: OverageWindow): void {
    this.#overages = over(this.#overages, row.key, row);
  }

  reservation(id: string): Reservation | undefined {
    return this.#reservations?.get(id) ?? this.state.reservations.get(id);
  }

  putReservation(row: Reservation): void {
    this.#reservations = over(this.#reservations, row.id, row);
  }

  /** The reservations in memory, with this draft's changes. */
  *reservations(): Iterable<Reservation> {
    for (const id of this.state.reservations.keys()) yield this.reservation(id) as Reservation;
    for (const row of this.#reservations?.rows ?? NONE) {
      if (!this.state.reservations.has(row.id)) yield row;
    }
  }

  /** The reservations that this draft changes, each with its last value. */
  get changedReservations(): readonly Reservation[] {
    return this.#reservations?.rows ?? NONE;
  }

  balance(id: string): CreditBalance | undefined {
    return this.#balances?.get(id) ?? this.state.balances.get(id);
  }

  /** The balances in memory, with this draft's changes, in consumption order. */
  balancesInOrder(): Iterable<CreditBalance> {
    const over = this.#balances;
    if (over === null) return this.state.balanceOrder;
    const order = this.state.balanceOrder.map((row) => over.get(row.id) ?? row);
    if (!this.#movesBalances) return order;
    for (const row of over.rows) if (!this.state.balances.has(row.id)) order.push(row);
    return order.sort(compareBalances);
  }

  /** Sets a balance, and notes whether that changes the order of consumption. */
  #setBalance(row: CreditBalance): void {
    const known = this.state.balances.get(row.id);
    if (known === undefined || known.expiresAt !== row.expiresAt) this.#movesBalances = true;
    this.#balances = over(this.#balances, row.id, row);
  }

  putBalance(row: CreditBalance): void {
    if (this.balance(row.id) === undefined) this.issued += 1;
    this.#setBalance(row);
  }

  /** Adds or changes a balance that does not count as issued: another user's, or credits that a plan includes. */
  adoptBalance(row: CreditBalance): void {
    this.#setBalance(row);
  }

  run(id: string): Run | undefined {
    return this.#runs?.get(id) ?? this.state.runs.get(id);
  }

  /** The runs in memory, with this draft's changes. */
  *runs(): Iterable<Run> {
    for (const row of this.state.runs.values()) yield this.#runs?.get(row.id) ?? row;
    for (const row of this.#runs?.rows ?? NONE) {
      if (!this.state.runs.has(row.id)) yield row;
    }
  }

  putRun(row: Run): void {
    this.#runs = over(this.#runs, row.id, row);
  }

  topUp(id: string): TopUpIntent | undefined {
    return this.#topUps?.get(id) ?? this.state.topUps.get(id);
  }

  /** The top-ups in memory, with this draft's changes. */
  *topUps(): Iterable<TopUpIntent> {
    for (const row of this.state.topUps.values()) yield this.#topUps?.get(row.id) ?? row;
    for (const row of this.#topUps?.rows ?? NONE) {
      if (!this.state.topUps.has(row.id)) yield row;
    }
  }

  putTopUp(row: TopUpIntent): void {
    this.#topUps = over(this.#topUps, row.id, row);
  }

  appendLedgerEntry(row: LedgerEntry): void {
    this.appendRecord({ verb: "append", table: "credit_ledger", row });
  }

  appendEvent(row: MeteringEvent): void {
    this.appendRecord({ verb: "append", table: "events", row });
  }

  /** @param features those in force after it, for the message; null to leave them out */
  appendSubscriptionEvent(
    row: SubscriptionEvent,
    features: SubscriptionData["features"] | null = null,
  ): void {
    this.appendRecord({ verb: "append", table: "subscription_events", row });
    this.recordMessage(`subscription.${row.type}`, row.at, subscriptionData(this.user.id, row, features));
  }

  /** Adds a change that no other part of this draft reads. */
  appendRecord(change: Change): void {
    (this.#records ??= []).push(change);
  }

  /** Records a message for webhooks. */
  recordMessage<Type extends MessageType>(type: Type, at: Millis, data: MessageData[Type]): void {
    (this.#messages ??= []).push({ type, at, data });
  }

  /** Records a message before all earlier ones. */
  recordMessageFirst<Type extends MessageType>(type: Type, at: Millis, data: MessageData[Type]): void {
    (this.#messages ??= []).unshift({ type, at, data });
  }

  /** Returns the messages recorded since the last call, in order. */
  takeMessages(): readonly Message[] {
    const messages = this.#messages ?? NONE;
    this.#messages = null;
    return messages;
  }

  /** When the first of the rows that this draft wrote falls due, or infinity. */
  nextDueWritten(): Millis {
    let next = Infinity;
    for (const row of this.#reservations?.rows ?? NONE) {
      if (row.status === "held") next = Math.min(next, row.expiresAt);
    }
    for (const row of this.#subscriptions?.rows ?? NONE) {
      next = Math.min(next, nextDueOf(row));
    }
    for (const row of this.#balances?.rows ?? NONE) next = Math.min(next, expiryDueOf(row) ?? Infinity);
    for (const row of this.#overages?.rows ?? NONE) next = Math.min(next, row.dueAt ?? Infinity);
    return next;
  }

  /** When the first row falls due with this draft's changes, or null. */
  nextDue(): Millis | null {
    const held = this.state.holds.earliest((id, at) => {
      const row = this.#reservations?.get(id);
      return row === undefined ? this.state.lapsesAt(id, at) : row.status === "held" && row.expiresAt === at;
    });
    let next = Math.min(held ?? Infinity, this.nextDueWritten());
    for (const row of this.subscriptions()) {
      next = Math.min(next, nextDueOf(row));
    }
    for (const row of this.balancesInOrder()) next = Math.min(next, expiryDueOf(row) ?? Infinity);
    for (const row of this.overages()) next = Math.min(next, row.dueAt ?? Infinity);
    return next === Infinity ? null : next;
  }

  /** Whether the draft has no changes. */
  get isEmpty(): boolean {
    return this.#user === null && this.#subscriptions === null && this.#counters === null &&
      this.#reservations === null && this.#balances === null && this.#runs === null &&
      this.#shares === null && this.#topUps === null && this.#overages === null &&
      this.#records === null;
  }

  /** The changes so far: each row once, with its last value. */
  changes(): Change[] {
    const changes: Change[] = [];
    if (this.#user !== null) {
      // A new row: it fails where another user already has this number.
      const verb = this.state.recorded ? "put" : "append";
      changes.push({ verb, table: "users", row: this.#user });
    }
    for (const row of this.#subscriptions?.rows ?? NONE) {
      const verb = this.state.subscriptions.has(row.id) ? "put" : "append";
      changes.push({ verb, table: "subscriptions", row });
    }
    for (const row of this.#counters?.rows ?? NONE) changes.push({ verb: "put", table: "counters", row });
    for (const row of this.#shares?.rows ?? NONE) changes.push({ verb: "put", table: "shares", row });
    for (const row of this.#overages?.rows ?? NONE) {
      changes.push({ verb: "put", table: "overage_windows", row });
    }
    for (const row of this.#reservations?.rows ?? NONE) {
      const verb = this.state.reservations.has(row.id) ? "put" : "append";
      changes.push({ verb, table: "reservations", row });
    }
    for (const row of this.#balances?.rows ?? NONE) {
      const verb = this.state.balances.has(row.id) ? "put" : "append";
      changes.push({ verb, table: "credit_balances", row });
    }
    for (const row of this.#runs?.rows ?? NONE) {
      changes.push({ verb: this.state.runs.has(row.id) ? "put" : "append", table: "runs", row });
    }
    for (const row of this.#topUps?.rows ?? NONE) {
      changes.push({ verb: this.state.topUps.has(row.id) ? "put" : "append", table: "top_ups", row });
    }
    for (const change of this.#records ?? NONE) changes.push(change);
    return changes;
  }
}
