// Counters: the usage of one limit group in one window. Its count is always the sum of its open holds, its recorded
// events, and `adjusted`: what a plan change, a block or the floor at zero did to it. Because `adjusted` is kept, the
// sum can be proved from the tables alone (src/storage/queries/reconcile.ts).

import type { LimitGroup } from "../catalog/plan.ts";
import type { Amount } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";

/** A group with its counter, as usage shows it. */
export interface CounterReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  readonly counter: Counter;
}

/** What names a counter within one user: plan, group and the start of the window. */
export interface CounterRef {
  readonly planId: string;
  readonly groupId: string;
  readonly window: Window;
}

/** The usage of a group in a window. */
export interface Counter {
  /** The text that names it in maps: see counterKey. */
  readonly key: string;
  readonly userKey: UserKey;
  readonly planId: string;
  readonly groupId: string;
  readonly windowStart: Millis;
  /** null for a lifetime. */
  readonly windowEnd: Millis | null;
  /** Open holds, counted events and adjustments; never below zero. */
  readonly count: Amount;
  /** The part of `count` that neither holds nor events explain. */
  readonly adjusted: Amount;
  /** The cost of the window's counted events, without open holds. */
  readonly costCents: Amount;
  /** The percents of the quota that fired as alerts in this window. */
  readonly alerted: readonly number[];
}

/** Most counters have no alerts: they share this list. */
export const NO_ALERTS: readonly number[] = [];

interface KnownKey {
  readonly windowStart: Millis;
  readonly key: string;
}

/** The key made last for each group of a plan: most users of a plan are in one window and share its text. */
const lastKeys = new Map<string, Map<string, KnownKey>>();
const PLANS_MAX = 10_000;

/** The text that names a counter in maps. Ids hold no control characters, so a line feed separates them. */
export function counterKey(planId: string, groupId: string, windowStart: Millis): string {
  let ofPlan = lastKeys.get(planId);
  if (ofPlan === undefined) {
    if (lastKeys.size >= PLANS_MAX) lastKeys.clear();
    lastKeys.set(planId, ofPlan = new Map());
  }
  const known = ofPlan.get(groupId);
  if (known?.windowStart === windowStart) return known.key;
  const key = `${planId}\n${groupId}\n${windowStart}`;
  ofPlan.set(groupId, { windowStart, key });
  return key;
}

/** A counter that nothing was counted on yet. */
export function emptyCounter(userKey: UserKey, ref: CounterRef): Counter {
  return {
    key: counterKey(ref.planId, ref.groupId, ref.window.start),
    userKey,
    planId: ref.planId,
    groupId: ref.groupId,
    windowStart: ref.window.start,
    windowEnd: ref.window.end,
    count: 0n,
    adjusted: 0n,
    costCents: 0n,
    alerted: NO_ALERTS,
  };
}

/** The counter after a hold or an event changed it by a delta; floors at zero and keeps account of the floor. */
export function counted(counter: Counter, delta: Amount): Counter {
  const count = counter.count + delta;
  return count >= 0n ? { ...counter, count } : { ...counter, count: 0n, adjusted: counter.adjusted - count };
}

/** The counter with all of another one of the same group and window added. */
export function addedTo(counter: Counter, other: Counter): Counter {
  const { windowEnd } = counter;
  const isLater = windowEnd !== null && (other.windowEnd === null || other.windowEnd > windowEnd);
  return {
    ...counter,
    windowEnd: isLater ? other.windowEnd : windowEnd,
    count: counter.count + other.count,
    adjusted: counter.adjusted + other.adjusted,
    costCents: counter.costCents + other.costCents,
    alerted: alertedBy(counter.alerted, other.alerted),
  };
}

/** What either of two counters fired: where their usage meets, nothing fires again. */
export function alertedBy(one: readonly number[], other: readonly number[]): readonly number[] {
  const added = other.filter((percent) => !one.includes(percent));
  return added.length === 0 ? one : [...one, ...added];
}

/** The counter of a user who became an alias: all of it, holds and events included, is the canonical user's now. */
export function emptied(counter: Counter): Counter {
  return { ...counter, count: 0n, adjusted: 0n, costCents: 0n, alerted: NO_ALERTS };
}

/** The counter set to a count by a plan change while `holdsDelta` of open holds came or went with it. */
export function adjustedTo(counter: Counter, count: Amount, costCents: Amount, holdsDelta: Amount): Counter {
  const adjusted = counter.adjusted + (count - counter.count) - holdsDelta;
  return { ...counter, count, costCents, adjusted };
}
