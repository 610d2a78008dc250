// Records of the domain as JSON, where several calls answer them.

import { type Amount, larger, numberOf } from "../../src/domain/values/amount.ts";
import type { ShownBalance } from "../../src/domain/credits/balances.ts";
import { statusOf } from "../../src/domain/state/credit.ts";
import { type Counter, type CounterReading, planCount, shownCount } from "../../src/domain/state/counter.ts";
import { type GroupPeriod, isOfGuard, type Millis, type Window } from "../../src/domain/values/period.ts";
import type { Catalog } from "../../src/domain/catalog/catalog.ts";
import type { LimitGroup, Unit } from "../../src/domain/catalog/plan.ts";
import type { Duplicates, NamedSubscription } from "../../src/domain/plans/entitlement.ts";
import type { SpendCaps } from "../../src/domain/state/overage.ts";
import type { Run, RunLimit } from "../../src/domain/state/run.ts";
import type { Subscription } from "../../src/domain/state/subscription.ts";
import type { LevelUsage, UsageAnswer } from "../../src/domain/usage.ts";
import type { DataOf, Shown } from "../contract/definition.ts";
import { timeText, timeTextOrNull } from "../contract/fields.ts";
import type * as records from "../contract/records.ts";
import type { getUsage } from "../contract/usage.ts";

/** A counter of a limit group. */
export function showCounter(
  { group, quota, counter, window, overageMax }: CounterReading,
): Shown<typeof records.counter> {
  const current = shownCount(counter);
  return {
    groupId: group.id,
    event: group.matches[0]?.event ?? "",
    label: group.label,
    unit: group.unit,
    quota: numberOf(quota),
    count: numberOf(current),
    remaining: numberOf(larger(quota - planCount(counter), 0n)),
    costCents: numberOf(counter.costCents),
    filters: filtersOf(group),
    ...showOverage(counter, overageMax),
    ...overageMax === undefined ? {} : { overageMax: overageMax === null ? null : numberOf(overageMax) },
    ...group.period === null ? {} : showOwnWindow(group.period, window),
  };
}

/** What was sold past a quota; nothing for a group that sells none, unless it has sold before. */
export function showOverage({ overage }: Pick<Counter, "overage">, max: Amount | null | undefined) {
  return overage === undefined && max === undefined ? NOTHING : { overage: numberOf(overage ?? 0n) };
}

/** The running window of a group with a period of its own, or what a guard counts. */
function showOwnWindow(own: GroupPeriod, window: Window) {
  if (own.type === "concurrent") return { period: null, window: { type: own.type } };
  if (own.type === "rolling") return { period: null, window: { type: own.type, seconds: own.seconds } };
  return { period: window.isNext === true ? null : showWindow(window) };
}

/** When a window ends; null for a lifetime, a guard and a session that has not begun. */
export function endOf(window: Window): string | null {
  return isOfGuard(window) || window.isNext === true ? null : timeTextOrNull(window.end);
}

/** A counter of a user above, with the share of the user whose usage it is. Guards have no shares. */
export function showSharedCounter(reading: CounterReading): Shown<typeof records.sharedCounter> {
  if (isOfGuard(reading.window)) return showCounter(reading);
  const { count, quota } = reading.member ?? { count: 0n, quota: null };
  const member = { count: numberOf(count), quota: quota === null ? null : numberOf(quota) };
  return { ...showCounter(reading), member };
}

/** Usage of a user; duplicate subscriptions only for callers with a secret key. */
export function showUsage(answer: UsageAnswer, withDuplicates: boolean): DataOf<typeof getUsage> {
  return {
    userId: answer.userId,
    period: showWindow(answer.period),
    counters: answer.counters.map(showCounter),
    credits: answer.credits.balances.map((balance) => showBalance(balance, answer.credits.now)),
    ...answer.levels === null
      ? {}
      : { levels: answer.levels.map((level) => showLevel(level, withDuplicates)) },
    ...showFeatures(answer),
    ...(withDuplicates ? { duplicateActiveSubscriptions: showDuplicates(answer.duplicates) } : {}),
  };
}

/** The features of a user; nothing for a catalog without any. */
export function showFeatures({ features }: Pick<UsageAnswer, "features">) {
  return features === null ? NOTHING : { features };
}

