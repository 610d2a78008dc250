// A small model of Stripe, written from its documentation and not from the rules under test: customers who subscribe, change
// quantities, buy once, pay in parts, get money back and dispute charges. It makes the events that Stripe would send, in
// the forms of several versions of its API, and keeps the books: what each line was paid for, and whether the money is
// still here.

import type { Random } from "../../model/random.ts";
import { packOf, planOf } from "../short_catalog.ts";

/** Versions in which members have different places. */
const VERSIONS = ["2019-10-08", "2024-10-28.acacia", "2025-03-31.basil", "2026-01-28.clover"] as const;
const CURRENCY = "usd";
const AT_S = 1_770_000_000;

/** What a price sells: units of a pack for an amount. A catalog may not list the last one yet. */
const PRICES = {
  price_bundle: { pack: "bundle", units: 10, cost: 500 },
  price_wallet: { pack: "wallet", units: 1, cost: 3 },
  price_late: { pack: "late", units: 7, cost: 200 },
} as const;
function withItems(id: string, amount: number, price: string) {
  const items = [{ id: `${id}_x`, label: "x", unit: "count", amount, matches: [{ event: "x" }] }] as const;
  return packOf(id, { unit: undefined, matches: undefined, items, stripePrices: [price] });
}

export const PLANS = [planOf("plan", { g: 1 }, { stripePrices: ["price_plan"] })];
/** The packs before the catalog lists the last price. */
export const EARLY_PACKS = [
  withItems("bundle", 10, "price_bundle"),
  packOf("wallet", { stripePrices: ["price_wallet"] }),
];
export const PACKS = [...EARLY_PACKS, withItems("late", 7, "price_late")];

type PriceId = keyof typeof PRICES;

/** A line that was sold. */
export interface SoldLine {
  /** Every reference under which it may be granted. */
  readonly refs: readonly string[];
  /** What it was paid for; 0 where nothing is owed for it. */
  readonly units: number;
}

interface SalePayment {
  readonly id: string;
  readonly amount: number;
  isRefunded: boolean;
}

interface SaleDispute {
  readonly id: string;
  readonly isWhole: boolean;
  isOpen: boolean;
}

/** A paid invoice, or a checkout with the invoice that it made. */
export interface Sale {
  readonly userId: string;
  readonly objectIds: readonly string[];
  readonly lines: readonly SoldLine[];
  readonly payments: readonly SalePayment[];
  readonly disputes: SaleDispute[];
  /** Whether both parts of it may be handled before a message connects them. */
  readonly isHidden: boolean;
}

/** Whether the money of a sale went back. */
export function isReversed({ payments, disputes }: Sale): boolean {
  return payments.every(({ isRefunded }) => isRefunded) ||
    disputes.some(({ isOpen, isWhole }) => isOpen && isWhole);
}

interface Item {
  readonly priceId: PriceId;
  readonly quantity: number;
  readonly kind?: "proration" | "trial";
}

