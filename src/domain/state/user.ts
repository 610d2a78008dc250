// One end user: the row, the state in memory, and `apply`, the only way the state changes. A decision reads the state and
// never writes it. Its changes go both to `apply` and to the journal, so memory and tables cannot differ.

import type { Amount } from "../values/amount.ts";
import { type CreditBalance, type LedgerEntry, placeOf } from "./credit.ts";
import type { EndUserKey } from "./end_user_key.ts";
import type { UserKey } from "../values/ids.ts";
import type { Counter } from "./counter.ts";
import type { EventLog, MeteringEvent } from "./event.ts";
import { ExpiryQueue } from "./expiry_queue.ts";
import { ByGroup, InFlight, isGuarded } from "./in_flight.ts";
import type { Generation } from "./generation.ts";
import type { SharedValues } from "./shared_values.ts";
import type { WebhookMessage } from "./message.ts";
import { PassingCounters } from "./passing.ts";
import type { OverageHour, OverageWindow, SpendCaps } from "./overage.ts";
import type { Reservation } from "./reservation.ts";
import { ReservationBook } from "./reservation_book.ts";
import type { Share, ShareReset } from "./share.ts";
import type { Millis } from "../values/period.ts";
import { isUnderWay, type TopUp, type TopUpIntent } from "./top_up.ts";
import type { Run } from "./run.ts";
import type { Subscription, SubscriptionEvent } from "./subscription.ts";
import type { UserSummary } from "./summary.ts";

/** The plan that a user entered last, and how its windows are stepped. */
export interface Entitlement {
  readonly planId: string;
  readonly subscriptionId: string;
  readonly anchor: Millis;
  /** The start of the row; of a lifetime plan that of its window. */
  readonly startedAt: Millis;
  /** When it ended without a successor; null while it is active. */
  readonly until: Millis | null;
  /**
   * Whether the plan's counters include all usage under the plan before. False after an entry by `reset` or `block`
   * while that plan's window ran.
   */
  readonly carried: boolean;
}

/** The row of a user. The first change of the user writes it. */
export interface User {
  readonly key: UserKey;
  readonly realm: number;
  /** The end-user id that the customer's app chose. */
  readonly id: string;
  /** The canonical user that this one is an alias of, else null. */
  readonly mergedInto: UserKey | null;
  readonly entitlement: Entitlement | null;
  /** When something falls due at the earliest; null for never. It may be too early, but never too late. */
  readonly dueAt: Millis | null;
  /** Scopes that the user opted out of: the sum of their SCOPE_BITS. */
  readonly optedOut: number;
  /** Whether an erasure was asked for and is not done yet. */
  readonly isErasing: boolean;
  /** The user directly above; calls count there too. Null at the top. An alias there means its canonical user. */
  readonly parentKey: UserKey | null;
  /** The most that this user may use of groups of the users above, by group id; null for no such limits. */
  readonly memberLimits: MemberLimits | null;
  /** When plan changes reset the shares of members in windows that still run; null for never. */
  readonly shareResets: readonly ShareReset[] | null;
  /** What the user buys by itself; null for a user who never had such a setting. */
  readonly topUp: TopUp | null;
  /** The most that the user lets groups sell past their quotas; null for no caps of its own. */
  readonly spendCaps: SpendCaps | null;
}

/** The most users of a path: a user, its parent, and so on. */
export const PATH_MAX = 8;

/** Shares of the groups of users above, by group id. */
export type MemberLimits = Readonly<Record<string, Amount>>;

/** Makes the row of a new user. The first value of every column is here alone. */
export function newUser(key: UserKey, realm: number, id: string): User {
  return {
    key,
    realm,
    id,
    mergedInto: null,
    entitlement: null,
    dueAt: null,
    optedOut: 0,
    isErasing: false,
    parentKey: null,
    memberLimits: null,
    shareResets: null,
    topUp: null,
    spendCaps: null,
  };
}

/**
 * Scopes as bits of a user's `optedOut`: `analytics` hides the id from captured events, `ai_personalization` stops compose,
 * `prompt_logging` stops new prompt logs. Metering goes on under all of them.
 */
export const SCOPE_BITS = { analytics: 1, ai_personalization: 2, prompt_logging: 4 } as const;

/** A scope as calls name it; `all` is `analytics` and `ai_personalization`. */
export type ConsentScope = keyof typeof SCOPE_BITS | "all";

/** An audit entry of opting out or in. */
export interface ConsentEntry {
  readonly id: string;
  readonly userKey: UserKey;
  readonly realm: number;
  /** The id in the call. */
  readonly distinctId: string;
  readonly action: "opt_out" | "opt_in";
  readonly scope: ConsentScope;
  readonly at: Millis;
}

