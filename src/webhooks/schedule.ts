// When a message is tried again, and when a webhook that only fails is disabled. beyond.md, section 3.

import type { Millis } from "../domain/values/period.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The delay after each failed attempt. A message that fails once more than there are delays is given up. */
const DELAYS_MS = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
] as const;

/** How far a delay may be off either way: what failed together must not come back together. */
const JITTER = 0.2;

/** A webhook that has only failed for this long is disabled. */
const FAILING_MS_MAX = 5 * 24 * HOUR_MS;

/** The status by which an endpoint says that it wants nothing any more. */
const GONE = 410;

/**
 * The time until the next attempt; null when there is none.
 *
 * @param failures how many attempts have failed, at least one
 * @param chance from 0 to 1
 */
export function delayAfter(failures: number, chance: number): Millis | null {
  const delay = DELAYS_MS[failures - 1];
  return delay === undefined ? null : Math.round(delay * (1 + JITTER * (2 * chance - 1)));
}

/** A number from 0 to 1, any of them as likely. */
export function randomChance(): number {
  const bytes = crypto.getRandomValues(new Uint8Array(4));
  return bytes.reduce((sum, byte) => (sum + byte) / 256, 0);
}

/** Whether a failure disables its webhook. */
export function isLastStraw(status: number | null, failingSince: Millis | null, now: Millis): boolean {
  return status === GONE || failingSince !== null && now - failingSince >= FAILING_MS_MAX;
}
