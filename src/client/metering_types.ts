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
export interface Held extends Pick<ReserveReply, "groups"> {
  readonly allowed: true;
  readonly matched: true;
  readonly reservationId: string;
  readonly expiresAt: string;
  readonly reasons?: undefined;
}

/** The answer to a reserve that is not allowed. No quota is held. */
export interface NotHeld extends Pick<ReserveReply, "matched" | "groups"> {
  readonly allowed: false;
  readonly reasons: readonly ReserveReason[];
  readonly reservationId?: undefined;
  readonly expiresAt?: undefined;
}

/** The answer to a reserve; look at `allowed` first. */
export type ReserveAnswer = Held | NotHeld;

/** The `details` of the error with which a track at a limit rejects. */
export interface LimitReachedDetails {
  /** The id of the recorded attempt. */
  readonly eventId: string;
  /** The groups without enough quota. */
  readonly groups: readonly GroupStanding[];
}

/** An event of `trackLater`. */
export interface LaterEvent extends TrackOptions {
  readonly userId: string;
  readonly event: string;
  readonly quantity?: number | undefined;
  readonly metadata?: Metadata | undefined;
}

/** Receives each event that was not counted. */
export type OnTrackError = (error: HoldfastError, event: LaterEvent) => void;
