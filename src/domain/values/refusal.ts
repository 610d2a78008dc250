// Refusals: answers with an error code. A decision returns them as values and never throws them. The codes are listed
// in the order in which they are tested: where two apply, the first one is the answer.

/** Every error code, in the order in which they are tested. Specification, "Errors"; section 1 of the decisions. */
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
  "consent_required",
  "reservation_not_pending",
  "already_canceled",
  "catalog_in_use",
  "limit_reached",
  "ai_budget_exceeded",
  "generation_failed",
  "not_processed",
  "internal_error",
] as const;

export type RefusalCode = (typeof REFUSAL_CODES)[number];

/** An error answer: a code, a message that names the field at fault, and details where the code has some. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details?: unknown;
}

/** A member of a call that is at fault, as `details` of an `invalid_request` list it. */
export interface FieldFault {
  /** Its name; dots lead into objects and lists. "" for the body as a whole. */
  readonly path: string;
  /** What is wrong with it, such as "must be in the future". */
  readonly message: string;
}

/** The `invalid_request` that says what is wrong with a member: message and details from one place. */
export function invalidField(path: string, message: string): Refusal {
  const details: readonly FieldFault[] = [{ path, message }];
  return refusal("invalid_request", path === "" ? message : `${path}: ${message}`, details);
}

/** A refusal value. */
export function refusal(code: RefusalCode, message: string, details?: unknown): Refusal {
  return details === undefined ? { code, message } : { code, message, details };
}
