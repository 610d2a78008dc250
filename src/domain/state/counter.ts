// Counters: the usage of one limit group in one window. The count is always the sum of open holds, recorded events and
// `adjusted`, which books what a plan change, a block or the floor at zero changed. So the sum can be proved from the
// tables alone (src/storage/queries/reconcile.ts).

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

/** Identifies a counter within one user: plan, group and the start of the window. */
export interface CounterRef {
  readonly planId: string;
  readonly groupId: string;
  readonly window: Window;
}

/** The usage of a group in a window. */
export interface Counter {
  /** Its key in maps, see counterKey. */
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

/**
 * The newest key of each group of a plan. Most users of a plan are in one window, and share its text. The keys hold ids of
 * the catalog alone, and equal keys are the same key, so this is only a shortcut.
 */
const lastKeys = new Map<string, Map<string, KnownKey>>();
const PLANS_MAX = 10_000;

/** Makes the key of a counter in maps. Ids hold no control characters, so a line feed separates them. */
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

/** Makes an empty counter. */
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

/** Changes a counter by the delta of a hold or an event; floors at zero, and books the difference as `adjusted`. */
export function counted(counter: Counter, delta: Amount): Counter {
  const count = counter.count + delta;
  return count >= 0n ? { ...counter, count } : { ...counter, count: 0n, adjusted: counter.adjusted - count };
}

/** Adds up two counters of one group and window. */
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

/** The union of what two counters fired: after a merge or a carry no alert fires again. */
export function alertedBy(one: readonly number[], other: readonly number[]): readonly number[] {
  const added = other.filter((percent) => !one.includes(percent));
  return added.length === 0 ? one : [...one, ...added];
}

/** Empties the counter of a user who became an alias: its holds and events are the canonical user's now. */
export function emptied(counter: Counter): Counter {
  return { ...counter, count: 0n, adjusted: 0n, costCents: 0n, alerted: NO_ALERTS };
}

/** Sets a counter to a count by a plan change, with which `holdsDelta` of open holds came or went. */
export function adjustedTo(counter: Counter, count: Amount, costCents: Amount, holdsDelta: Amount): Counter {
  const adjusted = counter.adjusted + (count - counter.count) - holdsDelta;
  return { ...counter, count, costCents, adjusted };
}