/** An id that was merged into the user. */
export type Alias = Pick<User, "key" | "id">;

/** A finished merge, with its report as JSON. */
export interface Merge {
  readonly id: string;
  readonly realm: number;
  readonly fromKey: UserKey;
  readonly toKey: UserKey;
  readonly report: string;
  /** The users that were merged: their history is the canonical user's now. */
  readonly historyKeys: readonly UserKey[];
  readonly at: Millis;
}

/** A pending move: the history of an alias is still stored under its own number. */
export interface HistoryMove {
  readonly userKey: UserKey;
  readonly at: Millis;
}

/**
 * One change of a decision. `append` adds a row that did not exist; `put` replaces a row by its new value. Rows are never
 * changed in place.
 */
export type Change =
  | { readonly verb: "put" | "append"; readonly table: "users"; readonly row: User }
  | { readonly verb: "append" | "put"; readonly table: "subscriptions"; readonly row: Subscription }
  | { readonly verb: "append"; readonly table: "subscription_events"; readonly row: SubscriptionEvent }
  | { readonly verb: "put"; readonly table: "counters"; readonly row: Counter }
  | { readonly verb: "put"; readonly table: "shares"; readonly row: Share }
  | { readonly verb: "put"; readonly table: "overage_windows"; readonly row: OverageWindow }
  | { readonly verb: "append"; readonly table: "overage_hours"; readonly row: OverageHour }
  | { readonly verb: "append" | "put"; readonly table: "reservations"; readonly row: Reservation }
  | { readonly verb: "append" | "put"; readonly table: "credit_balances"; readonly row: CreditBalance }
  | { readonly verb: "append" | "put"; readonly table: "runs"; readonly row: Run }
  | { readonly verb: "append"; readonly table: "credit_ledger"; readonly row: LedgerEntry }
  | { readonly verb: "append"; readonly table: "events"; readonly row: MeteringEvent }
  | { readonly verb: "append"; readonly table: "event_logs"; readonly row: EventLog }
  | { readonly verb: "append"; readonly table: "consents"; readonly row: ConsentEntry }
  | { readonly verb: "append"; readonly table: "generations"; readonly row: Generation }
  | { readonly verb: "append"; readonly table: "merges"; readonly row: Merge }
  | { readonly verb: "append"; readonly table: "history_moves"; readonly row: HistoryMove }
  | { readonly verb: "append"; readonly table: "webhook_messages"; readonly row: WebhookMessage }
  | { readonly verb: "append" | "put"; readonly table: "end_user_keys"; readonly row: EndUserKey }
  | { readonly verb: "append" | "put"; readonly table: "top_ups"; readonly row: TopUpIntent }
  | { readonly verb: "put"; readonly table: "user_summaries"; readonly row: UserSummary };

/** The rows from which a user's state is made. */
export interface UserRows {
  readonly user: User;
  /** Whether the tables have the user's row; false for a new user. */
  readonly recorded: boolean;
  readonly aliases: readonly Alias[];
  readonly subscriptions: readonly Subscription[];
  readonly counters: readonly Counter[];
  readonly reservations: readonly Reservation[];
  readonly balances: readonly CreditBalance[];
  /** Runs that have not ended, and those with open holds; absent for none. */
  readonly runs?: readonly Run[];
  /** Of groups of the users above; absent for none. */
  readonly shares?: readonly Share[];
  /** What groups sold past their quotas, by window; absent for nothing. */
  readonly overages?: readonly OverageWindow[];
  /** Keys that are not revoked; absent for none. */
  readonly endUserKeys?: readonly EndUserKey[];
  /** Top-ups under way; absent for none. */
  readonly topUps?: readonly TopUpIntent[];
  readonly summary?: UserSummary;
  /** See `UserState.endedUntil`; absent where no counter and no share was left out. */
  readonly endedUntil?: Millis;
}

/** Rows that a command names and that need not be in memory. */
export type OlderRows = Pick<
  UserRows,
  "counters" | "reservations" | "balances" | "runs" | "shares" | "topUps" | "overages"
>;

const NO_TOP_UP: ReadonlyMap<string, TopUpIntent> = new Map();
const NO_RUNS: readonly Run[] = [];
const NO_RUN: ReadonlyMap<string, Run> = new Map();
const NO_SHARES: ReadonlyMap<string, Share> = new Map();
const NO_OVERAGES: ReadonlyMap<string, OverageWindow> = new Map();

