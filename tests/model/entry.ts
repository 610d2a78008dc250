// What a change of the primary does: entering a plan under its policy (carry, reset, block), and what
// falls due by the clock alone (lapsed holds, ended subscriptions and the promotions they cause).
// Everything due is settled one at a time, in the order of its due time and AT its due time.

import { withAlerts } from "./alerts.ts";
import type { LimitGroup, Plan } from "./document.ts";
import { larger, type Micros, smaller, ZERO } from "./decimal.ts";
import { shownFeatures } from "./features.ts";
import { carryGuard, leaveRates } from "./guards.ts";
import { include, leaveLeft, nextInclude } from "./includes.ts";
import { giveBackToRuns } from "./settlement.ts";
import { carryCount, changeLine, tellSale, wholeLine } from "./overage.ts";
import { isGuard, pairGroups } from "./rules.ts";
import { resetShares } from "./shares.ts";
import {
  type Counter,
  type Entered,
  fill,
  type GuardPlace,
  type HistoryRow,
  type HistoryType,
  type Place,
  placeKey,
  planShown,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { creditsData, giveBack } from "./wallet.ts";
import type { Window } from "./windows.ts";

/** Settles everything that is due at `now` or before. */
export function settle(world: World, now: number): void {
  world.isSettling = true;
  for (let last = -Infinity;;) {
    const next = nextDue(world);
    if (!next || next.at > now) break;
    // Messages of what falls due at one moment have no order of their own.
    if (next.at > last) world.messages.nextTurn();
    last = next.at;
    withAlerts(world, next.at, next.settle);
  }
  world.isSettling = false;
}

interface Due {
  at: number;
  settle: () => void;
}

/**
 * The earliest due thing; of equal times holds before ends of trials, then scheduled changes, then ends, then credits, then by id. Choice: ids are
 * compared as texts, also where a merge brought holds of two users together.
 */
function nextDue(world: World): Due | null {
  let next: Due | null = null;
  const consider = (at: number, run: () => void) => {
    if (next === null || at < next.at) next = { at, settle: run };
  };
  const open = world.reservations.filter((hold) => hold.state === "held");
  for (const hold of open.sort((a, b) => world.comesBefore(a, b) ? -1 : 1)) {
    consider(hold.expiresAt, () => {
      hold.state = "expired";
      giveBackToRuns(hold);
      for (const line of hold.lines) changeLine(world, hold.user, line, wholeLine(line));
      for (const { balance, taken } of hold.credits) {
        const { expiresAt } = hold;
        const reservation = hold.of ?? hold;
        giveBack(world, balance, taken, { reason: "reservation_expired", reservation, at: expiresAt });
        leaveLeft(hold, balance, taken);
      }
      leaveRates(world, hold, hold.expiresAt);
      const { user, event, of } = hold;
      if (of !== null) return world.note("levels: a part lapses");
      world.tell(user.id, "reservation.expired", hold.expiresAt, { event }, { reservationId: hold });
    });
  }
  for (const user of world.users.values()) {
    for (const row of user.subscriptions) {
      const { trial } = row;
      if (!row.ended && trial !== null) consider(trial.endsAt, () => endTrial(world, user, row));
    }
  }
  for (const user of world.users.values()) {
    for (const row of user.subscriptions) {
      const { scheduled } = row;
      if (row.ended || scheduled === null) continue;
      consider(scheduled.at, () => changePlan(world, user, row, scheduled.planId, scheduled.at, "scheduled"));
    }
  }
  for (const user of world.users.values()) {
    for (const row of user.subscriptions) {
      const end = row.endsAt;
      if (row.ended || end === null) continue;
      consider(end, () => endRow(world, user, row, end, "ended", null));
    }
  }
  for (const user of world.users.values()) {
    const at = nextInclude(user);
    if (at !== null) consider(at, () => include(world, user, at));
  }
  for (const balance of world.balances) {
    const { expiresAt, revoked, told, origin } = balance;
    if (origin !== null) continue;
    if (expiresAt === null || revoked || told.has("expired")) continue;
    consider(expiresAt, () => {
      told.add("expired");
      if (balance.remaining === ZERO) return world.note("messages: credits lapse with nothing left");
      const { data, ids } = creditsData(balance);
      world.tell(balance.userId, "credits.expired", expiresAt, data, ids);
    });
  }
  for (const sale of world.sales) {
    if (!sale.told) consider(sale.tellAt, () => tellSale(world, sale));
  }
  return next;
}

/** The end of a trial leads to the plan after it, or ends the row. */
function endTrial(world: World, user: User, row: SubscriptionRow): void {
  const { endsAt: at, thenPlanId } = row.trial!;
  if (thenPlanId === null) {
    world.note("trial_ended: the row ends");
    endRow(world, user, row, at, "ended", "trial_ended");
  } else changePlan(world, user, row, thenPlanId, at, "trial_ended");
}

/**
 * Time changes the plan of a row.
 * Choice: where the primary ends at the very moment, the plan is not entered before that end is settled.
 */
function changePlan(
  world: World,
  user: User,
  row: SubscriptionRow,
  planId: string,
  at: number,
  reason: string,
): void {
  const previousPlanId = row.planId;
  Object.assign(row, {
    planId,
    customLimits: new Map(),
    customFeatures: new Map(),
    scheduled: null,
    trial: null,
  });
  holdPlan(row, planId, at);
  writeHistory(world, user, "plan_changed", row, at, { previousPlanId, reason });
  world.note(`${reason}: the plan changes`);
  const primary = user.entered?.row;
  if (primary && !primary.ended && primary.endsAt !== null && primary.endsAt <= at) {
    return world.note(`${reason}: the primary ends at the same moment`);
  }
  followPrimary(world, user, at);
}

/** Ends a row at `at`; when it was the primary, the best row that is left takes its place then. */
export function endRow(
  world: World,
  user: User,
  row: SubscriptionRow,
  at: number,
  type: "ended" | "canceled",
  reason: string | null,
): void {
  const wasPrimary = user.entered?.row === row && user.entered.endedAt === null;
  row.endsAt = at;
  row.ended = true;
  row.scheduled = null;
  row.trial = null;
  writeHistory(world, user, type, row, at, { reason });
  if (!wasPrimary) return;
  const next = world.primary(user, at);
  // Choice: previousPlanId is null, for the promoted row itself did not change its plan.
  if (next && next.provider !== null) {
    writeHistory(world, user, "promoted", next, at);
    if (world.aliasesOf(user.id).length > 0) world.note("merges: promoted after a merge");
    world.countOperation(at);
  }
  followPrimary(world, user, at);
}

export function writeHistory(
  world: World,
  user: User,
  type: HistoryType,
  row: SubscriptionRow,
  at: number,
  more: { previousPlanId?: string; reason?: string | null } = {},
): void {
  const { previousPlanId = null, reason = null } = more;
  const written = world.written(user.id);
  const made = { type, subscription: row, planId: row.planId, previousPlanId, reason, at, ...written };
  // A provider may report an end long after it: that falls due in the past.
  const place = user.history.findLastIndex((row) => row.at <= at) + 1;
  user.history.splice(place, 0, world.name<HistoryRow>("", made));
  const { planId } = row;
  const features = type === "plan_changed" ? shownFeatures(world, user, at) : {};
  const told = { planId, previousPlanId, reason, ...features };
  world.tell(user.id, `subscription.${type}`, at, told, { subscriptionId: row });
}

/**
 * Brings `entered` up to date after rows changed, and applies the policy when a plan is entered from
 * another one.
 * Choice: a better row that takes over by an upsert is an entry, but no `promoted` row: nothing ended.
 */
export function followPrimary(world: World, user: User, at: number): void {
  const primary = world.primary(user, at);
  const old = user.entered;
  if (!primary) {
    if (old && old.endedAt === null) old.endedAt = at;
    return;
  }
  if (old && old.planId !== primary.planId) carryGuards(world, user, old.planId, primary.planId, at);
  let carried = old?.carried ?? true;
  if (old && old.planId !== primary.planId) {
    const isEntry = stillRuns(world, user, old, at);
    if (isEntry) enterPlan(world, user, old, primary, at);
    carried = !isEntry || (world.plan(primary.planId).onPlanChange ?? "carry") === "carry";
  }
  const entered = world.entered(primary, carried);
  if (old && old.planId === primary.planId && world.plan(old.planId).period.type === "lifetime") {
    if (old.startedAt !== entered.startedAt) {
      world.note("lifetime: it turns out to have begun earlier");
      carry(world, user, old, primary, at);
    }
  }
  user.entered = entered;
}

/** Notes that a row has a plan; only the first time counts. */
export function holdPlan(row: SubscriptionRow, planId: string, at: number): void {
  if (!row.held.has(planId)) row.held.set(planId, at);
}

/**
 * Whether the old plan can still be entered from: it is in force, or a window of its end still runs.
 * Choice: its own or that of any quota group; what guards count is no window.
 */
export function stillRuns(world: World, user: User, old: Entered, at: number): boolean {
  const { endedAt } = old;
  if (endedAt === null) return true;
  const groups = world.plan(old.planId).limits.filter((group) => !isGuard(group));
  const own = groups.map((group) => world.windowOf(user.id, old, group, endedAt));
  return [world.window(old, endedAt), ...own].some((window) =>
    window !== null && (window.end === null || at < window.end)
  );
}

function enterPlan(world: World, user: User, old: Entered, primary: SubscriptionRow, at: number): void {
  const entered: Plan = world.plan(primary.planId);
  const windowOf = (group: LimitGroup) => world.windowOf(user.id, primary, group, at);
  const groups = entered.limits.filter((group) => !isGuard(group));
  switch (entered.onPlanChange ?? "carry") {
    case "carry":
      return carry(world, user, old, primary, at);
    case "reset":
      for (const group of groups) {
        const place = { planId: entered.id, groupId: group.id };
        const window = windowOf(group);
        if (group.period?.type === "session") {
          if (window !== null) world.note("sessions: ended by a reset");
          world.sessions.delete(placeKey(user.id, place));
        }
        if (window === null) continue;
        const counter = world.lineCounter(user, { ...place, window });
        // What was sold stays sold.
        if (counter.overage > ZERO) world.note("overage: stays over a reset");
        counter.count = counter.overage;
        counter.cost = ZERO;
        counter.alerted.clear();
        counter.alertedQuota = null;
        counter.filler = ZERO;
        counter.blockedTo = ZERO;
        counter.resetAt = at;
        world.forgetHolds(user, { ...place, window });
        resetShares(world, user, group.id, window);
      }
      return;
    case "block":
      for (const group of groups) {
        const window = windowOf(group);
        if (group.period?.type === "session") world.note(`sessions: ${window ? "blocked" : "none to block"}`);
        if (window === null) continue;
        const counter = world.counter(user.id, entered.id, group.id, window);
        const quota = world.quota(primary, group, at);
        fill(counter, quota, larger(planShown(counter), quota));
      }
  }
}

/**
 * The counter left behind keeps its count, so that a user who comes back finds at least that.
 * Choice: only lines on the carried counter (the old plan's running window) follow the pairing.
 */
function carry(world: World, user: User, old: Entered, primary: SubscriptionRow, at: number): void {
  const [before, after] = [old.planId, primary.planId].map((id) => world.plan(id).limits);
  if (before!.some(({ id, unit }) => after!.some((each) => each.id === id && each.unit !== unit))) {
    world.note("carry: one id in two units");
  }
  for (const { from, to } of pairGroups(world.plan(old.planId), world.plan(primary.planId))) {
    if (isGuard(to)) continue;
    const source = world.windowOf(user.id, old, from, at);
    if (source === null) continue;
    const left = { planId: old.planId, groupId: from.id, window: source };
    const entering = { planId: primary.planId, groupId: to.id };
    const target = world.windowOf(user.id, primary, to, at);
    const window = to.period?.type === "session"
      ? goesOn(world, user, left, { ...entering, target })
      : target!;
    const own = { ...entering, window };
    const isOutlived = outlives(world, { planId: old.planId, group: from }, {
      planId: primary.planId,
      group: to,
    });
    const [behind, entered] = [world.lineCounter(user, left), world.lineCounter(user, own)];
    entered.resetAt = null;
    if (behind.filler > ZERO) world.note("carry: what filled a counter is left behind");
    if (isOutlived) {
      const { any, added } = world.pointHolds(user, left, own, true);
      entered.count += added;
      world.note(`carry: from a lifetime ${any ? "open holds" : "nothing"}`);
      continue;
    }
    if (entered.count > behind.count) world.note("carry: a return finds more than it brings");
    if (behind.overage > ZERO) world.note("overage: left behind by carry");
    carryCount(entered, behind);
    entered.cost = larger(entered.cost, behind.cost);
    takeAlerts(entered, behind);
    world.pointHolds(user, left, own, true);
  }
}

/**
 * Of two sessions that run as a plan is entered the one with the larger count goes on in that plan.
 * Choice: what is left behind stays, as any counter does, so that a user who comes back finds at least that.
 */
function goesOn(
  world: World,
  user: User,
  left: Place,
  { target, ...entering }: GuardPlace & { target: Window | null },
): Window {
  if (target !== null) {
    const [count, own] = [left, { ...entering, window: target }].map((place) =>
      world.lineCounter(user, place).count
    ) as [Micros, Micros];
    world.note(`sessions: two run, ${own >= count ? "that of the entered plan" : "the one carried"} goes on`);
    if (own >= count) return target;
  } else world.note("sessions: carried");
  world.sessions.set(placeKey(user.id, entering), left.window);
  return left.window;
}

/** A guard is carried by every change of the plan, whatever its policy: no change gives a fresh rate. */
function carryGuards(world: World, user: User, oldId: string, enteredId: string, at: number): void {
  for (const { from, to } of pairGroups(world.plan(oldId), world.plan(enteredId))) {
    if (!isGuard(to)) continue;
    carryGuard(world, user, { planId: oldId, groupId: from.id }, { planId: enteredId, groupId: to.id }, at);
  }
}

/** Whether usage is that of a lifetime, and so is not that of any period of the other group. */
export function outlives(
  world: World,
  one: { planId: string; group: LimitGroup },
  other: { planId: string; group: LimitGroup },
): boolean {
  const [from, to] = [one, other].map(({ planId, group }) =>
    (group.period ?? world.plan(planId).period).type
  );
  return from === "lifetime" && to !== "lifetime";
}

/** Adds what fired elsewhere. Choice: where the quotas differ that they fired under, all count as under the lower. */
export function takeAlerts(
  counter: Counter,
  { alerted, alertedQuota }: Pick<Counter, "alerted" | "alertedQuota">,
): void {
  for (const percent of alerted) counter.alerted.add(percent);
  const quotas = [counter.alertedQuota, alertedQuota].filter((quota) => quota !== null);
  counter.alertedQuota = quotas.length === 0 ? null : quotas.reduce(smaller);
}
