// Decides what a paid checkout or invoice does: purchases for its lines, unless the same sale was granted before.

import { type Catalog, findPack, type Pack } from "../catalog/catalog.ts";
import type { Known, KnownSubscription, Payment, Purchase } from "./facts.ts";
import { moneyOf } from "./fields.ts";
import type { Line, SaleMessage, Unpaid } from "./message.ts";
import { isOfCheckout, linkedTo, saleStatus } from "./money.ts";
import {
  factsWith,
  grantOf,
  nothing,
  type Paid,
  PAID_MAX,
  reversalsOf,
  type StripeOutcome,
} from "./outcome.ts";

/** Why a line is not granted. */
interface Missing {
  readonly line: Line;
  readonly reason: string;
  /** Whether it was paid for, so that the message is kept. */
  readonly isOwed: boolean;
}

const WAITS = "the grant waits for a message that names the holdfast_user of its subscription";

/** Decides what a paid checkout or invoice does. */
export function answerSale(message: SaleMessage, known: Known, catalog: Catalog): StripeOutcome {
  const { source } = message;
  const lines = [...new Map(message.lines.map((line) => [line.externalRef, line])).values()];
  const ownPayments = paymentsOf(message);
  const twins = twinsOf(message, ownPayments, known);
  const found = lines.map((line) => {
    return purchaseOf(source, line, { known, catalog, twins, lines, paid: message.paid });
  });
  const purchases = found.filter((each) => "externalRef" in each);
  const missing: Missing[] = found.map((each, place) => {
    if (!("externalRef" in each)) return each;
    const line = lines[place] as Line;
    return each.userId === null ? { line, reason: WAITS, isOwed: true } : { line, reason: "", isOwed: false };
  });
  const isOfSale = purchases.length + twins.length > 0;
  const learned = { purchases, payments: isOfSale ? ownPayments : [] };
  const facts = factsWith(known.money, learned);
  const granted = purchases.filter((purchase) => !saleStatus(purchase, facts).isCovered);
  const acts = [
    ...granted.flatMap((purchase) => grantOf(purchase, catalog)),
    ...reversalsOf(facts.purchases, facts),
  ];
  const reasons = missing.map(({ reason }) => reason).filter((reason) => reason !== "");
  const reason = purchases.length > 0
    ? WAITS
    : UNPAID.find((each) => reasons.includes(each.reason))?.reason ?? reasons[0] ?? "nothing was sold";
  const paid = paidOf(message, missing.filter(({ isOwed }) => isOwed));
  return { ...nothing(reason, learned), acts, paid, warnings: warningsOf(message, reasons, paid) };
}

function paymentsOf({ source, payments, invoiceId }: SaleMessage): Payment[] {
  return [
    ...payments.map((payment) => ({ payment, source, isInvoice: false })),
    ...invoiceId === null ? [] : [{ payment: invoiceId, source, isInvoice: true }],
  ];
}

/** Finds purchases of the same sale that came by another message: a checkout and the invoice that it made. */
function twinsOf({ source }: SaleMessage, own: readonly Payment[], { money }: Known): Purchase[] {
  const linked = linkedTo([source], [...money.payments, ...own]);
  return money.purchases.filter((purchase) => purchase.source !== source && linked.has(purchase.source));
}

/** The message has only the first lines of a long invoice, and the service has no key to ask Stripe for the others. */
function warningsOf({ isCut }: SaleMessage, reasons: readonly string[], { reason }: Paid): string[] {
  const unpaid = UNPAID.filter((each) => reasons.includes(each.reason)).map(({ warning }) => warning);
  const left = reason === null ? [] : ["lines_unhandled"];
  return [...isCut ? ["lines_left_out"] : [], ...new Set(unpaid), ...left];
}

function paidOf({ source, paid }: SaleMessage, owed: readonly Missing[]): Paid {
  if (owed.length === 0) return { objectId: source, money: paid, reason: null };
  const reasons = [...new Set(owed.map(({ reason }) => reason))].slice(0, PAID_MAX);
  const amount = owed.reduce((sum, { line }) => sum + line.amount, 0);
  const money = moneyOf(amount, paid?.currency);
  return { objectId: source, money, reason: reasons.join("; ") };
}

