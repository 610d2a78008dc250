// What a message of Stripe comes to: what is kept of it, and what is then done to users. It is kept before anything is
// done, so that a message that is cut off in the middle does the rest when Stripe sends it again, and an older message that
// comes between is known to be older. Section 7 of beyond.md.

import { amountOf } from "../amount.ts";
import type { GrantInput } from "../credits/grant.ts";
import { type Catalog, findPack, type Pack } from "../plans/catalog.ts";
import type { MirrorInput } from "../plans/mirror.ts";
import type { Plan } from "../plans/plan.ts";
import type { Known, KnownSubscription, Learned, Purchase } from "./facts.ts";
import type { Line, SaleMessage, StripeMessage, SubscriptionMessage } from "./message.ts";

/** The provider of subscriptions that come from Stripe. */
export const STRIPE = "stripe";

/** Something that is done to a user. */
export type StripeAct =
  | { readonly kind: "mirror"; readonly userId: string; readonly input: MirrorInput }
  | { readonly kind: "grant"; readonly userId: string; readonly input: GrantInput };

/** What a message comes to. */
export interface StripeOutcome {
  readonly learned: Learned;
  /** In the order in which they are done. */
  readonly acts: readonly StripeAct[];
  /**
   * A user whom the subscription belonged to and who has it no more: done first, unless it is the user of `acts` under
   * another id.
   */
  readonly left: StripeAct | null;
  /** Why there is nothing to do; null where there is. */
  readonly reason: string | null;
}

const NOTHING: Learned = { subscription: null, purchases: [], payments: [], refunds: [] };

/** Decides what a message comes to. */
export function answerMessage(message: StripeMessage, known: Known, catalog: Catalog): StripeOutcome {
  switch (message.kind) {
    case "subscription":
      return answerSubscription(message, known, catalog);
    case "sale":
      return answerSale(message, known, catalog);
    case "payment": {
      const { source, payments } = message;
      return nothing("the payment is kept, for a refund of it", {
        payments: payments.map((payment) => ({ payment, source })),
      });
    }
    case "refund":
      return nothing("no grant of this charge is known; the refund is kept for one that comes later", {
        refunds: message.payments,
      });
    case "other":
      return nothing(message.reason);
  }
}

function nothing(reason: string, learned: Partial<Learned> = {}): StripeOutcome {
  return { learned: { ...NOTHING, ...learned }, acts: [], left: null, reason };
}

function answerSubscription(message: SubscriptionMessage, known: Known, catalog: Catalog): StripeOutcome {
  const before = known.subscriptions.get(message.subscriptionId);
  if (before !== undefined && isOvertaken(message, before)) {
    return nothing("a newer message of this subscription has come before");
  }
  const subscription = learnedOf(message, before);
  const { userId } = subscription;
  if (userId === null) {
    return nothing("neither the subscription's metadata nor an earlier message names a holdfast_user", {
      subscription,
    });
  }
  const waiting = [...known.purchases.values()]
    .filter((purchase) => purchase.userId === null && purchase.subscriptionId === message.subscriptionId)
    .map((purchase) => ({ ...purchase, userId }));
  const grants = waiting.flatMap((purchase) => grantOf(purchase, catalog));
  const mirrored = mirrorOf(message, catalog);
  const acts = mirrored === null ? grants : [{ kind: "mirror" as const, userId, input: mirrored }, ...grants];
  const hasMoved = before !== undefined && before.userId !== null && before.userId !== userId;
  return {
    learned: { ...NOTHING, subscription, purchases: waiting },
    acts,
    left: hasMoved ? leaving(message, before.userId as string) : null,
    reason: acts.length > 0 ? null : whyNotMirrored(message),
  };
}

/** Whether a message is older than the one by which its subscription goes. One that is final always counts. */
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
  return { subscriptionId, userId, created, rank, isFinal, eventIds: [...earlier, eventId] };
}

/** What becomes of the user's row; null for nothing. */
function mirrorOf(message: SubscriptionMessage, catalog: Catalog): MirrorInput | null {
  const { subscriptionId: externalId, standing, status, startedAt: startsAt, endsAt, endedAt } = message;
  const row = { provider: STRIPE, externalId };
  if (standing === "over") return { ...row, standing: { endedAt, reason: `Stripe: ${status}` } };
  const plan = bestPlan(message.priceIds, catalog);
  if (standing === "not_yet" || plan === null) return null;
  return { ...row, standing: { planId: plan.id, startsAt, endsAt } };
}

function whyNotMirrored({ standing, priceIds }: SubscriptionMessage): string {
  if (standing === "not_yet") return "the subscription is incomplete: its first payment has not been made";
  if (priceIds.length === 0) return "the subscription has no price";
  return `no plan of the catalog lists ${priceIds.join(" or ")} in stripePrices`;
}

/** The plan with the highest rank that one of the prices sells. */
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

function leaving({ subscriptionId }: SubscriptionMessage, userId: string): StripeAct {
  const standing = { endedAt: null, reason: "Stripe: the subscription names another user" };
  return { kind: "mirror", userId, input: { provider: STRIPE, externalId: subscriptionId, standing } };
}

function answerSale(message: SaleMessage, known: Known, catalog: Catalog): StripeOutcome {
  const { source } = message;
  const found = message.lines.map((line) => purchaseOf(source, line, known, catalog));
  const purchases = found.filter((each) => typeof each !== "string");
  const acts = purchases.flatMap((purchase) => grantOf(purchase, catalog));
  const isOfPacks = purchases.length > 0;
  const payments = isOfPacks ? message.payments.map((payment) => ({ payment, source })) : [];
  if (acts.length > 0) {
    return { learned: { ...NOTHING, purchases, payments }, acts, left: null, reason: null };
  }
  const reason = isOfPacks
    ? "the grant waits until a message tells the holdfast_user of its subscription"
    : found.find((each) => typeof each === "string") ?? "nothing was sold";
  return nothing(reason, { purchases, payments });
}

/** The purchase of a line, or why it is none. */
function purchaseOf(source: string, line: Line, known: Known, catalog: Catalog): Purchase | string {
  const { externalRef, subscriptionId } = line;
  const ofSubscription = subscriptionId === null ? undefined : known.subscriptions.get(subscriptionId);
  const userId = line.userId ?? ofSubscription?.userId ?? null;
  const before = known.purchases.get(externalRef);
  if (before !== undefined) return { ...before, userId: before.userId ?? userId };
  const pack = packOf(line, catalog);
  if (pack === null) {
    return "pack" in line.sold
      ? `the catalog has no pack ${JSON.stringify(line.sold.pack)}`
      : `no pack of the catalog lists ${line.sold.priceId} in stripePrices`;
  }
  if (userId === null && subscriptionId === null) return "nothing names the user: set metadata.holdfast_user";
  // A session says how much only of a pack that has no amounts of its own.
  const quantity = "pack" in line.sold && pack.bucket === null ? 1 : line.quantity;
  if (quantity === null) return "the quantity is no whole number above 0";
  return { externalRef, source, packId: pack.id, quantity, userId, subscriptionId };
}

function packOf({ sold }: Line, catalog: Catalog): Pack | null {
  if ("pack" in sold) return findPack(catalog, sold.pack);
  const found = catalog.stripePrices.get(sold.priceId);
  return found !== undefined && "pack" in found ? found.pack : null;
}

/** The grant of a purchase whose user is known. */
function grantOf({ userId, packId, quantity, externalRef }: Purchase, catalog: Catalog): StripeAct[] {
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
