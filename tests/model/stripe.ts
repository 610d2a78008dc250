// What a payment provider does to a user: mirrors a subscription, grants paid credits, and refunds them. These are the
// commands behind the provider's messages; which message is the newest is decided before.

import { grant, issue, takeAway } from "./credits.ts";
import { type Input, type ModelReply, refusal, success } from "./document.ts";
import { type Micros, ZERO } from "./decimal.ts";
import { endRow, followPrimary, holdPlan, writeHistory } from "./entry.ts";
import type { Balance, CreditLine, SubscriptionRow, User, World } from "./state.ts";
import { createRow, dropScheduled, factsOf, findRow, subscriptionRecord } from "./subscriptions.ts";
import { inOrder, statusOf } from "./wallet.ts";

/**
 * With a `planId` the subscription is in force, until `endsAt` if there is one; without it the subscription is over,
 * since `endedAt` or now.
 */
export function mirror(world: World, input: Input, now: number): ModelReply {
  const planId = input["planId"];
  const user = world.user(String(input["userId"]));
  // Choice: an archived plan is given too, and only an id names a plan.
  if (planId !== undefined && !world.catalog.plans.some(({ id }) => id === planId)) {
    return refusal("not_found");
  }
  const known = findRow(world, user, input, now);
  const before = known && { ...known };
  const row = known ?? (planId === undefined ? null : firstTold(world, user, input, now));
  if (known) toldAgain(world, user, known, input, now);
  noteMirror(world, user, before ?? null, row, now);
  return success({ userId: user.id, row: row && subscriptionRecord(world, row) });
}

/** A start in the future becomes now. An end in the past falls due at once. */
function firstTold(world: World, user: User, input: Input, now: number): SubscriptionRow {
  const startedAt = Math.min(timeOf(input["startsAt"]) ?? now, now);
  const plan = world.plan(String(input["planId"]));
  const startsAt = new Date(startedAt).toISOString();
  const row = createRow(world, user, plan, { ...input, startsAt }, now);
  row.endsAt = notBefore(startedAt, timeOf(input["endsAt"]));
  followPrimary(world, user, now);
  return row;
}

/** Keeps start, windows and, on the same plan, custom limits and features. A repeated message writes nothing. */
function toldAgain(world: World, user: User, row: SubscriptionRow, input: Input, now: number): void {
  const isOver = input["planId"] === undefined;
  const planId = String(input["planId"]);
  const end = notBefore(row.startedAt, isOver ? timeOf(input["endedAt"]) ?? now : timeOf(input["endsAt"]));
  const reason = isOver && typeof input["reason"] === "string" ? input["reason"] : null;
  if (end !== null && end <= now) {
    if (row.ended) return;
    // The user has the plan until the end is reported. Others are promoted then, whatever time the row shows.
    endRow(world, user, row, now, "canceled", reason);
    row.endsAt = end;
    return;
  }
  if (isOver && row.ended) return;
  const facts = factsOf(row);
  const before = row.endsAt;
  if (row.ended || (before !== null && end === null)) writeHistory(world, user, "reactivated", row, now);
  Object.assign(row, { ended: false, endsAt: end });
  if (!isOver && row.planId !== planId) {
    const previousPlanId = row.planId;
    if (world.plan(previousPlanId).perSeat && !world.plan(planId).perSeat) row.quantity = 1;
    Object.assign(row, { planId, customLimits: new Map(), customFeatures: new Map(), trial: null });
    holdPlan(row, planId, now);
    writeHistory(world, user, "plan_changed", row, now, { previousPlanId });
  }
  if (typeof input["quantity"] === "number") row.quantity = input["quantity"];
  if (factsOf(row) !== facts) dropScheduled(world, row);
  if (end !== null && end !== before) writeHistory(world, user, "canceled", row, now, { reason });
  followPrimary(world, user, now);
}

function notBefore(start: number, end: number | null): number | null {
  return end === null ? null : Math.max(start, end);
}

function timeOf(value: unknown): number | null {
  return typeof value === "string" ? Date.parse(value) : null;
}

/** Notes what changed in a row, and what the user had beside it. */
function noteMirror(
  world: World,
  user: User,
  before: SubscriptionRow | null,
  row: SubscriptionRow | null,
  now: number,
): void {
  const note = (what: string) => world.note(`stripe: ${what}`);
  if (!row) return note("over and never known");
  if (world.active(user, now).some((each) => each.provider === null)) note("beside a default subscription");
  const isHeld = world.reservations.some((hold) => hold.user === user && hold.state === "held");
  if (!before) return note(row.endsAt !== null && row.endsAt <= now ? "new and over" : "new");
  const same = (["planId", "endsAt", "ended", "quantity"] as const).every((name) =>
    before[name] === row[name]
  );
  if (same) return note(row.ended ? "over, reported again" : "reported unchanged");
  if (before.customLimits.size > 0) note("a row with custom limits");
  if (before.ended) note("an ended one comes back");
  if (!before.ended && row.ended) note(row.endsAt! < now ? "over since before" : "over now");
  if (!row.ended && row.endsAt !== before.endsAt) note("another end");
  if (before.planId !== row.planId) note(isHeld ? "another plan, under open holds" : "another plan");
}

