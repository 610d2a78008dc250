// Reads a message of Stripe into a form of our own. Members are in other places in other versions of Stripe's API, so each
// is looked up in all of them. A missing member, or one of another type, is read as absent.

import type { Millis } from "../values/period.ts";
import {
  type Fields,
  fieldsOf,
  idOf,
  isFreeSale,
  isProration,
  linesOf,
  metadataOf,
  type Money,
  moneyOf,
  nameOf,
  numberOf,
  paymentsOf,
  priceOf,
  timeOf,
  unitAmountOf,
  wholeOf,
} from "./fields.ts";

/** The common part of every message. */
interface Head {
  readonly eventId: string;
  readonly type: string;
  /** When Stripe made the event. */
  readonly created: Millis;
  readonly isLive: boolean;
  /** Stripe's id of the customer; absent where the message names none. */
  readonly customerId?: string;
}

/** Whether the user has the subscription's plan: now, no longer, or not yet. */
type SubscriptionState = "in_force" | "over" | "not_yet";

/** `customer.subscription.*`. */
export interface SubscriptionMessage {
  readonly kind: "subscription";
  readonly head: Head;
  /** Among messages of one moment: an update beats a creation, a deletion beats both. */
  readonly rank: 0 | 1 | 2;
  readonly subscriptionId: string;
  readonly userId: string | null;
  readonly priceIds: readonly string[];
  /** Its items, each with its price; absent in a message that an earlier version of this service kept. */
  readonly items?: readonly SubscriptionItem[];
  /** Whether the message lacks some of its items; absent for no. */
  readonly isCut?: true;
  /** What its prices cost in one period; null if unknown. */
  readonly price: Money | null;
  readonly state: SubscriptionState;
  /** Stripe's status. */
  readonly status: string;
  /** Whether no later message can change the state. */
  readonly isFinal: boolean;
  readonly startedAt: Millis | null;
  /** Its scheduled end; null for none. */
  readonly endsAt: Millis | null;
  /** When it ended; null if Stripe gives no time. */
  readonly endedAt: Millis | null;
  /** When its trial ends; absent where none runs. */
  readonly trialEndsAt?: Millis;
}

/** An item of a subscription. */
export interface SubscriptionItem {
  readonly id: string | null;
  readonly priceId: string;
  /** Null where it is no positive integer. */
  readonly quantity: number | null;
  readonly startedAt: Millis | null;
}

/** One sold item. */
export interface Line {
  /** The external reference of the grant. */
  readonly externalRef: string;
  /** The reference that earlier versions of this service gave the line; null for the same. */
  readonly formerRef: string | null;
  /** The price, or the pack that the backend named; null for none. */
  readonly sold: { readonly priceId: string } | { readonly pack: string | null };
  /** The number of packs, or the units of a pack without items; null for an invalid number. */
  readonly quantity: number | null;
  readonly userId: string | null;
  /** The subscription of the invoice's line; null for none. */
  readonly subscriptionId: string | null;
  /** What it cost, in the currency of the sale. */
  readonly amount: number;
  /** Why it grants nothing although its price may sell a pack; null if it was paid for. */
  readonly unpaid: Unpaid | null;
}

/** A line that charges for a change within a period, one that charges nothing, or nothing without an explanation. */
export type Unpaid = "proration" | "free" | "unexplained";

/** A paid checkout or invoice. */
export interface SaleMessage {
  readonly kind: "sale";
  readonly head: Head;
  /** The id of the session or invoice. */
  readonly source: string;
  /** Ids of payments and charges, as far as the message names them. */
  readonly payments: readonly string[];
  /** The invoice that a session made; null for none. */
  readonly invoiceId: string | null;
  /** What all of it cost; null if unknown. */
  readonly paid: Money | null;
  readonly lines: readonly Line[];
  /** Whether the message lacks some of the invoice's lines. */
  readonly isCut: boolean;
}

/** `invoice_payment.paid`: the payment of an invoice. */
interface PaymentMessage {
  readonly kind: "payment";
  readonly head: Head;
  readonly source: string;
  readonly payments: readonly string[];
}

