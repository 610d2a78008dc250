// Guards: rates, which limit what was counted within the last seconds, and concurrency, which limits what open holds
// have. A guard only refuses: who pays and whether a call is matched never depend on one. A rate counts in slots.

import { atLeastZero, larger, type Micros, toNumber, ZERO } from "./decimal.ts";
import type { LimitGroup, Unit, WireData } from "./document.ts";
import { type Amounts, isGuard, matchedGroups, type Metadata, pairGroups } from "./rules.ts";
import {
  type GuardLine,
  type GuardPlace,
  placeKey,
  type Reservation,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";

const SLOTS = 60;

/** A guard that a call meets at one user. */
export interface MetGuard {
  user: User;
  planId: string;
  group: LimitGroup;
  quota: Micros;
  need: Micros;
  /** Null: no reason to refuse. */
  reason: "rate_limit_reached" | "concurrency_limit_reached" | null;
}

/** The guards of a user's plan in force that match a call, and whether those of the kinds that look at it refuse. */
export function guardsMet(
  world: World,
  { user, event, metadata, amounts }: {
    user: User;
    event: string;
    metadata: Metadata | null;
    amounts: Amounts;
  },
  primary: SubscriptionRow | null,
  looksAt: "all" | "rates" | "none",
  now: number,
): MetGuard[] {
  if (primary === null) return [];
  const { planId } = primary;
  return matchedGroups(world.plan(planId), event, metadata).filter(isGuard).map((group): MetGuard => {
    const met = { user, planId, group, quota: world.quota(primary, group, now), need: amounts[group.unit] };
    if (looksAt === "none" || passes(world, met, now)) return { ...met, reason: null };
    if (isRate(group)) return { ...met, reason: "rate_limit_reached" };
    return { ...met, reason: looksAt === "all" ? "concurrency_limit_reached" : null };
  });
}

/** A need of 0 passes only below the quota. */
function passes(world: World, met: Omit<MetGuard, "reason">, at: number): boolean {
  const count = guardCount(world, met.user, { planId: met.planId, groupId: met.group.id }, at);
  return met.need === ZERO ? count < met.quota : count + met.need <= met.quota;
}

function isRate({ period }: LimitGroup): boolean {
  return period?.type === "rolling";
}

/** What a guard counts at a moment, now or later, if nobody calls or settles until then. */
export function guardCount(world: World, user: User, place: GuardPlace, at: number): Micros {
  const open = linesOn(world, user, place);
  const group = world.group(place.planId, place.groupId);
  if (!isRate(group)) {
    return sum(open.filter(({ hold }) => hold.expiresAt > at).map(({ line }) => line.amount));
  }
  const slots = new Map(world.rates.get(placeKey(user.id, place)));
  for (const { hold: { expiresAt }, line: { slot, amount } } of open) {
    if (expiresAt > at || !counts(group, slot!, expiresAt)) continue;
    slots.set(slot!, atLeastZero((slots.get(slot!) ?? ZERO) - amount));
  }
  return sum([...slots].filter(([slot]) => counts(group, slot, at)).map(([, amount]) => amount));
}

/** What open holds have of a guard's count. */
export function heldOnGuard(world: World, user: User, place: GuardPlace, now: number): Micros {
  const group = world.group(place.planId, place.groupId);
  const lines = linesOn(world, user, place).map(({ line }) => line);
  return sum(
    lines.filter(({ slot }) => slot === null || counts(group, slot, now)).map(({ amount }) => amount),
  );
}

/** The lines of open holds that a guard contains, in the order in which they lapse. */
function linesOn(world: World, user: User, place: GuardPlace): { hold: Reservation; line: GuardLine }[] {
  return world.reservations.filter((hold) => hold.user === user && hold.state === "held")
    .toSorted((a, b) => a.expiresAt - b.expiresAt || (world.comesBefore(a, b) ? -1 : 1))
    .flatMap((hold) => hold.guards.map((line) => ({ hold, line })))
    .filter(({ line }) => isSame(line, place) || line.left.some((each) => isSame(each, place)));
}

function isSame(a: GuardPlace, b: GuardPlace): boolean {
  return a.planId === b.planId && a.groupId === b.groupId;
}

function sum(amounts: Micros[]): Micros {
  return amounts.reduce((total, each) => total + each, ZERO);
}

function secondsOf({ period }: LimitGroup): number {
  return period?.type === "rolling" ? period.seconds : 0;
}

function slotMs(group: LimitGroup): number {
  return Math.ceil(secondsOf(group) * 1000 / SLOTS);
}

/** When a slot stops to count. */
function slotEnd(group: LimitGroup, slot: number): number {
  return (slot + 1) * slotMs(group) + secondsOf(group) * 1000;
}

function counts(group: LimitGroup, slot: number, at: number): boolean {
  return at < slotEnd(group, slot);
}

/** How long until a refused call passes all guards, if nobody calls or settles; null for never. */
export function retryAfter(world: World, met: MetGuard[], now: number): number | null {
  const refusing = met.filter(({ reason }) => reason !== null);
  const ends = refusing.flatMap(({ user, planId, group }) => {
    const slots = world.rates.get(placeKey(user.id, { planId, groupId: group.id })) ?? new Map();
    const holds = world.reservations.filter((hold) => hold.user === user && hold.state === "held");
    return [...[...slots.keys()].map((slot) => slotEnd(group, slot)), ...holds.map((hold) => hold.expiresAt)];
  });
  const moments = [...new Set(ends)].filter((at) => at > now).sort((a, b) => a - b);
  const first = moments.find((at) => refusing.every((each) => passes(world, each, at)));
  return first === undefined ? null : first - now;
}

/** Counts a call in the rates that it met. */
export function countInRates(world: World, met: MetGuard[], now: number): void {
  for (const { user, planId, group, need } of met) {
    if (isRate(group)) addToSlot(world, user, { planId, groupId: group.id }, slotAt(group, now), need, now);
  }
}

/** The lines of a hold on the guards that it met. */
export function guardLines(met: MetGuard[], now: number): GuardLine[] {
  return met.map(({ planId, group, need }) => ({
    planId,
    groupId: group.id,
    unit: group.unit,
    amount: need,
    slot: isRate(group) ? slotAt(group, now) : null,
    left: [],
  }));
}

function slotAt(group: LimitGroup, now: number): number {
  return Math.floor(now / slotMs(group));
}

/** Changes a slot while it counts. */
function addToSlot(
  world: World,
  user: User,
  place: GuardPlace,
  slot: number,
  delta: Micros,
  at: number,
): boolean {
  if (!counts(world.group(place.planId, place.groupId), slot, at)) return false;
  const slots = world.rates.getOrInsertComputed(placeKey(user.id, place), () => new Map());
  slots.set(slot, atLeastZero((slots.get(slot) ?? ZERO) + delta));
  return true;
}

/** Corrects the slot of a line; whether it still counts. */
function correctSlot(world: World, user: User, line: GuardLine, delta: Micros, at: number): boolean {
  if (line.slot === null) return false;
  const isCounting = addToSlot(world, user, line, line.slot, delta, at);
  if (!isCounting) world.note("rates: a settlement after its slot");
  else if (delta !== ZERO) world.note("rates: a settlement in its slot");
  for (const place of line.left) addToSlot(world, user, place, line.slot, delta, at);
  return isCounting;
}

/** Takes a released or lapsed hold off its rates. */
export function leaveRates(world: World, { user, guards }: Reservation, at: number): void {
  for (const line of guards) correctSlot(world, user, line, -line.amount, at);
}

/**
 * Corrects the rates of a call by its final amounts, after its holds are settled; what each guard shows then, by user. A
 * late commit counts anew, in the slot of its hold, and takes no concurrency.
 */
export function settleGuards(
  world: World,
  holds: Reservation[],
  finalAmount: (unit: Unit) => Micros,
  stateBefore: "held" | "expired",
  now: number,
): Map<User, WireData[]> {
  const shown = new Map<User, Map<string, WireData>>();
  const lines = holds.flatMap(({ user, guards }) => guards.map((line) => ({ user, line })));
  const settled = lines.map(({ user, line }) => {
    const delta = finalAmount(line.unit) - (stateBefore === "held" ? line.amount : ZERO);
    return { user, line, grew: correctSlot(world, user, line, delta, now) && delta > ZERO };
  });
  for (const { user, line, grew } of settled) {
    const group = world.group(line.planId, line.groupId);
    const quota = world.lineQuota(user, line, now);
    const ofUser = shown.getOrInsertComputed(user, () => new Map());
    const key = placeKey(user.id, line);
    const overflow = grew && guardCount(world, user, line, now) > quota;
    ofUser.set(key, {
      ...guardAnswer(world, { user, planId: line.planId, group, quota }, now),
      overflow: overflow || ofUser.get(key)?.["overflow"] === true,
    });
  }
  return new Map([...shown].map(([user, answers]) => [user, [...answers.values()]]));
}

/**
 * Every slot becomes the larger of its own and that of another guard, whose open holds follow.
 * Choice: a hold whose slot counts no more stays, as one of a window that is over does.
 */
export function carryGuard(world: World, user: User, from: GuardPlace, to: GuardPlace, at: number): void {
  const [old, own] = [from, to].map((place) => placeKey(user.id, place)) as [string, string];
  const slots = largerSlots(world.rates.get(own), world.rates.get(old));
  if (slots.size > 0) {
    world.rates.set(own, slots);
    world.note("rates: carried");
  }
  pointGuardHolds(world, user, from, to, at);
}

/** Of two rates, the larger of each slot. */
function largerSlots(
  one: Map<number, Micros> = new Map(),
  other: Map<number, Micros> = new Map(),
): Map<number, Micros> {
  const all = new Map(one);
  for (const [slot, amount] of other) all.set(slot, larger(all.get(slot) ?? ZERO, amount));
  return all;
}

/**
 * Adds the rates of two users slot by slot. For the plan that survives, each brings the larger of what it has there and
 * what it has under its own plan, as on a change of the plan; its open holds follow.
 */
export function mergeGuards(
  world: World,
  from: User,
  to: User,
  survivingId: string | null,
  now: number,
): void {
  for (const user of [from, to]) {
    const ownId = user.entered?.planId;
    if (ownId === undefined || survivingId === null || ownId === survivingId) continue;
    for (const pair of pairGroups(world.plan(ownId), world.plan(survivingId))) {
      if (!isGuard(pair.to)) continue;
      const surviving = { planId: survivingId, groupId: pair.to.id };
      carryGuard(world, user, { planId: ownId, groupId: pair.from.id }, surviving, now);
    }
  }
  for (const [key, slots] of [...world.rates]) {
    const [userId, planId, groupId] = JSON.parse(key) as [string, string, string];
    if (userId !== from.id) continue;
    const target = world.rates.getOrInsertComputed(placeKey(to.id, { planId, groupId }), () => new Map());
    if (target.size > 0) world.note("merges: rates added");
    for (const [slot, amount] of slots) target.set(slot, (target.get(slot) ?? ZERO) + amount);
    world.rates.delete(key);
  }
}

function pointGuardHolds(world: World, user: User, from: GuardPlace, to: GuardPlace, at: number): void {
  const group = world.group(from.planId, from.groupId);
  for (const hold of world.reservations) {
    if (hold.user !== user || hold.state !== "held") continue;
    for (const line of hold.guards) {
      if (!isSame(line, from) || (line.slot !== null && !counts(group, line.slot, at))) continue;
      const { planId, groupId } = line;
      // Choice: concurrency is what open holds have, so it keeps none that follows the pairing.
      if (line.slot !== null) {
        line.left = [...line.left.filter((each) => !isSame(each, to)), { planId, groupId }];
      }
      Object.assign(line, to);
      world.note(`guards: a hold follows, ${line.slot === null ? "concurrency" : "rate"}`);
    }
  }
}

/** What a counter shows of how its guard counts. */
export function guardWindow({ period }: LimitGroup): WireData {
  if (period?.type === "concurrent") return { type: "concurrent" };
  return period?.type === "rolling" ? { type: "rolling", seconds: period.seconds } : {};
}

/** A guard as answers of metering calls show it. */
export function guardAnswer(
  world: World,
  { user, planId, group, quota }: Pick<MetGuard, "user" | "planId" | "group" | "quota">,
  now: number,
): WireData {
  const current = toNumber(guardCount(world, user, { planId, groupId: group.id }, now));
  return { groupId: group.id, unit: group.unit, quota: toNumber(quota), current };
}
