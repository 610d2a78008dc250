// What a merge does to subscriptions and usage: rows of both users become rows of one, default subscriptions that
// a better one makes pointless end, and usage of a plan that is no longer the primary's goes on in the counters
// of the plan that is. No policy of plan changes applies.

import { atLeastZero, larger, ZERO } from "./decimal.ts";
import { outlives, stillRuns, takeAlerts, writeHistory } from "./entry.ts";
import { mergeGuards } from "./guards.ts";
import { planCount } from "./overage.ts";
import { isGuard, pairGroups } from "./rules.ts";
import { runningSession, SessionMerge } from "./merge_sessions.ts";
import {
  type Counter,
  fill,
  newCounter,
  planShown,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import type { Anchors, Window } from "./windows.ts";

/** The plan whose usage a user has running. */
interface Running {
  planId: string;
  /** By quota group; a session that does not run has none. */
  windows: Map<string, Window>;
}

/** One of the two users before the merge. */
export interface Side {
  user: User;
  running: Running | null;
  /** Its own rows, before they are the other's too. */
  rows: readonly SubscriptionRow[];
}

export function sideOf(world: World, user: User, now: number): Side {
  const { entered } = user;
  const rows = [...user.subscriptions];
  if (!entered || !stillRuns(world, user, entered, now)) return { user, running: null, rows };
  const running = { planId: entered.planId, windows: windowsOf(world, user, entered, now) };
  return { user, running, rows };
}

function windowsOf(
  world: World,
  user: User,
  row: Anchors & { planId: string },
  now: number,
): Map<string, Window> {
  const groups = world.plan(row.planId).limits.filter((group) => !isGuard(group));
  return new Map(groups.flatMap((group) => {
    const window = world.windowOf(user.id, row, group, now);
    return window === null ? [] : [[group.id, window]];
  }));
}

/** Moves all rows; gives back the rows that ended, best first, and how many `merged` rows were written. */
export function mergeSubscriptions(
  world: World,
  from: User,
  to: User,
  now: number,
): { ended: SubscriptionRow[]; merged: number } {
  const primary = world.primary(from, now);
  for (const row of from.subscriptions) row.userId = to.id;
  to.subscriptions = [...to.subscriptions, ...from.subscriptions].sort((a, b) => a.no - b.no);
  to.history = [...to.history, ...from.history].sort((a, b) => a.at - b.at || a.no - b.no);
  if (primary) writeHistory(world, to, "merged", primary, now);
  const ended = rowsToEnd(world, to, now);
  for (const row of ended) {
    row.endsAt = now;
    row.ended = true;
    row.scheduled = null;
    row.trial = null;
    writeHistory(world, to, "ended", row, now);
    world.note("merges: default ended");
  }
  const kept = world.active(to, now);
  if (kept.filter((row) => row.provider === null).length > 1) world.note("merges: two defaults kept");
  if (kept.filter((row) => row.provider !== null).length > 1) world.note("merges: paid duplicates kept");
  return { ended, merged: primary ? 1 : 0 };
}

/** Choice: defaults of `to` alone end too; a merge with a user that has nothing tidies up as well. */
function rowsToEnd(world: World, user: User, now: number): SubscriptionRow[] {
  const active = world.bestFirst(world.active(user, now));
  const paid = active.filter((row) => row.provider !== null);
  const defaults = active.filter((row) => row.provider === null);
  if (paid.length === 0) return defaults.slice(1);
  const highest = Math.max(...paid.map((row) => world.rank(row)));
  return defaults.filter((row) => world.rank(row) <= highest);
}

/** Usage that moves to a counter of the surviving plan. */
export interface Move extends Pick<Counter, "count" | "overage" | "cost" | "alerted" | "alertedQuota"> {
  source: Counter;
  target: Counter;
}

interface UsageReport {
  summed: number;
  carried: { fromGroupId: string; toGroupId: string }[];
  unpaired: string[];
}

/**
 * Brings all usage under the canonical user, after the subscriptions are merged; holds still name their
 * users of before.
 * Choice: `summed` counts pairs of counters that had usage before the merge, one of each side, and became one.
 * A counter with carried usage is not counted, nor is what the carried usage meets.
 */
export function mergeUsage(world: World, from: Side, to: Side, now: number): UsageReport {
  const report: UsageReport = { summed: 0, carried: [], unpaired: [] };
  const primary = world.primary(to.user, now);
  const sessions = new SessionMerge(world, { from, to }, primary, now);
  const surviving = primary && {
    planId: primary.planId,
    windows: new Map([...windowsOf(world, to.user, primary, now), ...sessions.windows]),
  };
  mergeGuards(world, from.user, to.user, primary?.planId ?? null, now);
  const moves: Move[] = [];
  if (surviving) {
    report.summed += meetingsInOtherWindows(world, from, to, surviving);
    for (const side of [from, to]) {
      moves.push(...takeOut(world, side, to.user, surviving, report, now));
      moves.push(...sessions.takeOut(side));
    }
  }
  const isMoved = (each: Counter) =>
    moves.some(({ source }) =>
      source.planId === each.planId && source.groupId === each.groupId &&
      source.windowStart === each.windowStart
    );
  for (const counter of world.countersOf(from.user.id)) {
    const { planId, groupId, windowStart, windowEnd } = counter;
    const target = world.counter(to.user.id, planId, groupId, { start: windowStart, end: windowEnd });
    if (counter.count > ZERO && target.count > ZERO && !isMoved(counter)) {
      report.summed += 1;
      const runs = planId === surviving?.planId && windowStart === surviving.windows.get(groupId)?.start;
      world.note(runs ? "merges: summed, equal windows" : "merges: summed, past windows");
    }
    const shown = larger(planShown(target), planShown(counter));
    add(target, counter);
    fill(target, larger(target.blockedTo, counter.blockedTo), shown);
    empty(counter);
  }
  for (const { target, ...moved } of moves) {
    const shown = planShown(target);
    add(target, moved);
    fill(target, target.blockedTo, shown);
  }
  sessions.unite();
  // Choice: no reset is known any more, for it was of one of two users.
  for (const counter of world.countersOf(to.user.id)) counter.resetAt = null;
  return report;
}

/** How many groups of the surviving plan have usage on both sides, running in windows that are not both its own. */
function meetingsInOtherWindows(world: World, from: Side, to: Side, surviving: Running): number {
  const { planId } = surviving;
  const [one, other] = [from.running, to.running];
  if (one?.planId !== planId || other?.planId !== planId) return 0;
  const meeting = world.plan(planId).limits.filter(({ id }) => {
    const [a, b, window] = [one, other, surviving].map(({ windows }) => windows.get(id));
    if (!a || !b || !window) return false;
    return (a.start !== window.start || b.start !== window.start) &&
      world.counter(from.user.id, planId, id, a).count > ZERO &&
      world.counter(to.user.id, planId, id, b).count > ZERO;
  });
  for (const _ of meeting) world.note("merges: summed, different windows");
  return meeting.length;
}

/**
 * What a side's running usage brings to the surviving plan's counters, where those are others than its own.
 *
 * A plan that gives way is left: its counters keep what they have. If the side had entered it from the
 * surviving plan under `carry`, it brings only what it has more than it left there, as on a plain return. Where the plan is
 * the same and only the window differs, the usage moves.
 */
function takeOut(
  world: World,
  { user, running }: Side,
  canonical: User,
  surviving: Running,
  report: UsageReport,
  now: number,
): Move[] {
  if (!running) return [];
  const { planId } = running;
  const same = planId === surviving.planId;
  const pairs = same ? null : pairGroups(world.plan(planId), world.plan(surviving.planId));
  return world.plan(planId).limits.flatMap((group) => {
    const { id } = group;
    const window = running.windows.get(id);
    // Sessions of the surviving plan are moved by themselves.
    if (window === undefined || (same && group.period?.type === "session")) return [];
    const toGroupId = pairs === null ? id : pairs.find(({ from }) => from.id === id)?.to.id;
    const target = toGroupId === undefined ? undefined : surviving.windows.get(toGroupId);
    if (same && window.start === target?.start) return [];
    const source = world.counter(user.id, planId, id, window);
    // What was sold is carried only where the plan stays.
    const isUsed = (same ? source.count : planCount(source)) > ZERO || source.cost > ZERO;
    if (toGroupId === undefined || target === undefined) {
      // What was sold is usage too.
      if (source.count === ZERO && source.cost === ZERO) return [];
      report.unpaired.push(id);
      world.note("merges: unpaired");
      return [];
    }
    const place = { planId: surviving.planId, groupId: toGroupId, window: target };
    const left = { planId, groupId: id, window };
    const { any, added } = world.pointHolds(user, left, place, !same);
    if (same) world.forgetLeft(user, left);
    if (source.filler > ZERO) world.note("merges: what filled a counter is left behind");
    const entered = world.group(surviving.planId, toGroupId);
    if (outlives(world, { planId, group }, { planId: surviving.planId, group: entered })) {
      if (!any) return [];
      report.carried.push({ fromGroupId: id, toGroupId });
      world.note("merges: open holds alone, from a lifetime");
      const target = world.lineCounter(canonical, place);
      return [{ source, target, ...usageIn(newCounter(target)), count: added }];
    }
    // What fired goes along, also where nothing is left of the usage.
    if (!isUsed && source.alerted.size === 0) return [];
    if (!same && isUsed) report.carried.push({ fromGroupId: id, toGroupId });
    if (!same && isUsed) world.note("merges: carried");
    const targetCounter = world.lineCounter(canonical, place);
    const whole = { source, target: targetCounter, ...usageIn(source) };
    if (same) {
      empty(source);
      return [whole];
    }
    // What was sold stays where it was sold.
    const moved = { ...whole, count: planCount(source), overage: ZERO };
    const own = entered.period?.type === "session" ? runningSession(world, user, place, now) : target;
    const behind = world.counterIn(user.id, place.planId, place.groupId, own);
    if (!user.entered!.carried || (behind.count === ZERO && behind.cost === ZERO)) {
      if (behind.count > ZERO) world.note("merges: carried to a plan left by reset or block");
      return [moved];
    }
    world.note("merges: carried to a plan left under carry");
    const more = {
      count: atLeastZero(planCount(source) - planCount(behind)),
      cost: atLeastZero(source.cost - behind.cost),
    };
    return [{ ...moved, ...more }];
  });
}

/** What a counter brings to another one. */
export function usageIn(
  { count, overage, cost, alerted, alertedQuota }: Counter,
): Omit<Move, "source" | "target"> {
  return { count, overage, cost, alerted: new Set(alerted), alertedQuota };
}

/**
 * The entitlement of the merged user is that of the primary; without one, what ended last. A side whose plan gave way
 * was carried; a side whose plan survives was if it had entered it so.
 */
export function mergeEntered(world: World, from: Side, to: Side, now: number): void {
  const [a, b] = [from.user.entered, to.user.entered];
  const primary = world.primary(to.user, now);
  if (primary) {
    const { planId } = primary;
    const carried = [from, to].every(({ user, running }) =>
      running?.planId !== planId || user.entered?.carried !== false
    );
    to.user.entered = world.entered(primary, carried);
  } else if ((a?.endedAt ?? -Infinity) > (b?.endedAt ?? -Infinity)) {
    to.user.entered = a;
  }
}

function add(
  counter: Counter,
  { count, overage, cost, ...fired }: Omit<Move, "source" | "target">,
): void {
  counter.count += count;
  counter.overage += overage;
  counter.cost += cost;
  takeAlerts(counter, fired);
}

export function empty(counter: Counter): void {
  counter.count = ZERO;
  counter.overage = ZERO;
  counter.cost = ZERO;
}
