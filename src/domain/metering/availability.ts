// Availability: whether a call fits under the limit groups that cover it, with credits, and what it takes from each. All
// or nothing: every matched group counts. In each unit the plan takes the part of the need that its tightest group has
// left, the same part in each group, and credits pay the rest. A need of 0 passes while every group of the unit is below
// its gate, or a matching balance has something left. Reserve, track, can-use and explain all ask here, so that they
// cannot disagree.

import { isOfGuard, type Millis, type Window } from "../values/period.ts";
import { type Counter, planCount } from "../state/counter.ts";
import { type Amount, larger, smaller } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { CreditLine } from "../state/credit.ts";
import { hasCredit, pay, payAlone, type Purchase } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { matchesAny, type Metadata } from "../values/match.ts";
import { gateOf, leftUnderGate, type LimitGroup, type Unit } from "../catalog/plan.ts";
import { type ActivePlan, activePlanOf } from "../plans/entitlement.ts";
import { begun, counterIn, windowFor } from "../plans/windows.ts";
import { overageMaxOf, sellable } from "./overage.ts";
import { quotaOf } from "../state/subscription.ts";
import type { PriceRow } from "../catalog/price_row.ts";
import type { RateRow } from "../catalog/rate_row.ts";
import type { Amounts } from "../pricing/amounts.ts";
import type { ReserveReason } from "../state/refused_call.ts";
import type { Line } from "../state/reservation.ts";

/** A limit group with its counter, as answers show it; `gate` is null without headroom. */
export interface GroupReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  /** The counter before the call, or after it in the answer of a hold. */
  readonly counter: Counter;
  readonly gate: Amount | null;
  readonly window: Window;
  /** The most overage in force, null for no limit; absent for a group that sells none. */
  readonly overageMax?: Amount | null;
}

/** A group of the plan in an assessment, whether or not it covers the call. */
export interface SeenGroup extends GroupReading {
  readonly covers: boolean;
}

/** The limit that applies: a reservation stops at the gate, a tracked event at the quota. */
export type Limit = "gate" | "quota";

/** What a call takes, or why it is refused. */
export interface Assessment {
  readonly active: ActivePlan | null;
  /** Whether a quota group covers the event, or credits pay for it alone. */
  readonly matched: boolean;
  /** Why the call is refused; empty when it fits. */
  readonly reasons: readonly ReserveReason[];
  /** What the call takes from each matched group when it fits, in their order. */
  readonly lines: readonly Line[];
  /** What it takes from balances when it fits, or would take but for guards. */
  readonly credits: readonly CreditLine[];
  /** The matched groups before the call, guards included. */
  readonly groups: readonly GroupReading[];
  /** Those of `groups` that are quotas: they alone decide whether the event is matched, and who pays. */
  readonly quotas: readonly GroupReading[];
  /** The matched groups with too little left: by their quota, else by their headroom. Empty when the call fits. */
  readonly blocking: readonly GroupReading[];
}

/** A call with its amounts. */
export interface SizedCall {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly amounts: Amounts;
  /** Whether the cost is unknown: there is no price row, and the caller named no cents. */
  readonly isUnpriced: boolean;
  /** The price row; null for none. */
  readonly row: PriceRow | null;
  /** The rate in credits; null for none. */
  readonly rate: RateRow | null;
  /** Whether credits are computed by the rate. */
  readonly isRated: boolean;
  /** Whether an unpriced call is refused if cents are counted, regardless of the catalog's settings. */
  readonly mustBePriced?: boolean;
}

/**
 * Checks a call against a user's active plan, then against its credits. Changes nothing. A user above pays with credits only
 * where a group of its plan covers the call. Otherwise it has no say, unless it had a plan that has ended: then it refuses.
 *
 * @param of whose call it is: the user's own, or of a user below
 * @param seen receives every group of the plan, in its order; only an explanation needs it
 */
export function assess(
  draft: Draft,
  context: Context,
  call: SizedCall,
  limit: Limit,
  of: "own" | "below",
  seen: SeenGroup[] | null = null,
): Assessment {
  const { event, metadata, amounts } = call;
  const active = activePlanOf(draft, context);
  const groups = active === null ? NO_GROUPS : readGroups(draft, active, call, limit, context.now, seen);
  const quotas = quotasOf(groups);
  if (active !== null && quotas.length > 0) {
    return assessGroups(draft, context, call, limit, active, groups, quotas);
  }
  const lines = guardLines(active, groups, amounts, limit);
  const rest = { active, lines, groups, quotas, blocking: NO_GROUPS };
  const credits = of === "own" ? payAlone(draft, { event, metadata, now: context.now }, amounts) : null;
  if (credits !== null) return { ...rest, matched: true, reasons: [], credits };
  const isSilent = of === "below" && (active !== null || draft.user.entitlement === null);
  const reasons: ReserveReason[] = isSilent ? [] : [active === null ? "no_subscription" : "unmatched_event"];
  return { ...rest, matched: false, reasons, credits: NO_CREDITS };
}

