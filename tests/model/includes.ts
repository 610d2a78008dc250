// Packs that come with a plan: in each window one balance of each part. What is used of a part is carried as counters are
// under `carry`; what is left at a window's end may roll over. Everything is brought about at its moment.

import { atLeastZero, fromNumber, larger, type Micros, smaller, ZERO } from "./decimal.ts";
import type { Include, LimitGroup, MatchRule, Unit } from "./document.ts";
import { ruleSet } from "./rules.ts";
import {
  type Balance,
  isActive,
  type Reservation,
  type SubscriptionRow,
  type User,
  type World,
} from "./state.ts";
import { inOrder, statusOf } from "./wallet.ts";
import type { Window } from "./windows.ts";

const DEFAULT_PRIORITY = { per_type: 100, generic: 0 };

/** Whether any plan includes packs. */
export function includesAny({ catalog }: World): boolean {
  return catalog.plans.some(({ includes = [] }) => includes.length > 0);
}

/** A part of an included pack, as a row has it in a window. */
export interface Part {
  row: SubscriptionRow;
  planId: string;
  isAddOn: boolean;
  packId: string;
  itemId: string | null;
  unit: Unit;
  matches: MatchRule[];
  amount: Micros;
  window: Window;
  include: Include;
}

/** All parts that a user has at a moment. */
function partsOf(world: World, user: User, at: number): Part[] {
  return offeredTo(world, user, at).filter((part) => isGiven(world, user, part));
}

/** All parts of a user's plans, also those that a trial does not give again. */
function offeredTo(world: World, user: User, at: number): Part[] {
  const primary = world.primary(user, at);
  const addOns = user.subscriptions.filter((row) => world.isAddOn(row) && isActive(row, at));
  // Choice: an add-on without a primary includes nothing, as it gives nothing else.
  const rows = primary === null ? [] : [primary, ...addOns];
  return rows.flatMap((row) => {
    const plan = world.plan(row.planId);
    return (plan.includes ?? []).flatMap((include) => partsOfPack(world, user, row, include, at));
  });
}

function partsOfPack(world: World, user: User, row: SubscriptionRow, include: Include, at: number): Part[] {
  const window = windowOf(world, user, row, include, at);
  const pack = world.catalog.packs!.find(({ id }) => id === include.packId)!;
  const seats = BigInt(row.quantity);
  const ofRow = { row, planId: row.planId, isAddOn: world.isAddOn(row), packId: pack.id, window, include };
  // Choice: a quantity of a pack with items is so many packs.
  const packs = fromNumber(include.quantity ?? 1);
  if (pack.items.length === 0) {
    const { unit, matches } = pack as Required<typeof pack>;
    return [{ ...ofRow, itemId: null, unit, matches, amount: packs * seats }];
  }
  return pack.items.map(({ id, unit, matches, amount }) => ({
    ...ofRow,
    itemId: id,
    unit,
    matches,
    amount: fromNumber(amount) * seats,
  }));
}

function windowOf(world: World, user: User, row: SubscriptionRow, { period }: Include, at: number): Window {
  const group = { id: "", ...(period ? { period } : {}) } as LimitGroup;
  return world.windowOf(user.id, row, group, at)!;
}

/** On trial a plan includes its packs once for each user: in the windows of the first moment. */
function isGiven(world: World, user: User, part: Part): boolean {
  const { row, planId, window } = part;
  if (row.trial === null) return true;
  const known = user.trialIncludes.get(planId);
  if (known === undefined) {
    user.trialIncludes.set(planId, { rowNo: row.no, windows: new Map([[keyOf(part), window.start]]) });
    return true;
  }
  if (known.rowNo !== row.no) {
    world.note("includes: no second trial");
    return false;
  }
  if (!known.windows.has(keyOf(part)) && known.isOpen !== false) known.windows.set(keyOf(part), window.start);
  const isFirst = known.windows.get(keyOf(part)) === window.start;
  if (!isFirst) world.note("includes: nothing in a later window of a trial");
  return isFirst;
}

