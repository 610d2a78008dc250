// A token bucket as arithmetic: `burst` calls at once, then `perSecond` calls a second. Pure; the time is passed in. A
// refused call takes no token, so a caller that keeps trying waits no longer.

import type { RateLimit } from "../domain/catalog/catalog.ts";
import type { Millis } from "../domain/values/period.ts";

/** The tokens of a bucket at a time. */
export interface Bucket {
  readonly tokens: number;
  readonly at: Millis;
}

/** Rounding of sums of partial tokens stays below this. */
const DUST = 1e-9;

/**
 * Takes a token, if there is one.
 *
 * @param bucket the bucket after the last call; null for an unused one, which is full
 * @returns the bucket after this call, and the wait in milliseconds until a token is there, 0 when one was taken
 */
export function takeToken(
  bucket: Bucket | null,
  { perSecond, burst }: RateLimit,
  now: Millis,
): { readonly bucket: Bucket; readonly waitMs: number } {
  const tokens = bucket === null
    ? burst
    : Math.min(burst, bucket.tokens + Math.max(0, now - bucket.at) * perSecond / 1000);
  // A clock that goes back must not give the same time twice.
  const at = bucket === null ? now : Math.max(now, bucket.at);
  if (tokens >= 1 - DUST) return { bucket: { tokens: Math.max(0, tokens - 1), at }, waitMs: 0 };
  return { bucket: { tokens, at }, waitMs: Math.ceil((1 - tokens) / perSecond * 1000) };
}
