// Room: whether a call fits under the limit groups that cover it, with what credits add, and what it takes from each.
// Reserve, track, can-use and explain all ask here, so that they cannot disagree. Section 5 of the decisions, "Room".

import type { Window } from "../values/period.ts";
import type { Counter } from "../state/counter.ts";
import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { CreditLine } from "../state/credit.ts";
import { hasCredit, pay, payAlone, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { matchesAny, type Metadata } from "../values/match.ts";
import { gateOf, leftUnderGate, type LimitGroup, type Unit } from "../catalog/plan.ts";
import { type ActivePlan, activePlanOf } from "../plans/entitlement.ts";
import { quotaOf } from "../state/subscription.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import type { Line } from "../state/reservation.ts";

/** A matched group as a reserve answer shows it; `gate` is null without headroom. */
export interface GroupReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  /** The counter as the answer shows it. */
  readonly counter: Counter;
  readonly gate: Amount | null;
  readonly window: Window;
}

/** A group of the plan as an assessment saw it, whether or not it covers the call. */
export interface SeenGroup extends GroupReading {
  readonly covers: boolean;
}

/** Which limit holds: a reservation stops at the gate, a tracked event at the quota. */
export type Limit = "gate" | "quota";

/** What a call may take, or why it may not. */
export interface Assessment {
  readonly active: ActivePlan | null;
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
  /** Those of them without room for the call: by their quota, else by their headroom. Empty when it fits. */
  readonly blocking: readonly GroupReading[];
}

/** A call whose room is looked for. */
export interface SizedCall {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly amounts: Amounts;
  /** Whether nothing says what the call costs: no price row, and no cents of the caller. */
  readonly isUnpriced: boolean;
  /** Whether an unpriced call is refused where cents are counted, whatever the catalog's settings say. */
  readonly mustBePriced?: boolean;
}

/**
 * Weighs a call against the primary plan, then against credits. Reads only.
 *
 * @param seen takes every group of the plan, in its order, for those who ask why; a decision has no use for it
 */
export function assess(
  draft: Draft,
  context: Context,
  call: SizedCall,
  limit: Limit,
  seen: SeenGroup[] | null = null,
): Assessment {
  const { event, metadata, amounts } = call;
  const active = activePlanOf(draft, context);
  const purchase = { event, metadata, now: context.now };
  const groups = active === null ? NO_GROUPS : readGroups(draft, active, call, limit, seen);
  if (active === null || groups.length === 0) {
    const credits = payAlone(draft, purchase, amounts);
    const reasons: ReserveReason[] = active === null ? ["no_subscription"] : ["unmatched_event"];
    return credits === null
      ? { active, matched: false, reasons, lines: [], credits: [], groups: [], blocking: [] }
      : { active, matched: true, reasons: [], lines: [], credits, groups: [], blocking: [] };
  }
  const refusesUnpriced = call.mustBePriced === true || context.catalog.unpricedModels === "refuse";
  if (call.isUnpriced && refusesUnpriced && countsCents(groups)) {
    const reasons: ReserveReason[] = ["unpriced_model"];
    return { active, matched: true, reasons, lines: [], credits: [], groups, blocking: [] };
  }
  const { parts, credits, missing } = coverUnits(draft, purchase, groups, amounts, limit);
  if (missing.length > 0) {
    const byQuota = groupsWithTooLittle(groups, missing, "quota");
    const reason = byQuota.length > 0 ? "limit_reached" : "reservation_headroom_exceeded";
    const blocking = byQuota.length > 0 ? byQuota : groupsWithTooLittle(groups, missing, limit);
    return { active, matched: true, reasons: [reason], lines: [], credits: [], groups, blocking };
  }
  const lines = groups.map((reading) => lineOf(active, reading, parts));
  return { active, matched: true, reasons: [], lines, credits, groups, blocking: NO_GROUPS };
}

/** Whether cents are counted: only then does a missing price matter. */
export function countsCents(groups: readonly Pick<GroupReading, "group">[]): boolean {
  return groups.some(({ group }) => group.unit === "cents");
}

