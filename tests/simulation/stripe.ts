// Stripe as the nodes see it: subscriptions that begin, change and end, checkouts and invoices that are paid, charges that
// are refunded, each with its messages. A message goes to any node, some twice, soon or late, so that they arrive in any
// order. It is sent again until the answer is a 200. Its content is kept for the checker.

import { Stripe } from "stripe";
import { eventOf } from "../../src/integrations/stripe/signature.ts";
import type { Pack, Plan } from "../model/document.ts";
import type { Random } from "../model/random.ts";
import type { Server } from "./database/server.ts";
import type { Faults } from "./faults.ts";
import type { SimProcess } from "./process.ts";
import { priceOf, type Tenant } from "./tenants.ts";
import { type VirtualTime, WORLD } from "./time.ts";

/** How long Stripe waits for an answer. */
const ANSWER_MS = 10_000;
const DAY_S = 86_400;
/** What every sale costs. */
const COST = 1000;
const CURRENCY = "usd";
/** Users who are about at one time. */
const BUYERS = 4;

/** A message with its outcome, by the clock of its realm. */
interface SimMessage {
  readonly id: string;
  readonly event: object;
  firstSentAt: number | null;
  firstTakenAt: number | null;
}

/** A subscription as of the time when Stripe made a message of it. */
export interface Stand {
  readonly message: SimMessage;
  /** Seconds. */
  readonly created: number;
  /** Among messages of one second the highest counts. */
  readonly rank: 0 | 1 | 2;
  readonly userId: string | null;
  readonly status: string;
  readonly planId: string;
  /** Seconds; null for no end. */
  readonly cancelAt: number | null;
}

/** A subscription of Stripe. */
export interface SimSubscription {
  readonly id: string;
  readonly startDate: number;
  /** In the order in which Stripe made them. */
  readonly stands: Stand[];
}

interface SimLine {
  readonly ref: string;
  /** The reference of the same line in the invoice of a checkout; null for none. */
  readonly twinRef: string | null;
  readonly pack: Pack;
  readonly quantity: number;
  /** Whether it grants its packs: a proration and the line of a trial do not. */
  readonly isPaid: boolean;
}

/** A session or an invoice that was paid. */
export interface SimSale {
  readonly source: string;
  readonly lines: readonly SimLine[];
  /** Null where only its subscription names the user. */
  readonly userId: string | null;
  readonly subscription: SimSubscription | null;
  readonly payments: readonly SimPayment[];
  readonly messages: SimMessage[];
  isRefunded: boolean;
  dispute: SimDispute | null;
}

interface SimPayment {
  readonly id: string;
  readonly amount: number;
}

/** A dispute over a payment of a sale. */
interface SimDispute {
  readonly id: string;
  /** Whether it is over the whole sale, and its funds are still withdrawn in the end. */
  readonly isLost: boolean;
}

/** The customers of one tenant. */
export interface Account {
  readonly tenant: Tenant;
  readonly subscriptions: SimSubscription[];
  readonly sales: SimSale[];
}

interface StripeWorld {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly faults: Faults;
  readonly server: Server;
  readonly processes: readonly SimProcess[];
}

/**
 * Lets every signature be good until the returned function is called: checking one takes a thread, and its time is not the
 * world's. Loads the package, which takes real time too.
 */
export async function trustSignatures(): Promise<() => void> {
  await eventOf("{}", "", "whsec_simulated", 0);
  const { webhooks } = Stripe;
  const { constructEventAsync } = webhooks;
  webhooks.constructEventAsync = (payload) => Promise.resolve(JSON.parse(String(payload)));
  return () => {
    webhooks.constructEventAsync = constructEventAsync;
  };
}

/** Stripe, for all tenants whose plans and packs it sells. */
export class SimStripe {
  readonly accounts: readonly Account[];
  /** How often each type of message was sent, and what came of a sending. */
  readonly counts = new Map<string, number>();
  readonly #world: StripeWorld;
  #made = 0;
  /** Messages in flight, counted as often as each must be taken. */
  #open = 0;

  constructor(world: StripeWorld, tenants: readonly Tenant[]) {
    this.#world = world;
    this.accounts = tenants.filter(({ isSold }) => isSold).map((tenant) => ({
      tenant,
      subscriptions: [],
      sales: [],
    }));
  }

  /** Whether every message was taken, also after the last time that one was not. */
  get isAllTaken(): boolean {
    return this.#open === 0;
  }

