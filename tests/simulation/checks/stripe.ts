// Stripe: once every message was taken, in any order, subscriptions and balances are as in the newest messages. A
// subscription in force is one row of its user and of no other, with its plan and end; an ended one is in force for no
// user. A purchase was granted once, whole, to its user, and is revoked exactly where its money went back for good. Merged users
// are one. For erased users the only rule is that nothing is kept of what they no longer have.

import { CREDIT_BALANCES } from "../../../src/storage/rows/credit_rows.ts";
import { SUBSCRIPTIONS } from "../../../src/storage/rows/subscription_rows.ts";
import { STRIPE_LIMITS } from "../../../src/process/limits.ts";
import { amountOf } from "../../../src/domain/values/amount.ts";
import type { CreditBalance } from "../../../src/domain/state/credit.ts";
import type { Fields } from "../../support/memory_store.ts";
import type { SimTables } from "../database/tables.ts";
import type { Account, SimSale, SimStripe, SimSubscription, Stand } from "../stripe.ts";
import { isGone } from "../traffic.ts";
import type { Checker, Scene } from "../watch.ts";

/** Statuses of a subscription that entitles. */
const IN_FORCE: ReadonlySet<string> = new Set(["active", "trialing", "past_due"]);

/** Checks the end; null in a world without Stripe. */
export function stripeChecker(stripe: SimStripe | null): Checker {
  return {
    name: "stripe",
    atEnd(scene) {
      for (const account of stripe?.accounts ?? []) {
        for (const subscription of account.subscriptions) checkSubscription(account, subscription, scene);
        for (const sale of account.sales) checkSale(account, sale, scene);
        checkSettled(account, scene.server.tables);
        checkKept(account, scene.server.tables);
      }
    },
  };
}

/**
 * Everything kept of a user had its effect: a purchase has balances, a subscription in force has a row. An erasure takes
 * those, so whatever it leaves of the one without the other is found.
 */
function checkKept({ tenant: { realm }, subscriptions }: Account, tables: SimTables): void {
  const isHere = (row: Fields) => row.realm === realm;
  const isOfUser = (row: Fields) => isHere(row) && row.user_id !== null;
  const users = new Set(tables.list("users", isHere).map(({ key }) => key));
  const granted = new Set(
    tables.list("credit_balances", isHere).flatMap((row) => [row.external_ref, row.own_ref]),
  );
  const written = new Set(
    tables.list("subscriptions", (row) => users.has(row.user_key)).map((row) => row.external_id),
  );
  for (const { external_ref: ref, user_id: userId } of tables.list("stripe_purchases", isOfUser)) {
    if (!granted.has(ref)) throw new Error(`${ref} is kept of ${userId}, who has no balance of it`);
  }
  for (const { id, user_id: userId, event_ids: events } of tables.list("stripe_subscriptions", isOfUser)) {
    const newest = (JSON.parse(events as string) as string[]).at(-1);
    const stands = subscriptions.flatMap((subscription) => subscription.stands);
    const stand = stands.find(({ message }) => message.id === newest);
    if (stand === undefined || !IN_FORCE.has(stand.status) || written.has(id)) continue;
    throw new Error(`${id} is kept of ${userId}, who has no such subscription`);
  }
}

/** The number of an id's canonical user in a tenant's realm. */
function userOf({ tenant: { realm } }: Account, id: string, tables: SimTables): number | null {
  const [own] = tables.list("users", (row) => row.realm === realm && row.id === id);
  return own === undefined ? null : (own.merged_into ?? own.key) as number;
}

/** The message that counts: they are made in the order of their seconds and ranks. */
function newestOf({ stands }: SimSubscription): Stand {
  return stands.at(-1) as Stand;
}

function usersOf({ stands }: SimSubscription): string[] {
  return stands.flatMap(({ userId }) => userId === null ? [] : [userId]);
}

function checkSubscription(account: Account, subscription: SimSubscription, scene: Scene): void {
  if (usersOf(subscription).some(isGone)) return;
  const { server: { tables }, sweptAtMs } = scene;
  const { realm } = account.tenant;
  const [{ clockOffsetMs = 0 } = {}] = tables.list("realms", (row) => row.realm === realm);
  const now = sweptAtMs + Number(clockOffsetMs);
  const own = new Set(tables.list("users", (row) => row.realm === realm).map(({ key }) => key));
  const rows = tables.list(
    "subscriptions",
    (row) => row.external_id === subscription.id && own.has(row.user_key as number),
  ).map((row) => SUBSCRIPTIONS.read(row));
  const newest = newestOf(subscription);
  const endsAt = newest.cancelAt === null ? null : newest.cancelAt * 1000;
  const isOver = !IN_FORCE.has(newest.status) || endsAt !== null && endsAt <= now;
  const userKey = newest.userId === null ? null : userOf(account, newest.userId, tables);
  const wanted = isOver ? [] : [{ userKey, planId: newest.planId, endsAt }];
  const found = rows.filter((row) => !row.ended && (row.endsAt === null || row.endsAt > now))
    .map(({ userKey, planId, endsAt }) => ({ userKey, planId, endsAt }));
  expectSame(`${subscription.id} of ${newest.userId}, by ${newest.message.id}`, wanted, found);
}

