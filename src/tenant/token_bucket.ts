// A token bucket as arithmetic: so many calls at once, so many a second after. Pure; whoever keeps buckets brings
// the clock. What is refused takes nothing, so a caller that is refused again and again waits no longer.

import type { RateLimit } from "../domain/catalog/catalog.ts";
import type { Millis } from "../domain/values/period.ts";

/** What was in a bucket at a moment. */
export interface Bucket {
  readonly tokens: number;
  readonly at: Millis;
}

/** Sums of parts of tokens miss a whole one by less than this. */
const DUST = 1e-9;

/**
 * Takes a token where there is one.
 *
 * @param bucket as it was left; null for one that was never used, which is full
 * @returns the bucket as it is left, and 0, or how long until there is a token
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
