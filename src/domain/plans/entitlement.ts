// The active plan of a user: which subscription is primary, and its plan and running window. When the primary's plan
// changes, the user enters the new plan here. Its `onPlanChange` decides what happens to running usage: `carry` takes it
// along, `reset` starts at 0, `block` fills each counter to its quota for the running window. A first subscription starts
// at 0 under all of them, and a plan that the user already has is not entered again.

import { larger } from "../values/amount.ts";
import { isGuard, type LimitGroup } from "../catalog/plan.ts";
import { closeSessions, isLifetime, runningSession, windowAmong, windowFor } from "./windows.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { type CounterRef, filled, keyOf, planCount, reset } from "../state/counter.ts";
import type { Entitlement } from "../state/user.ts";
import { resetShares } from "../accounts/shares.ts";
import { carryUsage, forgetHolds, type LeftPlan, windowsLeft } from "./carry.ts";
import type { Catalog } from "../catalog/catalog.ts";
import { type Millis, type Window, windowAt } from "../values/period.ts";
import type { Plan } from "../catalog/plan.ts";
import {
  activeRows,
  type AddOn,
  addOnsOf,
  anchorOf,
  historyRow,
  isPaid,
  primaryOf,
  quotaOf,
  type Subscription,
} from "../state/subscription.ts";

/** The primary subscription of a user, with its plan and running window: the base of every decision. */
export interface ActivePlan {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly window: Window;
  /** What adds to the quotas of the plan. */
  readonly addOns: readonly AddOn[];
}

/** A subscription as answers name it, with the plan's name, or its id if the catalog no longer has the plan. */
export interface NamedSubscription {
  readonly row: Pick<Subscription, "id" | "planId" | "provider" | "externalId" | "startedAt" | "endsAt">;
  readonly planName: string;
}

/** A user's primary subscription and the other active ones. */
export interface Duplicates {
  readonly primary: NamedSubscription;
  readonly duplicates: readonly NamedSubscription[];
}

/** Returns the active plan, or null without an active subscription. */
export function activePlanOf(draft: Draft, context: Context): ActivePlan | null {
  const row = primaryOf(draft.subscriptions(), context.catalog, context.now);
  const plan = row === null ? undefined : context.catalog.plans.get(row.planId);
  if (row === null || plan === undefined) return null;
  return activeOn(draft, row, plan, context);
}

function activeOn(
  draft: Draft,
  row: Subscription,
  plan: Plan,
  { catalog, now }: Pick<Context, "catalog" | "now">,
): ActivePlan {
  const window = windowAmong(draft, row, plan, now);
  return { row, plan, window, addOns: addOnsOf(draft.subscriptions(), catalog, now) };
}

/** Returns the primary and the other active subscriptions; null if there is at most one. */
export function duplicatesOf(draft: Draft, context: Context): Duplicates | null {
  const [primary, ...duplicates] = activeRows(draft.subscriptions(), context.catalog, context.now);
  if (primary === undefined || duplicates.length === 0) return null;
  const { catalog } = context;
  return { primary: named(primary, catalog), duplicates: duplicates.map((row) => named(row, catalog)) };
}

/** Names a subscription for an answer. */
export function named(row: Subscription, catalog: Catalog): NamedSubscription {
  const { id, planId, provider, externalId, startedAt, endsAt } = row;
  const planName = catalog.plans.get(planId)?.name ?? planId;
  return { row: { id, planId, provider, externalId, startedAt, endsAt }, planName };
}

/** Returns the plan that the user entered last, ended or not; null for none, and where the catalog lacks it. */
export function leftPlanOf(
  draft: Draft,
  { catalog, now }: Pick<Context, "catalog" | "now">,
): LeftPlan | null {
  const { entitlement } = draft.user;
  const plan = entitlement === null ? undefined : catalog.plans.get(entitlement.planId);
  if (entitlement === null || plan === undefined) return null;
  const { until, anchor, startedAt } = entitlement;
  return { plan, at: until ?? now, anchor, startedAt };
}

/** Whether usage of a plan left still counts: the window of its period runs, or that of a quota group. */
export function isRunning(draft: Draft, left: LeftPlan, now: Millis): boolean {
  const { plan, at, anchor, startedAt } = left;
  const { end } = windowAt(plan.period, at, anchor, startedAt);
  return end === null || end > now ||
    plan.groups.some((group) =>
      group.period !== null && !isGuard(group) && windowsLeft(draft, left, group, now).length > 0
    );
}

