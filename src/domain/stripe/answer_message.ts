// Decides what a message of Stripe does: the facts to store, then the commands to users. The facts are stored before any
// command runs. So a message that was interrupted does the rest when Stripe sends it again, and an older message that
// arrives in between is recognized as older.

import { amountOf } from "../values/amount.ts";
import type { GrantInput } from "../credits/grant.ts";
import { type Catalog, findPack, type Pack } from "../catalog/catalog.ts";
import type { MirrorInput } from "../plans/mirror.ts";
import type { Plan } from "../catalog/plan.ts";
import type { Known, KnownSubscription, Learned, Purchase, Settled } from "./facts.ts";
import type { Line, SaleMessage, StripeMessage, SubscriptionMessage, Unpaid } from "./message.ts";

/** The provider of subscriptions that come from Stripe. */
export const STRIPE = "stripe";

/** A command to a user. */
export type StripeAct =
  | { readonly kind: "mirror"; readonly userId: string; readonly input: MirrorInput }
  | { readonly kind: "grant"; readonly userId: string; readonly input: GrantInput };

/** What a message does. */
export interface StripeOutcome {
  readonly learned: Learned;
  /** Commands, in the order in which they run. */
  readonly acts: readonly StripeAct[];
  /** Former owners, for whom the subscription must end; null for none. */
  readonly left: Leaving | null;
  /** What to store once all commands have run; null for nothing. */
  readonly settled: Settled | null;
  /** Why the message changed nothing, if its commands change nothing; null if they always change something. */
  readonly reason: string | null;
  /** Parts of the message that changed nothing, beside others that did. */
  readonly warnings: readonly string[];
}

/** The end of a subscription for its former owners, which runs before all other commands. */
export interface Leaving {
  /** Its present owner: a command for the same user under another id is left out. */
  readonly to: string;
  readonly acts: readonly StripeAct[];
}

const NOTHING: Learned = { subscription: null, purchases: [], payments: [], refunds: [] };

/** Decides what a message does. */
export function answerMessage(message: StripeMessage, known: Known, catalog: Catalog): StripeOutcome {
  switch (message.kind) {
    case "subscription":
      return answerSubscription(message, known, catalog);
    case "sale":
      return answerSale(message, known, catalog);
    case "payment": {
      const { source, payments } = message;
      return nothing("the payment is recorded in case it is refunded", {
        payments: payments.map((payment) => ({ payment, source })),
      });
    }
    case "refund":
      return nothing("no grant of this charge is known yet; the refund is kept for a later one", {
        refunds: message.payments,
      });
    case "other":
      return nothing(message.reason);
  }
}

function nothing(reason: string, learned: Partial<Learned> = {}): StripeOutcome {
  return { learned: { ...NOTHING, ...learned }, acts: [], left: null, settled: null, reason, warnings: [] };
}

