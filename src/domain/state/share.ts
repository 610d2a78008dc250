// Shares: how much one member used of a limit group of a user above it, an account, in one window. A share is a row of the
// member, so an account's memory does not grow with its members.

import type { Unit } from "../catalog/plan.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";

/** Identifies a share within one member. A group id with another unit is another group. */
export interface ShareRef {
  /** The account's number when the share was taken; it may have become an alias since. */
  readonly accountKey: UserKey;
  readonly groupId: string;
  readonly unit: Unit;
  readonly window: Window;
  /** When a plan change last reset the shares of this group and window; 0 for never. */
  readonly since: Millis;
}

/** What a hold or an event of a member took from a share: the whole amount, paid by plan or credits. */
export interface ShareLine extends ShareRef {
  readonly taken: Amount;
}

/** What a member used of a group of an account in a window. */
export interface Share {
  /** Its key in maps, see shareKey. */
  readonly key: string;
  readonly userKey: UserKey;
  /** The member's id, by which its account lists it. */
  readonly userId: string;
  readonly accountKey: UserKey;
  readonly groupId: string;
  readonly unit: Unit;
  readonly windowStart: Millis;
  /** null for a lifetime. */
  readonly windowEnd: Millis | null;
  /** The reset from which on it counts. What was taken before is not part of it, and never changes it again. */
  readonly since: Millis;
  /** Open holds and counted events. */
  readonly count: Amount;
  /** The cost of the counted events, without open holds. */
  readonly costCents: Amount;
}

/** A member's share as answers show it. */
export interface MemberReading {
  readonly count: Amount;
  /** The most that it may use; null for no limit. */
  readonly quota: Amount | null;
}

/** When a plan change of an account reset the shares of a group and window. */
export interface ShareReset {
  readonly accountKey: UserKey;
  readonly groupId: string;
  readonly windowStart: Millis;
  readonly windowEnd: Millis | null;
  readonly at: Millis;
}

/** Makes the key of a share in maps. */
export function shareKey(
  { accountKey, groupId, unit, window }: Pick<ShareRef, "accountKey" | "groupId" | "unit" | "window">,
): string {
  return `${accountKey}\n${groupId}\n${unit}\n${window.start}`;
}

/** Makes an empty share of a member. */
export function emptyShare(userKey: UserKey, userId: string, ref: ShareRef): Share {
  const { accountKey, groupId, unit, window, since } = ref;
  return {
    key: shareKey(ref),
    userKey,
    userId,
    accountKey,
    groupId,
    unit,
    windowStart: window.start,
    windowEnd: window.end,
    since,
    count: 0n,
    costCents: 0n,
  };
}

/** Adds up two shares of one group and window. What one of them had before a reset of the other is gone. */
export function addedShares(share: Share, other: Share): Share {
  const windowEnd = laterEnd(share.windowEnd, other.windowEnd);
  if (share.since !== other.since) {
    const { since, count, costCents } = share.since > other.since ? share : other;
    return { ...share, windowEnd, since, count, costCents };
  }
  return {
    ...share,
    windowEnd,
    count: share.count + other.count,
    costCents: share.costCents + other.costCents,
  };
}

/** The later of two ends of windows with the same start. */
export function laterEnd(one: Millis | null, other: Millis | null): Millis | null {
  return one === null || other === null ? null : Math.max(one, other);
}
