// What a decision comes to: an answer or a refusal, and the changes that must be durable before either is told.

import type { RefusedCall } from "./refused_call.ts";
import type { Refusal } from "../values/refusal.ts";
import type { Change } from "./user.ts";

/** An answer, or the refusal in its place. */
export type Result<Answer> =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly refusal: Refusal };

/** What a decision yields: the result, the changes that must be durable before it is told, and their cost. */
export interface Decision<Answer> {
  readonly result: Result<Answer>;
  readonly changes: readonly Change[];
  /** Metering operations. Section 7 of the decisions. */
  readonly operations: number;
  /** Credit balances issued. */
  readonly issued: number;
  /** What is counted of a reserve or track that was refused; null for all else. */
  readonly refusedCall: RefusedCall | null;
}

/** A result that carries an answer. */
export function answered<Answer>(answer: Answer): Result<Answer> {
  return { ok: true, answer };
}

/** A result that carries a refusal. */
export function refused(refusal: Refusal): Result<never> {
  return { ok: false, refusal };
}
