// Counters: the usage of one limit group in one window. The count is always the sum of open holds, recorded events and
// `adjusted`, which books what a plan change or the floor at zero changed. So the sum can be proved from the tables alone
// (src/storage/queries/reconcile.ts). The filler of a block is not usage: it is stored beside the count.

import type { LimitGroup } from "../catalog/plan.ts";
import { type Amount, larger, smaller } from "../values/amount.ts";
import type { UserKey } from "../values/ids.ts";
import type { Millis, Window } from "../values/period.ts";
import type { MemberReading } from "./share.ts";

/** A group with its counter, as usage shows it. */
export interface CounterReading {
  readonly group: LimitGroup;
  readonly quota: Amount;
  readonly counter: Counter;
  readonly window: Window;
  /** Present for a user above: the caller's share of the group. */
  readonly member?: MemberReading;
}

/** Identifies a counter within one user: plan, group and the start of the window. */
export interface CounterRef {
  readonly planId: string;
  readonly groupId: string;
  readonly window: Window;
}

/** The usage of a group in a window. */
export interface Counter {
  /** Its key in maps, see keyOf. */
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
  /** The quota that they were last compared with; absent without alerts, and where an older version wrote them. */
  readonly alertedQuota?: Amount;
  /** Present where `block` filled it in this window. */
  readonly block?: Block;
  /** When a plan change reset it; absent for never, and where usage of another counter was added since. */
  readonly resetAt?: Millis;
  /**
   * Of a session, or of a slot of a rate; absent for a calendar window. A session that a plan change or a merge closed
   * has none either: its counter is left as that of any past window.
   */
  readonly kind?: "session" | "rate";
}

/** What a block adds to a counter, beside its usage. */
export interface Block {
  /** What was missing up to the quota. */
  readonly filler: Amount;
  /** The quota then. The counter shows at least this, also after earlier holds were given back. */
  readonly upTo: Amount;
}

/** The count that limits a user and that answers show. */
export function shownCount({ count, block }: Counter): Amount {
  return block === undefined ? count : larger(count + block.filler, block.upTo);
}

/** Most counters have no alerts: they share this list. */
export const NO_ALERTS: readonly number[] = [];

/** Makes the key of a counter in maps. Ids hold no control characters, so a line feed separates them. */
export function counterKey(planId: string, groupId: string, windowStart: Millis): string {
  return `${planId}\n${groupId}\n${windowStart}`;
}

/** Returns the key of a counter. */
export function keyOf({ planId, groupId, window }: CounterRef): string {
  return counterKey(planId, groupId, window.start);
}

/** Makes an empty counter. */
export function emptyCounter(userKey: UserKey, ref: CounterRef, key = keyOf(ref)): Counter {
  const { kind } = ref.window;
  const counter: Counter = {
    key,
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
  return kind === "session" || kind === "rate" ? { ...counter, kind } : counter;
}

/** Opens a session that was closed at its very start, as if it began anew. */
export function opened(counter: Counter, { kind }: Window): Counter {
  return kind === "session" && counter.kind === undefined ? { ...counter, kind } : counter;
}

/** Closes a session: no call counts in it any more. */
export function closed(counter: Counter): Counter {
  const { kind: _, ...rest } = counter;
  return rest;
}

/** Changes a counter by the delta of a hold or an event; floors at zero, and books the difference as `adjusted`. */
export function counted(counter: Counter, delta: Amount): Counter {
  const count = counter.count + delta;
  return count >= 0n ? { ...counter, count } : { ...counter, count: 0n, adjusted: counter.adjusted - count };
}

/** Adds up two counters of one group and window. Fillers are not added: the sum shows at least what each one showed. */
export function addedTo(counter: Counter, other: Counter): Counter {
  const { windowEnd } = counter;
  const isLater = windowEnd !== null && (other.windowEnd === null || other.windowEnd > windowEnd);
  const sum = {
    ...joinedBy(counter, other),
    windowEnd: isLater ? other.windowEnd : windowEnd,
    count: counter.count + other.count,
    adjusted: counter.adjusted + other.adjusted,
    costCents: counter.costCents + other.costCents,
  };
  const upTo = larger(counter.block?.upTo ?? 0n, other.block?.upTo ?? 0n);
  return filled(sum, upTo, larger(shownCount(counter), shownCount(other)));
}

/**
 * Prepares a counter for usage of another one, by a merge or a carry. Alerts that fired there have fired here too, and all
 * of them count as compared with the lower quota. The time of a reset is removed: the usage may be older.
 */
export function joinedBy(counter: Counter, { alerted, alertedQuota }: Counter): Counter {
  const rest = withoutReset(counter);
  const added = alerted.filter((percent) => !rest.alerted.includes(percent));
  const [one = alertedQuota, other = one] = [rest.alertedQuota, alertedQuota];
  const all = added.length === 0 ? rest.alerted : [...rest.alerted, ...added];
  return one === undefined || other === undefined
    ? { ...rest, alerted: all }
    : { ...rest, alerted: all, alertedQuota: smaller(one, other) };
}

/** Removes the time of a reset. */
export function withoutReset(counter: Counter): Counter {
  const { resetAt: _, ...rest } = counter;
  return rest;
}

/** Sets the alerts that fired, as compared with a quota. */
export function alertedAt(counter: Counter, quota: Amount, alerted: readonly number[]): Counter {
  if (alerted.length > 0) return { ...counter, alerted, alertedQuota: quota };
  const { alertedQuota: _, ...rest } = counter;
  return { ...rest, alerted: NO_ALERTS };
}

/** Fills a counter beside its usage: it shows `shown` now, and at least `upTo` from now on. 0 is no block. */
export function filled(counter: Counter, upTo: Amount, shown: Amount): Counter {
  return upTo === 0n ? counter : { ...counter, block: { filler: larger(shown - counter.count, 0n), upTo } };
}

/** Resets a counter by a plan change; open holds stay on it and are booked as adjusted. */
export function reset(counter: Counter, at: Millis): Counter {
  return { ...emptied(counter), adjusted: counter.adjusted - counter.count, resetAt: at };
}

/** Empties the counter of a user who became an alias: its holds and events are the canonical user's now. */
export function emptied(counter: Counter): Counter {
  const { key, userKey, planId, groupId, windowStart, windowEnd, kind } = counter;
  const calendar = { start: windowStart, end: windowEnd };
  const window = kind === "rate" ? { ...calendar, kind } : calendar;
  return emptyCounter(userKey, { planId, groupId, window }, key);
}

/** Sets a counter to a count by a plan change, with which `holdsDelta` of open holds came or went. */
export function adjustedTo(counter: Counter, count: Amount, costCents: Amount, holdsDelta: Amount): Counter {
  const adjusted = counter.adjusted + (count - counter.count) - holdsDelta;
  return { ...counter, count, costCents, adjusted };
}
