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
import { adjustedTo, alertedBy, counterKey, type CounterRef } from "../state/counter.ts";
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
    // The holds are part of another counter now. The count stays, so they become adjustments here.
    if (holds !== 0n) draft.putCounter(adjustedTo(from, from.count, from.costCents, -holds));
  }
}

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
 * Removes counters from the `left` lists of open holds. A counter that was set anew (`reset`, `block`) no longer contains
 * those holds, so their settlement must not lower it.
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
