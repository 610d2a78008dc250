// A key of a user: it acts for this user alone. Only a hash of its secret is stored.

import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";

/** The row of a key. Its times are real time, also in test mode, as those of tokens are. */
export interface EndUserKey {
  readonly id: string;
  readonly userKey: UserKey;
  /** Null where the caller gave none, and once it is revoked. */
  readonly name: string | null;
  /** The beginning of its text, for people who compare keys. */
  readonly prefix: string;
  /** SHA-256 of its secret in hex; "" once it is revoked. */
  readonly hash: string;
  readonly createdAt: Millis;
  /** Null: never. */
  readonly expiresAt: Millis | null;
  /** The first use of the last day with any; null before the first. */
  readonly lastUsedAt: Millis | null;
  readonly revokedAt: Millis | null;
}

/** The most keys that a call may give a user. */
export const END_USER_KEYS_MAX = 100;

/** The user for whom a valid key acts. */
export interface KeyHolder {
  readonly userId: string;
  /** When the key expires; null for never. */
  readonly expiresAt: Millis | null;
}

/** Whether a key has expired at a real moment. */
export function hasExpired({ expiresAt }: EndUserKey, now: Millis): boolean {
  return expiresAt !== null && expiresAt <= now;
}
