// Carry: how usage follows a user from the counters of one plan to those of another, by a plan change under `carry` or
// by a merge, and what that means for open holds. Section 4 of the decisions, amended in section 13.
//
// A plan change copies usage, it does not move it: the counter entered becomes the larger of its own count and the
// one left behind, and the counter left behind keeps its count and cost. If it became 0, a user could change plan and
// change back, and find a fresh quota wherever the other plan's window had meanwhile rolled over.
//
// An open hold is then part of two counts: of the counter that it followed to, where it is a hold, and of each counter
// that it left, where it is only an adjustment. Its line lists the counters it left (`left`), so that what it settles
// with corrects all of them by the same amount. When it comes back to a counter of that list it is a hold there again,
// and leaves the list: no counter is ever corrected twice for one line.

import { type Amount, larger } from "../values/amount.ts";
import type { Draft } from "../state/draft.ts";
import { adjustedTo, alertedBy, counterKey, type CounterRef } from "../state/counter.ts";
import type { HoldLine } from "../state/reservation.ts";
import type { Window } from "../values/period.ts";
import { pairGroups, type Plan } from "../catalog/plan.ts";

/** A plan with the window in which its usage runs. */
export interface RunningPlan {
  readonly plan: Plan;
  readonly window: Window;
}

/** Where the usage of each group of a plan goes: counters of the entered plan by the id of the group left. */
export type Moves = ReadonlyMap<string, CounterRef>;

/** Pairs the groups of two plans; groups without a pair are not in the answer. Section 4 of the decisions. */
export function movesBetween(left: RunningPlan, entered: RunningPlan): Moves {
  const moves = new Map<string, CounterRef>();
  for (const [toId, from] of pairGroups(entered.plan, left.plan)) {
    moves.set(from.id, { planId: entered.plan.id, groupId: toId, window: entered.window });
  }
  return moves;
}

/** Carries the running usage of paired groups into the entered plan's counters, with the open holds it contains. */
export function carryUsage(draft: Draft, left: RunningPlan, entered: RunningPlan): void {
  const moves = movesBetween(left, entered);
  const heldBy = repointHolds(draft, left, moves, "kept");
  for (const [fromId, toRef] of moves) {
    const from = draft.counter({ planId: left.plan.id, groupId: fromId, window: left.window });
    const holds = heldBy.get(fromId) ?? 0n;
    const isUsed = from.count > 0n || from.costCents > 0n || holds !== 0n;
    if (!isUsed && from.alerted.length === 0) continue;
    const to = draft.counter(toRef);
    const entersWith = adjustedTo(
      to,
      larger(to.count, from.count),
      larger(to.costCents, from.costCents),
      holds,
    );
    draft.putCounter({ ...entersWith, alerted: alertedBy(to.alerted, from.alerted) });
    // Its holds count elsewhere now; its count stays, so they become part of what was adjusted.
    if (holds !== 0n) draft.putCounter(adjustedTo(from, from.count, from.costCents, -holds));
  }
}

/**
 * Points the lines of open holds at the counters that their usage goes to.
 *
 * @param source "kept" where the counters left keep their count, so that the holds go on correcting them; "emptied"
 *   where they do not
 * @returns what the repointed lines hold, by the id of the group left
 */
export function repointHolds(
  draft: Draft,
  left: RunningPlan,
  moves: Moves,
  source: "kept" | "emptied",
): ReadonlyMap<string, Amount> {
  const heldBy = new Map<string, Amount>();
  const moved = (line: HoldLine): HoldLine => {
    const to = moves.get(line.groupId);
    const isHere = line.planId === left.plan.id && line.window.start === left.window.start;
    if (to === undefined || !isHere) return line;
    heldBy.set(line.groupId, (heldBy.get(line.groupId) ?? 0n) + line.taken);
    const { planId, groupId, window, unit, taken, left: before = [] } = line;
    const behind = source === "kept" ? [...before, { planId, groupId, window }] : before;
    return withLeft({ ...to, unit, taken }, behind.filter((ref) => keyOf(ref) !== keyOf(to)));
  };
  changeHoldLines(draft, moved);
  return heldBy;
}

/**
 * Takes counters off the lists of what open holds left. A counter that is set anew (`reset`, `block`) no longer
 * contains those holds, so that their settlement must not lower it.
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

/** Most lines left nothing: they have no list at all. */
function withLeft(line: HoldLine, left: readonly CounterRef[]): HoldLine {
  return left.length === 0 ? line : { ...line, left };
}

function keyOf({ planId, groupId, window }: CounterRef): string {
  return counterKey(planId, groupId, window.start);
}
