// Types of the metering calls that the API's document does not have: a reserve's answer by its outcome, the details of
// an error, and events for `trackLater`.

import type { HoldfastError } from "./errors.ts";
import type {
  CommitOptions,
  CommittedGroup,
  HeldSize,
  Metadata,
  ReserveReason,
  ReserveReply,
  TrackOptions,
} from "./wire_types.ts";

/** Sizes of a call. Which one counts depends on the unit of each limit group. */
export type CallSize = Omit<HeldSize, "maxOutputTokens">;

/** What a model used, in one of two forms. It makes tokens and cents final. */
export type ReportedUsage = Pick<CommitOptions, "usage" | "providerUsage">;

/** A limit group with its quota and current usage. */
export type GroupStanding = Omit<CommittedGroup, "overflow">;

/** The answer to a reserve that is allowed. `groups` is missing where only credits pay. */
export interface Held extends Pick<ReserveReply, "groups" | "levels" | "fitted" | "warnings"> {
  readonly allowed: true;
  readonly matched: true;
  readonly unmetered?: undefined;
  readonly reservationId: string;
  readonly expiresAt: string;
  readonly reasons?: undefined;
  readonly refusedBy?: undefined;
  readonly retryAfterMs?: undefined;
}

/** The answer to a reserve that is not allowed. No quota is held. */
export interface NotHeld
  extends Pick<ReserveReply, "matched" | "groups" | "levels" | "refusedBy" | "retryAfterMs" | "warnings"> {
  readonly allowed: false;
  readonly unmetered?: undefined;
  readonly reasons: readonly ReserveReason[];
  readonly fitted?: undefined;
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
}

/** The answer to a reserve; look at `allowed` first. */
export type ReserveAnswer = Held | NotHeld;

/**
 * The answer with `onUnavailable: "allow"` while the service is unavailable: the work may begin, and there is no
 * reservation to settle.
 */
export interface Unmetered {
  readonly allowed: true;
  readonly matched: false;
  readonly unmetered: true;
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
  readonly groups?: undefined;
  readonly levels?: undefined;
  readonly reasons?: undefined;
  readonly refusedBy?: undefined;
  readonly retryAfterMs?: undefined;
  readonly fitted?: undefined;
  readonly warnings?: undefined;
}

/** What happens while the service is unavailable. The page "When Holdfast is down" has the details. */
export interface DecisionOptions {
  /**
   * What `reserve`, `canUse` and the helpers that reserve do without a decision: `refuse`, the default, rejects with the
   * error; `allow` lets the work begin unmetered, and counts it with `track` when the service is back.
   */
  readonly onUnavailable?: "refuse" | "allow" | undefined;
  /** How long a decision may take in all, retries included: 2,000 by default. It does not bound commits. */
  readonly timeoutMs?: number | undefined;
  /** Called with each work that was allowed without a decision, and the error of the decision. */
  readonly onAllowedUnmetered?: OnAllowedUnmetered | undefined;
  /** Called with each commit of finished work that failed; without it the error goes to the console. */
  readonly onCommitError?: OnCommitError | undefined;
}

/** How long a reserve is asked again. */
export interface WaitOptions {
  /**
   * Seconds for which a reserve that rates and concurrency limits alone refuse is asked again: 0 to 60, by default 0. It
   * ends at once where the call needs more than a limit ever allows.
   */
  readonly waitSeconds?: number | undefined;
}

/** Receives work that was allowed without a decision. It is tracked when the service is back. */
export type OnAllowedUnmetered = (error: HoldfastError, work: LaterEvent) => void;

/** A commit that failed. */
export interface FailedCommit {
  readonly reservationId: string;
  readonly options: CommitOptions;
  /** Committing again with this key counts once. */
  readonly idempotencyKey: string;
  /** Whether the client goes on trying, for up to 23 hours while its process runs; false for a final refusal. */
  readonly isRetried: boolean;
}

/** Receives each commit of finished work that failed, and again if its retries were given up. */
export type OnCommitError = (error: HoldfastError, commit: FailedCommit) => void;

/**
 * The `details` of the error with which a track at a limit rejects. `reasons`, `refusedBy` and `levels` are there for a user
 * with a parent, `retryAfterMs` where rates alone refuse.
 */
export interface LimitReachedDetails extends Pick<ReserveReply, "reasons" | "refusedBy" | "retryAfterMs"> {
  /** The id of the recorded attempt. */
  readonly eventId: string;
  /** The groups without enough quota. */
  readonly groups: readonly GroupStanding[];
  /** The users above with such groups, nearest first. */
  readonly levels?: readonly { readonly userId: string; readonly groups: readonly GroupStanding[] }[];
}

/** An event of `trackLater`. */
export interface LaterEvent extends TrackOptions {
  readonly userId: string;
  readonly event: string;
  /** For audio and video the seconds. How many is `count`. */
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** Beside an event that was not counted. */
export interface TrackErrorInfo {
  /** Sending the event again with this key counts it once, also if the service had counted it before the error. */
  readonly idempotencyKey: string;
}

/** Receives each event that was not counted. */
export type OnTrackError = (error: HoldfastError, event: LaterEvent, info: TrackErrorInfo) => void;