/** A user's live rows in memory. Decisions read it; only `apply`, `admit` and `forget` change it. */
export class UserState {
  user: User;
  /** Whether the user's row exists; the first change writes it. */
  recorded: boolean;
  aliases: readonly Alias[];
  readonly subscriptions = new Map<string, Subscription>();
  readonly counters = new Map<string, Counter>();
  /** Open holds, and settled reservations until the tables have them. */
  readonly reservations: ReservationBook;
  readonly holds = new ExpiryQueue();
  /** Balances by id: active and depleted ones, those with parts in open holds, and recent others. */
  readonly balances = new Map<string, CreditBalance>();
  /** The same in consumption order. */
  readonly balanceOrder: CreditBalance[] = [];
  openHolds = 0;
  /** Open holds that count at guards; null for none, as for users of plans without guards. */
  inFlight: InFlight | null = null;
  /** Sessions and slots of rates that may still count, by group; null for none. */
  #passing: ByGroup<PassingCounters> | null = null;
  /** Runs by id: active ones, those with open holds, and others while they are needed. Null for a user without any. */
  #runs: Map<string, Run> | null = null;
  /** Shares by key; null for none, as for every user without a parent. */
  #shares: Map<string, Share> | null = null;
  /** Whether a balance in memory is one that a plan includes, or a rollover of one. */
  hasIncluded = false;
  /** Top-ups under way, and a settled one while a turn needs it. Null for none. */
  #topUps: Map<string, TopUpIntent> | null = null;
  /** Windows of overage by key; null for none. */
  #overages: Map<string, OverageWindow> | null = null;
  /** Keys of the user that are not revoked, by id, oldest first; null for none, as most users have. */
  endUserKeys: Map<string, EndUserKey> | null = null;
  summary: UserSummary | null;
  /** When the windows of the counters and shares that were left out had ended. A later window may share their start. */
  endedUntil: Millis;

  /** @param shared what the states of all users share */
  constructor(rows: UserRows, readonly shared: SharedValues) {
    this.user = rows.user;
    this.recorded = rows.recorded;
    this.aliases = rows.aliases;
    this.summary = rows.summary ?? null;
    this.endedUntil = rows.endedUntil ?? -Infinity;
    this.reservations = new ReservationBook(rows.user.key, rows.user.realm, shared.holds);
    for (const row of rows.subscriptions) this.subscriptions.set(row.id, row);
    for (const row of rows.endUserKeys ?? []) this.#setEndUserKey(row);
    this.admit(rows);
  }

  /** The user's number, then those of its aliases, under which rows may still be stored. */
  get keys(): UserKey[] {
    return [this.user.key, ...this.aliases.map(({ key }) => key)];
  }

  /** The shares in memory. */
  get shares(): ReadonlyMap<string, Share> {
    return this.#shares ?? NO_SHARES;
  }

  /** The windows of overage in memory. */
  get overages(): ReadonlyMap<string, OverageWindow> {
    return this.#overages ?? NO_OVERAGES;
  }

