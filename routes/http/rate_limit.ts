// The rate limit of an app: a token bucket for each of its keys, in the memory of the process that owns the app's cell, and
// in real time. A secret key has one only where the catalog's settings have `rateLimit`; a public key always, since any visitor
// of a page can call with it.

import { RateLimited } from "./errors.ts";
import type { Clock } from "../../src/process/clock.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { PUBLIC_RATE_LIMIT } from "../../src/process/sent_limits.ts";
import type { RateBuckets } from "../../src/tenant/rate_buckets.ts";
import type { Caller } from "../../src/tenant/registry.ts";

/** Where calls are counted. */
export interface CountingWorld {
  readonly buckets: Pick<RateBuckets, "take">;
  readonly clock: Clock;
}

/** Counts a call of a key; refuses it where its bucket is empty. Only the owner of the key's cell may count. */
export function countCall({ buckets, clock }: CountingWorld, { key, app, realm }: Caller): void {
  const rateLimit = realm.catalog.rateLimit ?? (key.class === "public" ? PUBLIC_RATE_LIMIT : null);
  if (rateLimit === null) return;
  const waitMs = buckets.take(app.cell, key.keyId, rateLimit, clock.now());
  if (waitMs === 0) return;
  throw new RateLimited(Math.min(Math.ceil(waitMs / 1000), REQUEST_LIMITS.retryAfterMaxS));
}
