// The summary of a user for lists: what its last turn left of its limits, and when it was seen. No decision depends on it,
// except that a quota of 0 remembers its refusal there.

import type { UserKey } from "../values/ids.ts";
import type { Millis } from "../values/period.ts";

/** One row a user, as of its last turn. */
export interface UserSummary {
  readonly userKey: UserKey;
  readonly realm: number;
  /** The quota group with the largest count / quota; null for a user without a plan or quota groups. */
  readonly groupId: string | null;
  /** 100 x count / quota, rounded down, from 0 to FULLEST_MAX. */
  readonly percent: number;
  /** The end of the group's window, after which the percent reads 0; null for no end, and where the percent is 0. */
  readonly until: Millis | null;
  /** Start of the minute of the last metering call; null for none. */
  readonly seenAt: Millis | null;
}

/** The largest percent that is stored; a group that sells overage may be above 100. */
export const FULLEST_MAX = 1_000_000;

/** The least percent that is near a limit. */
export const NEAR_PERCENT = 80;

/** Makes the summary of a user who has used nothing and was never seen. */
export function emptySummary(userKey: UserKey, realm: number): UserSummary {
  return { userKey, realm, groupId: null, percent: 0, until: null, seenAt: null };
}

/** Whether two summaries of a user have equal values. */
export function isSameSummary(a: UserSummary, b: UserSummary): boolean {
  return a.percent === b.percent && a.seenAt === b.seenAt && a.groupId === b.groupId && a.until === b.until;
}
