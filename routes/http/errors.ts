// Error answers: the only place where codes become HTTP statuses. The type of the table makes it complete: a new code
// does not compile until it has its status here.

import { invalidField, type Refusal, refusal, type RefusalCode } from "../../src/domain/values/refusal.ts";

/** The HTTP status of each code. */
export const STATUS: Readonly<Record<RefusalCode, number>> = {
  unavailable: 503,
  invalid_key: 401,
  invalid_or_expired_token: 401,
  not_found: 404,
  method_not_allowed: 405,
  requires_secret_key: 403,
  forbidden: 403,
  rate_limited: 429,
  payload_too_large: 413,
  invalid_request: 400,
  idempotency_conflict: 409,
  not_implemented: 501,
  workspace_limit_reached: 429,
  test_quota_exceeded: 429,
  credit_pack_not_found: 404,
  invalid_quantity: 400,
  credit_balance_not_found: 404,
  alias_conflict: 409,
  alias_cycle: 409,
  parent_cycle: 409,
  path_too_long: 409,
  consent_required: 403,
  reservation_not_pending: 409,
  run_ended: 409,
  already_canceled: 409,
  trial_used: 409,
  catalog_in_use: 409,
  no_subscription: 429,
  unmatched_event: 429,
  unpriced_model: 429,
  limit_reached: 429,
  reservation_headroom_exceeded: 429,
  member_limit_reached: 429,
  run_limit_reached: 429,
  rate_limit_reached: 429,
  concurrency_limit_reached: 429,
  ai_budget_exceeded: 429,
  generation_failed: 502,
  not_processed: 503,
  internal_error: 500,
};

/** Refusals that depend on the moment or the caller and not on the request alone: never kept as a first answer. */
export const NOT_KEPT: ReadonlySet<RefusalCode> = new Set([
  "unavailable",
  "invalid_key",
  "invalid_or_expired_token",
  "requires_secret_key",
  "forbidden",
  "rate_limited",
  "payload_too_large",
  "invalid_request",
  "invalid_quantity",
  "idempotency_conflict",
  "consent_required",
  "not_implemented",
  "workspace_limit_reached",
  "test_quota_exceeded",
  "ai_budget_exceeded",
  "generation_failed",
  "not_processed",
  "internal_error",
]);

/** A refusal thrown before a decision: bad input, a wrong key, a missing route. */
export class Refused extends Error {
  readonly refusal: Refusal;

  constructor(code: RefusalCode, message: string, details?: unknown) {
    super(message);
    this.refusal = refusal(code, message, details);
  }
}

/**
 * Returns the refusal of an invalid member.
 *
 * @param path "" for the body as a whole
 */
export function invalidMember(path: string, message: string): Refused {
  const refused = invalidField(path, message);
  return new Refused(refused.code, refused.message, refused.details);
}

const PATH_SHOWN_MAX = 200;

/** Returns the refusal of a path that the service does not have. */
export function unknownPath({ method, url }: Request): Refused {
  const [path = ""] = url.replace(/^[^/]*\/\/[^/]*/, "").split(/[?#]/);
  return new Refused("not_found", `Unknown endpoint: ${method} ${path.slice(0, PATH_SHOWN_MAX)}`);
}

/** Returns the refusal of a method that a path does not have. */
export function methodNotAllowed(method: string, allowed: readonly string[]): Refused {
  return new Refused("method_not_allowed", `Method ${method} not allowed; use ${allowed.join(", ")}`);
}

/** Returns the refusal that another process, or another call, has answered. */
export function refusedWith({ code, message, details }: Refusal): Refused {
  return new Refused(code, message, details);
}

/** The refusal of a call above a rate limit, by default that of its key, or above another share. */
export class RateLimited extends Refused {
  /** Whole seconds, at least 1. */
  readonly retryAfterS: number;

  constructor(retryAfterS: number, message = `Rate limit exceeded; retry in ${retryAfterS} s`) {
    super("rate_limited", message);
    this.retryAfterS = retryAfterS;
  }
}