/** What names an item: put back in another unit it is another one. */
function keyOf({ packId, itemId, unit }: Pick<Part, "packId" | "itemId" | "unit">): string {
  return `${packId} ${itemId} ${unit}`;
}

function isOf(balance: Balance, item: string): boolean {
  return keyOf({ packId: balance.pack.id, itemId: balance.packItemId, unit: balance.unit }) === item;
}

/** What names the record of a part in a window, whatever its row. */
function recordOf(part: Part): string {
  return `${part.planId} ${keyOf(part)} ${part.isAddOn ? part.row.no : ""} ${part.window.start}`;
}

/** What has been used, holds included; more than the whole amount where it was carried from a larger one. */
function usedOf({ initial, remaining, overage }: Balance): Micros {
  return initial - remaining + overage;
}

/** Sets what a part has, and what of it is used. */
function setUsed(balance: Balance, amount: Micros, used: Micros): void {
  balance.initial = amount;
  balance.remaining = atLeastZero(amount - used);
  balance.overage = atLeastZero(used - amount);
}

/** When the next window of any part of a user begins; null for never. */
export function nextInclude(user: User): number | null {
  const ends = user.included.flatMap(({ part }) => part.window.end ?? []);
  return ends.length === 0 ? null : Math.min(...ends);
}

/** Brings the balances of a user in line with its subscriptions, after they changed or a window began. */
export function include(world: World, user: User, dueAt: number): void {
  if (!includesAny(world)) return;
  // An end may be reported long after it: what was included meanwhile stays.
  const at = Math.max(dueAt, user.includedAt);
  user.includedAt = at;
  const parts = partsOf(world, user, at);
  for (const known of user.trialIncludes.values()) known.isOpen = false;
  const names = new Set(parts.map(recordOf));
  const leaving = user.included.filter(({ part }) => !names.has(recordOf(part)));
  const staying = user.included.filter((each) => !leaving.includes(each));
  for (const { part, balance } of staying) {
    const now = parts.find((each) => recordOf(each) === recordOf(part))!;
    if (now.amount > balance.initial) {
      world.note("includes: more seats");
      setUsed(balance, now.amount, usedOf(balance));
    }
    if (now.amount < balance.initial) world.note("includes: fewer seats take nothing");
    Object.assign(part, { row: now.row });
  }
  for (const each of leaving) end(world, user, each, at);
  const made = parts.filter((part) => !staying.some((each) => recordOf(each.part) === recordOf(part)));
  const entered = made.filter((part) => !leaving.some((each) => goesOn(each.part, part)));
  const left = leaving.filter(({ part }) => runs(part, at));
  // Choice: where nothing is left now, what was left last counts while its window runs.
  const last = left.length > 0 ? left : user.leftLast.filter(({ part }) => runs(part, at));
  // Use within a window is never forgotten. Choice: but that of a lifetime, once another plan was entered.
  const isOwn = ({ part }: Included) => entered.some((each) => recordOf(each) === recordOf(part));
  const before = user.leftIncludes.filter((each) =>
    each.part.window.end !== null && runs(each.part, at) && !isOwn(each)
  );
  const pairs = pairParts(last, entered);
  const older = pairParts(before.filter((each) => !last.includes(each)), entered, true);
  user.leftLast = last.filter(({ part }) => !entered.some(({ isAddOn }) => isAddOn === part.isAddOn));
  user.leftIncludes = [...user.leftIncludes, ...left].filter(({ part }) => runs(part, at));
  const begun = made.map((part) => ({
    part,
    balance: begin(world, user, part, [pairs.get(part), older.get(part)], at),
  }));
  // Choice: what ends at one moment rolls over in the order in which plan and add-ons include it.
  const placeOf = ({ part }: Included) => parts.findIndex((each) => recordOf(each) === recordOf(part));
  user.included = [...staying, ...begun].sort((a, b) => placeOf(a) - placeOf(b));
  forgetOver(world, user, at);
}

