// What is kept of Stripe's messages, so that their order does not matter: facts are only ever added, and what follows from
// two of them follows whichever came first. Section 7 of beyond.md, "Stripe, order".

import type { Millis } from "../values/period.ts";
import type { SubscriptionMessage } from "./message.ts";

/** The message by which a subscription goes, and whose it is. */
export interface KnownSubscription {
  readonly subscriptionId: string;
  readonly userId: string | null;
  /** Users whom it belonged to before and with whom it may not have ended yet. */
  readonly leftUserIds: readonly string[];
  readonly created: Millis;
  readonly rank: SubscriptionMessage["rank"];
  readonly isFinal: boolean;
  /** The events of this moment and rank, in the order in which they came: the last one is in force. */
  readonly eventIds: readonly string[];
}

/** A grant that was paid for. What it was at first it stays: a repeated message grants nothing else. */
export interface Purchase {
  readonly externalRef: string;
  /** The session or invoice that was paid. */
  readonly source: string;
  readonly packId: string;
  /** As it was told: packs, or units of a pack without items. */
  readonly quantity: number;
  /** Null while only its subscription could tell, and has not. */
  readonly userId: string | null;
  readonly subscriptionId: string | null;
}

/** A payment or charge by which a session or invoice was paid. */
export interface Payment {
  readonly payment: string;
  readonly source: string;
}

/** What is known when a message comes, of what it is about. */
export interface Known {
  readonly subscriptions: ReadonlyMap<string, KnownSubscription>;
  /** By external reference: those that the message names, and those that wait for its subscription. */
  readonly purchases: ReadonlyMap<string, Purchase>;
}

/** What is kept of a message once all that it asks for is done: until then, sending it again does the rest. */
export interface Settled {
  /** A subscription that has ended with everybody whom it belonged to before; null for none. */
  readonly subscriptionId: string | null;
  /** Those that waited for their user, with the user. */
  readonly purchases: readonly Purchase[];
}

/** What a message adds to what is known. */
export interface Learned {
  readonly subscription: KnownSubscription | null;
  readonly purchases: readonly Purchase[];
  readonly payments: readonly Payment[];
  /** Payments, charges and invoices that were refunded. */
  readonly refunds: readonly string[];
}
