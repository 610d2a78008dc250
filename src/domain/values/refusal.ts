// Refusals: answers with an error code. A decision returns them as values and never throws them.

/** Every error code, in the order in which they are tested: where two apply, the first is the answer. */
export const REFUSAL_CODES = [
  "unavailable",
  "invalid_key",
  "invalid_or_expired_token",
  "not_found",
  "method_not_allowed",
  "requires_secret_key",
  "forbidden",
  "rate_limited",
  "payload_too_large",
  "invalid_request",
  "idempotency_conflict",
  "not_implemented",
  "workspace_limit_reached",
  "test_quota_exceeded",
  "credit_pack_not_found",
  "invalid_quantity",
  "credit_balance_not_found",
  "alias_conflict",
  "alias_cycle",
  "parent_cycle",
  "path_too_long",
  "consent_required",
  "reservation_not_pending",
  "run_ended",
  "already_canceled",
  "trial_used",
  "catalog_in_use",
  "no_subscription",
  "unmatched_event",
  "unpriced_model",
  "limit_reached",
  "reservation_headroom_exceeded",
  "member_limit_reached",
  "run_limit_reached",
  "rate_limit_reached",
  "concurrency_limit_reached",
  "ai_budget_exceeded",
  "generation_failed",
  "not_processed",
  "internal_error",
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** An error answer: a code, a message that names the invalid field, and details where the code has some. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details?: unknown;
}

/** An invalid member of a call, as `details` of an `invalid_request` list it. */
export interface FieldFault {
  /** The member's name, with dots into objects and lists; "" for the whole body. */
  readonly path: string;
  /** The fault, such as "must be in the future". */
  readonly message: string;
}

/** Makes an `invalid_request` for one member; message and details say the same. */
export function invalidField(path: string, message: string): Refusal {
  const details: readonly FieldFault[] = [{ path, message }];
  return refusal("invalid_request", path === "" ? message : `${path}: ${message}`, details);
}

/** Makes a refusal. */
export function refusal(code: RefusalCode, message: string, details?: unknown): Refusal {
  return details === undefined ? { code, message } : { code, message, details };
}
