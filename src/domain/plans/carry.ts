// Carry: how usage and open holds follow a user from the counters of one plan to those of another, by a plan change under
// `carry` or by a merge.
//
// A plan change copies usage, it does not move it. The count of the entered counter becomes the larger of its own and the
// count left behind, and the counter left behind keeps its count and cost. If that became 0, a user could change plan and
// change back, and would find a fresh quota wherever the other plan's window had rolled over in between.
//
// What was sold past a quota is no usage of the plan, so it is not copied: it stays where it was taken, and is settled
// there. The line of an open hold then leaves its overage behind, as a line after it.
//
// An open hold is then part of two counts: of the counter that it followed to, as a hold, and of each counter that it
// left, as an adjustment. Its line lists the counters it left (`left`), so that its settlement corrects all of them by
// the same amount. When a hold returns to a counter of that list, it is a hold there again and the counter leaves the
// list. So no counter is corrected twice for one line.

import { type Amount, larger } from "../values/amount.ts";
import type { Draft } from "../state/draft.ts";
import {
  adjustedTo,
  closed,
  type Counter,
  type CounterRef,
  joinedBy,
  keyOf,
  opened,
  usedOfPlan,
  withoutReset,
  withOverage,
} from "../state/counter.ts";
import { holdsStay, holdsToMove, movedHolds } from "../state/open_holds.ts";
import type { HoldLine, Reservation } from "../state/reservation.ts";
import { isOfGuard, type Millis, type Period, type Window, windowAt } from "../values/period.ts";
import { type LimitGroup, pairGroups, type Plan } from "../catalog/plan.ts";
import type { Subscription } from "../state/subscription.ts";
import { isLifetime, runningSession, runningWindows, windowFor } from "./windows.ts";

/** The plan that a user entered last, with how its windows are stepped. */
export interface LeftPlan {
  readonly plan: Plan;
  /** The moment whose windows these are: now, or when the plan was left without a successor. */
  readonly at: Millis;
  readonly anchor: Millis;
  readonly startedAt: Millis;
}

/** A plan that a user enters, with the running window of its period. */
interface EnteredPlan {
  readonly row: Subscription;
  readonly plan: Plan;
  readonly window: Window;
}

/** A counter of the plan left, with the counter of the entered plan that receives its usage. */
export interface Move {
  readonly from: CounterRef;
  readonly to: CounterRef;
  /** Whether only open holds follow: what was used over a lifetime is not usage of a period. */
  readonly leavesUsage: boolean;
}

/** Moves by the key of the counter left. */
type Moves = ReadonlyMap<string, Move>;

/** Returns the windows of a group of a plan left whose usage still counts. */
export function windowsLeft(draft: Draft, left: LeftPlan, group: LimitGroup, now: Millis): Window[] {
  const calendar = (period: Period | null) =>
    windowAt(period ?? left.plan.period, left.at, left.anchor, left.startedAt);
  return runningWindows(draft, left.plan.id, group, calendar, now);
}

/**
 * Pairs the counters of two plans; groups without a pair are left out, and so are counters that stay the same.
 *
 * @param windowTo returns the window of a paired group of the entered plan that receives a window of the group left; null
 * where nothing follows
 */
export function movesBetween(
  draft: Draft,
  left: LeftPlan,
  entered: EnteredPlan,
  windowTo: (group: LimitGroup, from: CounterRef) => Window | null,
  now: Millis,
): Moves {
  const moves = new Map<string, Move>();
  const pairs = pairGroups(entered.plan, left.plan);
  for (const group of entered.plan.groups) {
    const old = pairs.get(group.id);
    if (old === undefined) continue;
    const leavesUsage = isLifetime(left.plan, old) && !isLifetime(entered.plan, group);
    for (const window of windowsLeft(draft, left, old, now)) {
      const from = { planId: left.plan.id, groupId: old.id, window };
      const target = windowTo(group, from);
      if (target === null) continue;
      const to = { planId: entered.plan.id, groupId: group.id, window: target };
      if (keyOf(from) !== keyOf(to)) moves.set(keyOf(from), { from, to, leavesUsage });
    }
  }
  return moves;
}