/** `charge.refunded`, in full. */
export interface RefundMessage {
  readonly kind: "refund";
  readonly head: Head;
  /** The refunded charge. */
  readonly charge: string;
  /** The charge and its payment, as far as the message names them. */
  readonly payments: readonly string[];
  /** The invoice that the charge paid, in part or in full; null if the message does not name it. */
  readonly invoiceId: string | null;
  readonly money: Money | null;
}

/** `charge.dispute.funds_withdrawn` and `.funds_reinstated`. */
export interface DisputeMessage {
  readonly kind: "dispute";
  readonly head: Head;
  readonly disputeId: string;
  readonly payments: readonly string[];
  readonly money: Money | null;
  readonly isReinstated: boolean;
}

/** `payment_intent.*` of a top-up, or Stripe's answer to a call about one. */
export interface TopUpMessage {
  readonly kind: "topUp";
  readonly head: Head;
  readonly topUpId: string;
  readonly paymentIntentId: string;
  /** The PaymentIntent and its charge. */
  readonly payments: readonly string[];
  /** What was received; null while it is not paid. */
  readonly paid: Money | null;
  /** The top-up; null for an unknown one, absent until it is looked up. */
  readonly sold?: SoldTopUp | null;
}

/** What a message of a top-up needs to know of it. */
interface SoldTopUp {
  readonly userId: string;
  readonly packId: string;
  readonly quantity: number;
  /** Why the payment does not settle this top-up (it is for another one, or a second one); null where it does. */
  readonly mismatch: string | null;
}

/** A message that changes nothing. */
interface OtherMessage {
  readonly kind: "other";
  readonly head: Head;
  readonly reason: string;
}

export type StripeMessage =
  | SubscriptionMessage
  | SaleMessage
  | PaymentMessage
  | RefundMessage
  | DisputeMessage
  | TopUpMessage
  | OtherMessage;

/** The metadata in which a customer's backend names users and packs. */
const USER = "holdfast_user";
const PACK = "holdfast_pack";
const QUANTITY = "holdfast_quantity";
/** The metadata by which a payment names its top-up. */
export const INTENT = "holdfast_intent";

const STATES: ReadonlyMap<string, SubscriptionState> = new Map<string, SubscriptionState>([
  ["active", "in_force"],
  ["trialing", "in_force"],
  ["past_due", "in_force"],
  ["canceled", "over"],
  ["unpaid", "over"],
  ["incomplete_expired", "over"],
  ["paused", "over"],
  ["incomplete", "not_yet"],
]);

const FINAL: ReadonlySet<string> = new Set(["canceled", "incomplete_expired"]);

/** Reads an event; null for a value that is not an event of Stripe. */
export function readMessage(event: unknown): StripeMessage | null {
  const { id, type: typeName, created, livemode, data, account } = fieldsOf(event);
  const eventId = nameOf(id);
  const type = nameOf(typeName);
  const at = timeOf(created);
  if (eventId === null || type === null || at === null) return null;
  const object = fieldsOf(fieldsOf(data).object);
  const customerId = idOf(object.customer);
  const ofCustomer = customerId === null ? {} : { customerId };
  const head = { eventId, type, created: at, isLive: livemode === true, ...ofCustomer };
  // The customer of a platform writes the metadata of its own account, and could name any user and pack there.
  if (account !== undefined && account !== null) return other(head, "the event is of a connected account");
  const read = READERS.get(type);
  return read === undefined ? other(head, NOT_HANDLED) : read(head, object);
}

type Reader = (head: Head, object: Fields) => StripeMessage;

