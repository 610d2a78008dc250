// Facts of Stripe's messages, which are stored so that the order of the messages does not matter: facts are only added, and
// two facts have the same effect in either order. A refund before its grant, for example, revokes the grant when it arrives.

import type { Millis } from "../values/period.ts";
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
}

/** A payment or charge of a session or invoice. */
export interface Payment {
  readonly payment: string;
  readonly source: string;
}

/** The facts that concern a message, when it arrives. */
export interface Known {
  readonly subscriptions: ReadonlyMap<string, KnownSubscription>;
  /** By external reference: those in the message, and those that wait for its subscription. */
  readonly purchases: ReadonlyMap<string, Purchase>;
}

/** What to store of a message once all its commands have run; until then, sending it again runs the rest. */
export interface Settled {
  /** A subscription that has ended for all former owners; null for none. */
  readonly subscriptionId: string | null;
  /** Purchases that waited for their user, with the user. */
  readonly purchases: readonly Purchase[];
}

/** The facts that a message adds. */
export interface Learned {
  readonly subscription: KnownSubscription | null;
  readonly purchases: readonly Purchase[];
  readonly payments: readonly Payment[];
  /** Refunded payments, charges and invoices. */
  readonly refunds: readonly string[];
}