  /** The current buyers; new ones come with a purchase. */
  buyersOf({ subscriptions, sales }: Account): string[] {
    const newest = Math.floor((subscriptions.length + sales.length) / 4) + BUYERS;
    return Array.from({ length: BUYERS }, (_, place) => `buyer-${newest - place}`);
  }

  /** Something happens at Stripe. */
  happen(account: Account): void {
    const { random } = this.#world;
    const { subscriptions, sales } = account;
    const living = subscriptions.filter(({ stands }) => stands.at(-1)?.rank !== 2).slice(-4);
    const unrefunded = sales.filter(({ isRefunded }) => !isRefunded).slice(-4);
    const undisputed = unrefunded.filter(({ dispute }) => dispute === null);
    const kind = random.weighted({
      begin: 3,
      change: living.length > 0 ? 4 : 0,
      end: living.length > 0 ? 1 : 0,
      checkout: 3,
      invoice: subscriptions.length > 0 ? 3 : 0,
      refund: unrefunded.length > 0 ? 2 : 0,
      dispute: undisputed.length > 0 ? 1 : 0,
    });
    if (kind === "begin") this.#begin(account);
    else if (kind === "change") this.#change(account, random.pick(living));
    else if (kind === "end") this.#end(account, random.pick(living));
    else if (kind === "checkout") this.#checkout(account);
    else if (kind === "invoice") this.#invoice(account, random.pick(subscriptions.slice(-4)));
    else if (kind === "dispute") this.#dispute(account, random.pick(undisputed));
    else this.#refund(account, random.pick(unrefunded));
  }