/**
 * Carries the running usage of paired groups, open holds included, into the entered plan's counters. Guards are carried
 * under every policy, slot by slot, so that changing plans gives no fresh rate.
 *
 * @param isCarried whether a group of the entered plan takes usage along
 */
export function carryUsage(
  draft: Draft,
  left: LeftPlan,
  entered: EnteredPlan,
  isCarried: (group: LimitGroup) => boolean,
  now: Millis,
): void {
  const windowTo = (group: LimitGroup, from: CounterRef) => {
    if (!isCarried(group)) return null;
    const { window, loser } = windowCarried(draft, entered, group, from, now);
    if (loser !== null) draft.putCounter(closed(loser));
    return window;
  };
  const moves = movesBetween(draft, left, entered, windowTo, now);
  const heldBy = repointHolds(draft, moves, "kept");
  for (const [key, { from: fromRef, to: toRef, leavesUsage }] of moves) {
    if (fromRef.window.kind === "concurrency") continue;
    const from = draft.counter(fromRef);
    const { held, added } = heldBy.get(key) ?? NO_HOLDS;
    const to = opened(draft.counter(toRef), toRef.window);
    if (leavesUsage) {
      if (held !== 0n) draft.putCounter(receiving(withoutReset(to), added, to.costCents, held));
    } else if (isPut(from, held)) {
      const more = larger(usedOfPlan(from) - usedOfPlan(to), 0n);
      const costCents = larger(to.costCents, from.costCents);
      draft.putCounter(receiving(joinedBy(to, from), more, costCents, held));
    }
    // The holds are part of another counter now. The count stays, so they become adjustments here.
    if (held !== 0n) draft.putCounter(receiving(from, 0n, from.costCents, -held));
  }
}

/**
 * Changes a counter by usage and open holds that came from another one, or went there.
 *
 * @param more the usage of the plan
 * @param held what the holds hold
 * @param sold overage, which only a merge moves
 */
export function receiving(
  counter: Counter,
  more: Amount,
  costCents: Amount,
  held: Amount,
  sold: Amount = 0n,
): Counter {
  const row = withOverage(counter, (counter.overage ?? 0n) + sold);
  return adjustedTo(row, row.count + more + sold, costCents, held);
}

/** Whether a counter has something to carry; a session also goes on where nothing was used. */
function isPut(counter: Counter, held: Amount): boolean {
  const { costCents, alerted, kind } = counter;
  return usedOfPlan(counter) > 0n || costCents > 0n || held !== 0n || alerted.length > 0 ||
    kind === "session";
}

/**
 * Returns the window that a carried window goes to. A session goes on in the entered plan, unless that has a running one
 * with as much usage: of two sessions one goes on, and the other one loses.
 */
export function windowCarried(
  draft: Draft,
  entered: EnteredPlan,
  group: LimitGroup,
  from: CounterRef,
  now: Millis,
): { readonly window: Window; readonly loser: Counter | null } {
  const { window } = from;
  if (isOfGuard(window)) return { window, loser: null };
  if (window.kind !== "session") return { window: windowFor(draft, entered, group, now), loser: null };
  const own = runningSession(draft, entered.plan.id, group, now);
  if (own === null) return { window, loser: null };
  const ownCounter = draft.counter({ planId: entered.plan.id, groupId: group.id, window: own });
  if (ownCounter.count >= draft.counter(from).count) return { window: own, loser: null };
  return { window, loser: own.start === window.start ? null : ownCounter };
}

/** What the open holds of a group took that followed to another counter. */
export interface FollowedHolds {
  readonly held: Amount;
  /** The part that the other counter did not contain before: holds that return are in its count already. */
  readonly added: Amount;
}

export const NO_HOLDS: FollowedHolds = { held: 0n, added: 0n };

/**
 * Points the lines of open holds at the counters that receive their usage.
 *
 * @param source "kept": the counters left keep their count, so the holds go on correcting them; "emptied": they do not
 * @returns the amounts that the repointed lines hold, by the key of the counter left
 */
