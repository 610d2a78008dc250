// Decides what a message of Stripe does: the facts to store, then the commands to users. The facts are stored before any
// command runs. So a message that was interrupted does the rest when Stripe sends it again, and an older message that
// arrives in between is recognized as older.

import type { Catalog } from "../catalog/catalog.ts";
import type { InForce, MirrorInput } from "../plans/mirror.ts";
import { SEATS_MAX } from "../state/subscription.ts";
import type { Plan } from "../catalog/plan.ts";
import { answerSale, firstUserOf } from "./answer_sale.ts";
import { answerTopUp } from "./answer_top_up.ts";
import type { Dispute, Known, KnownSubscription, MoneyFacts, Purchase } from "./facts.ts";
import type {
  DisputeMessage,
  RefundMessage,
  StripeMessage,
  SubscriptionItem,
  SubscriptionMessage,
} from "./message.ts";
import { isWhole, saleStatus } from "./money.ts";
import {
  factsWith,
  grantOf,
  NOTHING,
  nothing,
  ownOf,
  PAID_MAX,
  reinstatedRef,
  reversalsOf,
  type StripeAct,
  type StripeOutcome,
} from "./outcome.ts";

/** The provider of subscriptions that come from Stripe. */
export const STRIPE = "stripe";

/** Decides what a message does. */
export function answerMessage(message: StripeMessage, known: Known, catalog: Catalog): StripeOutcome {
  switch (message.kind) {
    case "subscription":
      return answerSubscription(message, known, catalog);
    case "sale":
      return answerSale(message, known, catalog);
    case "payment":
      return answerMoney(
        {
          payments: message.payments.map((payment) => ({
            payment,
            source: message.source,
            isInvoice: false,
          })),
        },
        known,
        () => "the payment is recorded in case it is refunded",
      );
    case "refund":
      return answerRefund(message, known);
    case "dispute":
      return answerDispute(message, known);
    case "topUp":
      return answerTopUp(message, known);
    case "other":
      return nothing(message.reason);
  }
}

/** Stores facts about money, and revokes what they show to be granted twice or not paid for. */
function answerMoney(
  learned: Partial<MoneyFacts>,
  { money }: Known,
  reason: (facts: MoneyFacts) => string,
): StripeOutcome {
  const facts = factsWith(money, learned);
  return { ...nothing(reason(facts), learned), acts: reversalsOf(facts.purchases, facts) };
}

function answerRefund({ charge, payments, invoiceId, money }: RefundMessage, known: Known): StripeOutcome {
  const learned = {
    refunds: payments.map((payment) => ({ payment, charge, money })),
    payments: invoiceId === null
      ? []
      : payments.map((payment) => ({ payment, source: invoiceId, isInvoice: false })),
  };
  return answerMoney(
    learned,
    known,
    ({ purchases }) =>
      purchases.length === 0
        ? "no grant of this charge is known yet; the refund is kept for a later one"
        : "other payments of the sale are not refunded",
  );
}

function answerDispute(message: DisputeMessage, known: Known): StripeOutcome {
  const { disputeId, payments, money, isReinstated } = message;
  const learned = payments.map((payment): Dispute => {
    return { payment, disputeId, money, isWithdrawn: !isReinstated, isReinstated };
  });
  const outcome = answerMoney({ disputes: learned }, known, (facts) => whyUndisputed(message, facts));
  if (!isReinstated) return outcome;
  const facts = factsWith(known.money, { disputes: learned });
  return {
    ...outcome,
    acts: [...outcome.acts, ...facts.purchases.flatMap((each) => backOf(each, disputeId, facts))],
  };
}

function whyUndisputed(message: DisputeMessage, { purchases, disputes }: MoneyFacts): string {
  const [purchase] = purchases;
  if (purchase === undefined) {
    return "no grant of this charge is known yet; the dispute is kept for a later one";
  }
  if (purchase.paid === null) return "what the sale cost is not known, so the dispute changes nothing";
  if (!isWhole(message, purchase)) return "the dispute is over a part of the sale only";
  const { disputeId, isReinstated } = message;
  if (isReinstated) return "nothing was revoked because of this dispute";
  return disputes.some((dispute) => dispute.disputeId === disputeId && dispute.isReinstated)
    ? "the funds of this dispute have come back already"
    : "nothing was granted";
}

/** Grants again what a dispute had revoked, under a reference of its own. */
function backOf(purchase: Purchase, disputeId: string, facts: MoneyFacts): StripeAct[] {
  const { externalRef, userId } = purchase;
  const { isCovered, reversal, reinstated } = saleStatus(purchase, facts);
  if (userId === null || isCovered || reversal !== null || !reinstated.includes(disputeId)) return [];
  const earlierRefs = reinstated.filter((id) => id !== disputeId).map((id) => reinstatedRef(externalRef, id));
  const input = {
    externalRef,
    earlierRefs,
    newRef: reinstatedRef(externalRef, disputeId),
    ...ownOf(externalRef),
  };
  return [{ kind: "reinstate", userId, input }];
}