  #user(account: Account): string {
    const { random } = this.#world;
    return random.chance(0.15) ? `gone-${random.whole(1, 3)}` : random.pick(this.buyersOf(account));
  }

  /** The clock of a tenant's realm. */
  #now({ tenant: { realm } }: Account): number {
    const { time, server } = this.#world;
    const [row] = server.tables.list("realms", (each) => each.realm === realm);
    return time.calendar() + Number(row?.clockOffsetMs ?? 0);
  }

  #begin(account: Account): void {
    const { random } = this.#world;
    const id = `sub_stripe_${++this.#made}`;
    const subscription: SimSubscription = {
      id,
      startDate: Math.floor(this.#now(account) / 1000),
      stands: [],
    };
    account.subscriptions.push(subscription);
    const plan = random.pick(plansOf(account));
    const userId = this.#user(account);
    // Some backends name the user only once the subscription is there, and some payments take a while.
    const isNamed = random.chance(0.7);
    const status = random.chance(0.8) ? "active" : "incomplete";
    const stand = { userId, status: "active", planId: plan.id, cancelAt: null };
    this.#tell(account, subscription, 0, { ...stand, userId: isNamed ? userId : null, status });
    if (random.chance(0.4)) this.#invoice(account, subscription);
    if (!isNamed || status !== "active") this.#tell(account, subscription, 1, stand);
    if (random.chance(0.2)) this.#change(account, subscription);
  }

  #change(account: Account, subscription: SimSubscription): void {
    const { random } = this.#world;
    const { userId, planId, cancelAt } = subscription.stands.at(-1) as Stand;
    const stand = { userId, status: "active", planId, cancelAt };
    const kind = random.weighted({ plan: 4, status: 2, cancel: 2, user: 1 });
    if (kind === "plan") stand.planId = random.pick(plansOf(account)).id;
    if (kind === "status") stand.status = random.pick(["past_due", "trialing", "paused", "unpaid"]);
    if (kind === "user") stand.userId = this.#user(account);
    if (kind === "cancel") {
      const inS = random.pick([5, random.whole(1, 90) * DAY_S]);
      stand.cancelAt = cancelAt === null ? Math.floor(this.#now(account) / 1000) + inS : null;
    }
    this.#tell(account, subscription, 1, stand);
  }

  #end(account: Account, subscription: SimSubscription): void {
    const { userId, planId, cancelAt } = subscription.stands.at(-1) as Stand;
    this.#tell(account, subscription, 2, { userId, planId, cancelAt, status: "canceled" });
  }

  #tell(
    account: Account,
    subscription: SimSubscription,
    rank: Stand["rank"],
    stand: Pick<Stand, "userId" | "status" | "planId" | "cancelAt">,
  ): void {
    const { random } = this.#world;
    const { id, startDate, stands } = subscription;
    const before = stands.at(-1);
    const nowS = Math.floor(this.#now(account) / 1000);
    // Now and then a change comes in the second of the one before.
    const isSame = before !== undefined && before.rank < rank && random.chance(0.3);
    const created = before === undefined
      ? nowS
      : isSame
      ? before.created
      : Math.max(nowS, before.created + 1);
    const { userId, status, planId, cancelAt } = stand;
    const type = `customer.subscription.${["created", "updated", "deleted"][rank]}`;
    const message = this.#send(account, type, created, {
      id,
      status,
      start_date: startDate,
      cancel_at: cancelAt,
      ended_at: rank === 2 ? created : null,
      metadata: userId === null ? {} : { holdfast_user: userId },
      items: { data: [{ price: { id: priceOf(planId) } }] },
    });
    stands.push({ message, created, rank, ...stand });
  }

  #checkout(account: Account): void {
    const { random } = this.#world;
    const pack = random.pick(account.tenant.catalog.packs ?? []);
    const no = ++this.#made;
    const [source, payment] = [`cs_${no}`, { id: `pi_${no}`, amount: COST }];
    const quantity = pack.items.length === 0 ? random.whole(1, 5) : 1;
    const userId = this.#user(account);
    // Some checkouts make an invoice, which is the same sale.
    const twinRef = random.chance(0.3) ? `il_${no}_twin` : null;
    const invoiceId = twinRef === null ? null : `in_${no}`;
    const created = this.#createdOf(account);
    const messages = [
      this.#send(account, "checkout.session.completed", created, {
        id: source,
        mode: "payment",
        payment_status: "paid",
        payment_intent: payment.id,
        invoice: invoiceId,
        amount_total: COST,
        currency: CURRENCY,
        client_reference_id: userId,
        metadata: { holdfast_pack: pack.id, holdfast_quantity: String(quantity) },
      }),
    ];
    if (twinRef !== null) {
      const line = { id: twinRef, amount: COST, quantity, price: priceOf(pack.id) };
      const invoice = { id: invoiceId, amount_paid: COST, currency: CURRENCY, lines: { data: [line] } };
      const metadata = random.chance(0.5) ? { holdfast_user: userId } : {};
      messages.push(this.#send(account, "invoice.paid", created, { ...invoice, metadata }));
    }
    account.sales.push({
      ...{ source, payments: [payment], userId, subscription: null, isRefunded: false, dispute: null },
      lines: [{ ref: source, twinRef, pack, quantity, isPaid: true }],
      messages,
    });
  }

  #invoice(account: Account, subscription: SimSubscription): void {
    const { random } = this.#world;
    const no = ++this.#made;
    const source = `in_${no}`;
    const lines = Array.from({ length: random.whole(1, 2) }, (_, place) => ({
      ref: `il_${no}_${place}`,
      twinRef: null,
      pack: random.pick(account.tenant.catalog.packs ?? []),
      quantity: random.whole(1, 3),
      isPaid: true,
    }));
    const [first] = lines as [SimLine, ...SimLine[]];
    // A change of quantity within a month, and a trial.
    const unpaid = [{ ...first, ref: `il_${no}_proration` }, { ...first, ref: `il_${no}_trial` }]
      .filter((_, place) => no % 3 === place).map((line) => ({ ...line, isPaid: false }));
    const userId = random.chance(0.5) ? this.#user(account) : null;
    const created = this.#createdOf(account);
    // Newer versions of Stripe's API have the payments in messages of their own.
    const isApart = random.chance(0.5);
    const payments = isApart && random.chance(0.4)
      ? [{ id: `pi_${no}_a`, amount: 400 }, { id: `pi_${no}_b`, amount: COST - 400 }]
      : [{ id: `pi_${no}`, amount: COST }];
    const messages = [
      this.#send(account, "invoice.paid", created, {
        id: source,
        amount_paid: COST,
        currency: CURRENCY,
        metadata: userId === null ? {} : { holdfast_user: userId },
        parent: { subscription_details: { subscription: subscription.id } },
        ...isApart ? {} : { payment_intent: payments[0]?.id },
        lines: {
          data: [...lines, ...unpaid].map(({ ref, pack, quantity }) => ({
            ...{ id: ref, amount: ref.endsWith("trial") ? 0 : 500, quantity },
            pricing: { price_details: { price: priceOf(pack.id) } },
            parent: { subscription_item_details: { proration: ref.endsWith("proration") } },
          })),
        },
      }),
    ];
    for (const { id } of isApart ? payments : []) {
      const object = { invoice: source, payment: { type: "payment_intent", payment_intent: id } };
      messages.push(this.#send(account, "invoice_payment.paid", created, object));
    }
    const sale = { source, payments, userId, subscription: userId === null ? subscription : null };
    const money = { isRefunded: false, dispute: null };
    account.sales.push({ ...sale, ...money, lines: [...lines, ...unpaid], messages });
    // Some money goes back at once.
    if (random.chance(0.2)) this.#refund(account, account.sales.at(-1) as SimSale);
  }

  /** Refunds all payments of a sale; now and then the first of two alone. */
  #refund(account: Account, sale: SimSale): void {
    const isPart = sale.payments.length > 1 && this.#world.random.chance(0.3);
    sale.isRefunded = !isPart;
    for (const { id, amount } of isPart ? sale.payments.slice(0, 1) : sale.payments) {
      const object = { id: `ch_of_${id}`, payment_intent: id, refunded: true, amount, currency: CURRENCY };
      sale.messages.push(this.#send(account, "charge.refunded", this.#createdOf(account), object));
    }
  }

  /** A customer disputes the first payment of a sale, in full or in part; some funds come back. */
  #dispute(account: Account, sale: SimSale): void {
    const { random } = this.#world;
    const [payment] = sale.payments as [SimPayment];
    const amount = random.chance(0.8) ? payment.amount : payment.amount - 1;
    const id = `dp_${++this.#made}`;
    const object = {
      id,
      charge: `ch_of_${payment.id}`,
      payment_intent: payment.id,
      amount,
      currency: CURRENCY,
    };
    const isReinstated = random.chance(0.5);
    sale.dispute = { id, isLost: amount >= COST && !isReinstated };
    for (const kind of ["withdrawn", ...isReinstated ? ["reinstated"] : []]) {
      const type = `charge.dispute.funds_${kind}`;
      sale.messages.push(this.#send(account, type, this.#createdOf(account), object));
    }
  }

  #createdOf(account: Account): number {
    return Math.floor(this.#now(account) / 1000);
  }

  /** Sends a message in its time, and some a second time. */
  #send(account: Account, type: string, created: number, object: object): SimMessage {
    const { random } = this.#world;
    const id = `evt_${++this.#made}`;
    const livemode = account.tenant.caps.mode === "live";
    const event = { id, type, created, livemode, data: { object } };
    const message: SimMessage = { id, event, firstSentAt: null, firstTakenAt: null };
    this.#count(type);
    for (let times = random.chance(0.25) ? 2 : 1; times > 0; times--) {
      this.#open += 1;
      this.#sendIn(random.pick([0, random.whole(1, 200), random.whole(1, 8_000)]), account, message);
    }
    return message;
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  #sendIn(ms: number, account: Account, message: SimMessage): void {
    const { time, random, faults } = this.#world;
    time.after(ms, WORLD, () => {
      message.firstSentAt ??= this.#now(account);
      let isOver = false;
      const end = (isTaken: boolean) => {
        if (isOver) return;
        isOver = true;
        this.#count(isTaken ? "taken" : "sent again");
        if (!isTaken) {
          return this.#sendIn(random.whole(20, faults.isQuiet ? 400 : 4_000), account, message);
        }
        message.firstTakenAt ??= this.#now(account);
        this.#open -= 1;
      };
      time.after(ANSWER_MS, WORLD, () => end(false));
      this.#deliver(account, message, end);
    });
  }

  #deliver({ tenant }: Account, { id, event }: SimMessage, end: (isTaken: boolean) => void): void {
    const { time, random, faults, processes } = this.#world;
    const path = `/api/v1/stripe/${tenant.appId}/${tenant.caps.mode}`;
    const process = random.pick(processes);
    const there = faults.way();
    if (there === null) return;
    time.after(there, WORLD, () => {
      if (!process.isAlive || !process.hasBegun) {
        return void time.after(there, WORLD, () => end(false));
      }
      time.after(0, process.ownerFor(tenant), () => {
        void process.takeOfStripe(path, JSON.stringify(event), id).then((status) => {
          const back = faults.way();
          if (back !== null) time.after(back, WORLD, () => end(status === 200));
        });
      });
    });
  }
}

/** The plans that a subscription may be of; an add-on is a row of its item, which has no id here. */
function plansOf({ tenant }: Account): readonly Plan[] {
  return tenant.catalog.plans.filter(({ addon }) => addon !== true);
}