/** Whether one part is the next window of another. */
function goesOn({ row, planId, window, ...before }: Part, after: Part): boolean {
  return row === after.row && planId === after.planId && keyOf(before) === keyOf(after) &&
    window.end !== null && window.end <= after.window.start;
}

/** Forgets what nobody sees any more; open holds may still name it. */
function forgetOver(world: World, user: User, at: number): void {
  const kept = [...user.included, ...user.leftIncludes].map(({ balance }) => balance);
  const isOver = (each: Balance) =>
    each.userId === user.id && each.origin !== null && statusOf(each, at) === "expired" &&
    !kept.includes(each);
  const over = new Set(world.balances.filter(isOver));
  for (let n = world.balances.length - 1; over.size > 0 && n >= 0; n--) {
    if (over.has(world.balances[n]!)) world.balances.splice(n, 1);
  }
}

/** A part of a user, with its balance. */
export interface Included {
  part: Part;
  balance: Balance;
}

function runs({ window }: Part, at: number): boolean {
  return window.end === null || window.end > at;
}

/**
 * The part that each new one takes its use from: of the same item, else of the same unit and rules.
 * Choice: that of a part left last; a primary's from a primary's and an add-on's from an add-on's.
 */
function pairParts(left: Included[], made: Part[], byItemAlone = false): Map<Part, Included> {
  const pairs = new Map<Part, Included>();
  const alike: ((a: Part, b: Part) => boolean)[] = [
    (a, b) => keyOf(a) === keyOf(b),
    (a, b) => a.unit === b.unit && ruleSet(a) === ruleSet(b),
  ];
  // Choice: of what others took over from, the most used one.
  const inOrder = byItemAlone ? left.toSorted(byUse) : left;
  for (const same of byItemAlone ? alike.slice(0, 1) : alike) {
    for (const part of made) {
      if (pairs.has(part)) continue;
      const taken = [...pairs.values()];
      const found = inOrder.findLast((each) =>
        !taken.includes(each) && each.part.isAddOn === part.isAddOn && same(each.part, part)
      );
      if (found) pairs.set(part, found);
    }
  }
  return pairs;
}

function byUse({ balance: a }: Included, { balance: b }: Included): number {
  return usedOf(a) < usedOf(b) ? -1 : usedOf(a) > usedOf(b) ? 1 : 0;
}

/** The balance of a part whose window begins, or that a change brings. */
function begin(
  world: World,
  user: User,
  part: Part,
  [from, older]: [Included | undefined, Included | undefined],
  at: number,
): Balance {
  const own = world.balances.find((each) => each.userId === user.id && each.record === recordOf(part));
  const carried = [from, older].map((each) => each === undefined ? ZERO : usedOf(each.balance)).reduce(
    larger,
  );
  const used = larger(own === undefined ? ZERO : usedOf(own), carried);
  if (carried > ZERO) world.note("includes: use is carried");
  if (own !== undefined) {
    world.note("includes: found again");
    own.endedAt = null;
    setUsed(own, larger(own.initial, part.amount), used);
  }
  const balance = own ?? issue(world, user, part, used, at);
  if (used > balance.initial) world.note("includes: more is used than there is");
  if (from !== undefined && from.balance !== balance) pointHolds(world, user, from.balance, balance);
  return balance;
}

