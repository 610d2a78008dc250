// A user's standing: which subscription is primary, which plan that gives, and what happens to usage when a plan
// is entered from another. Section 4 of the decisions.

import { larger } from "../amount.ts";
import type { Context } from "../context.ts";
import type { Draft } from "../draft.ts";
import { adjustedTo, type CounterRef } from "../metering/counter.ts";
import type { Line } from "../metering/reservation.ts";
import type { Entitlement } from "../user.ts";
import type { Catalog } from "./catalog.ts";
import { type Millis, type Window, windowAt } from "./period.ts";
import { pairGroups, type Plan } from "./plan.ts";
import {
  activeRows,
  anchorOf,
  isPaid,
  primaryOf,
  quotaOf,
  type Subscription,
  windowOf,
} from "./subscription.ts";

/** The plan and window that decisions of a user go by. */
export interface Standing {
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
export function standingOf(draft: Draft, context: Context): Standing | null {
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

/** A plan with the window in which its usage runs. */
export interface RunningPlan {
  readonly plan: Plan;
  readonly window: Window;
}

/** The plan that the user holds, or held last as long as its window still runs; null where nothing runs. */
export function heldWindowOf(draft: Draft, { catalog, now }: Context): RunningPlan | null {
  const held = draft.user.entitlement;
  const plan = held === null ? undefined : catalog.plans.get(held.planId);
  if (held === null || plan === undefined) return null;
  const window = windowAt(plan.period, held.until ?? now, held.anchor, held.startedAt);
  return window.end !== null && window.end <= now ? null : { plan, window };
}

/**
 * Brings the user's entitlement in line with the rows active at a moment, and enters a plan where it differs from
 * the one held.
 *
 * @param endedId the subscription whose end is the cause, where an end is: a paid successor is then promoted
 */
export function refreshEntitlement(
  draft: Draft,
  context: Context,
  at: Millis,
  endedId: string | null = null,
): void {
  const { catalog, ids } = context;
  const held = draft.user.entitlement;
  const row = primaryOf(draft.subscriptions(), catalog, at);
  const plan = row === null ? undefined : catalog.plans.get(row.planId);
  if (row === null || plan === undefined) {
    if (held !== null && held.until === null) draft.putUser({ entitlement: { ...held, until: at } });
    return;
  }
  if (held !== null && isSame(held, row)) return;
  if (held !== null && held.planId !== plan.id) {
    enterPlan(draft, { row, plan, window: windowOf(row, plan, at) }, held, context, at);
  }
  if (held !== null && held.subscriptionId === endedId && held.until === null && isPaid(row)) {
    draft.appendSubscriptionEvent({
      id: ids.next("subscriptionEvent"),
      userKey: row.userKey,
      type: "promoted",
      subscriptionId: row.id,
      planId: row.planId,
      previousPlanId: null,
      reason: null,
      at,
    });
    draft.operations += 1;
  }
  draft.putUser({ entitlement: entitlementOf(row) });
}

/** What a primary subscription gives. */
export function entitlementOf(row: Subscription): Entitlement {
  const { id, planId, startedAt } = row;
  return { planId, subscriptionId: id, anchor: anchorOf(row), startedAt, until: null };
}

function isSame(held: Entitlement, row: Subscription): boolean {
  return held.until === null && held.subscriptionId === row.id && held.planId === row.planId &&
    held.anchor === anchorOf(row) && held.startedAt === row.startedAt;
}

/** Applies the entered plan's `onPlanChange`, where the window of the plan left still runs. */
function enterPlan(draft: Draft, entered: Standing, held: Entitlement, context: Context, at: Millis): void {
  const running = heldWindowOf(draft, { ...context, now: at });
  if (running === null && context.catalog.plans.has(held.planId)) return;
  switch (entered.plan.onPlanChange) {
    case "carry":
      if (running !== null) carryUsage(draft, entered, running.plan, running.window);
      return;
    case "reset":
      for (const ref of refsOf(entered)) setCounter(draft, ref, () => 0n, true);
      return;
    case "block":
      for (const group of entered.plan.groups) {
        const ref = { planId: entered.plan.id, groupId: group.id, window: entered.window };
        setCounter(draft, ref, (count) => larger(count, quotaOf(entered.row, group)), false);
      }
  }
}

function refsOf({ plan, window }: Standing): CounterRef[] {
  return plan.groups.map((group) => ({ planId: plan.id, groupId: group.id, window }));
}

function setCounter(
  draft: Draft,
  ref: CounterRef,
  next: (count: bigint) => bigint,
  clearCost: boolean,
): void {
  const counter = draft.counter(ref);
  const count = next(counter.count);
  const costCents = clearCost ? 0n : counter.costCents;
  if (count === counter.count && costCents === counter.costCents) return;
  draft.putCounter(adjustedTo(counter, count, costCents, 0n));
}

/** Moves the running usage of paired groups, with the open holds that it contains. */
function carryUsage(draft: Draft, entered: Standing, old: Plan, oldWindow: Window): void {
  const moves = new Map<string, CounterRef>();
  for (const [toId, from] of pairGroups(entered.plan, old)) {
    moves.set(from.id, { planId: entered.plan.id, groupId: toId, window: entered.window });
  }
  const heldBy = repointHolds(draft, old.id, oldWindow, moves);
  for (const [fromId, toRef] of moves) {
    const from = draft.counter({ planId: old.id, groupId: fromId, window: oldWindow });
    const holds = heldBy.get(fromId) ?? 0n;
    if (from.count === 0n && from.costCents === 0n && holds === 0n) continue;
    const to = draft.counter(toRef);
    draft.putCounter(
      adjustedTo(to, larger(to.count, from.count), larger(to.costCents, from.costCents), holds),
    );
    draft.putCounter(adjustedTo(from, 0n, 0n, -holds));
  }
}

/** Points the lines of open holds at the counters that their usage moves to; answers what they hold by group. */
export function repointHolds(
  draft: Draft,
  planId: string,
  window: Window,
  moves: ReadonlyMap<string, CounterRef>,
): Map<string, bigint> {
  const heldBy = new Map<string, bigint>();
  const moved = (line: Line): Line => {
    const to = moves.get(line.groupId);
    if (to === undefined || line.planId !== planId || line.window.start !== window.start) return line;
    heldBy.set(line.groupId, (heldBy.get(line.groupId) ?? 0n) + line.taken);
    return { ...line, ...to };
  };
  for (const row of [...draft.openHolds()]) {
    const lines = row.lines.map(moved);
    if (lines.some((line, index) => line !== row.lines[index])) draft.putReservation({ ...row, lines });
  }
  return heldBy;
}
