// The rows that the model remembers: subscriptions and their history, counters, reservations, events, credit balances and
// ledger rows, aliases and merges. Declarations only.

import type { FeatureValue, MatchRule, ModelRow, Pack, RateRow, Unit, WireData } from "./document.ts";
import type { Micros } from "./decimal.ts";
import type { Included } from "./includes.ts";
import type { Rated, Work } from "./rates.ts";
import type { Amounts, Metadata } from "./rules.ts";
import type { Anchors, Window } from "./windows.ts";

export interface Named {
  id: string;
  /** Order of creation over all users, as ids that name no owner have it. */
  no: number;
}

/** A row of a list that is ordered by time, then by id. */
export interface Dated extends Named {
  at: number;
  /** The ids of the row's user when it was written, the canonical one first. */
  by: readonly string[];
  /** Whether time alone wrote it, so that it may have got its id at any later moment. */
  due: boolean;
}

export interface SubscriptionRow extends Named, Anchors {
  userId: string;
  planId: string;
  provider: string | null;
  externalId: string | null;
  endsAt: number | null;
  customLimits: Map<string, Micros>;
  quantity: number;
  scheduled: { at: number; planId: string } | null;
  trial: { endsAt: number; thenPlanId: string | null } | null;
  /** All plans that it had on trial. */
  trials: string[];
  /** When it first had each of its plans. */
  held: Map<string, number>;
  customFeatures: Map<string, FeatureValue>;
  ended: boolean;
}

export type HistoryType =
  | "created"
  | "plan_changed"
  | "canceled"
  | "reactivated"
  | "ended"
  | "merged"
  | "promoted";

export interface HistoryRow extends Dated {
  type: HistoryType;
  subscription: SubscriptionRow;
  planId: string;
  previousPlanId: string | null;
  reason: string | null;
}

/** The plan that the user's primary has, or had when the last one ended. */
export interface Entered extends Anchors {
  row: SubscriptionRow;
  planId: string;
  endedAt: number | null;
  /** Whether its counters contain what was used under the plan before; not after `reset` or `block`. */
  carried: boolean;
}

export interface User {
  id: string;
  subscriptions: SubscriptionRow[];
  /** Oldest first. */
  history: HistoryRow[];
  entered: Entered | null;
  /** The id that the parent had when it was set; an alias by now means its canonical user. */
  parentId: string | null;
  /** By group id. */
  memberLimits: Map<string, Micros> | null;
  /** What it has of packs that come with its plans. */
  included: Included[];
  /** Up to when that is known. */
  includedAt: number;
  /** What it left of them, whose windows still run. */
  leftIncludes: Included[];
  /** What the last change left, unless another plan took its use. */
  leftLast: Included[];
  /** By plan: which row had packs on trial, and in which windows. */
  trialIncludes: Map<string, { rowNo: number; windows: Map<string, number>; isOpen?: boolean }>;
  /** The most overage that its owner lets each group sell, by group id. */
  spendCaps: Map<string, Micros>;
  /** The messages about groups that sell, once for each window. */
  selling: Set<string>;
}

/** A merge as its first answer reported it. */
export interface MergeRow extends Named {
  report: WireData;
  /** What moved in all, by the names of the report. */
  movedInAll: Record<string, number>;
}

/** An id that became an alias, and the user that has it now. */
export interface Alias {
  id: string;
  user: User;
  merge: MergeRow;
}

export interface Counter {
  readonly userId: string;
  readonly planId: string;
  readonly groupId: string;
  readonly windowStart: number;
  /** The latest end of the windows that share it. */
  windowEnd: number | null;
  /** Includes overage. */
  count: Micros;
  /** What was sold past the quota. */
  overage: Micros;
  cost: Micros;
  /** The percents of the quota that fired. */
  alerted: Set<number | "pace">;
  /** The quota that they were last compared with. */
  alertedQuota: Micros | null;
  /** What a block added to what was used, and the quota that it filled; zero for none. */
  filler: Micros;
  blockedTo: Micros;
  /** When it was reset as its plan was entered. */
  resetAt: number | null;
}

/** One group's part of a hold: where it was taken (or carried to) and how much. */
export interface Line {
  planId: string;
  groupId: string;
  unit: Unit;
  window: Window;
  /** Includes overage. */
  amount: Micros;
  /** What of it was sold past the quota, and in which counter. */
  overage: Micros;
  soldAt: Place;
  /** The counters that this line left by plan changes; they still contain it. */
  left: Place[];
}

/** Settled overage of one window and hour: one row for each message. */
export interface Sale extends Place {
  userId: string;
  unit: Unit;
  hour: number;
  amount: Micros;
  tellAt: number;
  told: boolean;
}

