// Decides whether a call is sent again, and after which pause. Everything here is pure, so tests do not wait. A retry
// never counts twice: reads change nothing, and each try of a write has the same idempotency key.

import { type HoldfastError, invalidInput } from "./errors.ts";
import type { ReserveAnswer } from "./metering_types.ts";

/** How often a call is retried, and after which pauses. */
export interface RetryPolicy {
  /** The most tries after the first one. */
  readonly maxRetries: number;
  /** The pause before the first retry; it doubles with each one. */
  readonly baseDelayMs: number;
  /** The longest pause. If the service asks for a longer one, the call fails instead. */
  readonly maxDelayMs: number;
}

/** Five retries over about eight seconds, or as long as the service asks for: a standby takes over within seconds. */
export const DEFAULT_RETRIES: RetryPolicy = { maxRetries: 5, baseDelayMs: 250, maxDelayMs: 10_000 };

const PASSING_CODES: ReadonlySet<string> = new Set([
  "unavailable",
  "rate_limited",
  "network_error",
  "timeout",
]);
/** The statuses of a proxy that cannot reach the service. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Whether the same call may succeed later. */
export function mayPass({ code, status }: HoldfastError): boolean {
  return PASSING_CODES.has(code) || (code === "bad_answer" && PASSING_STATUSES.has(status));
}

/**
 * The pause before a retry; null for no retry. The pause is never shorter than the service's `Retry-After`. Half of it is
 * random, so that callers that failed together do not come back together.
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

/** The longest pause before a refused reserve is asked again: a hold that is settled meanwhile makes room sooner. */
const WAIT_PAUSE_MAX_MS = 1_000;

/** How long a reserve is asked again, in milliseconds. Throws for an invalid value. */
export function waitTimeMs(seconds = 0): number {
  if (seconds >= 0 && seconds <= 60) return seconds * 1000;
  throw invalidInput("waitSeconds: must be a number from 0 to 60");
}

/**
 * The pause before a refused reserve is asked again; null where it is the last answer. It is never shorter than the time to
 * the next room, up to a second, and at most half as long again, but ends with the time that is left.
 *
 * @param chance from 0 to 1
 */
export function waitPauseMs(
  { retryAfterMs }: Pick<ReserveAnswer, "retryAfterMs">,
  leftMs: number,
  chance: number,
): number | null {
  if (retryAfterMs == null || leftMs <= 0) return null;
  const pause = Math.min(retryAfterMs, WAIT_PAUSE_MAX_MS) * (1 + chance / 2);
  return Math.min(Math.ceil(pause), leftMs);
}

/** The milliseconds of a Retry-After header, which has seconds or a date; null for anything else. */
export function readRetryAfter(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
