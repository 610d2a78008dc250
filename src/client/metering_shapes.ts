// What metering calls take and answer. Specification, "Reservations"; sections 4 and 5 of the decisions.

import type { HoldfastError } from "./errors.ts";
import type {
  Counter,
  CreditBalance,
  DuplicateActiveSubscriptions,
  Metadata,
  Period,
  Unit,
} from "./shapes.ts";

/** Sizes of a call; which one counts depends on the unit of each limit group. */
export interface CallSize {
  readonly inputTokens?: number | undefined;
  /** By default the catalog's price of the model, applied to `inputTokens`. */
  readonly inputCostCents?: number | undefined;
  /** 1 by default. */
  readonly count?: number | undefined;
}

/** Sizes of work that is yet to be done. */
export interface HeldSize extends CallSize {
  /**
   * The longest answer that the model may give, above 0: held in tokens with `inputTokens`, and in cents by the
   * model's prices, so that the answer cannot go past a budget.
   */
  readonly maxOutputTokens?: number | undefined;
}

/** What a model used. Absent tokens are 0; `{}` is refused. */
export interface ModelUsage {
  /** The whole input, cached tokens and cache writes included. */
  readonly inputTokens?: number | undefined;
  /** The part of the input that came from the provider's prompt cache. */
  readonly cachedInputTokens?: number | undefined;
  /** The part of the input that was written to the provider's prompt cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** The whole output, reasoning included. */
  readonly outputTokens?: number | undefined;
  /** The part of the output that the model spent on reasoning. */
  readonly reasoningTokens?: number | undefined;
  /** By default those that are held; in a track the quantity. */
  readonly seconds?: number | undefined;
  /** Calls, or images, of a model that is paid by them; 1 by default. */
  readonly calls?: number | undefined;
}

/** What a model used, in one of two forms. It makes tokens and cents final. */
export interface ReportedUsage {
  /** In the members of this interface; not beside `costCents`, nor beside other amounts of tokens or cents. */
  readonly usage?: ModelUsage | undefined;
  /** In its place: the usage object of OpenAI, Anthropic or Gemini as it came. */
  readonly providerUsage?: object | null | undefined;
}

/** What an event cost. */
export interface Cost {
  readonly cents: number;
  /** Whether the catalog has a price row of the model. */
  readonly priced: boolean;
  /** The row's id; null for none. */
  readonly model: string | null;
}

/** `unpriced_model`: a budget in cents covers the event, and neither a price row nor the call says what it cost. */
export type Warning = "unpriced_model";

/** Options of a reserve. */
export interface ReserveOptions extends HeldSize {
  /** Logged with the event where prompt logging is on and the user has not opted out of it. */
  readonly prompt?: string | undefined;
  /** How long the reservation lasts: 10 to 86,400; the app's setting by default. */
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
  /** The usage at which new reserves are refused, where the plan keeps headroom below the quota. */
  readonly headroomGate?: number;
}

/** Why a reserve is not allowed. */
export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription"
  | "unpriced_model";

/** The answer to a reserve that is allowed. */
export interface Held {
  readonly allowed: true;
  readonly matched: true;
  readonly reservationId: string;
  readonly expiresAt: string;
  /** Missing where only credits pay. */
  readonly groups?: readonly ReservedGroup[];
  readonly reasons?: undefined;
}

/** The answer to a reserve that is not allowed; nothing is set aside. */
export interface NotHeld {
  readonly allowed: false;
  /** false when no limit group covers the event, or the user has no subscription. */
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly groups?: readonly ReservedGroup[];
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
}

/** The answer to a reserve; look at `allowed` first. */
export type ReserveAnswer = Held | NotHeld;

/** Amounts to add to what was reserved; negative ones subtract. Where two names mean one amount, give one of them. */
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

/** Final amounts, in place of what was reserved. */
export interface Actual {
  readonly count?: number | undefined;
  readonly tokens?: number | undefined;
  readonly cents?: number | undefined;
  readonly seconds?: number | undefined;
}

/**
 * Options of a commit: what the work used. `extra` and `actual` must not name the same unit, and neither names tokens
 * or cents beside a usage.
 */
