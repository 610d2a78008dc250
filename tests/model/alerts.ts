// Alerts: compares every counter and quota before a turn with those after it. A threshold fires where the count was
// below it and no longer is, also because the quota changed. It fires once for each counter, which remembers that, and
// the quota: once that is raised, what the count is below of is forgotten. A block is not in the count. A pace fires where
// the count rises and a straight line from the start of the window through the count crosses the quota before the end.

import { fromNumber, type Micros, toNumber, ZERO } from "./decimal.ts";
import type { LimitGroup } from "./document.ts";
import { include } from "./includes.ts";
import { tellSelling } from "./overage.ts";
import { isGuard } from "./rules.ts";
import { type Counter, iso, isoOrNull, shownCount, type User, type World } from "./state.ts";

/** A user before a turn. */
interface Standing {
  planId: string | null;
  /** By group of the plan in force. */
  quotas: Map<string, Micros>;
  counts: Map<Counter, { count: Micros; overage: Micros; alerted: number }>;
}

/** Does a turn, and fires what it brings about. */
export function inTurn<T>(world: World, at: number, act: () => T, isMerge = false): T {
  world.messages.nextTurn();
  return withAlerts(world, at, act, isMerge);
}

/** Does something, and fires what it brings about. */
export function withAlerts<T>(world: World, at: number, act: () => T, isMerge = false): T {
  const before = new Map([...world.users.values()].map((user) => [user, standingOf(world, user, at)]));
  const result = act();
  for (const user of world.users.values()) include(world, user, at);
  for (const user of world.users.values()) {
    const standing = before.get(user);
    const sold = [...standing?.counts ?? []].map(([counter, { overage }]) => [counter, overage] as const);
    // Choice: a merge sells nothing.
    if (!isMerge) tellSelling(world, user, new Map(sold), at);
    fire(world, user, standing, at);
  }
  return result;
}

function standingOf(world: World, user: User, at: number): Standing {
  const primary = world.primary(user, at);
  // Choice: an add-on that ends at this very moment counted until now.
  const groups = primary ? world.plan(primary.planId).limits.filter(hasAlerts) : [];
  return {
    planId: primary?.planId ?? null,
    quotas: new Map(groups.map((group) => [group.id, world.quota(primary!, group, at - 1)])),
    counts: new Map(
      world.countersOf(user.id).map((counter) => {
        const { count, overage, alerted } = counter;
        return [counter, { count, overage, alerted: alerted.size }];
      }),
    ),
  };
}

function hasAlerts(group: LimitGroup): boolean {
  return !isGuard(group) && (group.alerts ?? []).length > 0;
}