/**
 * Updates the user's entitlement to the primary row at a moment, and enters its plan if the user entered another one
 * last.
 *
 * @param endedId the subscription that just ended, if any: a paid row that follows it as primary is promoted
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
  const startedAt = startOf(draft, row, plan, at);
  if (before !== null && isSame(before, row, startedAt)) return;
  const entered = activeOn(draft, row, plan, { ...context, now: at });
  let carried = before?.carried ?? true;
  if (before !== null && before.planId !== plan.id) {
    carried = enterPlan(draft, entered, { ...context, now: at });
  } else if (before !== null && plan.hasLifetime && before.startedAt !== startedAt) {
    // A lifetime that turns out to have begun earlier keeps its usage.
    const { anchor, startedAt: later } = before;
    const left = { plan, at, anchor, startedAt: later };
    carryUsage(draft, left, entered, (group) => isLifetime(plan, group), at);
  }
  if (before !== null && before.subscriptionId === endedId && before.until === null && isPaid(row)) {
    draft.appendSubscriptionEvent(historyRow(row, "promoted", { ...context, now: at }));
    draft.operations += 1;
  }
  draft.putUser({ entitlement: entitlementOf(draft, entered, at, carried) });
}

/** Returns when a row began, or where its plan counts over a lifetime, when the user first had that plan. */
function startOf(draft: Draft, row: Subscription, plan: Plan, at: Millis): Millis {
  if (!plan.hasLifetime) return row.startedAt;
  return windowAmong(draft, row, plan, at, LIFETIME).start;
}

const LIFETIME = { type: "lifetime", anchor: "subscription_start" } as const;

/** Makes the entitlement of an active plan. */
export function entitlementOf(
  draft: Draft,
  { row, plan }: ActivePlan,
  at: Millis,
  carried: boolean,
): Entitlement {
  const { id, planId } = row;
  const startedAt = startOf(draft, row, plan, at);
  return { planId, subscriptionId: id, anchor: anchorOf(row), startedAt, until: null, carried };
}

function isSame(before: Entitlement, row: Subscription, startedAt: Millis): boolean {
  return before.until === null && before.subscriptionId === row.id && before.planId === row.planId &&
    before.anchor === anchorOf(row) && before.startedAt === startedAt;
}

/**
 * Applies the entered plan's `onPlanChange`, if a window of the plan left still runs. Guards are carried under each policy.
 *
 * @returns whether the entered counters now include all usage of that window
 */
function enterPlan(draft: Draft, entered: ActivePlan, context: Context): boolean {
  const { now } = context;
  const { onPlanChange } = entered.plan;
  const left = leftPlanOf(draft, context);
  if (left !== null) {
    const runs = isRunning(draft, left, now);
    const isCarried = (group: LimitGroup) => isGuard(group) || (runs && onPlanChange === "carry");
    carryUsage(draft, left, entered, isCarried, now);
    if (!runs) return true;
  }
  switch (onPlanChange) {
    case "carry":
      return true;
    case "reset": {
      const refs = runningQuotas(draft, entered, now).map(({ ref }) => ref);
      const held = forgetHolds(draft, refs);
      // Set anew, they would be lowered by holds that they no longer contain.
      if (held === null) return false;
      for (const ref of refs) draft.putCounter(reset(draft.counter(ref), held.get(keyOf(ref)) ?? 0n, now));
      for (const group of entered.plan.groups) closeSessions(draft, entered.plan.id, group.id, now);
      resetShares(draft, refs, now);
      return false;
    }
    case "block":
      for (const { group, ref } of runningQuotas(draft, entered, now)) {
        const counter = draft.counter(ref);
        const quota = quotaOf(entered, group);
        draft.putCounter(filled(counter, quota, larger(quota, planCount(counter))));
      }
      return false;
  }
}

/** The quota groups of a plan with the counters of their running windows; a group between two sessions has none. */
function runningQuotas(
  draft: Draft,
  entered: ActivePlan,
  now: Millis,
): { readonly group: LimitGroup; readonly ref: CounterRef }[] {
  const { plan } = entered;
  return plan.groups.flatMap((group) => {
    if (isGuard(group)) return [];
    const window = group.period?.type === "session"
      ? runningSession(draft, plan.id, group, now)
      : windowFor(draft, entered, group, now);
    return window === null ? [] : [{ group, ref: { planId: plan.id, groupId: group.id, window } }];
  });
}
