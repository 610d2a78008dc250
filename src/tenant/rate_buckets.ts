// Token buckets of the rate limits, one for each key, in the memory of the process that owns the key's cell. A hand-over
// moves them as text, so that a key gets no second burst; after a crash all buckets are full again.

import { z } from "zod";
import type { RateLimit } from "../domain/catalog/catalog.ts";
import type { Millis } from "../domain/values/period.ts";
import { type Bucket, takeToken } from "./token_bucket.ts";

const KEPT = z.record(z.string(), z.object({ tokens: z.number(), at: z.number() }));

/** Buckets by cell and key. */
export class RateBuckets {
  readonly #cells = new Map<number, Map<string, Bucket>>();

  /** Counts a call of a key; returns how long until it would be allowed, 0 when it is. */
  take(cell: number, keyId: string, limit: RateLimit, now: Millis): Millis {
    let buckets = this.#cells.get(cell);
    if (buckets === undefined) this.#cells.set(cell, buckets = new Map());
    const { bucket, waitMs } = takeToken(buckets.get(keyId) ?? null, limit, now);
    buckets.set(keyId, bucket);
    return waitMs;
  }

  /** Removes the buckets of a cell from memory, and returns them as text; null without any. */
  remove(cell: number): string | null {
    const buckets = this.#cells.get(cell);
    this.#cells.delete(cell);
    return buckets === undefined ? null : JSON.stringify(Object.fromEntries(buckets));
  }

  /** Puts buckets into memory that `remove` returned in another process. */
  admit(cell: number, text: string | null): void {
    if (text === null) this.#cells.delete(cell);
    else this.#cells.set(cell, new Map(Object.entries(KEPT.parse(JSON.parse(text)))));
  }
}
