// The rate limit of an app: a token bucket for each of its keys, in this process's memory and real time. Off unless the
// catalog's settings have `rateLimit`. Section 3 of the decisions.

import type { RateLimit } from "../src/domain/plans/catalog.ts";
import type { Millis } from "../src/domain/plans/period.ts";
import { RateLimited } from "./errors.ts";
import { REQUEST_LIMITS } from "../src/process/limits.ts";
import type { ApiKey, Caller } from "../src/tenant/registry.ts";
import { type Bucket, takeToken } from "../src/tenant/token_bucket.ts";

/** Keyed by the key's own object, so that a bucket is collected together with its key when the term ends. */
const buckets = new WeakMap<ApiKey, Bucket>();

/** Counts a call of a key; refuses it where its bucket is empty. */
export function countCall({ key }: Caller, limit: RateLimit, now: Millis): void {
  const { bucket, waitMs } = takeToken(buckets.get(key) ?? null, limit, now);
  buckets.set(key, bucket);
  if (waitMs === 0) return;
  throw new RateLimited(Math.min(Math.ceil(waitMs / 1000), REQUEST_LIMITS.retryAfterMaxS));
}
