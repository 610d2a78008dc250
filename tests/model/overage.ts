// What a group sells past its quota: how much of it there is room for, what lines of holds have of it, what is settled in
// each hour, and the most that a user lets be sold. The overage of a counter is a part of its count that takes no room of
// the plan.

import { atLeastZero, fromNumber, larger, type Micros, smaller, toNumber, ZERO } from "./decimal.ts";
import { type Input, type LimitGroup, type ModelReply, refusal, success, type WireData } from "./document.ts";
import {
  type Counter,
  iso,
  isoOrNull,
  isSamePlace,
  type Line,
  type Place,
  type Sale,
  type User,
  type World,
} from "./state.ts";

const HOUR_MS = 60 * 60 * 1000;
/** More than any call takes. */
const ENDLESS = fromNumber(1e15);

/** The most that a group sells to a user in a window: the operator's or the user's own, whichever is less; null for any. */
function maxInForce({ spendCaps }: User, { id, overage }: LimitGroup): Micros | null {
  if (overage === undefined) return ZERO;
  const limits = [overage.max === null ? null : fromNumber(overage.max), spendCaps.get(id) ?? null];
  const known = limits.filter((each) => each !== null);
  return known.length === 0 ? null : known.reduce(smaller);
}

/** What a group may still sell. */
export function overageRoom(user: User, group: LimitGroup, { overage }: Counter): Micros {
  return atLeastZero((maxInForce(user, group) ?? ENDLESS) - overage);
}

/** What answers show of a group that sells. */
export function overageAnswer({ overage: sells }: LimitGroup, { overage }: Counter): WireData {
  return sells === undefined ? {} : { overage: toNumber(overage) };
}

/** What counters show of a group that sells: also the most in force. */
export function sellingAnswer(user: User, group: LimitGroup, counter: Counter): WireData {
  if (group.overage === undefined) return {};
  const max = maxInForce(user, group);
  return { ...overageAnswer(group, counter), overageMax: max === null ? null : toNumber(max) };
}

/** How a line changes: its part of the plan, what it gives back of what it sold, and what it sells anew. */
export interface LineChange {
  plan: Micros;
  back: Micros;
  sold: Micros;
}

/** All that a line has, given back. */
export function wholeLine({ amount, overage }: Line): LineChange {
  return { plan: overage - amount, back: overage, sold: ZERO };
}

/** Changes the counters that contain a line, without those that a late commit spares. */
export function changeLine(
  world: World,
  user: User,
  line: Line,
  { plan, back, sold }: LineChange,
  spared: Counter[] = [],
): void {
  const places: Place[] = [line, ...line.left];
  // Choice: a reset forgets a hold that has left, but not what it sold there.
  const isForgotten = !places.some((place) => isSamePlace(place, line.soldAt));
  for (const place of isForgotten ? [...places, line.soldAt] : places) {
    const counter = world.lineCounter(user, place);
    if (spared.includes(counter)) continue;
    const gone = isSamePlace(place, line.soldAt) ? back : ZERO;
    const added = place === line ? sold : ZERO;
    const isSoldOnly = isForgotten && place === line.soldAt;
    const ofPlan = atLeastZero(planCount(counter) + (isSoldOnly ? ZERO : plan));
    counter.overage = atLeastZero(counter.overage - gone + added);
    counter.count = ofPlan + counter.overage;
    if (place !== line && plan !== ZERO) world.note("carry: a counter left behind is corrected");
    if (place !== line && gone !== ZERO) world.note("overage: given back where it was sold");
  }
}

/** What a line has of one of the counters that contain it. */
export function partIn({ amount, overage, soldAt }: Line, place: Place): Micros {
  return isSamePlace(place, soldAt) ? amount : amount - overage;
}

/** Settles what was sold. Its message is due after the hour, or at the end of its window if that is earlier. */
export function book(world: World, user: User, place: Place, amount: Micros, now: number): void {
  if (amount === ZERO) return;
  const { planId, groupId, window } = place;
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const isLate = window.end !== null && window.end <= now;
  const tellAt = window.end === null || isLate ? hour + HOUR_MS : Math.min(hour + HOUR_MS, window.end);
  const { unit } = world.group(planId, groupId);
  world.note(`overage: settled${isLate ? " after its window" : ""}`);
  add(world, { userId: user.id, planId, groupId, unit, window, hour, amount, tellAt, told: false });
}

/** Adds to the row of the same message. */
function add(world: World, sale: Sale): void {
  const same = world.sales.find((each) =>
    isOfWindow(each, sale) && !each.told && each.tellAt === sale.tellAt
  );
  if (same) same.amount += sale.amount;
  else world.sales.push({ ...sale });
}

/** Choice: groups of one id and unit in several plans are one group where their windows are the same. */
function isOfWindow(a: Sale, b: Sale): boolean {
  return a.userId === b.userId && a.groupId === b.groupId && a.unit === b.unit &&
    a.window.start === b.window.start && a.window.end === b.window.end;
}

