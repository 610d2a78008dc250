// A user's active: which subscription is primary and which plan and window it gives. Where the primary's plan
// changes, the user enters the new plan here, by its `onPlanChange`. Section 4 of the decisions.

import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { adjustedTo, type CounterRef, NO_ALERTS } from "../state/counter.ts";
import type { Entitlement } from "../state/user.ts";
import { carryUsage, forgetLeft, type RunningPlan } from "./carry.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { type Millis, type Window, windowAt } from "../values/period.ts";
import type { Plan } from "../catalog/plan.ts";
import {
  activeRows,
  anchorOf,
  historyRow,
  isPaid,
  primaryOf,
  quotaOf,
  type Subscription,
  windowOf,
} from "../state/subscription.ts";

/** The plan and window that decisions of a user go by. */
export interface ActivePlan {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly window: Window;
}

/** What identifies a subscription to a reader, with the plan's name where the catalog still has the plan. */
export interface NamedSubscription {
  readonly row: Pick<Subscription, "id" | "planId" | "provider" | "externalId" | "startedAt" | "endsAt">;
  readonly planName: string;
}

/** Active subscriptions beside the primary one; null where there is none. */
export interface Duplicates {
  readonly primary: NamedSubscription;
  readonly duplicates: readonly NamedSubscription[];
}

/** The primary subscription with its plan and running window, or null without an active subscription. */
export function activePlanOf(draft: Draft, context: Context): ActivePlan | null {
  const row = primaryOf(draft.subscriptions(), context.catalog, context.now);
  const plan = row === null ? undefined : context.catalog.plans.get(row.planId);
  if (row === null || plan === undefined) return null;
  return { row, plan, window: windowOf(row, plan, context.now) };
}

/** The other active subscriptions beside the primary one, or null. */
export function duplicatesOf(draft: Draft, context: Context): Duplicates | null {
  const [primary, ...duplicates] = activeRows(draft.subscriptions(), context.catalog, context.now);
  if (primary === undefined || duplicates.length === 0) return null;
  const { catalog } = context;
  return { primary: named(primary, catalog), duplicates: duplicates.map((row) => named(row, catalog)) };
}

/** A subscription as reports and duplicates name it. */
export function named(row: Subscription, catalog: Catalog): NamedSubscription {
  const { id, planId, provider, externalId, startedAt, endsAt } = row;
  const planName = catalog.plans.get(planId)?.name ?? planId;
  return { row: { id, planId, provider, externalId, startedAt, endsAt }, planName };
}

/** The plan that the user entered last, as long as the window of its usage runs; null where nothing runs. */
export function runningPlanOf(
  draft: Draft,
  { catalog, now }: Pick<Context, "catalog" | "now">,
): RunningPlan | null {
  const { entitlement } = draft.user;
  const plan = entitlement === null ? undefined : catalog.plans.get(entitlement.planId);
  if (entitlement === null || plan === undefined) return null;
  const { until, anchor, startedAt } = entitlement;
  const window = windowAt(plan.period, until ?? now, anchor, startedAt);
  return window.end !== null && window.end <= now ? null : { plan, window };
}

/**
 * Brings the user's entitlement in line with the rows active at a moment, and enters a plan where it differs from
 * the one entered last.
 *
 * @param endedId the subscription whose end is the cause, where an end is: a paid successor is then promoted
 */
export function refreshEntitlement(
  draft: Draft,
  context: Context,
  at: Millis,
  endedId: string | null = null,
): void {
  const { catalog } = context;
  const before = draft.user.entitlement;
  const row = primaryOf(draft.subscriptions(), catalog, at);
  const plan = row === null ? undefined : catalog.plans.get(row.planId);
  if (row === null || plan === undefined) {
    if (before !== null && before.until === null) draft.putUser({ entitlement: { ...before, until: at } });
    return;
  }
  if (before !== null && isSame(before, row)) return;
  let carried = before?.carried ?? true;
  if (before !== null && before.planId !== plan.id) {
    const entered = { row, plan, window: windowOf(row, plan, at) };
    carried = enterPlan(draft, entered, before, { ...context, now: at });
  }
  if (before !== null && before.subscriptionId === endedId && before.until === null && isPaid(row)) {
    draft.appendSubscriptionEvent(historyRow(row, "promoted", { ...context, now: at }));
    draft.operations += 1;
  }
  draft.putUser({ entitlement: entitlementOf(row, carried) });
}

/** What a primary subscription gives, see `Entitlement`. */
export function entitlementOf(row: Subscription, carried: boolean): Entitlement {
  const { id, planId, startedAt } = row;
  return { planId, subscriptionId: id, anchor: anchorOf(row), startedAt, until: null, carried };
}

function isSame(before: Entitlement, row: Subscription): boolean {
  return before.until === null && before.subscriptionId === row.id && before.planId === row.planId &&
    before.anchor === anchorOf(row) && before.startedAt === row.startedAt;
}

/**
 * Applies the entered plan's `onPlanChange`, where the window of the plan left still runs.
 *
 * @returns whether the entered counters now contain all that was used in that window
 */
function enterPlan(draft: Draft, entered: ActivePlan, before: Entitlement, context: Context): boolean {
  const left = runningPlanOf(draft, context);
  if (left === null && context.catalog.plans.has(before.planId)) return true;
  switch (entered.plan.onPlanChange) {
    case "carry":
      if (left !== null) carryUsage(draft, left, entered);
      return true;
    case "reset":
      for (const ref of refsOf(entered)) resetCounter(draft, ref);
      forgetLeft(draft, refsOf(entered));
      return false;
    case "block":
      for (const group of entered.plan.groups) {
        const ref = { planId: entered.plan.id, groupId: group.id, window: entered.window };
        fillCounter(draft, ref, quotaOf(entered.row, group));
      }
      forgetLeft(draft, refsOf(entered));
      return false;
  }
}

function refsOf({ plan, window }: ActivePlan): CounterRef[] {
  return plan.groups.map((group) => ({ planId: plan.id, groupId: group.id, window }));
}

function resetCounter(draft: Draft, ref: CounterRef): void {
  const counter = draft.counter(ref);
  if (counter.count === 0n && counter.costCents === 0n && counter.alerted.length === 0) return;
  draft.putCounter({ ...adjustedTo(counter, 0n, 0n, 0n), alerted: NO_ALERTS });
}

function fillCounter(draft: Draft, ref: CounterRef, quota: Amount): void {
  const counter = draft.counter(ref);
  if (counter.count < quota) draft.putCounter(adjustedTo(counter, quota, counter.costCents, 0n));
}
