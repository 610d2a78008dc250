// What a message of Stripe does, and the parts that every kind of message makes it of.

import { amountOf } from "../values/amount.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { GrantInput } from "../credits/grant.ts";
import type { RefundInput } from "../credits/refund.ts";
import type { TopUpWorkInput } from "../credits/top_up_work.ts";
import { ownerOf, type UserKey } from "../values/ids.ts";
import type { ReinstateInput } from "../credits/reinstate.ts";
import type { MirrorInput } from "../plans/mirror.ts";
import type { Dispute, Learned, MoneyFacts, Purchase, Settled } from "./facts.ts";
import type { Money } from "./fields.ts";
import { type Reversal, saleStatus } from "./money.ts";

/** A command to a user. */
export type StripeAct =
  | { readonly kind: "mirror"; readonly userId: string; readonly input: MirrorInput }
  | {
    readonly kind: "topUp";
    readonly userId: string;
    /** The user that the top-up was made for. */
    readonly topUpKey: UserKey;
    readonly input: TopUpWorkInput;
  }
  | { readonly kind: "grant"; readonly userId: string; readonly input: GrantInput }
  | { readonly kind: "refund"; readonly userId: string; readonly input: RefundInput }
  | { readonly kind: "reinstate"; readonly userId: string; readonly input: ReinstateInput };

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
  /** What was paid for; null for nothing. */
  readonly paid: Paid | null;
}

/** What a message says was paid for. */
export interface Paid {
  /** The session, invoice or subscription. */
  readonly objectId: string;
  /** What it cost, or the part that is not granted; null if unknown. */
  readonly money: Money | null;
  /** Why it is not granted yet; null if only the refusal of a command can be a reason. */
  readonly reason: string | null;
}

/** The end of a subscription for its former owners, which runs before all other commands. */
interface Leaving {
  /** Its present owner: a command for the same user under another id is left out. */
  readonly to: string;
  readonly acts: readonly StripeAct[];
}

/** Most prices or lines in a reason; a subscription has at most twenty. */
export const PAID_MAX = 20;

export const NOTHING: Learned = {
  subscription: null,
  purchases: [],
  payments: [],
  refunds: [],
  disputes: [],
};

/** An outcome that changes no user. */
export function nothing(reason: string, learned: Partial<Learned> = {}): StripeOutcome {
  return {
    ...{ learned: { ...NOTHING, ...learned }, acts: [], left: null, settled: null },
    ...{ reason, warnings: [], paid: null },
  };
}

/** Adds facts to known ones, as the store does. */
export function factsWith(known: MoneyFacts, learned: Partial<MoneyFacts>): MoneyFacts {
  const { purchases = [], payments = [], refunds = [], disputes = [] } = learned;
  return {
    purchases: added(known.purchases, purchases, ({ externalRef }) => externalRef),
    payments: [...known.payments, ...payments],
    refunds: [...known.refunds, ...refunds],
    disputes: joined([...known.disputes, ...disputes]),
  };
}

function added<Row>(known: readonly Row[], learned: readonly Row[], keyOf: (row: Row) => string): Row[] {
  return [...new Map([...known, ...learned].map((row) => [keyOf(row), row])).values()];
}

function joined(disputes: readonly Dispute[]): Dispute[] {
  const rows = new Map<string, Dispute>();
  for (const dispute of disputes) {
    const key = JSON.stringify([dispute.payment, dispute.disputeId]);
    const before = rows.get(key);
    rows.set(key, {
      ...before ?? dispute,
      isWithdrawn: dispute.isWithdrawn || before?.isWithdrawn === true,
      isReinstated: dispute.isReinstated || before?.isReinstated === true,
    });
  }
  return [...rows.values()];
}

/** Makes the grant of a purchase with a known user, by the present pack. */
export function grantOf(purchase: Purchase, catalog: Catalog): StripeAct[] {
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

const REVOKED: Readonly<Record<Reversal, string>> = {
  refunded: "Stripe: the payment was refunded",
  disputed: "Stripe: the payment was disputed",
};

/** Makes the revokes of purchases that were granted twice, or whose money went back. */
export function reversalsOf(purchases: readonly Purchase[], facts: MoneyFacts): StripeAct[] {
  return purchases.flatMap((purchase): StripeAct[] => {
    const { externalRef, userId } = purchase;
    if (userId === null) return [];
    const { isCovered, reversal, reinstated } = saleStatus(purchase, facts);
    if (reversal === null && !isCovered) return [];
    const reason = reversal === null
      ? "Stripe: the checkout of this invoice has granted it"
      : REVOKED[reversal];
    const refs = [externalRef, ...reinstated.map((id) => reinstatedRef(externalRef, id))];
    return refs.map((ref) => ({
      kind: "refund",
      userId,
      input: { externalRef: ref, reason, ...ownOf(externalRef) },
    }));
  });
}

/** Whether the grants of a purchase have a reference of our own: those of a top-up do. */
export function ownOf(externalRef: string): { readonly isOwn?: true } {
  return ownerOf("topUp", externalRef) === null ? {} : { isOwn: true };
}

/** The reference of what is granted again after a dispute. */
export function reinstatedRef(externalRef: string, disputeId: string): string {
  return `${externalRef}:${disputeId}`;
}
