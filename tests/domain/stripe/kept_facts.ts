// The facts of Stripe's messages in memory, kept by the rules of the store.

import type {
  Dispute,
  Known,
  KnownSubscription,
  Learned,
  MoneyFacts,
  Payment,
  Purchase,
  Refund,
  Settled,
} from "../../../src/domain/stripe/facts.ts";

/** All facts of one app and mode. A message may be answered with more of them than concern it. */
export class KeptFacts implements Known {
  readonly subscriptions = new Map<string, KnownSubscription>();
  readonly purchases = new Map<string, Purchase>();
  readonly #payments = new Map<string, Payment>();
  readonly #refunds = new Map<string, Refund>();
  readonly #disputes = new Map<string, Dispute>();

  get money(): MoneyFacts {
    return {
      purchases: [...this.purchases.values()],
      payments: [...this.#payments.values()],
      refunds: [...this.#refunds.values()],
      disputes: [...this.#disputes.values()],
    };
  }

  keep({ subscription, purchases, payments, refunds, disputes }: Learned): void {
    if (subscription !== null) this.subscriptions.set(subscription.subscriptionId, subscription);
    for (const purchase of purchases) {
      const userId = this.purchases.get(purchase.externalRef)?.userId ?? purchase.userId;
      this.purchases.set(purchase.externalRef, { ...purchase, userId });
    }
    for (const payment of payments) {
      const key = `${payment.payment} ${payment.source}`;
      if (!this.#payments.has(key)) this.#payments.set(key, payment);
    }
    for (const refund of refunds) {
      if (!this.#refunds.has(refund.payment)) this.#refunds.set(refund.payment, refund);
    }
    for (const dispute of disputes) {
      const key = `${dispute.payment} ${dispute.disputeId}`;
      const before = this.#disputes.get(key);
      this.#disputes.set(key, {
        ...before ?? dispute,
        isWithdrawn: dispute.isWithdrawn || before?.isWithdrawn === true,
        isReinstated: dispute.isReinstated || before?.isReinstated === true,
      });
    }
  }

  settle(settled: Settled | null): void {
    if (settled === null) return;
    const known = settled.subscriptionId === null
      ? undefined
      : this.subscriptions.get(settled.subscriptionId);
    if (known !== undefined) this.subscriptions.set(known.subscriptionId, { ...known, leftUserIds: [] });
    for (const purchase of settled.purchases) this.purchases.set(purchase.externalRef, purchase);
  }
}
