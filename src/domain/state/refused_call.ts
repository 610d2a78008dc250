// Refused calls: what is kept of a reserve, a track or a compose that met a limit, the plan or a cap, and which of them
// are alike. Nothing is decided by them. Section 1 of beyond.md, "Refusals".

import type { Millis } from "../values/period.ts";

/** Why a reserve is not allowed. */
export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription"
  | "unpriced_model";

/** Caps of a workspace that refuse a call whatever its user's plan says. */
export type CapCode = "workspace_limit_reached" | "test_quota_exceeded" | "ai_budget_exceeded";

/** What alike refused calls have in common, but for their user and hour. */
interface Refused {
  readonly event: string;
  /** Never empty. */
  readonly reasons: readonly (ReserveReason | CapCode)[];
  /** The groups without room, in the plan's order; empty where no limit refused the call. */
  readonly groupIds: readonly string[];
}

/** A call that was refused. */
export interface RefusedCall extends Refused {
  readonly at: Millis;
}

/** Refused calls of one user that are alike in event and reasons, within one hour. */
export interface RefusalRow extends Refused {
  readonly realm: number;
  /** The canonical user's id, who need not be known. */
  readonly userId: string;
  /** The begin of the UTC clock hour. */
  readonly hour: Millis;
  readonly count: number;
  readonly firstAt: Millis;
  readonly lastAt: Millis;
}

const HOUR_MS = 3_600_000;

/** Why an assessment refuses a call. */
interface Grounds {
  readonly reasons: readonly ReserveReason[];
  /** The groups without room, in the plan's order. */
  readonly blocking: readonly { readonly group: { readonly id: string } }[];
}

/** A call that was assessed and refused. */
export function refusedCall(event: string, { reasons, blocking }: Grounds, at: Millis): RefusedCall {
  return { event, reasons, groupIds: blocking.map(({ group }) => group.id), at };
}

/** A call that a cap of the workspace refused. */
export function refusedAtCap(event: string, code: string, at: Millis): RefusedCall {
  return { event, reasons: [code as CapCode], groupIds: [], at };
}

/** A refused call of a user as a row. */
export function rowOf(
  realm: number,
  userId: string,
  { event, reasons, groupIds, at }: RefusedCall,
): RefusalRow {
  const hour = at - at % HOUR_MS;
  return { realm, userId, event, reasons, hour, groupIds, count: 1, firstAt: at, lastAt: at };
}

/** Two rows of alike calls as one; the groups are those of the newest call. */
export function addUp(row: RefusalRow, other: RefusalRow): RefusalRow {
  return {
    ...row,
    groupIds: other.lastAt >= row.lastAt ? other.groupIds : row.groupIds,
    count: row.count + other.count,
    firstAt: Math.min(row.firstAt, other.firstAt),
    lastAt: Math.max(row.lastAt, other.lastAt),
  };
}

/** What rows of alike calls of one realm have in common, as text. */
export function kindOf({ userId, event, reasons, hour }: RefusalRow): string {
  // Neither hours nor reasons have spaces, and the length says where the id ends: two kinds never share a text.
  return `${hour} ${reasons.join()} ${userId.length} ${userId}${event}`;
}
