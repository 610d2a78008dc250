// The names under which first answers are stored. Calls of public and secret keys never share one, and callers cannot
// send the name of a part of a call.

import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { CallerKey } from "../../src/tenant/registry.ts";

/** Begins every stored key that is not the key of a secret API key as sent. No header can contain it. */
const MARK = "\u0001";

/** Returns the stored key of an idempotency key: for a secret API key the key as sent, as in earlier versions. */
export function storedKey(apiKey: Pick<CallerKey, "class">, key: string): string {
  if (apiKey.class === "secret" && !key.startsWith(MARK)) return key;
  return `${MARK}${apiKey.class}:${key}`;
}

/**
 * Returns the call of one part of a call with an idempotency key. Its first answer is kept by the turn of the part, so a
 * retry after a fault repeats no part that became durable. Another call under the same key is a conflict at every part.
 *
 * @param place the place of the part in the list of the call
 */
export function partOf({ realm, key, requestHash }: IdempotentCall, place: number): IdempotentCall {
  return { realm, key: `${MARK}part:${place}:${key}`, requestHash };
}
