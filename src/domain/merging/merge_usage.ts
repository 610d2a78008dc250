// Usage in a merge: counters of both users are added up, so that a merge never yields a fresh quota. What either side
// used in its running window goes to the surviving plan's window, by the pairing of plan changes; all other counters
// meet where plan, group and window are the same. Section 8 of the decisions, "Counters".

import type { Amount } from "../amount.ts";
import type { Context } from "../context.ts";
import type { Draft } from "../draft.ts";
import { addedTo, adjustedTo, type Counter, type CounterRef, emptied } from "../metering/counter.ts";
import type { Window } from "../plans/period.ts";
import { pairGroups } from "../plans/plan.ts";
import { heldWindowOf, repointHolds, type Standing } from "../plans/standing.ts";
import type { CarriedGroup } from "./merge_report.ts";

/** What became of the counters. */
export interface MergedUsage {
  /** Counters of the ending user that had usage. */
  readonly counters: number;
  /** Counters in which usage of both met. */
  readonly summed: number;
  readonly carried: readonly CarriedGroup[];
  readonly unpaired: readonly string[];
}

interface Tally {
  summed: number;
  readonly carried: CarriedGroup[];
  readonly unpaired: string[];
}

/** Adds the usage of a user to that of another under the plan that survives, null for none. */
export function mergeUsage(
  from: Draft,
  to: Draft,
  standing: Standing | null,
  context: Context,
): MergedUsage {
  const tally: Tally = { summed: 0, carried: [], unpaired: [] };
  const counters = [...from.counters()].filter(hasUsage).length;
  const usedBefore = usedCounters(to);
  if (standing !== null) {
    tally.summed += meetingsApart(from, to, standing, context);
    carryRunning(to, to, standing, context, tally);
  }
  const usedStill = usedCounters(to);
  if (standing !== null) carryRunning(from, to, standing, context, tally);
  for (const row of [...from.counters()]) {
    if (isEmpty(row)) continue;
    if (row.count > 0n && usedBefore.has(row.key) && usedStill.has(row.key)) tally.summed += 1;
    to.putCounter(addedTo(to.counter(refOf(row)), row));
    from.putCounter(emptied(row));
  }
  return { counters, ...tally };
}

function usedCounters(draft: Draft): Set<string> {
  return new Set([...draft.counters()].filter(({ count }) => count > 0n).map(({ key }) => key));
}

/** Groups of the surviving plan with usage on both sides, in running windows that are not both the surviving one. */
function meetingsApart(from: Draft, to: Draft, { plan, window }: Standing, context: Context): number {
  const [a, b] = [heldWindowOf(from, context), heldWindowOf(to, context)];
  if (a?.plan.id !== plan.id || b?.plan.id !== plan.id) return 0;
  if (a.window.start === window.start && b.window.start === window.start) return 0;
  const isUsed = (side: Draft, groupId: string, running: Window) =>
    side.counter({ planId: plan.id, groupId, window: running }).count > 0n;
  return plan.groups.filter(({ id }) => isUsed(from, id, a.window) && isUsed(to, id, b.window)).length;
}

/** Moves what one side used in its running window into the surviving plan's window, where that is another one. */
function carryRunning(side: Draft, to: Draft, standing: Standing, context: Context, tally: Tally): void {
  const running = heldWindowOf(side, context);
  if (running === null) return;
  const { plan: old, window } = running;
  const survives = old.id === standing.plan.id;
  if (survives && window.start === standing.window.start) return;
  const moves = new Map<string, CounterRef>();
  for (const [toId, source] of pairGroups(standing.plan, old)) {
    moves.set(source.id, { planId: standing.plan.id, groupId: toId, window: standing.window });
  }
  const heldBy = repointHolds(side, old.id, window, moves);
  for (const { id } of old.groups) {
    const source = side.counter({ planId: old.id, groupId: id, window });
    const ref = moves.get(id);
    if (ref === undefined) {
      if (hasUsage(source)) tally.unpaired.push(id);
      continue;
    }
    if (!survives && hasUsage(source)) tally.carried.push({ fromGroupId: id, toGroupId: ref.groupId });
    moveCounter(side, to, source, ref, heldBy.get(id) ?? 0n);
  }
}

function moveCounter(side: Draft, to: Draft, source: Counter, ref: CounterRef, holds: Amount): void {
  if (!hasUsage(source) && holds === 0n) return;
  const target = to.counter(ref);
  to.putCounter(
    adjustedTo(target, target.count + source.count, target.costCents + source.costCents, holds),
  );
  side.putCounter(adjustedTo(source, 0n, 0n, -holds));
}

function hasUsage({ count, costCents }: Counter): boolean {
  return count > 0n || costCents > 0n;
}

function isEmpty(row: Counter): boolean {
  return !hasUsage(row) && row.adjusted === 0n;
}

function refOf({ planId, groupId, windowStart: start, windowEnd: end }: Counter): CounterRef {
  const window: Window = { start, end };
  return { planId, groupId, window };
}
