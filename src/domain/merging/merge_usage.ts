// Usage in a merge: counters of both users are added up, so that a merge never gives a fresh quota. The surviving plan is
// that of the primary subscription after the merge. Running usage of either side goes to its window, by the pairing of
// plan changes; all other counters are added up where plan, group and window are the same.
//
// Amounts of the two users are added. Amounts of one user must not be: after an entry by `carry`, the counters of the
// entered plan include the usage under the plan left, and the counters left behind still have it too. If such a plan gives
// way to the plan that the user had left, that side contributes the larger of the two counts, just as a plan change back
// would. A plan entered by `reset` or `block` includes no usage of the plan before, so the two counts are added. The
// user's entitlement has the difference (`carried`).
//
// A plan that gives way is always left under `carry`: its counters keep their counts, because its subscription may become
// primary again within the same window. If the plan survives and only its window differs, the usage moves: a user gets
// back to the other window only by a new cycle, which starts at 0 anyway.
//
// The filler of a block is not usage, so it is not carried. In a blocked counter added usage takes the filler's place.
// After a merge no counter has the time of a reset, because holds of the other user may be older.

import { larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import {
  addedTo,
  adjustedTo,
  type Counter,
  type CounterRef,
  emptied,
  filled,
  joinedBy,
  shownCount,
  withoutReset,
} from "../state/counter.ts";
import {
  forgetLeft,
  leavesUsage,
  movesBetween,
  NO_HOLDS,
  repointHolds,
  type RunningPlan,
} from "../plans/carry.ts";
import type { Window } from "../values/period.ts";
import { type ActivePlan, runningPlanOf } from "../plans/entitlement.ts";
import type { CarriedGroup } from "./merge_report.ts";

/** The result for counters. */
export interface MergedUsage {
  /** Counters of the alias that had usage. */
  readonly counters: number;
  /** Counters with usage of both users. */
  readonly summed: number;
  readonly carried: readonly CarriedGroup[];
  readonly unpaired: readonly string[];
}

interface Tally {
  summed: number;
  readonly carried: CarriedGroup[];
  readonly unpaired: string[];
  /** The keys of counters with usage that was carried into another counter. */
  readonly moved: Set<string>;
}

/** Adds the usage of a user to that of another, under the surviving plan; null for no plan. */
export function mergeUsage(
  from: Draft,
  to: Draft,
  active: ActivePlan | null,
  context: Context,
): MergedUsage {
  const tally: Tally = { summed: 0, carried: [], unpaired: [], moved: new Set() };
  const counters = [...from.counters()].filter(hasUsage).length;
  const usedBefore = usedCounters(to);
  for (const row of [...to.counters()]) if (row.resetAt !== undefined) to.putCounter(withoutReset(row));
  if (active !== null) {
    tally.summed += meetingsApart(from, to, active, context);
    for (const side of [to, from]) carryRunning(side, to, active, context, tally);
  }
  for (const row of [...from.counters()]) {
    if (isEmpty(row)) continue;
    if (row.count > 0n && usedBefore.has(row.key) && !tally.moved.has(row.key)) tally.summed += 1;
    to.putCounter(addedTo(to.counter(refOf(row)), row));
    from.putCounter(emptied(row));
  }
  const { summed, carried, unpaired } = tally;
  return { counters, summed, carried, unpaired };
}

function usedCounters(draft: Draft): Set<string> {
  return new Set([...draft.counters()].filter(({ count }) => count > 0n).map(({ key }) => key));
}

/** Counts groups of the surviving plan with usage on both sides, unless both run in the surviving window. */
function meetingsApart(from: Draft, to: Draft, { plan, window }: ActivePlan, context: Context): number {
  const [a, b] = [runningPlanOf(from, context), runningPlanOf(to, context)];
  if (a?.plan.id !== plan.id || b?.plan.id !== plan.id) return 0;
  if (a.window.start === window.start && b.window.start === window.start) return 0;
  const isUsed = (side: Draft, groupId: string, running: Window) =>
    side.counter({ planId: plan.id, groupId, window: running }).count > 0n;
  return plan.groups.filter(({ id }) => isUsed(from, id, a.window) && isUsed(to, id, b.window)).length;
}

/** Carries the running usage of one side into the surviving plan's window, if that is another one. */
function carryRunning(side: Draft, to: Draft, active: ActivePlan, context: Context, tally: Tally): void {
  const left = runningPlanOf(side, context);
  if (left === null) return;
  const survives = left.plan.id === active.plan.id;
  if (survives && left.window.start === active.window.start) return;
  const moves = movesBetween(left, active);
  const source = survives ? "emptied" : "kept";
  const heldBy = repointHolds(side, left, moves, source);
  const isContained = !survives && side.user.entitlement?.carried === true;
  for (const { id } of left.plan.groups) {
    const from = side.counter(refTo(left, id));
    const ref = moves.get(id);
    if (ref === undefined) {
      if (hasUsage(from)) tally.unpaired.push(id);
      continue;
    }
    const { held, added } = heldBy.get(id) ?? NO_HOLDS;
    const known = isContained ? side.counter(ref) : NOTHING;
    const leaves = leavesUsage(left, active);
    const isBrought = leaves ? held !== 0n : hasUsage(from);
    const brings = leaves ? emptied(from) : from;
    if (!isBrought && held === 0n && brings.alerted.length === 0) continue;
    if (!survives && isBrought) tally.carried.push({ fromGroupId: id, toGroupId: ref.groupId });
    tally.moved.add(from.key);
    const target = to.counter(ref);
    const count = target.count + (leaves ? added : larger(from.count - known.count, 0n));
    const costCents = target.costCents + larger(brings.costCents - known.costCents, 0n);
    const sum = adjustedTo(joinedBy(target, brings), count, costCents, held);
    to.putCounter(filled(sum, target.block?.upTo ?? 0n, shownCount(target)));
    const [kept, keptCost] = source === "kept" ? [from.count, from.costCents] : [0n, 0n];
    side.putCounter(adjustedTo(from, kept, keptCost, -held));
  }
  if (source === "emptied") forgetLeft(side, [...moves.keys()].map((groupId) => refTo(left, groupId)));
}

const NOTHING: Pick<Counter, "count" | "costCents"> = { count: 0n, costCents: 0n };

function hasUsage({ count, costCents }: Counter): boolean {
  return count > 0n || costCents > 0n;
}

function isEmpty(row: Counter): boolean {
  return !hasUsage(row) && row.adjusted === 0n && row.alerted.length === 0 && row.block === undefined;
}

function refTo({ plan, window }: RunningPlan, groupId: string): CounterRef {
  return { planId: plan.id, groupId, window };
}

function refOf({ planId, groupId, windowStart: start, windowEnd: end }: Counter): CounterRef {
  const window: Window = { start, end };
  return { planId, groupId, window };
}
