// When a message is retried, and when an endpoint that only fails is disabled.

import type { Millis } from "../domain/values/period.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The delay after each failed attempt. After one more failure the message is given up. */
const DELAYS_MS = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
] as const;

/** Random deviation of a delay: messages that failed together must not be retried together. */
const JITTER = 0.2;

/** An endpoint that has only failed for this long is disabled. */
const FAILING_MS_MAX = 5 * 24 * HOUR_MS;

/** The status by which an endpoint refuses all further messages. */
const GONE = 410;

/**
 * Returns the time until the next attempt; null when the message is given up.
 *
 * @param failures how many attempts have failed, at least one
 * @param chance from 0 to 1
 */
export function delayAfter(failures: number, chance: number): Millis | null {
  const delay = DELAYS_MS[failures - 1];
  return delay === undefined ? null : Math.round(delay * (1 + JITTER * (2 * chance - 1)));
}

/** Returns a uniform random number from 0 to 1. */
export function randomChance(): number {
  const bytes = crypto.getRandomValues(new Uint8Array(4));
  return bytes.reduce((sum, byte) => (sum + byte) / 256, 0);
}

/** Whether a failure disables its endpoint. */
export function isLastStraw(status: number | null, failingSince: Millis | null, now: Millis): boolean {
  return status === GONE || failingSince !== null && now - failingSince >= FAILING_MS_MAX;
}
