// Holds sales, payments, refunds and disputes against each other: which sources are one sale, and which purchases must be
// revoked. Every rule looks at all known facts, so the order in which they arrived does not matter.

import type { Dispute, MoneyFacts, Payment, Purchase, Refund } from "./facts.ts";
import type { Money } from "./fields.ts";

/** How the money of a sale went back. */
export type Reversal = "refunded" | "disputed";

/** Whether the money of a purchase is here, or went back. */
interface SaleStatus {
  /** Whether this is a line of an invoice, and the checkout that made the invoice was granted too. */
  readonly isCovered: boolean;
  /** By refunds of all payments, or by a dispute over the whole sale; null while the money is here. */
  readonly reversal: Reversal | null;
  /** Disputes over the whole sale with funds that came back. */
  readonly reinstated: readonly string[];
}

/** Returns the sources, payments and charges that payments connect with some ids, these included. */
export function linkedTo(ids: readonly string[], payments: readonly Payment[]): ReadonlySet<string> {
  const linked = new Set(ids);
  for (let before = -1; before !== linked.size;) {
    before = linked.size;
    for (const { payment, source } of payments) {
      if (linked.has(payment)) linked.add(source);
      if (linked.has(source)) linked.add(payment);
    }
  }
  return linked;
}

/** Whether a purchase is of a checkout: the reference of its only grant is the session's id. */
export function isOfCheckout({ externalRef, source }: Pick<Purchase, "externalRef" | "source">): boolean {
  return externalRef === source;
}

/** Returns the status of a purchase by all known facts. */
export function saleStatus(purchase: Purchase, facts: MoneyFacts): SaleStatus {
  const linked = linkedTo([purchase.source], facts.payments);
  const ofSale = facts.purchases.filter(({ source }) => linked.has(source));
  const names = new Set(
    facts.payments.filter(({ source, isInvoice }) => linked.has(source) && !isInvoice)
      .map(({ payment }) => payment),
  );
  const disputes = facts.disputes.filter((dispute) =>
    names.has(dispute.payment) && isWhole(dispute, purchase)
  );
  const isWithdrawn = disputes.some((dispute) => dispute.isWithdrawn && !dispute.isReinstated);
  return {
    isCovered: !isOfCheckout(purchase) && ofSale.some(isOfCheckout),
    reversal: isRefunded(purchase, names, facts.refunds) ? "refunded" : isWithdrawn ? "disputed" : null,
    reinstated: [
      ...new Set(disputes.filter(({ isReinstated }) => isReinstated).map(({ disputeId }) => disputeId)),
    ],
  };
}

/**
 * Whether all payments of a sale were refunded in full. A payment of it may not be known yet, so the refunds must also
 * reach what it cost, where both are known in one currency.
 */
function isRefunded(
  { source, paid }: Purchase,
  names: ReadonlySet<string>,
  refunds: readonly Refund[],
): boolean {
  const refunded = new Map(refunds.map((refund) => [refund.payment, refund]));
  // Earlier versions of this service stored the refund of an invoice's only charge under the invoice's id.
  if (refunded.has(source)) return true;
  if (names.size === 0 || [...names].some((name) => !refunded.has(name))) return false;
  const charges = new Map([...names].map((name) => {
    const { charge, money } = refunded.get(name) as Refund;
    return [charge ?? name, money];
  }));
  return isReached(paid, [...charges.values()]);
}

function isReached(paid: Money | null, parts: readonly (Money | null)[]): boolean {
  if (paid === null || parts.some((part) => part?.currency !== paid.currency)) return true;
  return parts.reduce((sum, part) => sum + (part?.amount ?? 0), 0) >= paid.amount;
}

/** Whether a dispute is about at least what the whole sale cost. */
export function isWhole({ money }: Pick<Dispute, "money">, { paid }: Pick<Purchase, "paid">): boolean {
  return money !== null && paid !== null && money.currency === paid.currency && money.amount >= paid.amount;
}
