// Carry: how usage and open holds follow a user from the counters of one plan to those of another, by a plan change under
// `carry` or by a merge.
//
// A plan change copies usage, it does not move it. The count of the entered counter becomes the larger of its own and the
// count left behind, and the counter left behind keeps its count and cost. If that became 0, a user could change plan and
// change back, and would find a fresh quota wherever the other plan's window had rolled over in between.
//
// An open hold is then part of two counts: of the counter that it followed to, as a hold, and of each counter that it
// left, as an adjustment. Its line lists the counters it left (`left`), so that its settlement corrects all of them by
// the same amount. When a hold returns to a counter of that list, it is a hold there again and the counter leaves the
// list. So no counter is corrected twice for one line.

import { type Amount, larger } from "../values/amount.ts";
import type { Draft } from "../state/draft.ts";
import { adjustedTo, counterKey, type CounterRef, joinedBy, withoutReset } from "../state/counter.ts";
import type { HoldLine } from "../state/reservation.ts";
import type { Window } from "../values/period.ts";
import { pairGroups, type Plan } from "../catalog/plan.ts";

/** A plan with the running window of its usage. */
export interface RunningPlan {
  readonly plan: Plan;
  readonly window: Window;
}

/** The counter of the entered plan for each paired group of the plan left, by the id of the group left. */
export type Moves = ReadonlyMap<string, CounterRef>;

/** Pairs the groups of two plans; groups without a pair are left out. */
export function movesBetween(left: RunningPlan, entered: RunningPlan): Moves {
  const moves = new Map<string, CounterRef>();
  for (const [toId, from] of pairGroups(entered.plan, left.plan)) {
    moves.set(from.id, { planId: entered.plan.id, groupId: toId, window: entered.window });
  }
  return moves;
}

/** Carries the running usage of paired groups, open holds included, into the entered plan's counters. */
export function carryUsage(draft: Draft, left: RunningPlan, entered: RunningPlan): void {
  const moves = movesBetween(left, entered);
  const heldBy = repointHolds(draft, left, moves, "kept");
  for (const [fromId, toRef] of moves) {
    const from = draft.counter({ planId: left.plan.id, groupId: fromId, window: left.window });
    const { held, added } = heldBy.get(fromId) ?? NO_HOLDS;
    const to = draft.counter(toRef);
    if (leavesUsage(left, entered)) {
      if (held !== 0n) draft.putCounter(adjustedTo(withoutReset(to), to.count + added, to.costCents, held));
    } else if (from.count > 0n || from.costCents > 0n || held !== 0n || from.alerted.length > 0) {
      const count = larger(to.count, from.count);
      const costCents = larger(to.costCents, from.costCents);
      draft.putCounter(adjustedTo(joinedBy(to, from), count, costCents, held));
    }
    // The holds are part of another counter now. The count stays, so they become adjustments here.
    if (held !== 0n) draft.putCounter(adjustedTo(from, from.count, from.costCents, -held));
  }
}

/** Whether only open holds follow: what was used over a lifetime is not usage of a period. */
export function leavesUsage(left: RunningPlan, entered: RunningPlan): boolean {
  return left.plan.period.type === "lifetime" && entered.plan.period.type !== "lifetime";
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
 * @returns the amounts that the repointed lines hold, by the id of the group left
 */
export function repointHolds(
  draft: Draft,
  left: RunningPlan,
  moves: Moves,
  source: "kept" | "emptied",
): ReadonlyMap<string, FollowedHolds> {
  const heldBy = new Map<string, FollowedHolds>();
  const moved = (line: HoldLine): HoldLine => {
    const to = moves.get(line.groupId);
    const isHere = line.planId === left.plan.id && line.window.start === left.window.start;
    if (to === undefined || !isHere) return line;
    const { planId, groupId, window, unit, taken, left: before = [] } = line;
    const behind = source === "kept" ? [...before, { planId, groupId, window }] : before;
    const stillLeft = behind.filter((ref) => keyOf(ref) !== keyOf(to));
    const { held, added } = heldBy.get(groupId) ?? NO_HOLDS;
    const isNew = stillLeft.length === behind.length;
    heldBy.set(groupId, { held: held + taken, added: isNew ? added + taken : added });
    return withLeft({ ...to, unit, taken }, stillLeft);
  };
  changeHoldLines(draft, moved);
  return heldBy;
}

/**
 * Removes counters from the `left` lists of open holds. A counter that was set anew no longer contains those holds, so their
 * settlement must not lower it.
 */
export function forgetLeft(draft: Draft, refs: readonly CounterRef[]): void {
  const gone = new Set(refs.map(keyOf));
  changeHoldLines(draft, (line) => {
    if (!line.left?.some((ref) => gone.has(keyOf(ref)))) return line;
    const { left, ...rest } = line;
    return withLeft(rest, left.filter((ref) => !gone.has(keyOf(ref))));
  });
}

function changeHoldLines(draft: Draft, change: (line: HoldLine) => HoldLine): void {
  for (const row of [...draft.openHolds()]) {
    const lines = row.lines.map(change);
    if (lines.some((line, place) => line !== row.lines[place])) draft.putReservation({ ...row, lines });
  }
}

/** Adds the list of counters left to a line; most lines have none. */
function withLeft(line: HoldLine, left: readonly CounterRef[]): HoldLine {
  return left.length === 0 ? line : { ...line, left };
}

function keyOf({ planId, groupId, window }: CounterRef): string {
  return counterKey(planId, groupId, window.start);
}