/** What names a counter of a user. */
export interface Place {
  planId: string;
  groupId: string;
  window: Window;
}

/** A guard's part of a hold: the whole need of its unit, also what credits pay. */
export interface GuardLine {
  planId: string;
  groupId: string;
  unit: Unit;
  amount: Micros;
  /** The slot of a rate that it was counted in; null for concurrency. */
  slot: number | null;
  /** The rates that this line left by plan changes; they still contain it. */
  left: GuardPlace[];
}

/** What names a guard of a user. */
export interface GuardPlace {
  planId: string;
  groupId: string;
}

/** A task with limits of its own. */
export interface RunRow extends Named {
  user: User;
  name: string | null;
  /** Innermost first. */
  around: RunRow[];
  limits: { limitId: string; unit: Unit; event: string; quota: Micros; count: Micros; held: Micros }[];
  createdAt: number;
  expiresAt: number;
  endedAt: number | null;
  reason: string | null;
}

export interface Reservation extends Named {
  user: User;
  /** The run of the call and those around it. */
  runs: RunRow[];
  /** The id of the user that it was made for, before any merge. */
  madeFor: string;
  /** The hold of the caller, for the part of a user above it; else null. */
  of: Reservation | null;
  /** What the same call holds at users above, nearest first. */
  parts: Reservation[];
  /** What priced it when it was made, whatever the catalog says by now. */
  row: ModelRow | undefined;
  toldCents: boolean;
  /** What rated it in credits when it was made, and by what. */
  rate: RateRow | undefined;
  work: Work;
  event: string;
  metadata: Metadata | null;
  state: "held" | "committed" | "released" | "expired";
  madeAt: number;
  expiresAt: number;
  lines: Line[];
  guards: GuardLine[];
  /** What was taken from balances, in the order of taking. */
  credits: CreditLine[];
  /** Every unit, also those without a line: the event's cost and quantity need them. */
  reserved: Amounts;
  perUnit: boolean;
  quantity: Micros;
  /** Whether it had lapsed when its user became an alias. */
  lapsedBeforeMerge?: boolean;
}

export interface EventRow extends Named {
  userId: string;
  eventType: string;
  quantity: Micros;
  cost: Micros;
  /** Absent for what used nothing. */
  rated?: Rated;
  matchStatus: "matched" | "matched_credits_only" | "unmatched" | "blocked" | "no_subscription" | "released";
  createdAt: number;
  metadata: Metadata | null;
  matchedGroupIds: string[];
  reservation: Reservation | null;
  run: RunRow | null;
  reason: string | null;
  errorCode: string | null;
  /** What was charged: to groups of the plan, and to balances. */
  amounts: Charge[];
  /** What neither a plan line nor a balance could take, by unit. */
  uncovered: Partial<Record<Unit, Micros>>;
}

/** `user`: one above, at which it was charged. */
export type Charge =
  & { unit: Unit; amount: Micros; user?: User }
  & ({ groupId: string } | { balance: Balance });

/** Credits of one grant and pack item, with the terms of the grant. */
export interface Balance extends Named {
  userId: string;
  pack: Pack;
  packItemId: string | null;
  unit: Unit;
  matches: MatchRule[];
  priority: number;
  externalRef: string | null;
  initial: Micros;
  remaining: Micros;
  grantedAt: number;
  expiresAt: number | null;
  revoked: boolean;
  /** What revoking took, amounts that came back later included. */
  taken: Micros;
  notes: string | null;
  /** Usage beyond `initial` that a merge of two copies brought together. */
  overage: Micros;
  /** The messages that were sent about it. */
  told: Set<"low" | "depleted" | "expired">;
  origin: "plan" | "rollover" | null;
  /** What names the part of a plan and the window that it is of. */
  record: string | null;
  /** When it ended before its time, or with its window. */
  endedAt: number | null;
  /** What is left at the end of its window, once that came. */
  rolled: { expiresAt: number; max: Micros; into: Balance | null } | null;
}

/** What was taken from one balance. */
export interface CreditLine {
  balance: Balance;
  taken: Micros;
  /** The balances that a hold left by plan changes; they still contain it. */
  left?: Balance[];
}

export type LedgerReason =
  | "event_committed"
  | "reservation_held"
  | "reservation_released"
  | "reservation_expired"
  | "grant"
  | "admin_adjust"
  | "merged_from_alias"
  | "merge_dedupe";

export interface LedgerRow extends Dated {
  balance: Balance;
  delta: Micros;
  reason: LedgerReason;
  event: EventRow | null;
  reservation: Reservation | null;
  notes: string | null;
}