/** The groups that cover the call, in the plan's order. */
function readGroups(
  draft: Draft,
  active: ActivePlan,
  { event, metadata }: SizedCall,
  limit: Limit,
  seen: SeenGroup[] | null,
): GroupReading[] {
  const covering: GroupReading[] = [];
  for (const group of active.plan.groups) {
    const covers = matchesAny(group.matches, event, metadata);
    if (!covers && seen === null) continue;
    const reading = readGroup(draft, active, group, limit);
    if (covers) covering.push(reading);
    seen?.push({ ...reading, covers });
  }
  return covering;
}

function readGroup(draft: Draft, active: ActivePlan, group: LimitGroup, limit: Limit): GroupReading {
  const { plan, row, window } = active;
  const quota = quotaOf(row, group);
  const counter = draft.counter({ planId: plan.id, groupId: group.id, window });
  const gate = limit === "gate" && group.headroom !== null ? gateOf(group, quota) : null;
  return { group, quota, counter, gate, window };
}

type Parts = Partial<Record<Unit, Amount>>;

function lineOf({ plan, window }: ActivePlan, { group }: GroupReading, parts: Parts): Line {
  return { planId: plan.id, groupId: group.id, window, unit: group.unit, taken: parts[group.unit] as Amount };
}

/** A need that the plan and credits together don't cover. */
interface Missing {
  readonly unit: Unit;
  /** What credits leave of the need: what the plan alone would have to take. */
  readonly need: Amount;
}

/** How the units of the matched groups are covered: the plan's part of each, and what credits pay. */
interface Cover {
  readonly parts: Parts;
  readonly credits: readonly CreditLine[];
  /** Empty where the call fits. */
  readonly missing: readonly Missing[];
}

/** Most calls take no credits and miss nothing: they share these empty lists. */
const NO_CREDITS: readonly CreditLine[] = [];
const NO_GROUPS: readonly GroupReading[] = [];
const NOTHING_MISSING: readonly Missing[] = [];

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
  let unmet = NOTHING_MISSING;
  for (const { group: { unit } } of groups) {
    if (parts[unit] !== undefined) continue;
    const need = amounts[unit];
    const part = smaller(need, leastLeft(groups, unit, limit));
    parts[unit] = part;
    if (need === 0n) {
      if (groups.every((each) => each.group.unit !== unit || hasLeft(each, 0n, limit))) continue;
      if (hasCredit(draft, purchase, unit)) continue;
    } else if (part === need) continue;
    const { lines, missing } = pay(draft, purchase, unit, need - part);
    if (missing === 0n && need > 0n) credits = [...credits, ...lines];
    // What credits leave of the need: were the plan asked for that alone, which limit would refuse it?
    else unmet = [...unmet, { unit, need: part + missing }];
  }
  return { parts, credits, missing: unmet };
}

/** The least that the unit's groups can take; never negative. */
function leastLeft(groups: readonly GroupReading[], unit: Unit, limit: Limit): Amount {
  let least: Amount | null = null;
  for (const reading of groups) {
    if (reading.group.unit !== unit) continue;
    const left = leftIn(reading, limit);
    if (least === null || left < least) least = left;
  }
  return least ?? 0n;
}

/** What a group can take under a limit, whatever other groups and credits say; never negative. */
export function leftIn({ group, quota, counter }: GroupReading, limit: Limit): Amount {
  return limit === "gate" ? leftUnderGate(group, quota, counter.count) : larger(quota - counter.count, 0n);
}

/** Whether a group can take a need; a need of zero asks that it is not full. */
function hasLeft(reading: GroupReading, need: Amount, limit: Limit): boolean {
  if (need > 0n) return need <= leftIn(reading, limit);
  const { quota, gate, counter } = reading;
  return counter.count < (limit === "gate" ? gate ?? quota : quota);
}

/** The groups that can't take what is missing in their unit, in the plan's order. */
function groupsWithTooLittle(
  groups: readonly GroupReading[],
  missing: readonly Missing[],
  limit: Limit,
): GroupReading[] {
  return groups.filter((reading) =>
    missing.some(({ unit, need }) => unit === reading.group.unit && !hasLeft(reading, need, limit))
  );
}
