// Alerts: a limit group may name percents of its quota, and webhooks receive a message when a counter reaches one. An alert
// fires when a decision takes the count from below the threshold to it or above it, open holds included, once per group,
// threshold and window. A lowered quota and a plan change fire too; a threshold that the catalog lowers fires when the
// count next rises. A quota of 0 never fires, nor does a block, which is no usage.
//
// A group may also name its pace. That fires once per group and window, when a turn raises the count, a quarter of the window
// has passed, and the count would reach the quota before the window ends if it went on rising as it did since the start.
//
// The counter remembers what fired, so a release does not arm it again. A raised quota does, where the count is below the
// threshold under it. A quota that the catalog raised is noticed when the count next rises, which is compared as before.

import { type Amount, amountOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { paceData, thresholdData } from "../state/message.ts";
import { type LimitGroup, PACE } from "../catalog/plan.ts";
import { type ActivePlan, activePlanOf } from "../plans/entitlement.ts";
import type { Millis, Window } from "../values/period.ts";
import { windowFor } from "../plans/windows.ts";
import { addOnsOf, quotaOf } from "../state/subscription.ts";
import { alertedAt, type Counter, NO_ALERTS } from "../state/counter.ts";

/** The user before the command; alerts compare the user after it. */
export interface AlertBase {
  readonly active: ActivePlan | null;
  /** Counters that the draft had changed before; all others are in the state. */
  readonly changed: ReadonlyMap<string, Counter>;
}

const HUNDRED: Amount = amountOf(100);
const NONE: ReadonlyMap<string, Counter> = new Map();

/**
 * Notes the present state of the user; null for a catalog without alerts.
 *
 * @param counters the changed counters of an earlier moment, if that is the one to compare with
 */
export function alertBase(
  draft: Draft,
  context: Context,
  counters: readonly Counter[] = draft.changedCounters(),
): AlertBase | null {
  if (!context.catalog.hasAlerts) return null;
  const changed = counters.length === 0 ? NONE : new Map(counters.map((row) => [row.key, row]));
  const active = activePlanOf(draft, context);
  if (active === null || !context.catalog.hasAddOns) return { active, changed };
  // An add-on that ends at this very moment counted until now.
  const addOns = addOnsOf(draft.subscriptions(), context.catalog, context.now - 1);
  return { active: { ...active, addOns }, changed };
}

/** Fires the alerts that were reached since the base was noted. */
export function fireAlerts(draft: Draft, base: AlertBase | null, context: Context): void {
  const active = base === null ? null : activePlanOf(draft, context);
  if (base === null || active === null) return;
  for (const { group, counter } of countersToLookAt(draft, base, active, context.now)) {
    const { count } = counter;
    const before = base.changed.get(counter.key) ?? draft.state.counters.get(counter.key);
    const quota = quotaOf(active, group);
    const quotaBefore = base.active?.plan.id === active.plan.id ? quotaOf(base.active, group) : 0n;
    const countBefore = before?.count ?? 0n;
    const rises = count > countBefore;
    const running = windowFor(draft, active, group, context.now);
    const isRunning = counter.windowStart === running.start;
    // Another quota is that of the running window; a merge may write counters of others and leave their counts.
    if (!rises && (quota === quotaBefore || !isRunning)) continue;
    // Windows that start at the same time share a counter, with the latest end of them.
    const window = { start: counter.windowStart, end: isRunning ? running.end : counter.windowEnd };
    // Marks that came along are compared with the count that they came with.
    const cameAlong = counter.alerted !== (before?.alerted ?? NO_ALERTS);
    const marked = underQuota(counter, quota, cameAlong ? count : countBefore, { window, now: context.now });
    const { alerted } = marked;
    const projectedAt = rises ? projectedEnd(count, quota, window, context.now) : null;
    const fired = group.alerts.filter(({ percent, share }) => {
      if (alerted.includes(percent)) return false;
      if (percent === PACE) return projectedAt !== null;
      // A threshold that the catalog moved below the count fires when the count next rises.
      return isReached(share, count, quota) &&
        (rises || (counter.block === undefined && !isReached(share, countBefore, quotaBefore)));
    });
    if (fired.length === 0) {
      if (marked !== counter) draft.putCounter(marked);
      continue;
    }
    draft.putCounter(alertedAt(marked, quota, [...alerted, ...fired.map(({ percent }) => percent)]));
    const reached = { group, quota, current: count, window };
    for (const { percent } of fired) {
      if (percent !== PACE) {
        draft.recordMessage(
          "usage.threshold_reached",
          context.now,
          thresholdData(draft.user.id, reached, percent),
        );
      } else if (projectedAt !== null) {
        draft.recordMessage(
          "usage.pace_exceeded",
          context.now,
          paceData(draft.user.id, reached, projectedAt),
        );
      }
    }
  }
}

/** Counters of the active plan that were written and, if plan or quotas may have changed, all of its window. */
function* countersToLookAt(
  draft: Draft,
  base: AlertBase,
  active: ActivePlan,
  now: Millis,
): Iterable<{ readonly group: LimitGroup; readonly counter: Counter }> {
  const { plan } = active;
  const changed = draft.changedCounters().filter((counter) =>
    counter.planId === plan.id && base.changed.get(counter.key) !== counter
  );
  const isSame = base.active !== null && hasSameQuotas(base.active, active);
  for (const group of plan.groups) {
    if (group.alerts.length === 0) continue;
    const window = windowFor(draft, active, group, now);
    let isWritten = false;
    for (const counter of changed) {
      if (counter.groupId !== group.id) continue;
      yield { group, counter };
      isWritten ||= counter.windowStart === window.start;
    }
    if (!isSame && !isWritten) {
      yield { group, counter: draft.counter({ planId: plan.id, groupId: group.id, window }) };
    }
  }
}

/** Whether nothing that gives quotas has changed. */
function hasSameQuotas(a: ActivePlan, b: ActivePlan): boolean {
  return a.row === b.row && a.plan === b.plan && a.addOns.length === b.addOns.length &&
    a.addOns.every(({ row, plan }, place) => row === b.addOns[place]?.row && plan === b.addOns[place]?.plan);
}

/**
 * Compares what fired with another quota: under a raised one a threshold can fire again where the count is below it, and the
 * pace where it uses up no more than the quota.
 */
function underQuota(
  counter: Counter,
  quota: Amount,
  count: Amount,
  { window, now }: { readonly window: Window; readonly now: Millis },
): Counter {
  const { alerted, alertedQuota = quota } = counter;
  if (alerted.length === 0 || counter.alertedQuota === quota) return counter;
  if (quota <= alertedQuota) return alertedAt(counter, quota, alerted);
  const still = alerted.filter((percent) =>
    percent === PACE
      ? projectedEnd(count, quota, window, now) !== null
      : isReached(amountOf(percent), count, quota)
  );
  return alertedAt(counter, quota, still);
}

/**
 * Returns when a count reaches its quota if it goes on rising as it did since the start of its window, rounded down; null if
 * that is not before the end, if the quota is reached already, and before a quarter of the window has passed.
 */
function projectedEnd(
  count: Amount,
  quota: Amount,
  { start, end }: Window,
  now: Millis,
): Millis | null {
  const elapsed = now - start;
  if (end === null || elapsed * 4 < end - start || count <= 0n || count >= quota) return null;
  const needed = BigInt(elapsed) * quota;
  return needed < BigInt(end - start) * count ? start + Number(needed / count) : null;
}

function isReached(share: Amount, count: Amount, quota: Amount): boolean {
  return quota > 0n && count * HUNDRED >= quota * share;
}
