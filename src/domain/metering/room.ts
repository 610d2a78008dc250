// Room: whether a call fits under the limit groups that cover it, with what credits add, and what it takes from each.
// Reserve, track and can-use all ask here, so that they cannot disagree. Section 5 of the decisions, "Room".

import type { Window } from "../plans/period.ts";
import type { Counter } from "./counter.ts";
import { type Amount, larger, smaller } from "../amount.ts";
import type { Context } from "../context.ts";
import type { CreditLine } from "../credits/credit.ts";
import { hasCredit, pay, payAlone, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../draft.ts";
import type { Metadata } from "../match.ts";
import { gateOf, type LimitGroup, matchingGroups, roomUnderGate, type Unit } from "../plans/plan.ts";
import { type Standing, standingOf } from "../plans/standing.ts";
import { quotaOf } from "../plans/subscription.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { Line } from "./reservation.ts";

export type ReserveReason =
  | "limit_reached"
  | "reservation_headroom_exceeded"
  | "unmatched_event"
  | "no_subscription"
  | "unpriced_model";

/** A matched group as a reserve answer shows it; `gate` is null without headroom. */
export interface GroupReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  /** The counter as the answer shows it. */
  readonly counter: Counter;
  readonly gate: Amount | null;
  readonly window: Window;
}

/** Which limit holds: a reservation stops at the gate, a tracked event at the quota. */
export type Limit = "gate" | "quota";

/** What a call may take, or why it may not. */
export interface Assessment {
  readonly standing: Standing | null;
  /** Whether a limit group covers the event, or credits pay for it alone. */
  readonly matched: boolean;
  /** Why the call is refused; empty when it fits. */
  readonly reasons: readonly ReserveReason[];
  /** What the call takes from each matched group when it fits. */
  readonly lines: readonly Line[];
  /** What it takes from balances when it fits. */
  readonly credits: readonly CreditLine[];
  /** The matched groups as they stand before the call. */
  readonly groups: readonly GroupReading[];
  /** Those of them whose quota lacks room for the call; empty when it fits. */
  readonly blocking: readonly GroupReading[];
}

/** A call whose room is looked for. */
export interface SizedCall {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly amounts: Amounts;
  /** Whether nothing says what the call costs: no price row, and no cents of the caller. */
  readonly isUnpriced: boolean;
}

/** Weighs a call against the primary plan, then against credits. Reads only. */
export function assess(draft: Draft, context: Context, call: SizedCall, limit: Limit): Assessment {
  const { event, metadata, amounts } = call;
  const standing = standingOf(draft, context);
  const purchase = { event, metadata, now: context.now };
  const matching = standing === null ? [] : matchingGroups(standing.plan, event, metadata);
  if (standing === null || matching.length === 0) {
    const credits = payAlone(draft, purchase, amounts);
    const reasons: ReserveReason[] = standing === null ? ["no_subscription"] : ["unmatched_event"];
    return credits === null
      ? { standing, matched: false, reasons, lines: [], credits: [], groups: [], blocking: [] }
      : { standing, matched: true, reasons: [], lines: [], credits, groups: [], blocking: [] };
  }
  const groups = matching.map((group) => readGroup(draft, standing, group, limit));
  if (call.isUnpriced && context.catalog.unpricedModels === "refuse" && countsCents(groups)) {
    const reasons: ReserveReason[] = ["unpriced_model"];
    return { standing, matched: true, reasons, lines: [], credits: [], groups, blocking: [] };
  }
  const cover = coverUnits(draft, purchase, groups, amounts, limit);
  const { blocking } = cover;
  if (!cover.fits) {
    const reason = blocking.length > 0 ? "limit_reached" : "reservation_headroom_exceeded";
    return { standing, matched: true, reasons: [reason], lines: [], credits: [], groups, blocking };
  }
  const lines = groups.map((reading) => lineOf(standing, reading, cover.parts));
  return { standing, matched: true, reasons: [], lines, credits: cover.credits, groups, blocking };
}

/** Whether cents are counted: only then does a missing price matter. */
export function countsCents(groups: readonly Pick<GroupReading, "group">[]): boolean {
  return groups.some(({ group }) => group.unit === "cents");
}

function readGroup(draft: Draft, standing: Standing, group: LimitGroup, limit: Limit): GroupReading {
  const { plan, row, window } = standing;
  const quota = quotaOf(row, group);
  const counter = draft.counter({ planId: plan.id, groupId: group.id, window });
  const gate = limit === "gate" && group.headroom !== null ? gateOf(group, quota) : null;
  return { group, quota, counter, gate, window };
}

type Parts = Partial<Record<Unit, Amount>>;

function lineOf({ plan, window }: Standing, { group }: GroupReading, parts: Parts): Line {
  return { planId: plan.id, groupId: group.id, window, unit: group.unit, taken: parts[group.unit] as Amount };
}

/** How the units of the matched groups are covered: the plan's part of each, and what credits pay. */
interface Cover {
  readonly parts: Parts;
  readonly credits: readonly CreditLine[];
  readonly fits: boolean;
  /** The groups whose quota refuses it, as opposed to their headroom. */
  readonly blocking: readonly GroupReading[];
}

/** Most calls take no credits: their holds share one empty list. */
const NO_CREDITS: readonly CreditLine[] = [];
const NO_GROUPS: readonly GroupReading[] = [];

/** Unit by unit, the plan first: it takes the same part in each of the unit's groups, credits pay the rest. */
function coverUnits(
  draft: Draft,
  purchase: Purchase,
  groups: readonly GroupReading[],
  amounts: Amounts,
  limit: Limit,
): Cover {
  const parts: Parts = {};
  let credits = NO_CREDITS;
  let blocking = NO_GROUPS;
  let fits = true;
  for (const { group: { unit } } of groups) {
    if (parts[unit] !== undefined) continue;
    const need = amounts[unit];
    const part = smaller(need, roomOf(groups, unit, limit));
    parts[unit] = part;
    if (need === 0n) {
      if (isBelowGate(groups, unit) || hasCredit(draft, purchase, unit)) continue;
    } else if (part === need) continue;
    const { lines, missing } = pay(draft, purchase, unit, need - part);
    if (missing === 0n && need > 0n) credits = [...credits, ...lines];
    // What credits leave of the need: were the plan asked for that alone, which limit would refuse it?
    else {
      fits = false;
      blocking = [...blocking, ...groupsWithoutRoom(groups, unit, part + missing)];
    }
  }
  return { parts, credits, fits, blocking };
}

/** The least that the unit's groups can take; never negative. */
function roomOf(groups: readonly GroupReading[], unit: Unit, limit: Limit): Amount {
  let least: Amount | null = null;
  for (const { group, quota, counter } of groups) {
    if (group.unit !== unit) continue;
    const room = limit === "gate"
      ? roomUnderGate(group, quota, counter.count)
      : larger(quota - counter.count, 0n);
    if (least === null || room < least) least = room;
  }
  return least ?? 0n;
}

/** Whether every group of the unit is below its gate: what a need of zero asks for. */
function isBelowGate(groups: readonly GroupReading[], unit: Unit): boolean {
  return groups.every(({ group, quota, gate, counter }) =>
    group.unit !== unit || counter.count < (gate ?? quota)
  );
}

/** The groups of the unit whose quota has no room for a need. */
function groupsWithoutRoom(groups: readonly GroupReading[], unit: Unit, need: Amount): GroupReading[] {
  return groups.filter(({ group, quota, counter }) => {
    const room = quota - counter.count;
    return group.unit === unit && (need === 0n ? room <= 0n : need > room);
  });
}
