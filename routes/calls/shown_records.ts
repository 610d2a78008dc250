// How the domain's records show on the wire, where more than one endpoint shows them. Section 4 of the decisions.

import { larger, numberOf } from "../../src/domain/values/amount.ts";
import type { ShownBalance } from "../../src/domain/credits/balances.ts";
import { statusOf } from "../../src/domain/state/credit.ts";
import type { CounterReading } from "../../src/domain/state/counter.ts";
import type { Millis, Window } from "../../src/domain/values/period.ts";
import type { LimitGroup } from "../../src/domain/catalog/plan.ts";
import type { Duplicates, NamedSubscription } from "../../src/domain/plans/entitlement.ts";
import type { Subscription } from "../../src/domain/state/subscription.ts";
import type { UsageAnswer } from "../../src/domain/usage.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";

/** A counter of usage and track. */
export function showCounter({ group, quota, counter }: CounterReading) {
  return {
    groupId: group.id,
    event: group.matches[0]?.event ?? "",
    label: group.label,
    unit: group.unit,
    quota: numberOf(quota),
    count: numberOf(counter.count),
    remaining: numberOf(larger(quota - counter.count, 0n)),
    costCents: numberOf(counter.costCents),
    filters: filtersOf(group),
  };
}

/** Usage; duplicates only where the caller may see them. */
export function showUsage(answer: UsageAnswer, withDuplicates: boolean) {
  return {
    userId: answer.userId,
    period: showWindow(answer.period),
    counters: answer.counters.map(showCounter),
    credits: answer.credits.balances.map((balance) => showBalance(balance, answer.credits.now)),
    ...(withDuplicates ? { duplicateActiveSubscriptions: showDuplicates(answer.duplicates) } : {}),
  };
}

/** A credit balance with its status at a moment. Specification, "Credit balance". */
export function showBalance({ row, packName }: ShownBalance, now: Millis) {
  return {
    balanceId: row.id,
    packId: row.packId,
    packName,
    packItemId: row.packItemId,
    kind: row.kind,
    unit: row.unit,
    remaining: numberOf(row.remaining),
    initial: numberOf(row.initial),
    grantedAt: timeText(row.grantedAt),
    expiresAt: timeTextOrNull(row.expiresAt),
    status: statusOf(row, now),
    matches: row.matches,
    priority: row.priority,
  };
}

/** A window as a period, or null without a plan. */
export function showWindow(window: Window | null) {
  return window === null ? null : { start: timeText(window.start), end: timeTextOrNull(window.end) };
}

/** A subscription record. */
export function showSubscription(userId: string, row: Subscription) {
  return {
    subscriptionId: row.id,
    userId,
    planId: row.planId,
    startedAt: timeText(row.startedAt),
    endsAt: timeTextOrNull(row.endsAt),
    cycleAnchorAt: timeTextOrNull(row.cycleAnchorAt),
    provider: row.provider,
    externalId: row.externalId,
    customLimits: showCustomLimits(row.customLimits),
  };
}

/** Quotas that replace those of the plan, by group id; null where there are none. */
function showCustomLimits(limits: Subscription["customLimits"]) {
  const entries = Object.entries(limits);
  if (entries.length === 0) return null;
  return Object.fromEntries(entries.map(([groupId, quota]) => [groupId, { quota: numberOf(quota) }]));
}

/** Several active subscriptions of one user. Specification, "DuplicateActiveSubscriptions". */
export function showDuplicates(duplicates: Duplicates | null) {
  if (duplicates === null) return null;
  return {
    primary: showSubRef(duplicates.primary),
    duplicates: duplicates.duplicates.map(showSubRef),
  };
}

/** A subscription as reports name it. */
export function showSubRef({ row, planName }: NamedSubscription) {
  return {
    subscriptionId: row.id,
    planId: row.planId,
    planName,
    provider: row.provider,
    externalId: row.externalId,
    startedAt: timeText(row.startedAt),
    endsAt: timeTextOrNull(row.endsAt),
  };
}

type Filters = Readonly<Record<string, readonly string[]>>;

/** Groups never change: what their rules ask for is found once. */
const filtersByGroup = new WeakMap<LimitGroup, Filters>();

/** The distinct values that a group's rules ask for, by metadata key. */
function filtersOf(group: LimitGroup): Filters {
  const known = filtersByGroup.get(group);
  if (known !== undefined) return known;
  const filters = findFilters(group);
  filtersByGroup.set(group, filters);
  return filters;
}

function findFilters(group: LimitGroup): Filters {
  const filters = new Map<string, Set<string>>();
  for (const { metadata } of group.matches) {
    for (const [name, value] of Object.entries(metadata ?? {})) {
      filters.set(name, (filters.get(name) ?? new Set()).add(value));
    }
  }
  return Object.fromEntries([...filters].map(([name, values]) => [name, [...values]]));
}