/** Every balance of a reference is taken away, whatever pack it is of. What was used stays used. */
export function refund(world: World, input: Input, now: number): ModelReply {
  const { id: userId } = world.user(String(input["userId"]));
  const ofGrant = world.balances.filter((balance) =>
    balance.userId === userId && balance.externalRef === input["externalRef"]
  );
  if (ofGrant.length === 0) world.note("stripe: refund of nothing");
  if (new Set(ofGrant.map(({ pack }) => pack)).size > 1) world.note("stripe: refund of several packs");
  for (const balance of inOrder(ofGrant)) {
    world.note(`stripe: refund of a balance that is ${statusOf(balance, now)}`);
    if (balance.remaining > ZERO && balance.remaining < balance.initial) {
      world.note("stripe: refund of a partly used balance");
    }
    const isHeld = world.reservations.some((hold) =>
      hold.state === "held" && hold.credits.some((line) => line.balance === balance)
    );
    if (isHeld) world.note("stripe: refund of a held balance");
    if (balance.overage > ZERO) world.note("stripe: refund of a balance with overage");
    if (!balance.revoked) takeAway(world, balance, now, String(input["reason"]));
  }
  return success({ balanceIds: ofGrant.map(({ id }) => id).sort() });
}

/** The parts of open holds in a revoked balance. */
function heldOf(world: World, balance: Balance): CreditLine[] {
  if (!balance.revoked) return [];
  return world.reservations.filter(({ state }) => state === "held")
    .flatMap(({ credits }) => credits.filter((line) => line.balance === balance));
}

/**
 * What was revoked of a reference and of its earlier reinstatements, and not granted again, is granted under a new one.
 * Choice: so is what open holds took of it, which are its parts from then on. Balances that would have expired by now do
 * not come back.
 */
export function reinstate(world: World, input: Input, now: number): ModelReply {
  const { id: userId } = world.user(String(input["userId"]));
  const { externalRef, newRef } = input;
  const references = [externalRef, ...input["earlierRefs"] as string[]];
  const own = world.balances.filter((balance) => balance.userId === userId)
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const known = own.filter((balance) => balance.externalRef === newRef);
  if (known.length > 0) {
    world.note("stripe: reinstated again");
    return success({ balanceIds: known.map(({ id }) => id) });
  }
  const given = own.filter((balance) => references.includes(balance.externalRef));
  const firsts = new Map<string, Balance>();
  const owed = new Map<string, Micros>();
  for (const balance of given) {
    const item = `${balance.pack.id} ${balance.packItemId}`;
    const isFirst = balance.externalRef === externalRef;
    if (isFirst || !firsts.has(item)) firsts.set(item, balance);
    const back = balance.taken + heldOf(world, balance).reduce((sum, { taken }) => sum + taken, ZERO);
    owed.set(item, (owed.get(item) ?? ZERO) + back - (isFirst ? ZERO : balance.initial));
  }
  const back = [...firsts].filter(([item, { expiresAt }]) =>
    owed.get(item)! > ZERO && (expiresAt === null || expiresAt > now)
  );
  const { mode = "live", testCreditBalanceCap: cap = null } = world.options;
  if (mode === "test" && cap !== null && world.balances.length + back.length > cap) {
    return refusal("test_quota_exceeded");
  }
  world.note(`stripe: reinstated ${back.length === 0 ? "nothing" : "something"}`);
  if (back.some(([item, { initial }]) => owed.get(item)! < initial)) world.note("stripe: reinstated a part");
  const made = back.map(([item, first]) => {
    const { pack, packItemId, unit, matches, priority, expiresAt } = first;
    const held = given.filter((balance) => `${balance.pack.id} ${balance.packItemId}` === item)
      .flatMap((balance) => heldOf(world, balance));
    const terms = { userId, pack, packItemId, unit, matches, priority, expiresAt };
    const made = issue(
      world,
      { ...terms, externalRef: String(newRef), initial: owed.get(item)! },
      now,
      first.notes,
      held.reduce((sum, { taken }) => sum + taken, ZERO),
    );
    for (const line of held) {
      line.balance.taken += line.taken;
      line.balance = made;
      world.note("stripe: reinstated a held part");
    }
    return made;
  });
  return success({ balanceIds: made.map(({ id }) => id) });
}

/** A grant that was paid for: so many packs at once, on offer or not. */
export function paidGrant(world: World, input: Input, now: number): ModelReply {
  return grant(world, input, now, Number(input["packs"]));
}