function checkSale(account: Account, sale: SimSale, { server: { tables } }: Scene): void {
  const { userId, subscription, lines, source } = sale;
  const ids = subscription === null ? [userId as string] : usersOf(subscription);
  if (ids.some(isGone)) return;
  // The owner of the subscription when the purchase found its user.
  const users = ids.map((id) => userOf(account, id, tables));
  const { realm } = account.tenant;
  const balancesOf = (isOf: (ref: string) => boolean) =>
    tables.list("credit_balances", (row) => row.realm === realm && isOf(String(row.external_ref)))
      .map((row) => CREDIT_BALANCES.read(row));
  for (const { ref, twinRef, pack, quantity, isPaid } of lines) {
    const found = balancesOf((each) => each === ref || each === twinRef);
    if (!isPaid && found.length === 0) continue;
    if (!isPaid) throw new Error(`${ref} of ${source} was not paid for, and has ${found.length} balances`);
    const items = pack.items.length === 0
      ? [{ id: null, amount: quantity }]
      : pack.items.map(({ id, amount }) => ({ id, amount: amount * quantity }));
    expectSame(
      `${ref} of ${source}, ${quantity} of ${pack.id}`,
      items.map(({ id, amount }) => ({
        item: id,
        initial: amountOf(amount),
      })),
      found.map(({ packItemId, initial }) => ({ item: packItemId, initial })),
    );
    if (
      new Set(found.map(({ userKey }) => userKey)).size > 1 || !users.includes(found[0]?.userKey as number)
    ) {
      throw new Error(
        `${ref} of ${ids} belongs to users ${found.map(({ userKey }) => userKey)}, not ${users}`,
      );
    }
    if (isStray(sale)) continue;
    const again = balancesOf((each) => [ref, twinRef].some((own) => each === `${own}:${sale.dispute?.id}`));
    checkMoney(ref, sale, found, again);
  }
}

/** @param again what was granted again after a dispute */
function checkMoney(
  ref: string,
  { isRefunded, dispute }: SimSale,
  found: readonly CreditBalance[],
  again: readonly CreditBalance[],
): void {
  const isReversed = isRefunded || dispute?.isLost === true;
  for (const { id, packItemId, revokedAt, revokedAmount } of found) {
    const back = again.find((each) => each.packItemId === packItemId);
    const isBack = back !== undefined && revokedAt !== null && back.initial <= revokedAmount;
    if (back !== undefined && !isBack) {
      throw new Error(`${back.id} gives back more than ${id} of ${ref} lost`);
    }
    const isRevoked = revokedAt !== null && (back === undefined || back.revokedAt !== null);
    if (isRevoked === isReversed || isRevoked && dispute !== null && again.length === 0) continue;
    const [was, is] = isReversed ? ["went", "is not"] : ["did not go", "is"];
    throw new Error(`the money of ${ref} ${was} back, and its balance ${id} ${is} revoked`);
  }
}

/** Whether what a sale needs came so far apart that the first of it may have been forgotten. */
function isStray({ messages }: SimSale): boolean {
  const from = Math.min(...messages.map(({ firstSentAt }) => firstSentAt ?? 0));
  const until = Math.max(...messages.map(({ firstTakenAt }) => firstTakenAt ?? Infinity));
  return until - from >= STRIPE_LIMITS.strayKeptMs;
}

/** Nothing is left to be done. */
function checkSettled({ tenant: { realm } }: Account, tables: SimTables): void {
  const isHere = (row: { readonly [name: string]: unknown }) => row.realm === realm;
  for (const { id, left_user_ids: left } of tables.list("stripe_subscriptions", isHere)) {
    if (left !== "[]") throw new Error(`${id} has not ended with ${left}`);
  }
}

function expectSame(what: string, wanted: readonly object[], found: readonly object[]): void {
  const show = (rows: readonly object[]) =>
    rows.map((row) => JSON.stringify(row, (_, value) => typeof value === "bigint" ? String(value) : value))
      .sort().join(", ") || "nothing";
  if (show(wanted) !== show(found)) {
    throw new Error(`${what}: expected ${show(wanted)}, found ${show(found)}`);
  }
}
