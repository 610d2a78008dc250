// The windows of a limit group: in which one a call counts now, and which ones still count.
//
// A calendar period has one window at a time. A session begins with the first allowed call that the group covers, and lasts
// its seconds; between two sessions none runs. A rate counts in slots. A slot still counts for the seconds of the rate after
// its end. Concurrency is the sum of open holds and has no counter.
//
// A catalog may put back a group that an earlier one had under another kind, or with other seconds. What counts now is then
// said by the group, not by its old counters: a session or a slot begins apart from them, and none lasts longer than those
// of the group.

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
import { endOf, isCounting } from "../state/passing.ts";
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
  group: LimitGroup,
  now: Millis,
): Window {
  const { id, period } = group;
  if (period === null) return window;
  switch (period.type) {
    case "session":
      return runningSession(draft, plan.id, group, now) ??
        apart(draft, plan.id, id, nextSession(now, period.seconds));
    case "rolling":
      return apart(draft, plan.id, id, draft.state.shared.slotOf(period, now));
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

/** Returns a session or a slot, so many milliseconds later that it shares no counter with a window of another kind or length. */
function apart(draft: Draft, planId: string, groupId: string, window: Window): Window {
  const row = draft.storedCounter({ planId, groupId, window });
  const { start, end, kind } = window;
  // A session that was closed has no kind.
  if (row === undefined || (row.windowEnd === end && (row.kind ?? "session") === kind)) return window;
  return apart(draft, planId, groupId, { ...window, start: start + 1, end: (end as Millis) + 1 });
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
  { id, period }: Pick<LimitGroup, "id" | "period">,
  now: Millis,
): Window | null {
  if (period?.type !== "session") return null;
  let latest: Window | null = null;
  for (const row of draft.passing(planId, id)) {
    if (row.kind !== "session") continue;
    const window: Window = {
      start: row.windowStart,
      end: endOf(row, period.seconds * 1000),
      kind: "session",
    };
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

/** How long the slots of a rate count that are like this one, in milliseconds. */
export function lastsOf({ start, end }: Window): number {
  return (end ?? Infinity) - start;
}

/** Returns the slots of a rate that still count, by one of them. */
export function countingSlots(
  draft: Draft,
  planId: string,
  groupId: string,
  slot: Window,
  now: Millis,
): Counter[] {
  return draft.passing(planId, groupId).filter((row) => isCounting(row, now, lastsOf(slot)));
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
    case "rate":
      return guardCounter(draft, ref, draft.countOfRate(planId, groupId, now, lastsOf(window)));
    case "concurrency":
      return guardCounter(draft, ref, draft.heldOf(planId, groupId));
    default:
      return opened(draft.counter(ref), window);
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
function countingWindows(draft: Draft, planId: string, groupId: string, slot: Window, now: Millis): Window[] {
  const windows = new Map<Millis, Window>();
  for (const row of countingSlots(draft, planId, groupId, slot, now)) {
    const start = row.windowStart;
    windows.set(start, { start, end: endOf(row, lastsOf(slot)), kind: "rate" });
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
  group: Pick<LimitGroup, "id" | "period">,
  calendarWindow: (period: Period | null) => Window,
  now: Millis,
): Window[] {
  const { id, period } = group;
  switch (period?.type) {
    case "session": {
      const running = runningSession(draft, planId, group, now);
      return running === null ? [] : [running];
    }
    case "rolling":
      return countingWindows(draft, planId, id, draft.state.shared.slotOf(period, now), now);
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
