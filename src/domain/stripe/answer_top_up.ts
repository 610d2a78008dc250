// Decides what a payment of a top-up does: its grant, and the facts by which a later refund or dispute is recognized.

import { ownerOf } from "../values/ids.ts";
import type { Known, Purchase } from "./facts.ts";
import type { TopUpMessage } from "./message.ts";
import { factsWith, nothing, reversalsOf, type StripeOutcome } from "./outcome.ts";

/** Decides what a message of a top-up does. Only a payment does something: of anything else the top-up asks Stripe. */
export function answerTopUp(message: TopUpMessage, known: Known): StripeOutcome {
  const { topUpId, paymentIntentId, payments, paid, sold } = message;
  if (paid === null) return nothing("the top-up asks Stripe for the status of its payment");
  const topUpKey = ownerOf("topUp", topUpId);
  if (sold == null || topUpKey === null || sold.mismatch !== null) {
    const why = sold?.mismatch ?? "no top-up has this id";
    return { ...nothing(why), paid: { objectId: paymentIntentId, money: paid, reason: why } };
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
  const reversals = reversalsOf(facts.purchases, facts);
  // In the turn of the grant: nothing would revoke it later, if the process ended in between.
  const revokedFor = reversals.find((act) => act.kind === "refund" && act.input.externalRef === topUpId);
  const reason = revokedFor?.kind === "refund" ? revokedFor.input.reason : null;
  const step = { kind: "paid", paymentIntentId, ...paid, revokedFor: reason } as const;
  return {
    ...nothing("the top-up is granted already", learned),
    acts: [
      { kind: "topUp", userId, topUpKey, input: { topUpId, step } },
      ...reversals,
    ],
    paid: { objectId: paymentIntentId, money: paid, reason: null },
  };
}
