// Facts of Stripe's messages, which are stored so that the order of the messages does not matter: facts are only added, and
// two facts have the same effect in either order. A refund before its grant, for example, revokes the grant when it arrives.

import type { Millis } from "../values/period.ts";
import type { Money } from "./fields.ts";
import type { SubscriptionMessage } from "./message.ts";

/** The newest message of a subscription, and the owner. */
export interface KnownSubscription {
  readonly subscriptionId: string;
  readonly userId: string | null;
  /** Former owners, for whom it may not have ended yet. */
  readonly leftUserIds: readonly string[];
  readonly created: Millis;
  readonly rank: SubscriptionMessage["rank"];
  readonly isFinal: boolean;
  /** The events of this time and rank, in the order of arrival; the last one decides. */
  readonly eventIds: readonly string[];
  /** Its items that are add-ons, those that are gone included: each has a row of its own. */
  readonly itemIds: readonly string[];
}

/** A paid grant. It never changes: a repeated message grants nothing else. */
export interface Purchase {
  readonly externalRef: string;
  /** The id of the paid session or invoice. */
  readonly source: string;
  readonly packId: string;
  /** The number of packs, or the units of a pack without items. */
  readonly quantity: number;
  /** Null until a message of its subscription names the user. */
  readonly userId: string | null;
  readonly subscriptionId: string | null;
  /** What the whole session or invoice cost; null if unknown. */
  readonly paid: Money | null;
}

/** A payment or charge of a session or invoice. */
export interface Payment {
  readonly payment: string;
  readonly source: string;
  /** Whether this is the invoice that a session made, and not a payment. */
  readonly isInvoice: boolean;
}

/** A charge that was refunded in full, or its payment. */
export interface Refund {
  readonly payment: string;
  /** The charge; null in facts of earlier versions of this service. */
  readonly charge: string | null;
  /** What the charge cost; null if unknown. */
  readonly money: Money | null;
}

/** A dispute of a payment or charge. */
export interface Dispute {
  readonly payment: string;
  readonly disputeId: string;
  readonly money: Money | null;
  /** Whether a message said that its funds were withdrawn. */
  readonly isWithdrawn: boolean;
  /** Whether a message said that they came back. */
  readonly isReinstated: boolean;
}

/** Facts about money, by which sales are held against each other, and against refunds and disputes. */
export interface MoneyFacts {
  readonly purchases: readonly Purchase[];
  readonly payments: readonly Payment[];
  readonly refunds: readonly Refund[];
  readonly disputes: readonly Dispute[];
}

/** The facts that concern a message, when it arrives. */
export interface Known {
  readonly subscriptions: ReadonlyMap<string, KnownSubscription>;
  /** By external reference: those in the message, and those that wait for its subscription. */
  readonly purchases: ReadonlyMap<string, Purchase>;
  /** All that payments connect with the message, or with one of these purchases. */
  readonly money: MoneyFacts;
}

/** What to store of a message once all its commands have run; until then, sending it again runs the rest. */
export interface Settled {
  /** A subscription that has ended for all former owners; null for none. */
  readonly subscriptionId: string | null;
  /** Purchases that waited for their user, with the user. */
  readonly purchases: readonly Purchase[];
}

/** The facts that a message adds. */
export interface Learned extends MoneyFacts {
  readonly subscription: KnownSubscription | null;
}