const READERS: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["customer.subscription.created", (head, object) => readSubscription(head, object, 0)],
  ["customer.subscription.updated", (head, object) => readSubscription(head, object, 1)],
  ["customer.subscription.deleted", (head, object) => readSubscription(head, object, 2)],
  ["checkout.session.completed", readCheckout],
  ["checkout.session.async_payment_succeeded", readCheckout],
  ["invoice.paid", readInvoice],
  ["invoice_payment.paid", readInvoicePayment],
  ["charge.refunded", readRefund],
  ["charge.dispute.funds_withdrawn", (head, object) => readDispute(head, object, false)],
  ["charge.dispute.funds_reinstated", (head, object) => readDispute(head, object, true)],
  ["payment_intent.succeeded", readPaymentIntent],
  ["payment_intent.processing", readPaymentIntent],
  ["payment_intent.payment_failed", readPaymentIntent],
  ["payment_intent.requires_action", readPaymentIntent],
  ["payment_intent.canceled", readPaymentIntent],
]);

function readSubscription(head: Head, object: Fields, rank: 0 | 1 | 2): StripeMessage {
  const subscriptionId = idOf(object);
  if (subscriptionId === null) return other(head, "the subscription has no id");
  const isDeleted = rank === 2;
  const status = nameOf(object.status) ?? "";
  const state = isDeleted ? "over" : STATES.get(status);
  if (state === undefined) return other(head, `the status ${JSON.stringify(status)} is unknown`);
  const endedAt = timeOf(object.ended_at);
  const trialEndsAt = timeOf(object.trial_end);
  const items = linesOf(object.items).flatMap(itemOf);
  return {
    kind: "subscription",
    head,
    rank,
    subscriptionId,
    userId: nameOf(metadataOf(object)[USER]),
    priceIds: items.map(({ priceId }) => priceId),
    items,
    price: moneyOf(costOf(linesOf(object.items)), object.currency),
    state,
    status: isDeleted ? "deleted" : status,
    isFinal: isDeleted || FINAL.has(status),
    startedAt: timeOf(object.start_date) ?? timeOf(object.created),
    endsAt: timeOf(object.cancel_at),
    endedAt: isDeleted ? endedAt ?? head.created : endedAt,
    ...status === "trialing" && trialEndsAt !== null ? { trialEndsAt } : {},
    ...fieldsOf(object.items).has_more === true ? { isCut: true } : {},
  };
}

/** Reads an item; none without a price. */
function itemOf(item: Fields): SubscriptionItem[] {
  const priceId = priceOf(item);
  if (priceId === null) return [];
  return [{ id: idOf(item), priceId, quantity: wholeOf(item.quantity), startedAt: timeOf(item.created) }];
}

/** The sum of a subscription's items; null if one is unknown. */
function costOf(items: readonly Fields[]): number | null {
  let sum = 0;
  for (const item of items) {
    const amount = unitAmountOf(item);
    if (amount === null) return null;
    sum += Math.round(amount * (numberOf(item.quantity) ?? 1));
  }
  return sum;
}

function readCheckout(head: Head, object: Fields): StripeMessage {
  const source = idOf(object);
  const metadata = metadataOf(object);
  const pack = nameOf(metadata[PACK]);
  if (source === null) return other(head, "the session has no id");
  if (object.mode !== "payment") return other(head, "the session is not a one-time payment");
  // A session that costs nothing is complete without a payment.
  if (object.payment_status !== "paid" && object.payment_status !== "no_payment_required") {
    return other(head, "the session is not paid yet");
  }
  const paid = moneyOf(object.amount_total, object.currency);
  if (pack === null && paid?.amount === 0) return other(head, `the session's metadata has no ${PACK}`);
  const line: Line = {
    externalRef: source,
    formerRef: null,
    sold: { pack },
    quantity: wholeOf(metadata[QUANTITY] ?? 1),
    userId: nameOf(metadata[USER]) ?? nameOf(object.client_reference_id),
    subscriptionId: null,
    amount: paid?.amount ?? 0,
    unpaid: null,
  };
  const invoiceId = idOf(object.invoice);
  return {
    ...{ kind: "sale", head, source, payments: paymentsOf(object), invoiceId, paid },
    ...{ lines: [line], isCut: false },
  };
}