function fire(world: World, user: User, before: Standing | undefined, at: number): void {
  const primary = world.primary(user, at);
  if (!primary) return;
  const plan = world.plan(primary.planId);
  for (const group of plan.limits) {
    if (!hasAlerts(group)) continue;
    const alerts = group.alerts ?? [];
    const quota = world.quota(primary, group, at);
    if (quota === ZERO) continue;
    // Choice: a plan that was not in force had no quota, so whatever is reached as it comes into force is new.
    const quotaBefore = before?.planId === plan.id ? before.quotas.get(group.id) ?? ZERO : ZERO;
    for (const counter of world.countersOf(user.id)) {
      if (counter.planId !== plan.id || counter.groupId !== group.id) continue;
      const { count: was, alerted: fired } = before?.counts.get(counter) ?? { count: ZERO, alerted: 0 };
      const rose = counter.count > was;
      if (!rose && quota === quotaBefore) continue;
      const window = world.windowOf(user.id, primary, group, at);
      const isRunning = counter.windowStart === window?.start;
      // Choice: a late commit counts in its own window, and fires there while its plan is in force. A quota is the
      // running window's.
      if (!rose && !isRunning) continue;
      // Choice: what fired elsewhere goes by the count that it came with.
      const end = window !== null && isRunning ? window.end : counter.windowEnd;
      const line = { start: counter.windowStart, end, at };
      forget(world, counter, quota, counter.alerted.size > fired ? counter.count : was, line);
      if (rose && alerts.includes("pace")) firePace(world, user, { group, counter, quota, line });
      for (const percent of alerts) {
        if (percent === "pace") continue;
        const reaches = (count: Micros, quota: Micros) =>
          quota > ZERO && count * fromNumber(100) >= quota * fromNumber(percent);
        if (!rose && counter.blockedTo > ZERO) {
          if (reaches(shownCount(counter), quota)) world.note("alerts: none by a block");
          continue;
        }
        if (!reaches(counter.count, quota) || (!rose && reaches(was, quotaBefore))) continue;
        if (counter.alerted.has(percent)) {
          if (!reaches(was, quotaBefore)) world.note("alerts: reached again");
          continue;
        }
        counter.alerted.add(percent);
        counter.alertedQuota = quota;
        note(world, {
          rose,
          isRunning,
          isEntry: before?.planId !== plan.id,
          isLate: reaches(was, quotaBefore),
        });
        world.tell(user.id, "usage.threshold_reached", at, {
          groupId: group.id,
          label: group.label,
          unit: group.unit,
          thresholdPercent: percent,
          quota: toNumber(quota),
          current: toNumber(counter.count),
          period: { start: iso(counter.windowStart), end: isoOrNull(end) },
        });
      }
    }
  }
}

/** A window, and the moment up to which its count rose. */
interface Line {
  start: number;
  end: number | null;
  at: number;
}

function firePace(
  world: World,
  user: User,
  { group, counter, quota, line }: { group: LimitGroup; counter: Counter; quota: Micros; line: Line },
): void {
  const crossing = crossingOf(counter.count, quota, line);
  if (crossing === null) return;
  if (counter.alerted.has("pace")) return world.note("alerts: the pace again");
  counter.alerted.add("pace");
  counter.alertedQuota = quota;
  world.note("alerts: by pace");
  world.tell(user.id, "usage.pace_exceeded", line.at, {
    groupId: group.id,
    label: group.label,
    unit: group.unit,
    projectedAt: iso(crossing),
    quota: toNumber(quota),
    current: toNumber(counter.count),
    period: { start: iso(line.start), end: isoOrNull(line.end) },
  });
}

/** When a line crosses the quota, in whole milliseconds; null where a pace has nothing to tell. */
function crossingOf(count: Micros, quota: Micros, { start, end, at }: Line): number | null {
  if (end === null || count === ZERO || count >= quota) return null;
  const passed = at - start;
  if (passed < (end - start) / 4) return null;
  // Choice: rounded down, so that it is before the end.
  if (BigInt(passed) * quota >= BigInt(end - start) * count) return null;
  return start + Number(BigInt(passed) * quota / count);
}

/** Forgets under a raised quota what the count is below of, and a pace that does not cross it in time. */
function forget(world: World, counter: Counter, quota: Micros, count: Micros, line: Line): void {
  const { alerted, alertedQuota } = counter;
  if (alertedQuota !== null && quota > alertedQuota) {
    for (const percent of alerted) {
      if (percent === "pace") {
        if (crossingOf(count, quota, line) !== null) continue;
        world.note("alerts: the pace armed again");
      } else if (count * fromNumber(100) >= quota * fromNumber(percent)) continue;
      alerted.delete(percent);
      world.note("alerts: armed again by a raised quota");
    }
  }
  counter.alertedQuota = alerted.size === 0 ? null : quota;
}

function note(
  world: World,
  fired: { rose: boolean; isRunning: boolean; isEntry: boolean; isLate: boolean },
): void {
  if (!fired.isRunning) world.note("alerts: in a window that is over");
  else if (fired.isEntry) world.note("alerts: as a plan is entered");
  else if (!fired.rose) world.note("alerts: by a lower quota");
  else if (fired.isLate) world.note("alerts: after the catalog moved it");
  else world.note("alerts: by usage");
}
