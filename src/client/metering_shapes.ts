// What metering calls take and answer. Specification, "Reservations"; sections 4 and 5 of the decisions.

import type { Counter, CreditBalance, DuplicateActiveSubscriptions, Period, Unit } from "./shapes.ts";

/** Sizes of a call; which one counts depends on the unit of each limit group. */
export interface CallSize {
  readonly inputTokens?: number | undefined;
  /** Where it is left out, the catalog's price of the model decides. */
  readonly inputCostCents?: number | undefined;
  /** 1 by default. */
  readonly count?: number | undefined;
}

/** What a reserve may say beside event and metadata. */
export interface ReserveOptions extends CallSize {
  /** Kept with the event where prompt logging is on and the user has not opted out. */
  readonly prompt?: string | undefined;
  /** How long the hold lasts: 10 to 86,400; the app's setting by default. */
  readonly ttlSeconds?: number | undefined;
}

/** A limit group after a reserve or commit. */
export interface GroupStanding {
  readonly groupId: string;
  readonly unit: Unit;
  readonly quota: number;
  readonly current: number;
}

/** A limit group in a reserve's answer. */
export interface ReservedGroup extends GroupStanding {
  /** Where new reserves stop, when the plan keeps headroom. */
  readonly headroomGate?: number;
}

/** Why a reserve was refused. */
export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription";

/** A reserve that holds quota. */
export interface Held {
  readonly allowed: true;
  readonly matched: true;
  readonly reservationId: string;
  readonly expiresAt: string;
  /** Missing where credits alone pay. */
  readonly groups?: readonly ReservedGroup[];
  readonly reasons?: undefined;
}

/** A reserve that holds nothing. */
export interface NotHeld {
  readonly allowed: false;
  /** false: no limit group covers the event, or the user has no subscription. */
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly groups?: readonly ReservedGroup[];
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
}

/** The answer of a reserve; look at `allowed` first. */
export type ReserveAnswer = Held | NotHeld;

/** Amounts on top of what was reserved, of any sign. Of two names for one amount give one. */
export interface Extra {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  /** Another name of `tokens`. */
  readonly outputTokens?: number | undefined;
  readonly cents?: number | undefined;
  /** Another name of `cents`. */
  readonly outputCostCents?: number | undefined;
  readonly seconds?: number | undefined;
}

/** Final amounts in place of what was reserved. */
export interface Actual {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  readonly cents?: number | undefined;
  readonly seconds?: number | undefined;
}

/** What the work turned out to be. `extra` and `actual` must not name the same unit. */
export interface CommitOptions {
  readonly extra?: Extra | undefined;
  readonly actual?: Actual | undefined;
  /** The event's whole cost, in place of any that the reservation carries. */
  readonly costCents?: number | undefined;
  /** The model's output, kept under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** A limit group after a commit. */
export interface CommittedGroup extends GroupStanding {
  /** Whether this commit added to a counter that is past its quota now. */
  readonly overflow: boolean;
}

/** The answer of a commit. */
export interface CommitAnswer {
  readonly eventId: string;
  readonly groups: readonly CommittedGroup[];
  /** Whether the hold had lapsed and was charged again. */
  readonly recharged: boolean;
}

/** What a release may say. */
export interface ReleaseOptions {
  /** Cut at 500 characters. */
  readonly reason?: string | undefined;
  /** Cut at 100 characters. */
  readonly errorCode?: string | undefined;
  /** A part of the output, kept under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** What a track may say beside event and metadata. */
export interface TrackOptions extends CallSize {
  readonly costCents?: number | undefined;
  readonly prompt?: string | undefined;
  readonly response?: string | undefined;
}

/** The answer of a track. */
export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: "matched" | "matched_credits_only" | "unmatched" | "no_subscription";
  readonly matchedGroupIds: readonly string[];
  /** Of the matched groups. */
  readonly counters: readonly Counter[];
}

/** Credits that could pay. */
export interface CreditOffer {
  readonly packId: string;
  readonly packName: string;
  readonly available: number;
}

/** A limit group in a can-use's answer. */
export interface UseDetail {
  readonly groupId: string;
  readonly current: number;
  readonly quota: number;
  /** null for a lifetime plan. */
  readonly resetsAt: string | null;
  readonly creditAvailable: number;
  readonly creditPacks: readonly CreditOffer[];
}

/** What reserve would answer. */
export interface CanUseAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly details: readonly UseDetail[];
}

/** Where a user stands. */
export interface Usage {
  readonly userId: string;
  /** null without a plan. */
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  /** With a secret key only. */
  readonly duplicateActiveSubscriptions?: DuplicateActiveSubscriptions | null;
}