function answerSubscription(message: SubscriptionMessage, known: Known, catalog: Catalog): StripeOutcome {
  const before = known.subscriptions.get(message.subscriptionId);
  const isLate = before !== undefined && isOvertaken(message, before);
  const overtaken = "a newer message of this subscription was already handled";
  // An older message may still name the owner, for purchases that wait for it.
  const subscription = isLate
    ? { ...before, userId: before.userId ?? message.userId }
    : learnedOf(message, before, catalog);
  const { userId, leftUserIds } = subscription;
  if (isLate && userId === null) return nothing(overtaken);
  if (userId === null) {
    const reason = "neither the subscription's metadata nor an earlier message names a holdfast_user";
    return { ...nothing(reason, { subscription }), paid: paidOf(message, reason) };
  }
  const { subscriptionId } = message;
  const buyer = firstUserOf(before) ?? userId;
  const purchases = [...known.purchases.values()]
    .filter((purchase) => purchase.userId === null && purchase.subscriptionId === subscriptionId)
    .map((purchase) => ({ ...purchase, userId: buyer }));
  const grants = purchases.flatMap((purchase) => grantOf(purchase, catalog));
  const reversals = reversalsOf(purchases, factsWith(known.money, { purchases }));
  const mirrored = isLate ? null : mirrorOf(message, before, catalog);
  const hasLeft = leftUserIds.length > 0;
  return {
    learned: { ...NOTHING, subscription },
    acts: [
      ...mirrored === null ? [] : [{ kind: "mirror", userId, input: mirrored } as const],
      ...isLate ? [] : addOnActs(message, subscription, userId, catalog),
      ...grants,
      ...reversals,
    ],
    left: hasLeft ? { to: userId, acts: leftUserIds.flatMap((id) => leaving(subscription, id)) } : null,
    settled: hasLeft || purchases.length > 0
      ? { subscriptionId: hasLeft ? subscriptionId : null, purchases }
      : null,
    reason: isLate ? overtaken : whyNotMirrored(message),
    warnings: [],
    paid: isLate ? null : paidOf(message, sellsSomething(message, catalog) ? null : whyNotMirrored(message)),
  };
}

/** Whether a newer message of the subscription was handled before. A final message is never overtaken by others. */
function isOvertaken(message: SubscriptionMessage, before: KnownSubscription): boolean {
  const { head: { created, eventId }, rank } = message;
  const isLast = before.eventIds.at(-1) === eventId;
  if (before.isFinal || message.isFinal) return before.isFinal && !isLast;
  if (created !== before.created) return created < before.created;
  if (rank !== before.rank) return rank < before.rank;
  return before.eventIds.includes(eventId) && !isLast;
}

function learnedOf(
  message: SubscriptionMessage,
  before: KnownSubscription | undefined,
  catalog: Catalog,
): KnownSubscription {
  const { head: { created, eventId }, rank, isFinal, subscriptionId } = message;
  const isOfSameMoment = before !== undefined && before.created === created && before.rank === rank;
  const earlier = isOfSameMoment ? before.eventIds.filter((id) => id !== eventId) : [];
  const userId = message.userId ?? before?.userId ?? null;
  const owners = before === undefined
    ? []
    : [...before.leftUserIds, ...before.userId === null ? [] : [before.userId]];
  const leftUserIds = [...new Set(owners)].filter((id) => id !== userId);
  const added = addOnItems(message, catalog).map(({ item }) => item.id);
  const itemIds = [...new Set([...before?.itemIds ?? [], ...added])];
  const eventIds = [...earlier, eventId];
  return { subscriptionId, userId, leftUserIds, created, rank, isFinal, eventIds, itemIds };
}

/** The new state of the user's row; null for no change. */
function mirrorOf(
  message: SubscriptionMessage,
  before: KnownSubscription | undefined,
  catalog: Catalog,
): MirrorInput | null {
  const { subscriptionId: externalId, state, status, startedAt: startsAt, endsAt, endedAt } = message;
  const row = { provider: STRIPE, externalId };
  if (state === "over") return { ...row, state: { endedAt, reason: `Stripe: ${status}` } };
  if (state === "not_yet") return null;
  const best = bestPlan(message, catalog);
  if (best === null) {
    return before !== undefined && sellsNoPlan(message, catalog) ? { ...row, state: goneAt(message) } : null;
  }
  const quantity = seatsOf(best.plan, best.items);
  return { ...row, state: { planId: best.plan.id, startsAt, endsAt, quantity, ...trialOf(message) } };
}

/**
 * Whether a subscription without a plan sells none: each of its prices is listed, as that of an add-on or a pack. A price that
 * the catalog lacks may be a plan's.
 */
function sellsNoPlan(message: SubscriptionMessage, { stripePrices }: Catalog): boolean {
  const items = itemsOf(message);
  return message.isCut !== true && items.length > 0 &&
    items.every(({ priceId }) => stripePrices.has(priceId));
}