export function repointHolds(
  draft: Draft,
  moves: Moves,
  source: "kept" | "emptied",
): ReadonlyMap<string, FollowedHolds> {
  const heldBy = new Map<string, FollowedHolds>();
  if (moves.size === 0) return heldBy;
  const joined = new Set<HoldLine>();
  const moved = (line: HoldLine, next: HoldLine | undefined, count: Amount): readonly HoldLine[] => {
    if (joined.has(line)) return [];
    const key = keyOf(line);
    const move = moves.get(key);
    const isKept = source === "kept";
    if (move === undefined || (isKept && line.isLeftBehind === true)) return [line];
    const { planId, groupId, window, unit, taken, overage = 0n, left: before = [] } = line;
    const { to } = move;
    if (window.kind === "concurrency") return [{ ...to, unit, taken }];
    const behind = isKept ? [...before, { planId, groupId, window }] : before;
    const stillLeft = behind.filter((ref) => keyOf(ref) !== keyOf(to));
    const follows = isKept ? taken - overage : taken;
    const { held, added } = heldBy.get(key) ?? NO_HOLDS;
    const isNew = stillLeft.length === behind.length;
    const all = follows * count;
    heldBy.set(key, { held: held + all, added: isNew ? added + all : added });
    if (!isKept) return [withLeft({ ...line, ...to }, stillLeft)];
    if (next?.isLeftBehind === true && keyOf(next) === keyOf(to)) {
      // It returns to where it left its overage.
      joined.add(next);
      return [withLeft({ ...to, unit, taken: taken + next.taken, overage: next.taken }, stillLeft)];
    }
    const moving = withLeft({ ...to, unit, taken: follows }, stillLeft);
    if (overage === 0n) return [moving];
    return [moving, { planId, groupId, window, unit, taken: overage, overage, isLeftBehind: true }];
  };
  changeHoldLines(draft, holdsToMove(draft), moved);
  return heldBy;
}

/**
 * Takes open holds out of counters that begin anew: what these no longer contain must not lower them when it is given back.
 * What a hold sold stays. Returns what was taken out, by the key of the counter; null where too many stay in them.
 */
export function forgetHolds(
  draft: Draft,
  refs: readonly CounterRef[],
): ReadonlyMap<string, Amount> | null {
  if (holdsStay(draft)) return null;
  const forgotten = new Map(refs.map((ref) => [keyOf(ref), 0n]));
  changeHoldLines(draft, holdsToMove(draft), (line, _next, count) => {
    const before = forgotten.get(keyOf(line));
    const { taken, overage = 0n } = line;
    if (before === undefined || taken === overage) return [line];
    forgotten.set(keyOf(line), before + (taken - overage) * count);
    return [{ ...line, taken: overage }];
  });
  forgetLeft(draft, refs);
  return forgotten;
}

/**
 * Removes counters from the `left` lists of open holds. A counter that was set anew no longer contains those holds, so their
 * settlement must not lower it.
 */
export function forgetLeft(draft: Draft, refs: readonly CounterRef[]): void {
  const gone = new Set(refs.map(keyOf));
  changeHoldLines(draft, movedHolds(draft), (line) => {
    if (!line.left?.some((ref) => gone.has(keyOf(ref)))) return [line];
    const { left, ...rest } = line;
    return [withLeft(rest, left.filter((ref) => !gone.has(keyOf(ref))))];
  });
}

/**
 * Changes the lines of holds. Holds of one kind share one list of lines, which is changed once for all of them.
 *
 * @param change called with a line, the one after it, and the number of the holds that have them
 */
function changeHoldLines(
  draft: Draft,
  holds: readonly Reservation[],
  change: (line: HoldLine, next: HoldLine | undefined, count: Amount) => readonly HoldLine[],
): void {
  for (const [before, rows] of Map.groupBy(holds, ({ lines }) => lines)) {
    const count = BigInt(rows.length);
    const lines = before.flatMap((line, place) => change(line, before[place + 1], count));
    const isSame = lines.length === before.length && lines.every((line, place) => line === before[place]);
    if (isSame) continue;
    for (const row of rows) draft.putReservation({ ...row, lines });
  }
}

/** Adds the list of counters left to a line; most lines have none. */
function withLeft({ left: _, ...line }: HoldLine, left: readonly CounterRef[]): HoldLine {
  return left.length === 0 ? line : { ...line, left };
}