export interface CommitOptions extends ReportedUsage {
  readonly extra?: Extra | undefined;
  readonly actual?: Actual | undefined;
  /**
   * The event's whole cost for reports, in place of the cost that the reservation carries. A budget in cents counts it
   * only for a model that is paid by the second.
   */
  readonly costCents?: number | undefined;
  /** The model's output, logged under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** A limit group after a commit. */
export interface CommittedGroup extends GroupStanding {
  /** Whether the counter is past its quota after this commit added to it. */
  readonly overflow: boolean;
}

/** The answer to a commit. */
export interface CommitAnswer {
  readonly eventId: string;
  readonly groups: readonly CommittedGroup[];
  /** Whether the reservation had expired and was charged anew. */
  readonly recharged: boolean;
  /** By the prices at the time of the reserve. */
  readonly cost: Cost;
  readonly warnings?: readonly Warning[];
}

/** Options of a release. */
export interface ReleaseOptions {
  /** Cut at 500 characters. */
  readonly reason?: string | undefined;
  /** Cut at 100 characters. */
  readonly errorCode?: string | undefined;
  /** The part of the output that there is, logged under the same rules as the prompt. */
  readonly response?: string | undefined;
}

/** Options of a track. */
export interface TrackOptions extends CallSize, ReportedUsage {
  /** The event's cost, for reports; only a model that is paid by the second counts it. */
  readonly costCents?: number | undefined;
  readonly prompt?: string | undefined;
  readonly response?: string | undefined;
}

/** The answer to a track. */
export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: "matched" | "matched_credits_only" | "unmatched" | "no_subscription";
  readonly matchedGroupIds: readonly string[];
  /** The counters of the matched groups. */
  readonly counters: readonly Counter[];
  readonly cost: Cost;
  readonly warnings?: readonly Warning[];
}

/** The `details` of the error with which a track at a limit rejects. */
export interface LimitReachedDetails {
  /** Names the record of the attempt. */
  readonly eventId: string;
  /** The groups that lack quota. */
  readonly groups: readonly GroupStanding[];
}

/** Credits of a pack that could pay. */
export interface CreditOffer {
  readonly packId: string;
  readonly packName: string;
  readonly available: number;
}

/** A limit group in the answer to a can-use. */
export interface UseDetail {
  readonly groupId: string;
  readonly current: number;
  readonly quota: number;
  /** null for a lifetime plan. */
  readonly resetsAt: string | null;
  readonly creditAvailable: number;
  readonly creditPacks: readonly CreditOffer[];
}

/** The answer to a can-use: what a reserve would answer now. */
export interface CanUseAnswer {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  readonly details: readonly UseDetail[];
}

/** A limit group of the plan in force, as an explanation shows it. */
export interface ExplainedGroup {
  readonly groupId: string;
  readonly label: string;
  readonly unit: Unit;
  /** Whether a rule of the group matches the call. */
  readonly covers: boolean;
  /** `event`: no rule names the event; `metadata`: a rule names it and asks for other metadata. */
  readonly why: "matched" | "event" | "metadata";
  /** The keys in which the call differs from the nearest rule, where `why` is `metadata`. */
  readonly metadata?: { readonly [key: string]: { readonly wanted: string; readonly given: string | null } };
  readonly quota: number;
  /** Whether the subscription has a quota of its own in place of the plan's. */
  readonly isCustom: boolean;
  readonly headroom: { readonly mode: "percent" | "multiplier"; readonly value: number } | null;
  /** The usage at which new reserves are refused; null without headroom. */
  readonly gate: number | null;
  readonly current: number;
  /** What open reservations hold of `current`. */
  readonly held: number;
  /** null, as `room` and `fits`, where the group does not cover the call. */
  readonly need: number | null;
  /** What the group alone can take under its gate, without credits. */
  readonly room: number | null;
  readonly fits: boolean | null;
}

/** A balance that can be spent, and its part in the call. */
export interface ExplainedCredit {
  readonly balanceId: string;
  readonly packId: string;
  readonly packName: string;
  readonly unit: Unit;
  readonly remaining: number;
  readonly expiresAt: string | null;
  /** Whether a rule of the balance matches the call. */
  readonly matches: boolean;
  /** What a reserve would take from it now; 0 where the call is refused. */
  readonly wouldPay: number;
}

/** The answer to an explain: what a reserve would answer now, and why. */
export interface Explanation {
  readonly allowed: boolean;
  readonly matched: boolean;
  readonly reasons: readonly ReserveReason[];
  /** One or two sentences for a support person. */
  readonly text: string;
  /** The one that the plan in force comes from. */
  readonly subscription: {
    readonly subscriptionId: string;
    readonly planId: string;
    readonly planName: string;
  } | null;
  /** Every limit group of the plan, in its order. */
  readonly groups: readonly ExplainedGroup[];
  /** In the order of use. */
  readonly credits: readonly ExplainedCredit[];
}

/** The counters and credits of a user. */
export interface Usage {
  readonly userId: string;
  /** null without a plan. */
  readonly period: Period | null;
  readonly counters: readonly Counter[];
  readonly credits: readonly CreditBalance[];
  /** With a secret key only. */
  readonly duplicateActiveSubscriptions?: DuplicateActiveSubscriptions | null;
}

/** An event as it was handed to `trackLater`. */
export interface LaterEvent extends TrackOptions {
  readonly userId: string;
  readonly event: string;
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** Is told of an event that was not counted. */
export type OnTrackError = (error: HoldfastError, event: LaterEvent) => void;

/** What became of one event of a batch. */
export type BatchResult =
  | { readonly ok: true; readonly data: TrackAnswer }
  | {
    readonly ok: false;
    readonly error: { readonly code: string; readonly message: string; readonly details?: unknown };
  };