/** What a window has sold up to and with an hour. */
function totalOf(world: World, sale: Sale): Micros {
  return world.sales.filter((each) => isOfWindow(each, sale) && each.hour <= sale.hour)
    .reduce((sum, { amount }) => sum + amount, ZERO);
}

export function tellSale(world: World, sale: Sale): void {
  sale.told = true;
  const total = totalOf(world, sale);
  const { userId, window, tellAt } = sale;
  if (total > sale.amount) world.note("overage: a total of several hours");
  const period = { start: iso(window.start), end: isoOrNull(window.end) };
  world.tell(userId, "usage.overage", tellAt, { ...saleAnswer(sale, sale.amount, total), period });
}

function saleAnswer({ groupId, unit, hour }: Sale, amount: Micros, total: Micros): WireData {
  return { groupId, unit, hour: iso(hour), amount: toNumber(amount), total: toNumber(total) };
}

/** A merge: what no message had yet has one message, about the canonical user. */
export function mergeSales(world: World, from: User, to: User): void {
  const moved = world.sales.filter(({ userId }) => userId === from.id);
  for (const sale of moved) sale.userId = to.id;
  const untold = moved.filter(({ told }) => !told);
  if (untold.length > 0) world.note("merges: overage that is not told yet");
  world.sales = world.sales.filter((sale) => !untold.includes(sale));
  for (const sale of untold) add(world, sale);
  for (const key of from.selling) to.selling.add(key);
  for (const [groupId, max] of from.spendCaps) {
    const own = to.spendCaps.get(groupId);
    if (own !== undefined) world.note("merges: two caps of one group");
    to.spendCaps.set(groupId, own === undefined ? max : smaller(own, max));
  }
}

export function overage(world: World, input: Input): ModelReply {
  const { id: userId } = world.user(String(input["userId"]));
  const [from = -Infinity, to = Infinity] = ["from", "to"].map((name) =>
    typeof input[name] === "string" ? Date.parse(input[name]) : undefined
  );
  const wanted = world.sales.filter((sale) => sale.userId === userId && sale.hour >= from && sale.hour < to);
  const firsts = wanted.filter((sale, place) =>
    wanted.findIndex((each) => isOfWindow(each, sale) && each.hour === sale.hour) === place
  );
  const rows = firsts.map((sale) => {
    const amount = wanted.filter((each) => isOfWindow(each, sale) && each.hour === sale.hour)
      .reduce((sum, each) => sum + each.amount, ZERO);
    return { userId, ...saleAnswer(sale, amount, totalOf(world, sale)) };
  });
  return success({ overage: rows });
}

/** Sets the most that a user lets a group of its plan sell. */
export function spendCap(world: World, input: Input, now: number): ModelReply {
  const user = world.user(String(input["userId"]));
  const { groupId, max } = input as { groupId: string; max: number | null };
  const primary = world.primary(user, now);
  const group = primary && world.plan(primary.planId).limits.find(({ id }) => id === groupId);
  if (!group || group.overage === undefined) return refusal("invalid_request");
  if (max !== null && group.overage.max !== null && max > group.overage.max) {
    return refusal("invalid_request");
  }
  if (max === null) user.spendCaps.delete(groupId);
  else user.spendCaps.set(groupId, fromNumber(max));
  const window = world.windowOf(user.id, primary, group, now);
  const { overage: sold } = world.counterIn(user.id, primary.planId, groupId, window);
  world.note(`overage: a cap is set${max !== null && fromNumber(max) < sold ? " below what is sold" : ""}`);
  return success({ userId: user.id, groupId, max });
}

/** Tells that a turn sold the first of a window, or took it to the most that may be sold. */
export function tellSelling(
  world: World,
  user: User,
  before: ReadonlyMap<Counter, Micros>,
  at: number,
): void {
  for (const counter of world.countersOf(user.id)) {
    const { overage, planId, groupId, windowStart, windowEnd } = counter;
    const was = before.get(counter) ?? ZERO;
    if (overage <= was) continue;
    const group = world.group(planId, groupId);
    const max = maxInForce(user, group);
    const events = [
      ...(was === ZERO ? ["overage_started" as const] : []),
      ...(max !== null && overage >= max ? ["cap_reached" as const] : []),
    ];
    for (const event of events) {
      const key = JSON.stringify([event, groupId, group.unit, windowStart, windowEnd]);
      if (user.selling.has(key)) {
        world.note(`overage: ${event} again`);
        continue;
      }
      user.selling.add(key);
      world.tell(user.id, `usage.${event}`, at, {
        groupId,
        unit: group.unit,
        max: max === null ? null : toNumber(max),
        overage: toNumber(overage),
        period: { start: iso(windowStart), end: isoOrNull(windowEnd) },
      });
    }
  }
}

/** The part of a counter's count that the plan gave. */
export function planCount({ count, overage }: Counter): Micros {
  return count - overage;
}

/** Takes over what a counter left behind has of the plan: the larger of both, beside what was sold here. */
export function carryCount(entered: Counter, behind: Counter): void {
  entered.count = larger(planCount(entered), planCount(behind)) + entered.overage;
}
