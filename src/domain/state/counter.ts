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
  /** The most overage in force, null for no limit; absent for a group that sells none. */
  readonly overageMax?: Amount | null;
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
  /** Open holds, counted events and adjustments, with what was sold past the quota; never below that. */
  readonly count: Amount;
  /** The part of `count` that open holds and events took as overage; absent for none. */
  readonly overage?: Amount;
  /** The part of `count` that neither holds nor events explain. */
  readonly adjusted: Amount;
  /** The cost of the window's counted events, without open holds. */
  readonly costCents: Amount;
  /** The percents of the quota that fired as alerts in this window, and PACE where its pace did. */
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
interface Block {
  /** What was missing up to the quota. */
  readonly filler: Amount;
  /** The quota then. The counter shows at least this, also after earlier holds were given back. */
  readonly upTo: Amount;
}

/** The count that answers show, with what was sold past the quota. */
export function shownCount(counter: Counter): Amount {
  const { overage } = counter;
  return overage === undefined ? planCount(counter) : planCount(counter) + overage;
}

/** The count that limits a user: what was sold past the quota uses up no room of the plan. */
export function planCount({ count, overage, block }: Counter): Amount {
  const ofPlan = overage === undefined ? count : count - overage;
  return block === undefined ? ofPlan : larger(ofPlan + block.filler, block.upTo);
}

/** The part of the usage that the plan covers: the count without what was sold past the quota. */
export function usedOfPlan({ count, overage }: Pick<Counter, "count" | "overage">): Amount {
  return overage === undefined ? count : count - overage;
}

/** Sets the overage of a counter; most counters have none. */
export function withOverage(counter: Counter, overage: Amount): Counter {
  if (overage === 0n && counter.overage === undefined) return counter;
  const { overage: _, ...rest } = counter;
  return overage === 0n ? rest : { ...rest, overage };
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

/**
 * Returns a counter as one of a window that counts in it from now on: a session that was closed at its very start begins
 * anew, and a catalog may have given the group another kind.
 */
export function opened(counter: Counter, { kind }: Pick<Window, "kind">): Counter {
  if (counter.kind === kind || kind === "concurrency") return counter;
  return kind === undefined ? closed(counter) : { ...counter, kind };
}

/** Closes a session: no call counts in it any more. */
export function closed(counter: Counter): Counter {
  const { kind: _, ...rest } = counter;
  return rest;
}

/**
 * Changes a counter by the delta of a hold or an event. The count floors at what was sold, and the difference is booked as
 * `adjusted`.
 *
 * @param ofOverage the part of the delta that is overage
 */
export function counted(counter: Counter, delta: Amount, ofOverage: Amount = 0n): Counter {
  const count = counter.count + delta;
  if (ofOverage !== 0n || counter.overage !== undefined) return countedSold(counter, count, ofOverage);
  return count >= 0n ? { ...counter, count } : { ...counter, count: 0n, adjusted: counter.adjusted - count };
}

function countedSold(counter: Counter, count: Amount, ofOverage: Amount): Counter {
  const overage = (counter.overage ?? 0n) + ofOverage;
  const row = withOverage(counter, overage);
  if (count >= overage) return { ...row, count };
  return { ...row, count: overage, adjusted: row.adjusted + overage - count };
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
  const sold = withOverage(sum, (counter.overage ?? 0n) + (other.overage ?? 0n));
  const upTo = larger(counter.block?.upTo ?? 0n, other.block?.upTo ?? 0n);
  return filled(sold, upTo, larger(planCount(counter), planCount(other)));
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

/** Fills a counter beside its usage: it counts `full` of the plan now, and at least `upTo` from now on. 0 is no block. */
export function filled(counter: Counter, upTo: Amount, full: Amount): Counter {
  if (upTo === 0n) return counter;
  return { ...counter, block: { filler: larger(full - usedOfPlan(counter), 0n), upTo } };
}

/**
 * Resets a counter by a plan change. What was sold stays sold.
 *
 * @param held what open holds had taken of the plan there, which is no part of the counter any more
 */
export function reset(counter: Counter, held: Amount, at: Millis): Counter {
  const { overage = 0n } = counter;
  const adjusted = counter.adjusted - (usedOfPlan(counter) - held);
  return { ...withOverage(emptied(counter), overage), count: overage, adjusted, resetAt: at };
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
