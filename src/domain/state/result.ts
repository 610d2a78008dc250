// The result of a decision: an answer or a refusal, and the changes that must be durable before it is sent.

import type { RefusedCall } from "./refused_call.ts";
import type { Refusal } from "../values/refusal.ts";
import type { Change, UserState } from "./user.ts";

/** An answer, or the refusal in its place. */
export type Result<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly refusal: Refusal };

/** A decision: the result, the changes that must be durable before it is sent, and their cost. */
export interface Decision<Answer> {
  readonly result: Result<Answer>;
  readonly changes: readonly Change[];
  /** Metering operations that the changes cost, see `Draft.operations`. */
  readonly operations: number;
  /** Credit balances issued. */
  readonly issued: number;
  /** A refused reserve or track, for the counts of refused calls; null for any other. */
  readonly refusedCall: RefusedCall | null;
}

/** A decision of a command. */
export interface CommandDecision<Answer> extends Decision<Answer> {
  /**
   * States that may lack a counter that the decision read, see `UserState.endedUntil`: nothing of it may be used before they
   * are loaded and it is made again. Empty for nearly every decision.
   */
  readonly lacking: readonly UserState[];
}

/** Makes a result of an answer. */
export function answered<Answer>(answer: Answer): Result<Answer> {
  return { ok: true, answer };
}

/** Makes a result of a refusal. */
export function refused(refusal: Refusal): Result<never> {
  return { ok: false, refusal };
}
