// Room: whether a call fits under the limit groups that cover it, and what it takes from each. One assessment
// serves reserve, track and can-use, so that the three can never disagree. Section 5 of the decisions, "Room".

import type { Amount } from "domain/amount.ts";
import type { Context, GroupReading, ReserveReason, Standing } from "domain/command.ts";
import type { Draft } from "domain/draft.ts";
import type { Metadata } from "domain/match.ts";
import { gateOf, type LimitGroup, matchingGroups, roomUnderGate } from "domain/plan.ts";
import type { Amounts } from "domain/pricing.ts";
import type { Line } from "domain/reservation.ts";
import { standingOf } from "domain/standing.ts";
import { quotaOf } from "domain/subscription.ts";

/** Which limit holds: a reservation stops at the gate, a tracked event at the quota. */
export type Limit = "gate" | "quota";

/** What a call may take, or why it may not. */
export interface Assessment {
  readonly standing: Standing | null;
  /** Whether a limit group covers the event. */
  readonly matched: boolean;
  /** Why the call is refused; empty when it fits. */
  readonly reasons: readonly ReserveReason[];
  /** What the call takes from each matched group when it fits. */
  readonly lines: readonly Line[];
  /** The matched groups as they stand before the call. */
  readonly groups: readonly GroupReading[];
}

/** Weighs a call of these amounts against the primary plan. Reads only. */
export function assess(
  draft: Draft,
  context: Context,
  event: string,
  metadata: Metadata | null,
  amounts: Amounts,
  limit: Limit,
): Assessment {
  const standing = standingOf(draft, context);
  if (standing === null) {
    return { standing, matched: false, reasons: ["no_subscription"], lines: [], groups: [] };
  }
  const matching = matchingGroups(standing.plan, event, metadata);
  if (matching.length === 0) {
    return { standing, matched: false, reasons: ["unmatched_event"], lines: [], groups: [] };
  }
  const groups = matching.map((group) => readGroup(draft, standing, group, limit));
  const reason = firstReason(groups, amounts, limit);
  const lines = reason === null ? groups.map((reading) => lineOf(standing, reading, amounts)) : [];
  return { standing, matched: true, reasons: reason === null ? [] : [reason], lines, groups };
}

function readGroup(draft: Draft, standing: Standing, group: LimitGroup, limit: Limit): GroupReading {
  const { plan, row, window } = standing;
  const quota = quotaOf(row, group);
  const counter = draft.counter({ planId: plan.id, groupId: group.id, window });
  const gate = limit === "gate" && group.headroom !== null ? gateOf(group, quota) : null;
  return { group, quota, counter, gate, window };
}

function lineOf({ plan, window }: Standing, { group }: GroupReading, amounts: Amounts): Line {
  return { planId: plan.id, groupId: group.id, window, unit: group.unit, taken: amounts[group.unit] };
}

/** Why a call does not fit: by quota in some group before by headroom in all; null when it fits. */
function firstReason(
  groups: readonly GroupReading[],
  amounts: Amounts,
  limit: Limit,
): ReserveReason | null {
  let reason: ReserveReason | null = null;
  for (const reading of groups) {
    const need = amounts[reading.group.unit];
    if (!fitsUnder(reading.quota - reading.counter.count, need)) return "limit_reached";
    if (!fits(reading, need, limit)) reason = "reservation_headroom_exceeded";
  }
  return reason;
}

/** A need fits a group that has that much room; a need of zero, one that is below its gate. */
function fits({ group, quota, counter, gate }: GroupReading, need: Amount, limit: Limit): boolean {
  const current = counter.count;
  if (need === 0n) return current < (gate ?? quota);
  return need <= (limit === "gate" ? roomUnderGate(group, quota, current) : quota - current);
}

function fitsUnder(room: Amount, need: Amount): boolean {
  return need === 0n ? room > 0n : need <= room;
}