/** The end of the row of an item that is gone. */
function goneAt({ head: { created } }: SubscriptionMessage): MirrorInput["state"] {
  return { endedAt: created, reason: "Stripe: the item is gone" };
}

/** The trial that a subscription and all its items are on. */
function trialOf({ trialEndsAt }: SubscriptionMessage): Pick<InForce, "trialEndsAt"> {
  return trialEndsAt === undefined ? {} : { trialEndsAt };
}

/** What a subscription in force was paid for. */
function paidOf(
  { state, subscriptionId, price }: SubscriptionMessage,
  reason: string | null,
): StripeOutcome["paid"] {
  return state === "in_force" ? { objectId: subscriptionId, money: price, reason } : null;
}

/** Whether a subscription gives a plan, or sells packs alone, which its invoices grant. */
function sellsSomething({ priceIds }: SubscriptionMessage, { stripePrices }: Catalog): boolean {
  const sold = priceIds.map((priceId) => stripePrices.get(priceId));
  return sold.some((each) => each !== undefined && "plan" in each) ||
    sold.length > 0 && sold.every((each) => each !== undefined);
}

function whyNotMirrored({ state, priceIds }: SubscriptionMessage): string {
  if (state === "over") return "no such subscription is known";
  if (state === "not_yet") return "the subscription is incomplete: its first payment has not been made";
  if (priceIds.length === 0) return "the subscription has no price";
  return `no plan of the catalog lists ${priceIds.slice(0, PAID_MAX).join(" or ")} in stripePrices`;
}

/** Finds the plan with the highest rank among those that the items sell, with all items that sell it. */
function bestPlan(message: SubscriptionMessage, catalog: Catalog) {
  let best: { readonly plan: Plan; readonly items: SubscriptionItem[] } | null = null;
  for (const item of itemsOf(message)) {
    const sold = catalog.stripePrices.get(item.priceId);
    if (sold === undefined || !("plan" in sold) || sold.plan.addon) continue;
    const { plan } = sold;
    if (best?.plan.id === plan.id) best.items.push(item);
    else if (best === null || plan.rank > best.plan.rank) best = { plan, items: [item] };
  }
  return best;
}

/** The items that sell add-ons. */
function addOnItems(message: SubscriptionMessage, catalog: Catalog) {
  return itemsOf(message).flatMap((item) => {
    const sold = catalog.stripePrices.get(item.priceId);
    if (item.id === null || sold === undefined || !("plan" in sold) || !sold.plan.addon) return [];
    return [{ plan: sold.plan, item: { ...item, id: item.id } }];
  });
}

/**
 * Mirrors each item that is an add-on in a row of its own, and ends the rows of items that are gone or sell something else. A
 * price that the catalog lacks changes nothing.
 */
function addOnActs(
  message: SubscriptionMessage,
  { itemIds }: KnownSubscription,
  userId: string,
  catalog: Catalog,
): StripeAct[] {
  const { state, status, startedAt, endsAt, endedAt } = message;
  if (state === "not_yet") return [];
  const act = (externalId: string, state: MirrorInput["state"]): StripeAct => {
    return { kind: "mirror", userId, input: { provider: STRIPE, externalId, state } };
  };
  if (state === "over") return itemIds.map((id) => act(id, { endedAt, reason: `Stripe: ${status}` }));
  const addOns = addOnItems(message, catalog);
  const kept = new Set([
    ...addOns.map(({ item: { id } }) => id),
    ...itemsOf(message).flatMap(({ id, priceId }) => catalog.stripePrices.has(priceId) ? [] : [id]),
  ]);
  const gone = message.isCut === true ? [] : itemIds.filter((id) => !kept.has(id));
  return [
    ...addOns.map(({ plan, item }) => {
      const startsAt = item.startedAt ?? startedAt;
      const quantity = seatsOf(plan, [item]);
      return act(item.id, { planId: plan.id, startsAt, endsAt, quantity, ...trialOf(message) });
    }),
    ...gone.map((id) => act(id, goneAt(message))),
  ];
}

/** The items of a message; those of a kept one have nothing but a price. */
function itemsOf({ items, priceIds }: SubscriptionMessage): readonly SubscriptionItem[] {
  return items ?? priceIds.map((priceId) => ({ id: null, priceId, quantity: null, startedAt: null }));
}

/** The seats of all items that sell a plan, where it is sold by the seat; undefined where no item says how many. */
function seatsOf({ perSeat }: Plan, items: readonly SubscriptionItem[]): number | undefined {
  const seats = items.reduce((sum, { quantity }) => sum + (quantity ?? 0), 0);
  return perSeat && seats > 0 ? Math.min(seats, SEATS_MAX) : undefined;
}

function leaving({ subscriptionId, itemIds }: KnownSubscription, userId: string): StripeAct[] {
  const state = { endedAt: null, reason: "Stripe: the subscription names another user" };
  return [subscriptionId, ...itemIds].map((externalId) => {
    return { kind: "mirror", userId, input: { provider: STRIPE, externalId, state } };
  });
}