  /** Adds rows that a command names, unless memory has a newer value. */
  admit(rows: OlderRows): void {
    for (const row of rows.shares ?? []) {
      if (!this.shares.has(row.key)) this.#setShare(row);
    }
    for (const row of rows.overages ?? []) {
      if (!this.overages.has(row.key)) this.#setOverage(row);
    }
    for (const row of rows.balances) {
      if (!this.balances.has(row.id)) this.#setBalance(row);
    }
    for (const row of rows.counters) {
      const key = this.shared.counterKey(row.planId, row.groupId, row.windowStart);
      if (!this.counters.has(key)) this.#setCounter({ ...row, key });
    }
    for (const row of rows.reservations) {
      if (!this.reservations.has(row.id)) this.#setReservation(row);
    }
    for (const row of rows.runs ?? NO_RUNS) {
      if (this.#runs?.has(row.id) !== true) this.#setRun(row);
    }
    for (const row of rows.topUps ?? []) {
      if (!this.topUps.has(row.id)) (this.#topUps ??= new Map()).set(row.id, row);
    }
  }

  /** Adds rows among which are all counters and shares that were left out. */
  admitEnded(rows: OlderRows): void {
    this.admit(rows);
    this.endedUntil = -Infinity;
  }

  get topUps(): ReadonlyMap<string, TopUpIntent> {
    return this.#topUps ?? NO_TOP_UP;
  }

  get runs(): ReadonlyMap<string, Run> {
    return this.#runs ?? NO_RUN;
  }

  /** Applies the changes of a decision; skips rows of other users, which a merge changes too. */
  apply(changes: readonly Change[]): void {
    const { key } = this.user;
    const openBefore = this.openHolds;
    for (const change of changes) {
      if (change.table === "users") {
        this.#setUser(change.row);
        continue;
      }
      if (change.table === "merges" || change.row.userKey !== key) continue;
      switch (change.table) {
        case "subscriptions":
          this.subscriptions.set(change.row.id, change.row);
          break;
        case "counters":
          this.#setCounter(change.row);
          break;
        case "shares":
          this.#setShare(change.row);
          break;
        case "overage_windows":
          this.#setOverage(change.row);
          break;
        case "reservations":
          this.#setReservation(change.row);
          break;
        case "credit_balances":
          this.#setBalance(change.row);
          break;
        case "runs":
          this.#setRun(change.row);
          break;
        case "top_ups":
          this.#setTopUp(change.row);
          break;
        case "end_user_keys":
          this.#setEndUserKey(change.row);
          break;
        case "user_summaries":
          this.summary = change.row;
          break;
        default: // Not in memory.
      }
    }
    if (openBefore >= this.openHolds) this.holds.trim((id, at) => this.lapsesAt(id, at), this.openHolds);
  }

  /** Drops a settled reservation that the tables have; keeps an open hold. */
  forget(reservationId: string): void {
    if (!this.isOpen(reservationId)) this.reservations.delete(reservationId);
  }

  /** Whether an id names an open hold of this user. */
  isOpen(reservationId: string): boolean {
    return this.reservations.expiryOf(reservationId) !== null;
  }

  /** Whether an id names an open hold of this user that lapses at this time. */
  lapsesAt(reservationId: string, at: Millis): boolean {
    return this.reservations.expiryOf(reservationId) === at;
  }

  /** The sessions of a group, or the slots of a rate, that may still count. */
  passingOf(planId: string, groupId: string): PassingCounters | undefined {
    return this.#passing?.get(planId, groupId);
  }

  #setCounter(row: Counter): void {
    const { planId, groupId, key, kind } = row;
    this.counters.set(key, row);
    let passing = this.#passing?.get(planId, groupId);
    if (passing === undefined) {
      if (kind === undefined) return;
      (this.#passing ??= new ByGroup()).set(planId, groupId, passing = new PassingCounters());
    }
    // No settlement changes the slot of a rate after its time.
    for (const gone of passing.put(row)) if (gone.kind === "rate") this.counters.delete(gone.key);
  }

  #setShare(row: Share): void {
    (this.#shares ??= new Map()).set(row.key, row);
  }

  #setOverage(row: OverageWindow): void {
    (this.#overages ??= new Map()).set(row.key, row);
  }

  #setUser(row: User): void {
    if (row.key === this.user.key) {
      this.user = row;
      this.recorded = true;
    } else if (row.mergedInto === this.user.key) {
      // In the order in which they are loaded: answers list them.
      this.aliases = [...this.aliases, { key: row.key, id: row.id }].sort((a, b) => a.key - b.key);
    }
  }

  /** Drops a run that the tables have. */
  forgetRun(id: string): void {
    this.#runs?.delete(id);
    if (this.#runs?.size === 0) this.#runs = null;
  }

  #setRun(row: Run): void {
    (this.#runs ??= new Map()).set(row.id, row.metadata === null ? row : { ...row, metadata: null });
  }

  /** Drops a settled top-up; a late message of its payment loads it again. */
  forgetTopUp(id: string): void {
    this.#topUps?.delete(id);
    if (this.#topUps?.size === 0) this.#topUps = null;
  }

  #setTopUp(row: TopUpIntent): void {
    if (isUnderWay(row)) (this.#topUps ??= new Map()).set(row.id, row);
    else this.forgetTopUp(row.id);
  }

  #setEndUserKey(row: EndUserKey): void {
    if (row.revokedAt === null) (this.endUserKeys ??= new Map()).set(row.id, row);
    else this.endUserKeys?.delete(row.id);
  }

  #setBalance(row: CreditBalance): void {
    if (row.included !== null) this.hasIncluded = true;
    const order = this.balanceOrder;
    const known = this.balances.get(row.id);
    // Only a change of the expiry moves a balance.
    const isMoved = known !== undefined && known.expiresAt !== row.expiresAt;
    if (isMoved) order.splice(order.indexOf(known), 1);
    const low = placeOf(order, row);
    order.splice(low, known === undefined || isMoved ? 0 : 1, row);
    this.balances.set(row.id, row);
  }

  #setReservation(row: Reservation): void {
    const lapsed = this.reservations.expiryOf(row.id);
    this.reservations.set(row);
    if (this.inFlight !== null || isGuarded(row)) (this.inFlight ??= new InFlight()).set(row);
    if (lapsed !== null) this.openHolds -= 1;
    if (row.status !== "held") return;
    this.openHolds += 1;
    if (lapsed !== row.expiresAt) this.holds.add(row.expiresAt, row.id);
  }
}
