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
// Slots of rates are added up like all counters, whatever the plans were. Of two running sessions that of the primary
// subscription goes on, with the usage of both.
//
// What was sold past a quota is added where the plan survives, and else stays where it was sold.
//
// The filler of a block is not usage, so it is not carried. In a blocked counter added usage takes the filler's place.
// After a merge no counter has the time of a reset, because holds of the other user may be older.

import { larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { isGuard, type LimitGroup } from "../catalog/plan.ts";
import {
  addedTo,
  closed,
  type Counter,
  type CounterRef,
  emptied,
  filled,
  joinedBy,
  keyOf,
  opened,
  planCount,
  usedOfPlan,
  withoutReset,
} from "../state/counter.ts";
import {
  type FollowedHolds,
  forgetLeft,
  type LeftPlan,
  type Move,
  movesBetween,
  NO_HOLDS,
  receiving,
  repointHolds,
  windowCarried,
  windowsLeft,
} from "../plans/carry.ts";
import { isOfGuard, type Window } from "../values/period.ts";
import { type ActivePlan, leftPlanOf } from "../plans/entitlement.ts";
import { closeSessions, runningSession, windowFor } from "../plans/windows.ts";
import type { CarriedGroup } from "./merge_report.ts";

/** The result for counters; slots of rates are not listed. */
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

/** The surviving plan, with the window of each of its groups. */
interface Surviving {
  readonly active: ActivePlan;
  readonly windowOf: (group: LimitGroup) => Window;
}

/**
 * Adds the usage of a user to that of another, under the surviving plan; null for no plan.
 *
 * @param primary the side that had the primary subscription
 */
export function mergeUsage(
  from: Draft,
  to: Draft,
  primary: Draft,
  active: ActivePlan | null,
  context: Context,
): MergedUsage {
  const tally: Tally = { summed: 0, carried: [], unpaired: [], moved: new Set() };
  const counters = [...from.counters()].filter((row) => hasUsage(row) && row.kind !== "rate").length;
  const usedBefore = usedCounters(to);
  for (const row of [...to.counters()]) if (row.resetAt !== undefined) to.putCounter(withoutReset(row));
  const surviving = active === null
    ? null
    : survivingOf(active, to, primary === to ? [to, from] : [from, to], context);
  if (surviving !== null) {
    tally.summed += meetingsApart(from, to, surviving, context);
    for (const side of [to, from]) {
      carryRunning(side, to, surviving, context, tally);
      joinSessions(side, to, surviving, context, tally);
    }
  }
  for (const row of [...from.counters()]) {
    if (isEmpty(row)) continue;
    const isSummed = row.count > 0n && row.kind !== "rate" && usedBefore.has(row.key);
    if (isSummed && !tally.moved.has(row.key)) tally.summed += 1;
    const sum = addedTo(to.counter(refOf(row)), row);
    to.putCounter(isOfItsGroup(row, context) ? opened(sum, row) : sum);
    from.putCounter(emptied(row));
  }
  if (surviving !== null) closeOtherSessions(to, surviving, context);
  const { summed, carried, unpaired } = tally;
  return { counters, summed, carried, unpaired };
}

function usedCounters(draft: Draft): Set<string> {
  return new Set([...draft.counters()].filter(({ count }) => count > 0n).map(({ key }) => key));
}

/**
 * Decides the window of each group. Of sessions that is the one that the first side would have if it entered the surviving
 * plan by `carry`, else the second side. A lifetime begins when either user first had the plan.
 *
 * @param to has the subscriptions of both users
 * @param sides the side of the primary subscription first
 */
function survivingOf(active: ActivePlan, to: Draft, sides: readonly Draft[], context: Context): Surviving {
  const { now } = context;
  const sessions = new Map<string, Window>();
  for (const side of sides) {
    const left = leftPlanOf(side, context);
    const brought = new Map<string, Window>();
    const note = (group: LimitGroup, from: CounterRef) => {
      if (from.window.kind === "session") {
        brought.set(group.id, windowCarried(side, active, group, from, now).window);
      }
      return null;
    };
    if (left !== null) movesBetween(side, left, active, note, now);
    for (const group of active.plan.groups) {
      const window = brought.get(group.id) ?? runningSession(side, active.plan.id, group, now);
      if (window !== null && !sessions.has(group.id)) sessions.set(group.id, window);
    }
  }
  return { active, windowOf: (group) => sessions.get(group.id) ?? windowFor(to, active, group, now) };
}

/** Ends all running sessions of a group but one: the group is of the surviving plan. */
function closeOtherSessions(to: Draft, { active, windowOf }: Surviving, { now }: Context): void {
  for (const group of active.plan.groups) {
    if (group.period?.type !== "session") continue;
    closeSessions(to, active.plan.id, group.id, now, windowOf(group).start);
  }
}

/** Counts groups of the surviving plan with usage on both sides, unless both run in the surviving window. */
function meetingsApart(from: Draft, to: Draft, { active, windowOf }: Surviving, context: Context): number {
  const { plan } = active;
  const [a, b] = [leftPlanOf(from, context), leftPlanOf(to, context)];
  if (a?.plan.id !== plan.id || b?.plan.id !== plan.id) return 0;
  const used = (side: Draft, left: LeftPlan, group: LimitGroup) =>
    windowsLeft(side, left, group, context.now).filter((window) =>
      side.counter({ planId: plan.id, groupId: group.id, window }).count > 0n
    );
  return plan.groups.filter((group) => {
    if (isGuard(group)) return false;
    const [[one], [other]] = [used(from, a, group), used(to, b, group)];
    const { start } = windowOf(group);
    return one !== undefined && other !== undefined && (one.start !== start || other.start !== start);
  }).length;
}

/** Carries the running usage of one side into the surviving plan's windows, where these are others. */
function carryRunning(side: Draft, to: Draft, surviving: Surviving, context: Context, tally: Tally): void {
  const { active, windowOf } = surviving;
  const left = leftPlanOf(side, context);
  if (left === null) return;
  const survives = left.plan.id === active.plan.id;
  const paired = new Set<string>();
  const windowTo = (group: LimitGroup, { groupId, window }: CounterRef) => {
    paired.add(groupId);
    return isOfGuard(window) ? window : windowOf(group);
  };
  const moves = movesBetween(side, left, active, windowTo, context.now);
  if (!survives) noteUnpaired(side, left, paired, context, tally);
  const source = survives ? "emptied" : "kept";
  const heldBy = repointHolds(side, moves, source);
  const { carried = false } = side.user.entitlement ?? {};
  const knownOf = ({ from, to: ref }: Move) => {
    // Slots of rates are carried by every change of plan, whatever its policy.
    const isContained = !survives && (carried || from.window.kind === "rate");
    const group = active.plan.groups.find(({ id }) => id === ref.groupId);
    const own = group === undefined ? null : runningSession(side, ref.planId, group, context.now);
    return isContained ? side.counter(own === null ? ref : { ...ref, window: own }) : NOTHING;
  };
  const places = new Map(left.plan.groups.map(({ id }, place) => [id, place]));
  const placeOf = ({ from }: Move) => places.get(from.groupId) ?? 0;
  for (const move of [...moves.values()].sort((a, b) => placeOf(a) - placeOf(b))) {
    if (move.from.window.kind === "concurrency") continue;
    const holds = heldBy.get(keyOf(move.from)) ?? NO_HOLDS;
    carryCounter(side, to, move, { ...holds, known: usageOf(knownOf(move)), source }, tally);
  }
  if (source === "emptied") forgetLeft(side, [...moves.values()].map(({ from }) => from));
}

/** Adds sessions of the surviving plan that a side left running earlier to the one that goes on. */
function joinSessions(side: Draft, to: Draft, surviving: Surviving, context: Context, tally: Tally): void {
  const { active: { plan }, windowOf } = surviving;
  const moves = new Map<string, Move>();
  for (const group of plan.groups) {
    const own = runningSession(side, plan.id, group, context.now);
    const window = windowOf(group);
    if (own === null || own.start === window.start) continue;
    const from = { planId: plan.id, groupId: group.id, window: own };
    moves.set(keyOf(from), { from, to: { ...from, window }, leavesUsage: false });
  }
  if (moves.size === 0) return;
  const heldBy = repointHolds(side, moves, "emptied");
  for (const [key, move] of moves) {
    const holds = heldBy.get(key) ?? NO_HOLDS;
    carryCounter(side, to, move, { ...holds, known: NOTHING, source: "emptied" }, tally);
    side.putCounter(closed(side.counter(move.from)));
  }
  forgetLeft(side, [...moves.values()].map(({ from }) => from));
}

/** Lists the groups of the plan left that have usage and no pair. */
function noteUnpaired(
  side: Draft,
  left: LeftPlan,
  paired: ReadonlySet<string>,
  { now }: Context,
  tally: Tally,
): void {
  for (const group of left.plan.groups) {
    if (paired.has(group.id) || isGuard(group)) continue;
    const isUsed = windowsLeft(side, left, group, now).some((window) =>
      hasUsage(side.counter({ planId: left.plan.id, groupId: group.id, window }))
    );
    if (isUsed) tally.unpaired.push(group.id);
  }
}

/** Carries one counter of a side into that of the surviving plan. */
function carryCounter(
  side: Draft,
  to: Draft,
  { from: fromRef, to: ref, leavesUsage }: Move,
  { held, added, known, source }: FollowedHolds & {
    /** The part of the usage that the surviving plan's counter of this side has already. */
    readonly known: Pick<Counter, "count" | "costCents">;
    readonly source: "kept" | "emptied";
  },
  tally: Tally,
): void {
  const from = side.counter(fromRef);
  const isUsed = leavesUsage ? held !== 0n : hasUsage(source === "kept" ? usageOf(from) : from);
  const isBrought = isUsed || from.kind === "session";
  const brings = leavesUsage ? emptied(from) : from;
  if (!isBrought && held === 0n && brings.alerted.length === 0) return;
  if (source === "kept" && isUsed && from.kind !== "rate") {
    tally.carried.push({ fromGroupId: fromRef.groupId, toGroupId: ref.groupId });
  }
  tally.moved.add(from.key);
  const target = opened(to.counter(ref), ref.window);
  const more = leavesUsage ? added : larger(usedOfPlan(from) - known.count, 0n);
  const costCents = target.costCents + larger(brings.costCents - known.costCents, 0n);
  const isKept = source === "kept";
  const sold = isKept ? 0n : from.overage ?? 0n;
  const sum = receiving(joinedBy(target, brings), more, costCents, held, sold);
  to.putCounter(filled(sum, target.block?.upTo ?? 0n, planCount(target)));
  const [gone, keptCost] = isKept ? [0n, from.costCents] : [usedOfPlan(from), 0n];
  side.putCounter(receiving(from, -gone, keptCost, -held, -sold));
}

/** The usage of a counter that another plan takes over: what was sold stays where it was sold. */
function usageOf(counter: Pick<Counter, "count" | "overage" | "costCents">) {
  return { count: usedOfPlan(counter), costCents: counter.costCents };
}

const NOTHING: Pick<Counter, "count" | "costCents"> = { count: 0n, costCents: 0n };

function hasUsage({ count, costCents }: Pick<Counter, "count" | "costCents">): boolean {
  return count > 0n || costCents > 0n;
}

function isEmpty(row: Counter): boolean {
  return !hasUsage(row) && row.adjusted === 0n && row.alerted.length === 0 && row.block === undefined &&
    row.kind !== "session";
}

/** Whether a counter is of the kind that its group has now: an earlier catalog may have given it another. */
function isOfItsGroup({ planId, groupId, kind }: Counter, { catalog }: Context): boolean {
  const type = catalog.plans.get(planId)?.groups.find(({ id }) => id === groupId)?.period?.type;
  return kind === "session" ? type === "session" : kind === "rate" && type === "rolling";
}

function refOf({ planId, groupId, windowStart: start, windowEnd: end, kind }: Counter): CounterRef {
  const window: Window = { start, end };
  return { planId, groupId, window: kind === undefined ? window : { ...window, kind } };
}