/** The quota groups; the same list where there are no guards. */
function quotasOf(groups: readonly GroupReading[]): readonly GroupReading[] {
  let quotas: GroupReading[] | null = null;
  for (let at = 0; at < groups.length; at++) {
    const reading = groups[at] as GroupReading;
    if (isOfGuard(reading.window)) quotas ??= groups.slice(0, at);
    else quotas?.push(reading);
  }
  return quotas ?? groups;
}

function assessGroups(
  draft: Draft,
  context: Context,
  call: SizedCall,
  limit: Limit,
  active: ActivePlan,
  groups: readonly GroupReading[],
  quotas: readonly GroupReading[],
): Assessment {
  const { event, metadata, amounts } = call;
  const purchase = { event, metadata, now: context.now };
  if (lacksPrice(call, context) && countsUnit(quotas, "cents")) {
    const reasons: ReserveReason[] = ["unpriced_model"];
    return { active, matched: true, reasons, lines: [], credits: [], groups, quotas, blocking: [] };
  }
  const { parts, credits, missing } = coverUnits(draft, purchase, quotas, amounts, limit);
  if (missing.length > 0) {
    const byQuota = groupsWithTooLittle(quotas, missing, "quota");
    const reason = byQuota.length > 0 ? "limit_reached" : "reservation_headroom_exceeded";
    const blocking = byQuota.length > 0 ? byQuota : groupsWithTooLittle(quotas, missing, limit);
    return { active, matched: true, reasons: [reason], lines: [], credits: [], groups, quotas, blocking };
  }
  const lines = linesOf(active, groups, parts, amounts, limit);
  return { active, matched: true, reasons: [], lines, credits, groups, quotas, blocking: NO_GROUPS };
}

/** The lines of all matched groups. A guard takes the whole need, also where credits pay. */
function linesOf(
  { plan }: ActivePlan,
  groups: readonly GroupReading[],
  parts: Parts,
  amounts: Amounts,
  limit: Limit,
): Line[] {
  const lookedAt = limit === "gate" ? groups : groups.filter(({ window }) => isLookedAt(window, limit));
  return lookedAt.map((reading) => {
    const { group: { unit }, window } = reading;
    return lineOf(plan, reading, isOfGuard(window) ? amounts[unit] : parts[unit] as Amount, limit);
  });
}

/** The lines of a call that no quota group covers. */
function guardLines(
  active: ActivePlan | null,
  groups: readonly GroupReading[],
  amounts: Amounts,
  limit: Limit,
): readonly Line[] {
  return active === null || groups.length === 0
    ? NO_LINES
    : linesOf(active, groups, NO_PARTS, amounts, limit);
}

/** A tracked event is over: concurrency limits do not look at it. */
function isLookedAt({ kind }: Window, limit: Limit): boolean {
  return limit === "gate" || kind !== "concurrency";
}

/** Adds the refusal of guards to what quotas, credits and shares say of a matched call. */
export function withGuards(assessment: Assessment, { amounts }: SizedCall, limit: Limit): Assessment {
  const { groups, quotas, reasons, blocking } = assessment;
  if (quotas === groups) return assessment;
  if (!hasFullGuard(groups, amounts, limit)) return assessment;
  const full = groups.filter((reading) => isFullGuard(reading, amounts, limit));
  const added: ReserveReason[] = [];
  if (full.some(({ window }) => window.kind === "rate")) added.push("rate_limit_reached");
  if (full.some(({ window }) => window.kind === "concurrency")) added.push("concurrency_limit_reached");
  return {
    ...assessment,
    reasons: [...reasons, ...added],
    lines: [],
    blocking: groups.filter((reading) => blocking.includes(reading) || full.includes(reading)),
  };
}

/** Whether a guard has too little left. Nearly every call asks, and nearly no guard is full. */
function hasFullGuard(groups: readonly GroupReading[], amounts: Amounts, limit: Limit): boolean {
  for (const reading of groups) if (isFullGuard(reading, amounts, limit)) return true;
  return false;
}

function isFullGuard(reading: GroupReading, amounts: Amounts, limit: Limit): boolean {
  const { window, group } = reading;
  return isOfGuard(window) && isLookedAt(window, limit) && !hasRoom(reading, amounts[group.unit], "quota");
}

/** Whether a call is refused where cents are counted, because its cost is unknown. */
export function lacksPrice({ isUnpriced, mustBePriced }: SizedCall, { catalog }: Context): boolean {
  return isUnpriced && (mustBePriced === true || catalog.unpricedModels === "refuse");
}

/** Whether a unit is counted: only then does a missing price or rate matter. */
export function countsUnit(groups: readonly Pick<GroupReading, "group">[], unit: Unit): boolean {
  return groups.some(({ group }) => group.unit === unit);
}