/** A user above: whole for a secret key, else without who it is, what it costs and what it buys past its quotas. */
function showLevel({ userId, period, counters }: LevelUsage, isWhole: boolean) {
  const shownPeriod = showWindow(period);
  const shown = counters.map(showSharedCounter);
  if (isWhole) return { userId, period: shownPeriod, counters: shown };
  return {
    counters: shown.map((
      { groupId, label, unit, quota, count, remaining, member, period, window },
    ) => ({
      ...{ groupId, label, unit, quota, count, remaining },
      ...member === undefined ? {} : { member },
      period: period === undefined ? shownPeriod : period,
      ...window === undefined ? {} : { window },
    })),
  };
}

/** A limit of a run. */
export function showRunLimit(
  { id, unit, event, quota, count, held }: RunLimit,
): Shown<typeof records.runLimit> {
  return {
    limitId: id,
    unit,
    event,
    quota: numberOf(quota),
    count: numberOf(count),
    held: numberOf(held),
  };
}

/** The runs of a call; nothing for a call without one. */
export function showRuns(runs: readonly Run[]) {
  return runs.length === 0
    ? NOTHING
    : { runs: runs.map(({ id, limits }) => ({ runId: id, limits: limits.map(showRunLimit) })) };
}

const NOTHING = {};

/** Amounts by unit. */
export function showAmounts(amounts: Readonly<Partial<Record<Unit, Amount>>>) {
  return Object.fromEntries(
    Object.entries(amounts).map(([unit, amount]) => [unit, numberOf(amount)]),
  ) as Partial<Record<Unit, number>>;
}

/** A credit balance with its status at a moment. */
export function showBalance(
  { row, packName, showsOrigin }: ShownBalance,
  now: Millis,
): Shown<typeof records.balance> {
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
    ...showsOrigin ? { origin: row.origin } : {},
  };
}

/** A window as a period, or null without a plan. */
function showWindow(window: Window | null): Shown<typeof records.period> | null {
  return window === null ? null : { start: timeText(window.start), end: timeTextOrNull(window.end) };
}

/** A subscription record. */
export function showSubscription(
  userId: string,
  row: Subscription,
  { features, hasTrials }: Pick<Catalog, "features" | "hasTrials">,
): Shown<typeof records.subscription> {
  return {
    subscriptionId: row.id,
    userId,
    planId: row.planId,
    startedAt: timeText(row.startedAt),
    endsAt: timeTextOrNull(row.endsAt),
    cycleAnchorAt: timeTextOrNull(row.cycleAnchorAt),
    provider: row.provider,
    externalId: row.externalId,
    customLimits: showQuotas(row.customLimits),
    ...row.quantity === 1 ? NOTHING : { quantity: row.quantity },
    ...hasTrials || row.trial ? { trialEndsAt: timeTextOrNull(row.trial?.endsAt ?? null) } : NOTHING,
    ...row.scheduled && { scheduled: { at: timeText(row.scheduled.at), planId: row.scheduled.planId } },
    ...features.types.size === 0 ? NOTHING : { customFeatures: showCustomFeatures(row.customFeatures) },
  };
}

/** A subscription record that shows its scheduled change also where there is none. */
export function showScheduled(
  userId: string,
  row: Subscription,
  catalog: Pick<Catalog, "features" | "hasTrials">,
): Shown<typeof records.subscription> {
  return { scheduled: null, ...showSubscription(userId, row, catalog) };
}

/** Quotas by group id, such as those that replace the plan's; null where there are none. */
export function showQuotas(limits: Subscription["customLimits"] | null) {
  const entries = Object.entries(limits ?? {});
  if (entries.length === 0) return null;
  return Object.fromEntries(entries.map(([groupId, quota]) => [groupId, { quota: numberOf(quota) }]));
}

/** Caps of a user on overage, by group id. */
export function showCaps(caps: SpendCaps) {
  return Object.fromEntries(Object.entries(caps).map(([groupId, max]) => [groupId, { max: numberOf(max) }]));
}

/** Features that replace those of the plan, by key; null where there are none. */
function showCustomFeatures(features: Subscription["customFeatures"]) {
  return Object.keys(features).length === 0 ? null : features;
}

/** Several active subscriptions of one user; null where there are none. */
export function showDuplicates(duplicates: Duplicates | null): Shown<typeof records.duplicates> | null {
  if (duplicates === null) return null;
  return {
    primary: showSubRef(duplicates.primary),
    duplicates: duplicates.duplicates.map(showSubRef),
  };
}

/** A subscription as reports show it. */
export function showSubRef({ row, planName }: NamedSubscription): Shown<typeof records.subRef> {
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

/** Groups never change, so the values of their rules are collected once. */
const filtersByGroup = new WeakMap<LimitGroup, Filters>();

/** The distinct metadata values in the rules of a group, by metadata key. */
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