/** One account of Stripe, and what happened in it. */
export class StripeWorld {
  readonly sales: Sale[] = [];
  /** In the order in which Stripe made them. */
  readonly events: object[] = [];
  readonly #random: Random;
  readonly #version: (typeof VERSIONS)[number];
  #made = 0;
  #second = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#version = random.pick(VERSIONS);
  }

  /** Lets a customer live: a subscription, checkouts, and what happens to their money. */
  live(userId: string): void {
    const random = this.#random;
    if (random.chance(0.7)) this.#subscribe(userId);
    for (let times = random.whole(0, 2); times > 0; times--) this.#checkout(userId);
    for (const sale of this.sales.filter((each) => each.userId === userId)) this.#reverse(sale);
  }

  get #isNew(): boolean {
    return this.#version >= "2025";
  }

  #name(prefix: string): string {
    return `${prefix}_${++this.#made}`;
  }

  #send(type: string, object: object): void {
    const created = AT_S + ++this.#second;
    const event = { id: this.#name("evt"), object: "event", api_version: this.#version, type, created };
    this.events.push({ ...event, livemode: true, data: { object } });
  }

  #subscribe(userId: string): void {
    const random = this.#random;
    const id = this.#name("sub");
    let quantity = random.whole(1, 3);
    // Some backends name the user later, a few never.
    const named = random.weighted({ first: 7, later: 2, never: 1 });
    const tell = (kind: string, status = "active", isNamed = named === "first") => {
      const metadata = isNamed ? { holdfast_user: userId } : {};
      this.#send(`customer.subscription.${kind}`, {
        ...{ id, status, metadata, currency: CURRENCY, start_date: AT_S },
        items: { data: [{ price: { id: "price_plan" } }, { price: { id: "price_bundle" }, quantity }] },
      });
    };
    const owner = { id, userId };
    const isTrial = random.chance(0.2);
    tell("created", isTrial ? "trialing" : "active");
    this.#invoice(owner, [{ priceId: "price_bundle", quantity, ...isTrial ? { kind: "trial" } : {} }]);
    for (let month = random.whole(0, 3); month > 0; month--) {
      if (random.chance(0.5)) {
        const before = quantity;
        quantity = random.whole(1, 9);
        tell("updated");
        // Both the credit for the rest of the month and the charge for it are lines of one invoice.
        const change = [{ quantity: before, sign: -1 }, { quantity, sign: 1 }];
        this.#invoice(owner, change.map((each) => ({ priceId: "price_bundle", kind: "proration", ...each })));
      }
      const extra: Item[] = random.chance(0.2) ? [{ priceId: "price_late", quantity: 1 }] : [];
      this.#invoice(owner, [{ priceId: "price_bundle", quantity }, ...extra]);
    }
    if (named === "later") tell("updated", "active", true);
    if (random.chance(0.3)) tell("deleted", "canceled", named !== "never");
  }

  /** Sends a paid invoice of a subscription. */
  #invoice(owner: { id: string; userId: string }, items: readonly (Item & { sign?: number })[]): void {
    const { userId } = owner;
    const invoiceId = this.#name("in");
    const lines = items.map((item) => ({ item, ref: this.#name("il") }));
    const paid = items.filter(({ kind }) => kind === undefined)
      .reduce((sum, { priceId, quantity }) => sum + PRICES[priceId].cost * quantity, 0);
    // An invoice of prorations or of a trial costs something of no interest here.
    const payments = this.#pay(paid === 0 ? 1 : paid, this.#isNew && this.#random.chance(0.3) ? 2 : 1);
    this.#tellInvoice(invoiceId, lines, payments, owner.id);
    this.sales.push({
      ...{ userId, objectIds: [invoiceId], payments, disputes: [], isHidden: false },
      lines: lines.map(({ item: { priceId, quantity, kind }, ref }) => {
        return { refs: [ref], units: kind === undefined ? PRICES[priceId].units * quantity : 0 };
      }),
    });
  }

  #pay(amount: number, parts: number): SalePayment[] {
    const first = parts === 1 ? amount : this.#random.whole(1, Math.max(1, amount - 1));
    const amounts = parts === 1 || first === amount ? [amount] : [first, amount - first];
    return amounts.map((part) => ({ id: this.#name("pi"), amount: part, isRefunded: false }));
  }

  /** Sends an invoice, with its payments in the place that the version has for them. */
  #tellInvoice(
    id: string,
    lines: readonly { readonly item: Item & { sign?: number }; readonly ref: string }[],
    payments: readonly SalePayment[],
    subscription: string | null,
    metadata: object = {},
  ): void {
    const [first] = payments as [SalePayment];
    const amount_paid = payments.reduce((sum, { amount }) => sum + amount, 0);
    const shared = { id, amount_paid, currency: CURRENCY, metadata };
    const data = lines.map(({ item, ref }) => this.#lineOf(item, ref, subscription));
    const tell = (members: object) =>
      this.#send("invoice.paid", { ...shared, ...members, lines: { data, has_more: false } });
    if (!this.#isNew) {
      return tell({ subscription, payment_intent: first.id, charge: `ch_${first.id}` });
    }
    const tells = [
      () => tell({ parent: { subscription_details: subscription === null ? null : { subscription } } }),
      ...payments.map((payment) => () =>
        this.#send("invoice_payment.paid", {
          ...{ id: this.#name("inpay"), invoice: id, status: "paid" },
          payment: { type: "payment_intent", payment_intent: payment.id },
        })
      ),
    ];
    for (const each of tells) each();
  }

  #lineOf(
    { priceId, quantity, kind, sign = 1 }: Item & { sign?: number },
    ref: string,
    subscription: string | null,
  ) {
    const { cost } = PRICES[priceId];
    const whole = cost * quantity;
    const amount = kind === "trial" ? 0 : kind === "proration" ? sign * Math.ceil(whole / 4) : whole;
    const proration = kind === "proration";
    const line = { id: ref, amount, quantity };
    if (this.#isNew) {
      const details = { subscription, proration };
      return {
        ...line,
        pricing: {
          price_details: { price: priceId },
          unit_amount_decimal: kind === "trial" ? "0" : String(cost),
        },
        parent: subscription === null
          ? { invoice_item_details: { proration } }
          : { subscription_item_details: details },
      };
    }
    if (this.#version === "2019-10-08") {
      // All lines of a subscription had its id then.
      const id = subscription ?? ref;
      return { ...line, id, unique_id: ref, proration, subscription, plan: { id: priceId, amount: cost } };
    }
    return { ...line, proration, subscription, price: { id: priceId, unit_amount: cost } };
  }

  #checkout(userId: string): void {
    const random = this.#random;
    const sessionId = this.#name("cs");
    const priceId = random.pick(["price_bundle", "price_wallet"] as const);
    const { pack, units, cost } = PRICES[priceId];
    const quantity = random.whole(1, 4);
    const amount_total = cost * quantity;
    const payments = this.#pay(amount_total, 1);
    const invoice = random.weighted({ none: 4, named: 3, unnamed: 2 });
    const invoiceId = invoice === "none" ? null : this.#name("in");
    const ref = this.#name("il");
    const isNamed = random.chance(0.85);
    const metadata = random.chance(0.85) ? { holdfast_pack: pack, holdfast_quantity: String(quantity) } : {};
    const tells = [
      () =>
        this.#send("checkout.session.completed", {
          ...{ id: sessionId, mode: "payment", payment_status: "paid", payment_intent: payments[0]?.id },
          ...{ amount_total, currency: CURRENCY, metadata, client_reference_id: isNamed ? userId : null },
          invoice: invoice === "named" ? invoiceId : null,
        }),
      () => {
        if (invoiceId === null) return;
        const names = random.chance(0.5) ? { holdfast_user: userId } : {};
        this.#tellInvoice(invoiceId, [{ item: { priceId, quantity }, ref }], payments, null, names);
      },
    ];
    for (const tell of random.chance(0.5) ? tells : tells.toReversed()) tell();
    this.sales.push({
      ...{ userId, payments, disputes: [], isHidden: invoice === "unnamed" && this.#isNew },
      objectIds: [sessionId, ...invoiceId === null ? [] : [invoiceId]],
      lines: [{ refs: [sessionId, ref], units: units * quantity }],
    });
  }

  /** Some money goes back, in full or in part, and some of it returns. */
  #reverse(sale: Sale): void {
    const random = this.#random;
    const total = sale.payments.reduce((sum, { amount }) => sum + amount, 0);
    for (let times = random.pick([0, 0, 0, 1, 2]); times > 0; times--) {
      const payment = random.pick(sale.payments);
      if (random.chance(0.5)) this.#dispute(sale, payment, total);
      else this.#refund(payment, random.chance(0.7));
    }
    if (sale.payments.length > 1 && random.chance(0.3)) {
      for (const payment of sale.payments) this.#refund(payment, true);
    }
  }

  #refund(payment: SalePayment, refunded: boolean): void {
    payment.isRefunded ||= refunded;
    this.#send("charge.refunded", {
      ...this.#chargeOf(payment),
      refunded,
      amount: payment.amount,
      currency: CURRENCY,
    });
  }

  #chargeOf({ id }: SalePayment) {
    return { id: `ch_${id}`, payment_intent: id };
  }

  #dispute(sale: Sale, payment: SalePayment, total: number): void {
    const random = this.#random;
    const amount = random.chance(0.8) ? payment.amount : Math.ceil(payment.amount / 2);
    const dispute = { id: this.#name("dp"), isWhole: amount >= total, isOpen: true };
    sale.disputes.push(dispute);
    const { id: charge, payment_intent } = this.#chargeOf(payment);
    const tell = (kind: string) =>
      this.#send(`charge.dispute.${kind}`, {
        id: dispute.id,
        charge,
        payment_intent,
        amount,
        currency: CURRENCY,
      });
    tell("created");
    tell("funds_withdrawn");
    if (random.chance(0.5)) {
      dispute.isOpen = false;
      tell("funds_reinstated");
    }
  }
}

/** The events as they arrive: in any order, some more than once. */
export function arrivals(random: Random, events: readonly object[]): object[] {
  const sent = [...events, ...events.filter(() => random.chance(0.3))];
  if (random.chance(0.2)) return sent;
  const left = [...sent];
  return sent.map(() => left.splice(random.whole(0, left.length - 1), 1)[0] as object);
}
