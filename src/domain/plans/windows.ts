// The windows of a limit group: in which one a call counts now, and which ones still count.
//
// A calendar period has one window at a time. A session begins with the first allowed call that the group covers, and lasts
// its seconds; between two sessions none runs. A rate counts in slots. A slot still counts for the seconds of the rate after
// its end. Concurrency is the sum of open holds and has no counter.

import type { Amount } from "../values/amount.ts";
import {
  contains,
  type GroupPeriod,
  IN_FLIGHT,
  type Millis,
  type Period,
  type Window,
} from "../values/period.ts";
import type { Include, LimitGroup, Plan } from "../catalog/plan.ts";
import { closed, type Counter, type CounterRef, NO_ALERTS, opened } from "../state/counter.ts";
import type { Draft } from "../state/draft.ts";
import { isCounting } from "../state/passing.ts";
import { heldSince, type Subscription } from "../state/subscription.ts";

/** A plan in force, with the running window of its period. */
interface PlanInForce {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly window: Window;
}

/** Returns the window in which a group of the plan in force counts a call now. */
export function windowFor(
  draft: Draft,
  { row, plan, window }: PlanInForce,
  { id, period }: LimitGroup,
  now: Millis,
): Window {
  if (period === null) return window;
  switch (period.type) {
    case "session":
      return runningSession(draft, plan.id, id, now) ?? nextSession(now, period.seconds);
    case "rolling":
      return draft.state.shared.slotOf(period, now);
    case "concurrent":
      return IN_FLIGHT;
    default:
      return windowAmong(draft, row, plan, now, period);
  }
}

/**
 * Returns the running window of a user under a period of the plan of a row. A lifetime begins when any row of the user,
 * ended or not, first had the plan, so subscribing again gives no fresh quota.
 */
export function windowAmong(
  draft: Draft,
  row: Subscription,
  plan: Plan,
  at: Millis,
  period: Period = plan.period,
): Window {
  if (period.type !== "lifetime") return draft.state.shared.windowOf(row, period, at);
  let start = Infinity;
  for (const each of draft.subscriptions()) start = Math.min(start, heldSince(each, plan.id) ?? Infinity);
  return { start, end: null };
}

/** Returns the window in which a plan includes a pack at a moment. */
export function windowOfPack(
  draft: Draft,
  { row, plan }: Pick<PlanInForce, "row" | "plan">,
  { period }: Include,
  at: Millis,
): Window {
  return windowAmong(draft, row, plan, at, period);
}

/** A session that the next allowed call begins. */
function nextSession(now: Millis, seconds: number): Window {
  return { start: now, end: now + seconds * 1000, kind: "session", isNext: true };
}

/** Returns the window as a call leaves it: a session has begun. */
export function begun(window: Window): Window {
  if (window.isNext !== true) return window;
  const { isNext: _, ...running } = window;
  return running;
}

/** Returns the running session of a group; null for none. */
export function runningSession(
  draft: Draft,
  planId: string,
  groupId: string,
  now: Millis,
): Window | null {
  let latest: Window | null = null;
  for (const row of draft.passing(planId, groupId)) {
    if (row.kind !== "session") continue;
    const window: Window = { start: row.windowStart, end: row.windowEnd, kind: "session" };
    if (contains(window, now) && (latest === null || window.start > latest.start)) latest = window;
  }
  return latest;
}

/** Closes the running sessions of a group: a merge may have brought several. The one that begins at `but` goes on. */
export function closeSessions(
  draft: Draft,
  planId: string,
  groupId: string,
  now: Millis,
  but: Millis | null = null,
): void {
  for (const row of draft.passing(planId, groupId)) {
    const isRunning = row.kind === "session" && row.windowEnd !== null && row.windowEnd > now;
    if (isRunning && row.windowStart !== but) draft.putCounter(closed(row));
  }
}

/** Returns the slots of a rate that still count. */
export function countingSlots(draft: Draft, planId: string, groupId: string, now: Millis): Counter[] {
  return draft.passing(planId, groupId).filter((row) => isCounting(row, now));
}

/**
 * Returns the counter of a group in a window. That of a guard is the count of everything that counts now, so that the
 * same rules read all groups. It is not stored.
 */
export function counterIn(
  draft: Draft,
  planId: string,
  groupId: string,
  window: Window,
  now: Millis,
): Counter {
  const ref = { planId, groupId, window };
  switch (window.kind) {
    case "session":
      return opened(draft.counter(ref), window);
    case "rate":
      return guardCounter(draft, ref, draft.countOfRate(planId, groupId, now));
    case "concurrency":
      return guardCounter(draft, ref, draft.heldOf(planId, groupId));
    default:
      return draft.counter(ref);
  }
}

/** Makes the counter that shows what a guard counts. It has no key, since it is not stored. */
function guardCounter(draft: Draft, { planId, groupId, window }: CounterRef, count: Amount): Counter {
  return {
    key: "",
    userKey: draft.user.key,
    planId,
    groupId,
    windowStart: window.start,
    windowEnd: window.end,
    count,
    adjusted: 0n,
    costCents: 0n,
    alerted: NO_ALERTS,
  };
}

/** Returns the windows of the slots of a rate that still count, also where the slot only has an open hold of 0. */
function countingWindows(draft: Draft, planId: string, groupId: string, now: Millis): Window[] {
  const windows = new Map<Millis, Window>();
  for (const { windowStart: start, windowEnd: end } of countingSlots(draft, planId, groupId, now)) {
    windows.set(start, { start, end, kind: "rate" });
  }
  for (const { lines } of draft.guardedHolds()) {
    for (const { planId: ofPlan, groupId: ofGroup, window } of lines) {
      const isOfRate = ofPlan === planId && ofGroup === groupId && window.kind === "rate";
      if (isOfRate && window.end !== null && window.end > now) windows.set(window.start, window);
    }
  }
  return [...windows.values()];
}

/** Returns the windows of a group whose usage still counts now. */
export function runningWindows(
  draft: Draft,
  planId: string,
  { id, period }: Pick<LimitGroup, "id" | "period">,
  calendarWindow: (period: Period | null) => Window,
  now: Millis,
): Window[] {
  switch (period?.type) {
    case "session": {
      const running = runningSession(draft, planId, id, now);
      return running === null ? [] : [running];
    }
    case "rolling":
      return countingWindows(draft, planId, id, now);
    case "concurrent":
      return [IN_FLIGHT];
    default: {
      const window = calendarWindow(period ?? null);
      return window.end !== null && window.end <= now ? [] : [window];
    }
  }
}

/** Whether a group, or its plan where it has no period, counts over a lifetime. */
export function isLifetime(plan: Plan, { period }: Pick<LimitGroup, "period">): boolean {
  const type: GroupPeriod["type"] = (period ?? plan.period).type;
  return type === "lifetime";
}
