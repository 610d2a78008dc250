// Decides what a payment of a top-up does: its grant, and the facts by which a later refund or dispute is recognized.

import { ownerOf, type UserKey } from "../values/ids.ts";
import type { Known, Purchase } from "./facts.ts";
import type { TopUpMessage } from "./message.ts";
import { factsWith, nothing, reversalsOf, type StripeOutcome } from "./outcome.ts";

/** Decides what a message of a top-up does. Only a payment does something: of anything else the top-up asks Stripe. */
export function answerTopUp(message: TopUpMessage, known: Known): StripeOutcome {
  const { topUpId, paymentIntentId, payments, paid, sold } = message;
  if (paid === null) return nothing("the top-up asks Stripe what became of its payment");
  const topUpKey = ownerOf("topUp", topUpId);
  const reason = sold == null || topUpKey === null ? "no top-up has this id" : sold.mismatch;
  if (sold == null || topUpKey === null || reason !== null) {
    return { ...nothing(reason ?? ""), paid: { objectId: paymentIntentId, money: paid, reason } };
  }
  const { userId, packId, quantity } = sold;
  const purchase: Purchase = {
    ...{ externalRef: topUpId, source: topUpId, packId, quantity, userId },
    subscriptionId: null,
    paid,
  };
  const learned = {
    purchases: [purchase],
    payments: payments.map((payment) => ({ payment, source: topUpId, isInvoice: false })),
  };
  const facts = factsWith(known.money, learned);
  const step = { kind: "paid", paymentIntentId, ...paid } as const;
  return {
    ...nothing("the top-up is granted already", learned),
    acts: [
      { kind: "topUp", userId, topUpKey: topUpKey satisfies UserKey, input: { topUpId, step } },
      ...reversalsOf(facts.purchases, facts),
    ],
    paid: { objectId: paymentIntentId, money: paid, reason: null },
  };
}