function readInvoice(head: Head, object: Fields): StripeMessage {
  const source = idOf(object);
  if (source === null) return other(head, "the invoice has no id");
  const parent = fieldsOf(fieldsOf(object.parent).subscription_details);
  const details = fieldsOf(object.subscription_details);
  const ofSubscription = nameOf(metadataOf(parent)[USER]) ?? nameOf(metadataOf(details)[USER]);
  const ofInvoice = nameOf(metadataOf(object)[USER]);
  const subscription = idOf(parent.subscription) ?? idOf(object.subscription);
  const lines = linesOf(object.lines).flatMap((line): Line[] => {
    // Versions of Stripe's API before 2019-12-03 repeat the subscription's id in each of its lines.
    const id = idOf(line);
    const externalRef = nameOf(line.unique_id) ?? id;
    const priceId = priceOf(line);
    const amount = numberOf(line.amount) ?? 0;
    if (externalRef === null || priceId === null || amount < 0) return [];
    const item = fieldsOf(fieldsOf(line.parent).subscription_item_details);
    return [{
      externalRef,
      formerRef: id === externalRef ? null : id,
      sold: { priceId },
      quantity: line.quantity === null || line.quantity === undefined ? 1 : wholeOf(line.quantity),
      userId: nameOf(metadataOf(line)[USER]) ?? ofSubscription ?? ofInvoice,
      subscriptionId: idOf(item.subscription) ?? idOf(line.subscription) ?? subscription,
      amount,
      unpaid: unpaidOf(line, amount),
    }];
  });
  const isCut = fieldsOf(object.lines).has_more === true;
  const paid = moneyOf(object.amount_paid, object.currency);
  return { kind: "sale", head, source, payments: paymentsOf(object), invoiceId: null, paid, lines, isCut };
}

function unpaidOf(line: Fields, amount: number): Unpaid | null {
  if (isProration(line)) return "proration";
  if (amount !== 0) return null;
  const isFree = isFreeSale(line);
  if (isFree === null) return "unexplained";
  return isFree ? null : "free";
}

function readInvoicePayment(head: Head, object: Fields): StripeMessage {
  const source = idOf(object.invoice);
  const payments = paymentsOf(fieldsOf(object.payment));
  if (source === null || payments.length === 0) {
    return other(head, "the payment has no invoice or payment ID");
  }
  return { kind: "payment", head, source, payments };
}

function readRefund(head: Head, object: Fields): StripeMessage {
  if (object.refunded !== true) return other(head, "the charge is refunded in part only");
  const charge = idOf(object);
  if (charge === null) return other(head, "the charge has no id");
  const payments = [charge, idOf(object.payment_intent)].filter((id) => id !== null);
  const money = moneyOf(object.amount, object.currency);
  return { kind: "refund", head, charge, payments, invoiceId: idOf(object.invoice), money };
}

function readDispute(head: Head, object: Fields, isReinstated: boolean): StripeMessage {
  const disputeId = idOf(object);
  const payments = paymentsOf(object);
  if (disputeId === null || payments.length === 0) return other(head, "the dispute has no id or charge");
  const money = moneyOf(object.amount, object.currency);
  return { kind: "dispute", head, disputeId, payments, money, isReinstated };
}

/** Reads a PaymentIntent of a top-up. Any other one is a part of a checkout, an invoice, or none of ours. */
export function readPaymentIntent(head: Head, object: Fields): StripeMessage {
  const paymentIntentId = idOf(object);
  const topUpId = nameOf(metadataOf(object)[INTENT]);
  if (paymentIntentId === null || topUpId === null) return other(head, NOT_HANDLED);
  const charge = idOf(object.latest_charge);
  const payments = charge === null ? [paymentIntentId] : [paymentIntentId, charge];
  const paid = object.status === "succeeded" ? moneyOf(object.amount_received, object.currency) : null;
  return { kind: "topUp", head, topUpId, paymentIntentId, payments, paid };
}

const NOT_HANDLED = "event type not handled";

function other(head: Head, reason: string): OtherMessage {
  return { kind: "other", head, reason };
}
