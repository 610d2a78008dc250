// Refused calls: what is counted of a reserve, a track or a compose that a limit, the plan or a cap refused. Calls of one
// user that are alike in event and reasons, within one hour of the app's clock, are one row with a count. No decision
// depends on these counts.

import type { Millis } from "../values/period.ts";

/** Why a reserve is not allowed. */
export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription"
  | "unpriced_model";

/** Caps of a workspace that refuse a call regardless of the user's plan. */
export type CapCode = "workspace_limit_reached" | "test_quota_exceeded" | "ai_budget_exceeded";

/** What alike refused calls have in common, beside their user and hour. */
interface Refused {
  readonly event: string;
  /** Never empty. */
  readonly reasons: readonly (ReserveReason | CapCode)[];
  /** The groups with too little left, in the plan's order; empty where no limit refused the call. */
  readonly groupIds: readonly string[];
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

/** Why an assessment refuses a call. */
interface Grounds {
  readonly reasons: readonly ReserveReason[];
  /** The groups with too little left, in the plan's order. */
  readonly blocking: readonly { readonly group: { readonly id: string } }[];
}

/** Describes a call that its assessment refused. */
export function refusedCall(event: string, { reasons, blocking }: Grounds, at: Millis): RefusedCall {
  return { event, reasons, groupIds: blocking.map(({ group }) => group.id), at };
}

/** Describes a call that a cap of the workspace refused. */
export function refusedAtCap(event: string, code: string, at: Millis): RefusedCall {
  return { event, reasons: [code as CapCode], groupIds: [], at };
}

/** Makes the row of one refused call of a user. */
export function rowOf(
  realm: number,
  userId: string,
  { event, reasons, groupIds, at }: RefusedCall,
): RefusalRow {
  const hour = at - at % HOUR_MS;
  return { realm, userId, event, reasons, hour, groupIds, count: 1, firstAt: at, lastAt: at };
}

/** Adds up two rows of alike calls; the groups are those of the newest call. */
export function addUp(row: RefusalRow, other: RefusalRow): RefusalRow {
  return {
    ...row,
    groupIds: other.lastAt >= row.lastAt ? other.groupIds : row.groupIds,
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