function answerSubscription(message: SubscriptionMessage, known: Known, catalog: Catalog): StripeOutcome {
  const before = known.subscriptions.get(message.subscriptionId);
  const isLate = before !== undefined && isOvertaken(message, before);
  const overtaken = "a newer message of this subscription was already handled";
  // An older message may still name the owner, for purchases that wait for it.
  const subscription = isLate
    ? { ...before, userId: before.userId ?? message.userId }
    : learnedOf(message, before);
  const { userId, leftUserIds } = subscription;
  if (isLate && userId === null) return nothing(overtaken);
  if (userId === null) {
    return nothing("neither the subscription's metadata nor an earlier message names a holdfast_user", {
      subscription,
    });
  }
  const { subscriptionId } = message;
  const buyer = firstUserOf(before) ?? userId;
  const purchases = [...known.purchases.values()]
    .filter((purchase) => purchase.userId === null && purchase.subscriptionId === subscriptionId)
    .map((purchase) => ({ ...purchase, userId: buyer }));
  const grants = purchases.flatMap((purchase) => grantOf(purchase, catalog));
  const mirrored = isLate ? null : mirrorOf(message, catalog);
  const hasLeft = leftUserIds.length > 0;
  return {
    learned: { ...NOTHING, subscription },
    acts: mirrored === null ? grants : [{ kind: "mirror", userId, input: mirrored }, ...grants],
    left: hasLeft ? { to: userId, acts: leftUserIds.map((id) => leaving(subscriptionId, id)) } : null,
    settled: hasLeft || purchases.length > 0
      ? { subscriptionId: hasLeft ? subscriptionId : null, purchases }
      : null,
    reason: isLate ? overtaken : whyNotMirrored(message),
    warnings: [],
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

function learnedOf(message: SubscriptionMessage, before: KnownSubscription | undefined): KnownSubscription {
  const { head: { created, eventId }, rank, isFinal, subscriptionId } = message;
  const isOfSameMoment = before !== undefined && before.created === created && before.rank === rank;
  const earlier = isOfSameMoment ? before.eventIds.filter((id) => id !== eventId) : [];
  const userId = message.userId ?? before?.userId ?? null;
  const owners = before === undefined
    ? []
    : [...before.leftUserIds, ...before.userId === null ? [] : [before.userId]];
  const leftUserIds = [...new Set(owners)].filter((id) => id !== userId);
  return { subscriptionId, userId, leftUserIds, created, rank, isFinal, eventIds: [...earlier, eventId] };
}

/**
 * Returns the owner of purchases left waiting when the message that named the user was interrupted: the first user ever
 * named, because that message may have granted them already. Null if no message named a user.
 */
function firstUserOf(subscription: KnownSubscription | undefined): string | null {
  return subscription?.leftUserIds[0] ?? subscription?.userId ?? null;
}

/** The new state of the user's row; null for no change. */
function mirrorOf(message: SubscriptionMessage, catalog: Catalog): MirrorInput | null {
  const { subscriptionId: externalId, state, status, startedAt: startsAt, endsAt, endedAt } = message;
  const row = { provider: STRIPE, externalId };
  if (state === "over") return { ...row, state: { endedAt, reason: `Stripe: ${status}` } };
  const plan = bestPlan(message.priceIds, catalog);
  if (state === "not_yet" || plan === null) return null;
  return { ...row, state: { planId: plan.id, startsAt, endsAt } };
}

/** Most prices in a reason; a subscription has at most twenty. */
const NAMED_PRICES_MAX = 20;

function whyNotMirrored({ state, priceIds }: SubscriptionMessage): string {
  if (state === "over") return "no such subscription is known";
  if (state === "not_yet") return "the subscription is incomplete: its first payment has not been made";
  if (priceIds.length === 0) return "the subscription has no price";
  return `no plan of the catalog lists ${priceIds.slice(0, NAMED_PRICES_MAX).join(" or ")} in stripePrices`;
}

/** Finds the plan with the highest rank among those that the prices sell. */
function bestPlan(priceIds: readonly string[], catalog: Catalog): Plan | null {
  let best: Plan | null = null;
  for (const priceId of priceIds) {
    const sold = catalog.stripePrices.get(priceId);
    if (sold !== undefined && "plan" in sold && (best === null || sold.plan.rank > best.rank)) {
      best = sold.plan;
    }
  }
  return best;
}

function leaving(externalId: string, userId: string): StripeAct {
  const state = { endedAt: null, reason: "Stripe: the subscription names another user" };
  return { kind: "mirror", userId, input: { provider: STRIPE, externalId, state } };
}

function answerSale(message: SaleMessage, known: Known, catalog: Catalog): StripeOutcome {
  const { source } = message;
  const lines = new Map(message.lines.map((line) => [line.externalRef, line]));
  const found = [...lines.values()].map((line) => purchaseOf(source, line, known, catalog));
  const purchases = found.filter((each) => typeof each !== "string");
  const acts = purchases.flatMap((purchase) => grantOf(purchase, catalog));
  const isOfPacks = purchases.length > 0;
  const payments = isOfPacks ? message.payments.map((payment) => ({ payment, source })) : [];
  const reasons = found.filter((each) => typeof each === "string");
  // The message has only the first lines of a long invoice, and the service has no key to ask Stripe for the others.
  const warnings = [
    ...message.isCut ? ["lines_left_out"] : [],
    ...UNPAID.filter(({ reason }) => reasons.includes(reason)).map(({ warning }) => warning),
  ];
  if (acts.length > 0) {
    const learned = { ...NOTHING, purchases, payments };
    return { learned, acts, left: null, settled: null, reason: null, warnings };
  }
  const reason = isOfPacks
    ? "the grant waits for a message that names the holdfast_user of its subscription"
    : UNPAID.find((each) => reasons.includes(each.reason))?.reason ?? reasons[0] ?? "nothing was sold";
  return nothing(reason, { purchases, payments });
}

/** Lines with the price of a pack that grant nothing. */
const UNPAID: readonly { readonly unpaid: Unpaid; readonly reason: string; readonly warning: string }[] = [
  {
    unpaid: "proration",
    reason: "a line is a proration, which grants nothing: the next invoice of its subscription does",
    warning: "proration_not_granted",
  },
  {
    unpaid: "free",
    reason:
      "a line has the amount 0 without a discount or a free price, as that of a trial, and grants nothing",
    warning: "free_line_not_granted",
  },
];

/** Makes the purchase of a line, or the reason why the line is not one. */
function purchaseOf(source: string, line: Line, known: Known, catalog: Catalog): Purchase | string {
  const { externalRef, subscriptionId } = line;
  const ofSubscription = subscriptionId === null ? undefined : known.subscriptions.get(subscriptionId);
  const before = known.purchases.get(externalRef) ?? formerOf(source, line, known);
  if (before !== undefined) {
    return { ...before, userId: before.userId ?? firstUserOf(ofSubscription) ?? line.userId };
  }
  const userId = line.userId ?? ofSubscription?.userId ?? null;
  const pack = packOf(line, catalog);
  if (pack === null) {
    return "pack" in line.sold
      ? `the catalog has no pack ${JSON.stringify(line.sold.pack)}`
      : `no pack of the catalog lists ${line.sold.priceId} in stripePrices`;
  }
  const unpaid = UNPAID.find((each) => each.unpaid === line.unpaid);
  if (unpaid !== undefined) return unpaid.reason;
  if (userId === null && subscriptionId === null) return "no user is named: set metadata.holdfast_user";
  const { quantity } = line;
  if (quantity === null) return "quantity must be a positive integer";
  return { externalRef, source, packId: pack.id, quantity, userId, subscriptionId };
}

/** Finds the purchase of a line under its former reference, which lines of other invoices may have too. */
function formerOf(source: string, { formerRef }: Line, { purchases }: Known): Purchase | undefined {
  const former = formerRef === null ? undefined : purchases.get(formerRef);
  return former?.source === source ? former : undefined;
}

function packOf({ sold }: Line, catalog: Catalog): Pack | null {
  if ("pack" in sold) return findPack(catalog, sold.pack);
  const found = catalog.stripePrices.get(sold.priceId);
  return found !== undefined && "pack" in found ? found.pack : null;
}

/** Makes the grant of a purchase with a known user, by the present pack. */
function grantOf(purchase: Purchase, catalog: Catalog): StripeAct[] {
  const { userId, packId, quantity, externalRef } = purchase;
  if (userId === null) return [];
  const isBucket = catalog.packs.get(packId)?.bucket != null;
  const input: GrantInput = {
    pack: packId,
    quantity: isBucket ? amountOf(quantity) : null,
    externalRef,
    expiresAt: undefined,
    source: "purchase",
    notes: null,
    paidPacks: isBucket ? 1 : quantity,
  };
  return [{ kind: "grant", userId, input }];
}
