// When a call is sent again, and how long after: pure, so that every case can be tried without waiting. A retry never
// counts twice: reads change nothing, and a write goes out under the same idempotency key each time.

import type { HoldfastError } from "./errors.ts";

/** How often and how patiently a call is sent again. */
export interface RetryPolicy {
  /** Tries after the first one. */
  readonly maxRetries: number;
  /** The pause before the first retry; it doubles with each one. */
  readonly baseDelayMs: number;
  /** No pause is longer; a service that asks for more is not asked again. */
  readonly maxDelayMs: number;
}

/** About eight seconds of patience, or as much as the service asks for: a standby takes over within seconds. */
export const DEFAULT_RETRIES: RetryPolicy = { maxRetries: 5, baseDelayMs: 250, maxDelayMs: 10_000 };

const PASSING_CODES: ReadonlySet<string> = new Set([
  "unavailable",
  "rate_limited",
  "network_error",
  "timeout",
]);
/** What proxies answer in place of a service that they cannot reach. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether the same call may succeed a little later. */
export function mayPass({ code, status }: HoldfastError): boolean {
  return PASSING_CODES.has(code) || (code === "bad_answer" && PASSING_STATUSES.has(status));
}

/**
 * The pause before a retry, or null when there is to be none. What the service asks for is kept, and chance spreads
 * callers that failed together: half of the doubled pause is fixed, half is random.
 *
 * @param retry 0 before the first retry
 * @param chance from 0 to 1
 */
export function retryDelayMs(
  policy: RetryPolicy,
  retry: number,
  error: HoldfastError,
  chance: number,
): number | null {
  if (retry >= policy.maxRetries || !mayPass(error)) return null;
  const asked = error.retryAfterMs ?? 0;
  if (asked > policy.maxDelayMs) return null;
  const full = Math.min(policy.baseDelayMs * 2 ** retry, policy.maxDelayMs);
  return Math.round(asked + full * (1 + chance) / 2);
}

/** The milliseconds of a Retry-After header, which is seconds or a date; null where it is neither. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