function issue(world: World, user: User, part: Part, used: Micros, at: number): Balance {
  const pack = world.catalog.packs!.find(({ id }) => id === part.packId)!;
  const { unit, matches, window } = part;
  const balance = world.name<Balance>("crb_", {
    userId: user.id,
    pack,
    packItemId: part.itemId,
    unit,
    matches,
    priority: pack.priority ?? DEFAULT_PRIORITY[pack.kind],
    externalRef: null,
    notes: null,
    initial: ZERO,
    remaining: ZERO,
    grantedAt: at,
    expiresAt: window.end,
    revoked: false,
    taken: ZERO,
    overage: ZERO,
    told: new Set(),
    origin: "plan",
    record: recordOf(part),
    endedAt: null,
    rolled: null,
  });
  setUsed(balance, part.amount, used);
  world.balances.push(balance);
  world.note("includes: begun");
  return balance;
}

/** Open holds follow; what they leave goes on containing them. */
function pointHolds(world: World, user: User, from: Balance, to: Balance): void {
  for (const hold of world.reservations) {
    if (hold.user !== user || hold.state !== "held") continue;
    for (const line of hold.credits) {
      if (line.balance !== from) continue;
      world.note("includes: a hold follows");
      line.left = [...(line.left ?? []).filter((each) => each !== to), from];
      line.balance = to;
    }
  }
}

/** A part that a user has no more: its window is over, and what is left may roll; or the user left it. */
function end(world: World, user: User, { part, balance }: Included, at: number): void {
  balance.endedAt = at;
  const { rollover } = part.include;
  if (runs(part, at)) return world.note("includes: left within its window");
  if (rollover === undefined) return;
  const { include } = part;
  // The row may have another plan by now.
  const row = { ...part.row, planId: part.planId };
  let last = part.window;
  for (let n = 0; n < rollover.periods; n++) last = windowOf(world, user, row, include, last.end!);
  balance.rolled = { expiresAt: last.end!, max: fromNumber(rollover.max), into: null };
  roll(world, user, balance, balance.remaining, at);
}

/** Adds to the rollover of an ended balance, as far as all live ones have room. */
function roll(world: World, user: User, ended: Balance, amount: Micros, at: number): Micros {
  const { max, expiresAt } = ended.rolled!;
  if (expiresAt <= at) return ZERO;
  const item = keyOf({ packId: ended.pack.id, itemId: ended.packItemId, unit: ended.unit });
  const live = world.balances.filter((each) =>
    each.userId === user.id && each.origin === "rollover" && isOf(each, item) &&
    statusOf(each, at) === "active"
  );
  const room = atLeastZero(max - live.reduce((sum, { remaining }) => sum + remaining, ZERO));
  const part = smaller(amount, room);
  if (part < amount) world.note("includes: a rollover is cut");
  if (part === ZERO) return ZERO;
  const { into } = ended.rolled!;
  if (into !== null) {
    into.remaining += part;
    into.initial += part;
    return part;
  }
  world.note("includes: rolled over");
  const { pack, packItemId, unit, matches, priority, userId } = ended;
  const made = world.name<Balance>("crb_", {
    ...{ userId, pack, packItemId, unit, matches, priority, expiresAt },
    ...{ externalRef: null, notes: null, initial: part, remaining: part, grantedAt: at, revoked: false },
    ...{ taken: ZERO, overage: ZERO, told: new Set<never>(), origin: "rollover" as const },
    ...{ record: null, endedAt: null, rolled: null },
  });
  world.balances.push(made);
  ended.rolled!.into = made;
  return part;
}

/** Gives the rollover of an ended balance what the balance gets back. */
export function refundToRollover(world: World, balance: Balance, amount: Micros, at: number): void {
  if (balance.rolled === null) return;
  world.note("includes: a refund to a rollover");
  roll(world, world.user(balance.userId), balance, amount, at);
}

/** A hold gives back, or takes more: so do the balances that its line left, which still contain it. */
export function leaveLeft({ credits }: Reservation, balance: Balance, amount: Micros): void {
  for (const line of credits) {
    if (line.balance !== balance) continue;
    for (const left of line.left ?? []) setUsed(left, left.initial, atLeastZero(usedOf(left) - amount));
  }
}