/** The groups that cover the call, in the plan's order. */
function readGroups(
  draft: Draft,
  active: ActivePlan,
  { event, metadata }: SizedCall,
  limit: Limit,
  now: Millis,
  seen: SeenGroup[] | null,
): GroupReading[] {
  const covering: GroupReading[] = [];
  for (const group of active.plan.groups) {
    const covers = matchesAny(group.matches, event, metadata);
    if (!covers && seen === null) continue;
    const reading = readGroup(draft, active, group, limit, now);
    if (covers) covering.push(reading);
    seen?.push({ ...reading, covers });
  }
  return covering;
}

function readGroup(
  draft: Draft,
  active: ActivePlan,
  group: LimitGroup,
  limit: Limit,
  now: Millis,
): GroupReading {
  const { plan } = active;
  const quota = quotaOf(active, group);
  const window = windowFor(draft, active, group, now);
  const counter = counterIn(draft, plan.id, group.id, window, now);
  const gate = limit === "gate" && group.headroom !== null ? gateOf(group, quota) : null;
  const reading = { group, quota, counter, gate, window };
  const overageMax = group.overage === null ? undefined : overageMaxOf(draft.user, group);
  return overageMax === undefined ? reading : { ...reading, overageMax };
}

type Parts = Partial<Record<Unit, Amount>>;

/** The line of a group; what is past its limit is overage. */
function lineOf(plan: ActivePlan["plan"], reading: GroupReading, taken: Amount, limit: Limit): Line {
  const { group, window } = reading;
  const line = { planId: plan.id, groupId: group.id, window: begun(window), unit: group.unit, taken };
  if (reading.overageMax === undefined) return line;
  const overage = taken - leftIn(reading, limit);
  return overage > 0n ? { ...line, overage } : line;
}

const NO_PARTS: Parts = {};

/** A need that the plan and credits together do not cover. */
interface Missing {
  readonly unit: Unit;
  /** The need without what credits pay: what the plan alone would have to take. */
  readonly need: Amount;
}

/** How the units of the matched groups are covered: the plan's part of each unit, and the parts of credits. */
interface Cover {
  readonly parts: Parts;
  readonly credits: readonly CreditLine[];
  /** Empty where the call fits. */
  readonly missing: readonly Missing[];
}

/** Empty lists, which most calls share. */
const NO_CREDITS: readonly CreditLine[] = [];
const NO_GROUPS: readonly GroupReading[] = [];
const NO_LINES: readonly Line[] = [];
const NOTHING_MISSING: readonly Missing[] = [];

/**
 * Covers each unit: the plan first, with the same part in each group of the unit, then credits, then what each group has
 * left in its plan or sells past it.
 */
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
      if (groups.every((each) => each.group.unit !== unit || hasRoom(each, 0n, limit))) continue;
      if (hasCredit(draft, purchase, unit)) continue;
    } else if (part === need) continue;
    const { lines, missing } = pay(draft, purchase, unit, need - part);
    const past = part + missing;
    const isCovered = need > 0n &&
      (missing === 0n || groups.every((each) => each.group.unit !== unit || hasRoom(each, past, limit)));
    if (isCovered) {
      parts[unit] = past;
      if (lines.length > 0) credits = [...credits, ...lines];
    } // This need decides the reason: does the quota refuse it, or the headroom alone?
    else unmet = [...unmet, { unit, need: past }];
  }
  return { parts, credits, missing: unmet };
}

/** The least that is left in the unit's groups; never negative. */
function leastLeft(groups: readonly GroupReading[], unit: Unit, limit: Limit): Amount {
  let least: Amount | null = null;
  for (const reading of groups) {
    if (reading.group.unit !== unit) continue;
    const left = leftIn(reading, limit);
    if (least === null || left < least) least = left;
  }
  return least ?? 0n;
}

/** What is left of a group under a limit, regardless of other groups, credits and overage; never negative. */
export function leftIn({ group, quota, counter }: GroupReading, limit: Limit): Amount {
  const current = planCount(counter);
  return limit === "gate" ? leftUnderGate(group, quota, current) : larger(quota - current, 0n);
}

/** Whether a group has enough left for a need, in its plan or past it; a need of 0 requires that it is not full. */
export function hasRoom(reading: GroupReading, need: Amount, limit: Limit): boolean {
  const { quota, gate, counter, overageMax } = reading;
  if (need > 0n) {
    const past = need - leftIn(reading, limit);
    return past <= 0n || past <= sellable(overageMax, counter, past);
  }
  return planCount(counter) < (limit === "gate" ? gate ?? quota : quota) ||
    sellable(overageMax, counter, 1n) > 0n;
}

/** The groups with too little left for the missing need of their unit, in the plan's order. */
function groupsWithTooLittle(
  groups: readonly GroupReading[],
  missing: readonly Missing[],
  limit: Limit,
): GroupReading[] {
  return groups.filter((reading) =>
    missing.some(({ unit, need }) => unit === reading.group.unit && !hasRoom(reading, need, limit))
  );
}