/** Lines with the price of a pack that grant nothing. */
const UNPAID: readonly {
  readonly unpaid: Unpaid;
  readonly reason: string;
  readonly warning: string;
  readonly isOwed: boolean;
}[] = [
  {
    unpaid: "proration",
    reason: "a line is a proration, which grants nothing: the next invoice of its subscription does",
    warning: "proration_not_granted",
    isOwed: false,
  },
  {
    unpaid: "free",
    reason:
      "a line has the amount 0 without a discount or a free price, as that of a trial, and grants nothing",
    warning: "free_line_not_granted",
    isOwed: false,
  },
  {
    unpaid: "unexplained",
    reason:
      "a line has the amount 0, and its message does not say whether its price is free or this is a trial",
    warning: "free_line_not_granted",
    isOwed: true,
  },
];

interface LineContext {
  readonly known: Known;
  readonly catalog: Catalog;
  readonly twins: readonly Purchase[];
  readonly lines: readonly Line[];
  readonly paid: SaleMessage["paid"];
}

/** Makes the purchase of a line, or the reason why there is none. */
function purchaseOf(source: string, line: Line, context: LineContext): Purchase | Missing {
  const { known, catalog, twins, paid } = context;
  const { externalRef, subscriptionId, quantity } = line;
  const ofSubscription = subscriptionId === null ? undefined : known.subscriptions.get(subscriptionId);
  const before = known.purchases.get(externalRef) ?? formerOf(source, line, known);
  if (before !== undefined) {
    const userId = before.userId ?? firstUserOf(ofSubscription) ?? line.userId;
    return { ...before, userId, paid: before.paid ?? paid };
  }
  const pack = packOf(line, catalog);
  const twin = "pack" in line.sold ? twins[0] : twins.find(isOfCheckout);
  if (twin !== undefined) return grantedAs(twin, line, pack, context);
  if (pack === null) return withoutPack(line, catalog);
  const unpaid = UNPAID.find((each) => each.unpaid === line.unpaid);
  if (unpaid !== undefined) return { line, reason: unpaid.reason, isOwed: unpaid.isOwed };
  const userId = line.userId ?? ofSubscription?.userId ?? null;
  if (userId === null && subscriptionId === null) {
    return { line, reason: "no user is named: set metadata.holdfast_user", isOwed: true };
  }
  if (quantity === null) return { line, reason: "quantity must be a positive integer", isOwed: true };
  return { externalRef, source, packId: pack.id, quantity, userId, subscriptionId, paid };
}

/**
 * Makes the reason that another message has granted the sale. A checkout names one pack, so lines of its invoice that sold more than
 * that are owed.
 */
function grantedAs(twin: Purchase, line: Line, pack: Pack | null, { lines, catalog }: LineContext): Missing {
  const { sold, amount, unpaid } = line;
  const isMore = "priceId" in sold && pack?.id !== twin.packId && amount > 0 && unpaid === null &&
    lines.some((each) => packOf(each, catalog)?.id === twin.packId);
  return isMore
    ? { line, reason: `the checkout granted ${twin.packId} alone: it names no other pack`, isOwed: true }
    : { line, reason: `the sale is granted already, as ${twin.externalRef}`, isOwed: false };
}

/** Makes the reason why a line has no pack. What another part of the app sells is owed too, until the catalog lists its price. */
function withoutPack(line: Line, { stripePrices }: Catalog): Missing {
  const { sold, amount, unpaid } = line;
  if ("pack" in sold) {
    const reason = sold.pack === null
      ? "the session's metadata has no holdfast_pack"
      : `the catalog has no pack ${JSON.stringify(sold.pack)}`;
    return { line, reason, isOwed: true };
  }
  const isOfPlan = stripePrices.has(sold.priceId);
  const reason = `no ${
    isOfPlan ? "pack" : "plan or pack"
  } of the catalog lists ${sold.priceId} in stripePrices`;
  return { line, reason, isOwed: !isOfPlan && amount > 0 && unpaid === null };
}

/** Finds the purchase of a line under its former reference, which lines of other invoices may have too. */
function formerOf(source: string, { formerRef }: Line, { purchases }: Known): Purchase | undefined {
  const former = formerRef === null ? undefined : purchases.get(formerRef);
  return former?.source === source ? former : undefined;
}

/**
 * Returns the owner of purchases left waiting when the message that named the user was interrupted: the first user ever
 * named, because that message may have granted them already. Null if no message named a user.
 */
export function firstUserOf(subscription: KnownSubscription | undefined): string | null {
  return subscription?.leftUserIds[0] ?? subscription?.userId ?? null;
}

function packOf({ sold }: Line, catalog: Catalog): Pack | null {
  if ("pack" in sold) return sold.pack === null ? null : findPack(catalog, sold.pack);
  const found = catalog.stripePrices.get(sold.priceId);
  return found !== undefined && "pack" in found ? found.pack : null;
}