/**
 * A merge, after the subscriptions: the primary's parts have what both sides used of them, and the other side's end.
 * Rollovers together have no more than the surviving plan allows.
 */
export function mergeIncludes(
  world: World,
  { user: from, rows }: { user: User; rows: readonly SubscriptionRow[] },
  to: User,
  now: number,
): void {
  if (from.included.length + from.leftIncludes.length > 0) world.note("merges: included packs of from");
  const primary = world.primary(to, now);
  const isOfFrom = primary !== null && rows.includes(primary);
  const [own, other] = isOfFrom ? [from, to] : [to, from];
  const mine = own.included.filter(({ part }) => part.row === primary);
  const running = (list: Included[]) => list.filter(({ part }) => runs(part, now));
  const current = running(other.included.length > 0 ? other.included : other.leftLast);
  const parts = mine.map(({ part }) => part);
  const pairs = pairParts(current, parts);
  // Choice: what the other side left before counts by item, where its window runs; but no lifetime, as in a change of plans.
  const before = running(other.leftIncludes).filter((each) =>
    !current.includes(each) && each.part.window.end !== null
  );
  const older = pairParts(before, parts, true);
  for (const each of mine) {
    const added = pairs.get(each.part);
    const theirs = [added, older.get(each.part)].map((one) => one === undefined ? ZERO : usedOf(one.balance));
    const used = theirs.reduce(larger);
    if (used > ZERO) world.note("merges: use of an included pack is added");
    setUsed(each.balance, each.balance.initial, usedOf(each.balance) + used);
    if (added === undefined) continue;
    for (const user of [from, to]) pointHolds(world, user, added.balance, each.balance);
  }
  const addOns = other.included.filter(({ part }) => part.isAddOn);
  const ended = other.included.filter((each) => !addOns.includes(each));
  for (const { balance } of ended) balance.endedAt = now;
  uniteRecords(world, from, to);
  to.leftIncludes = [...own.leftIncludes, ...other.leftIncludes, ...ended];
  to.included = [...own.included, ...addOns];
  to.leftLast = to.included.length > 0 ? [] : [...own.leftLast, ...other.leftLast, ...ended];
  for (const [planId, known] of from.trialIncludes) {
    if (!to.trialIncludes.has(planId)) to.trialIncludes.set(planId, known);
  }
}

/** Two records of one part and window are one from now on, with the use of both. */
function uniteRecords(world: World, from: User, to: User): void {
  const ofUser = (user: User) =>
    world.balances.filter(({ userId, record }) => userId === user.id && record !== null);
  const own = ofUser(to);
  for (const balance of ofUser(from)) {
    const twin = own.find(({ record }) => record === balance.record);
    if (twin === undefined) continue;
    const [kept, gone] = balance.endedAt === null ? [balance, twin] : [twin, balance];
    if (gone.endedAt !== null && kept.endedAt !== null) {
      setUsed(kept, larger(kept.initial, gone.initial), usedOf(kept) + usedOf(gone));
    }
    gone.record = null;
  }
}

/** Takes from the rollovers of a merged user what is more than its plan allows, or an add-on, from what is used last. */
export function cutRollovers(world: World, user: User, now: number): void {
  const parts = offeredTo(world, user, now);
  for (const part of parts) {
    if (part.isAddOn || part.include.rollover === undefined) continue;
    const allowed = parts.filter((each) => keyOf(each) === keyOf(part))
      .map(({ include: { rollover } }) => rollover?.max ?? 0);
    const live = inOrder(
      world.balances.filter((each) =>
        each.userId === user.id && each.origin === "rollover" && isOf(each, keyOf(part)) &&
        statusOf(each, now) === "active"
      ),
    );
    let room = fromNumber(Math.max(...allowed));
    for (const each of live) {
      const kept = smaller(each.remaining, room);
      if (kept < each.remaining) world.note("merges: a rollover is cut");
      each.remaining = kept;
      room -= kept;
    }
  }
}
