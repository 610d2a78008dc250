// Refused calls: what is counted of a reserve, a track or a compose that a limit, the plan or a cap refused. Calls of one
// user that are alike in event and reasons, within one hour of the app's clock, are one row with a count. No decision
// depends on these counts.

import type { Millis } from "../values/period.ts";

/** Why a call is not allowed, in the order in which answers list the reasons of several levels. */
export const REASONS_IN_ORDER = [
  "no_subscription",
  "unmatched_event",
  "unpriced_model",
  "limit_reached",
  "reservation_headroom_exceeded",
  "member_limit_reached",
  "run_limit_reached",
  "rate_limit_reached",
  "concurrency_limit_reached",
] as const;

/** Why a reserve is not allowed. */
export type ReserveReason = (typeof REASONS_IN_ORDER)[number];

/** Caps of a workspace that refuse a call regardless of the user's plan. */
type CapCode = "workspace_limit_reached" | "test_quota_exceeded" | "ai_budget_exceeded";

/** What alike refused calls have in common, beside their user and hour. */
interface Refused {
  readonly event: string;
  /** Never empty. */
  readonly reasons: readonly (ReserveReason | CapCode)[];
  /** The groups with too little left, in the plan's order; empty where no limit refused the call. */
  readonly groupIds: readonly string[];
  /** The ids of the users that refused, in the order of the path; empty for a user without a parent. */
  readonly refusedBy: readonly string[];
}

/** A refused call. */
export interface RefusedCall extends Refused {
  readonly at: Millis;
}

/** Refused calls of one user that are alike in event and reasons, within one hour. */
export interface RefusalRow extends Refused {
  readonly realm: number;
  /** The canonical user's id, whether or not the user has a row. */
  readonly userId: string;
  /** Start of the UTC hour. */
  readonly hour: Millis;
  readonly count: number;
  readonly firstAt: Millis;
  readonly lastAt: Millis;
}

const HOUR_MS = 3_600_000;

/** Groups with too little left. */
interface Blocked {
  readonly blocking: readonly { readonly group: { readonly id: string } }[];
}

/** Why an assessment refuses a call. */
interface Grounds extends Blocked {
  readonly reasons: readonly ReserveReason[];
  readonly refusedBy: readonly string[];
  /** The users above. */
  readonly levels: readonly { readonly assessment: Blocked }[];
  /** The runs that refuse, which are last among those that do. */
  readonly refusingRuns: readonly unknown[];
}

/** Describes a call that its assessment refused. */
export function refusedCall(event: string, grounds: Grounds, at: Millis): RefusedCall {
  const { reasons, levels, refusingRuns } = grounds;
  const groupIds = grounds.blocking.map(({ group }) => group.id);
  if (levels.length === 0) return { event, reasons, groupIds, refusedBy: NO_IDS, at };
  for (const { assessment } of levels) groupIds.push(...assessment.blocking.map(({ group }) => group.id));
  const refusedBy = grounds.refusedBy.slice(0, grounds.refusedBy.length - refusingRuns.length);
  return { event, reasons, groupIds: [...new Set(groupIds)], refusedBy, at };
}

const NO_IDS: readonly string[] = [];

/** Describes a call that a cap of the workspace refused. */
export function refusedAtCap(event: string, code: string, at: Millis): RefusedCall {
  return { event, reasons: [code as CapCode], groupIds: NO_IDS, refusedBy: NO_IDS, at };
}

/** Makes the row of one refused call of a user. */
export function rowOf(
  realm: number,
  userId: string,
  { event, reasons, groupIds, refusedBy, at }: RefusedCall,
): RefusalRow {
  const hour = at - at % HOUR_MS;
  return { realm, userId, event, reasons, hour, groupIds, refusedBy, count: 1, firstAt: at, lastAt: at };
}

/** Adds up two rows of alike calls; the groups are those of the newest call, who refused is added. */
export function addUp(row: RefusalRow, other: RefusalRow): RefusalRow {
  return {
    ...row,
    groupIds: other.lastAt >= row.lastAt ? other.groupIds : row.groupIds,
    refusedBy: [...new Set([...row.refusedBy, ...other.refusedBy])],
    count: row.count + other.count,
    firstAt: Math.min(row.firstAt, other.firstAt),
    lastAt: Math.max(row.lastAt, other.lastAt),
  };
}

/** Makes a text that is equal for rows of alike calls of one realm. */
export function kindOf({ userId, event, reasons, hour }: RefusalRow): string {
  // Neither hours nor reasons have spaces, and the length says where the id ends: two kinds never share a text.
  return `${hour} ${reasons.join()} ${userId.length} ${userId}${event}`;
}
