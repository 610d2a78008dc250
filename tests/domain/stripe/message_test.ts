// What messages of Stripe say, in every shape that its API has given them, and of JSON that is signed but makes no sense.

import assert from "node:assert/strict";
import { readMessage, type StripeMessage } from "../../../src/domain/stripe/message.ts";

const AT_S = 1_770_000_000;

function read(type: string, object: unknown, members: object = {}): StripeMessage {
  const message = readMessage({
    id: "evt_1",
    type,
    created: AT_S,
    livemode: true,
    data: { object },
    ...members,
  });
  assert.ok(message !== null);
  return message;
}

/** Members of a message that a row names. */
function shown<Names extends object>(message: StripeMessage, names: Names): Partial<StripeMessage> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, message[name as keyof StripeMessage]]));
}

const item = (price: unknown) => ({ items: { data: [{ price }] } });

// deno-fmt-ignore: a row a shape
const SUBSCRIPTIONS: readonly (readonly [name: string, type: string, object: object, says: object])[] = [
  ["active", "created", { status: "active" }, { kind: "subscription", rank: 0, state: "in_force", isFinal: false }],
  ["trialing", "updated", { status: "trialing" }, { rank: 1, state: "in_force", isFinal: false }],
  ["past due", "updated", { status: "past_due" }, { state: "in_force", isFinal: false }],
  ["canceled", "updated", { status: "canceled", ended_at: 50 }, { state: "over", isFinal: true, endedAt: 50_000 }],
  ["unpaid", "updated", { status: "unpaid" }, { state: "over", isFinal: false, endedAt: null }],
  ["expired", "updated", { status: "incomplete_expired" }, { state: "over", isFinal: true }],
  ["paused", "updated", { status: "paused" }, { state: "over", isFinal: false }],
  ["incomplete", "created", { status: "incomplete" }, { state: "not_yet", isFinal: false }],
  ["deleted", "deleted", { status: "canceled", ended_at: 50 }, { rank: 2, state: "over", status: "deleted", isFinal: true, endedAt: 50_000 }],
  ["deleted without its time", "deleted", { status: "active" }, { state: "over", isFinal: true, endedAt: AT_S * 1000 }],
  ["a status of another day", "updated", { status: "dormant" }, { kind: "other", reason: 'the status "dormant" is unknown' }],
  ["a status that every object has", "updated", { status: "constructor" }, { kind: "other", reason: 'the status "constructor" is unknown' }],
  ["a status that every object has too", "updated", { status: "__proto__" }, { kind: "other" }],
  ["a status that is endless", "updated", { status: "x".repeat(9999) }, { kind: "other", reason: 'the status "" is unknown' }],
  ["a status that is a list", "updated", { status: ["active"] }, { kind: "other" }],
  ["no id", "updated", { id: undefined, status: "active" }, { kind: "other", reason: "the subscription has no id" }],
  ["its times", "created", { status: "active", start_date: 10, created: 20, cancel_at: 30 }, { startedAt: 10_000, endsAt: 30_000 }],
  ["a start by its creation", "created", { status: "active", created: 20 }, { startedAt: 20_000, endsAt: null }],
  ["times that are none", "created", { status: "active", start_date: 1.5, created: -1, cancel_at: "30" }, { startedAt: null, endsAt: null }],
  ["times beyond every calendar", "created", { status: "active", start_date: 1e300, cancel_at: 253_402_300_800 }, { startedAt: null, endsAt: null }],
  ["the last time there is", "created", { status: "active", cancel_at: 253_402_300_799 }, { endsAt: 253_402_300_799_000 }],
  ["its user", "created", { status: "active", metadata: { holdfast_user: "ada" } }, { userId: "ada" }],
  ["a user that is a number", "created", { status: "active", metadata: { holdfast_user: 7 } }, { userId: null }],
  ["a user with NUL", "created", { status: "active", metadata: { holdfast_user: "a\0" } }, { userId: null }],
  ["a user with half a character", "created", { status: "active", metadata: { holdfast_user: "a\ud800" } }, { userId: null }],
  ["a user of 200 large characters", "created", { status: "active", metadata: { holdfast_user: "😀".repeat(200) } }, { userId: "😀".repeat(200) }],
  ["a user of 201 characters", "created", { status: "active", metadata: { holdfast_user: "x".repeat(201) } }, { userId: null }],
  ["an empty user", "created", { status: "active", metadata: { holdfast_user: "" } }, { userId: null }],
  ["metadata that are a list", "created", { status: "active", metadata: ["holdfast_user"] }, { userId: null }],
  ["a price as an object", "created", { status: "active", ...item({ id: "price_1" }) }, { priceIds: ["price_1"] }],
  ["a price as its id", "created", { status: "active", ...item("price_1") }, { priceIds: ["price_1"] }],
  ["a plan of old", "created", { status: "active", items: { data: [{ plan: { id: "plan_1" } }] } }, { priceIds: ["plan_1"] }],
  ["several, and some that are none", "created", { status: "active", items: { data: [null, 7, { price: {} }, { price: "price_1" }, { price: "price_2" }] } }, { priceIds: ["price_1", "price_2"] }],
  ["what they cost", "created", { status: "active", currency: "usd", items: { data: [{ price: { id: "price_1", unit_amount: 500 }, quantity: 3 }, { plan: { id: "plan_1", amount: 20 } }] } }, { price: { amount: 1520, currency: "usd" } }],
  ["a price in tiers", "created", { status: "active", currency: "usd", items: { data: [{ price: { id: "price_1", unit_amount: null } }] } }, { price: null }],
  ["items that are no list", "created", { status: "active", items: { data: { 0: { price: "price_1" } } } }, { priceIds: [] }],
];

Deno.test("what a subscription's message says: a row a shape", () => {
  for (const [name, type, object, says] of SUBSCRIPTIONS) {
    const message = read(`customer.subscription.${type}`, { id: "sub_1", ...object });
    assert.deepEqual(shown(message, says), says, name);
  }
});

const PAID = { id: "cs_1", mode: "payment", payment_status: "paid", metadata: { holdfast_pack: "p" } };
const checkout = (userId: string | null, quantity: number | null = 1) => {
  return [{
    externalRef: "cs_1",
    formerRef: null,
    sold: { pack: "p" },
    quantity,
    userId,
    subscriptionId: null,
    amount: 0,
    unpaid: null,
  }];
};
const withData = (metadata: object) => ({ metadata: { holdfast_pack: "p", ...metadata } });

// deno-fmt-ignore: a row a shape
const CHECKOUTS: readonly (readonly [name: string, object: object, says: object])[] = [
  ["the user by reference", { client_reference_id: "ada" }, { kind: "sale", source: "cs_1", lines: checkout("ada"), isCut: false }],
  ["metadata before the reference", { client_reference_id: "bob", ...withData({ holdfast_user: "ada" }) }, { lines: checkout("ada") }],
  ["no user", {}, { lines: checkout(null) }],
  ["a quantity as text", withData({ holdfast_quantity: "25" }), { lines: checkout(null, 25) }],
  ["a quantity of 0", withData({ holdfast_quantity: "0" }), { lines: checkout(null, null) }],
  ["half a quantity", withData({ holdfast_quantity: "0.5" }), { lines: checkout(null, null) }],
  ["a quantity above all", withData({ holdfast_quantity: "9999999999" }), { lines: checkout(null, null) }],
  ["a quantity beyond all", withData({ holdfast_quantity: "9".repeat(400) }), { lines: checkout(null, null) }],
  ["a payment", { payment_intent: "pi_1" }, { payments: ["pi_1"] }],
  ["an expanded payment", { payment_intent: { id: "pi_1", object: "payment_intent" } }, { payments: ["pi_1"] }],
  ["no payment needed", { payment_status: "no_payment_required", payment_intent: null }, { kind: "sale", payments: [] }],
  ["unpaid", { payment_status: "unpaid" }, { kind: "other", reason: "the session is not paid yet" }],
  ["a subscription", { mode: "subscription" }, { kind: "other", reason: "the session is not a one-time payment" }],
  ["no pack", { metadata: {} }, { kind: "sale", lines: [{ ...checkout(null)[0], sold: { pack: null } }] }],
  ["no pack, and nothing to pay", { metadata: {}, amount_total: 0, currency: "usd" }, { kind: "other", reason: "the session's metadata has no holdfast_pack" }],
  ["what it cost", { amount_total: 990, currency: "USD" }, { paid: { amount: 990, currency: "usd" }, lines: [{ ...checkout(null)[0], amount: 990 }] }],
  ["a cost without a currency", { amount_total: 990 }, { paid: null }],
  ["its invoice", { invoice: "in_1" }, { invoiceId: "in_1" }],
  ["its invoice, expanded", { invoice: { id: "in_1" } }, { invoiceId: "in_1" }],
  ["no id", { id: "" }, { kind: "other", reason: "the session has no id" }],
];

Deno.test("what a checkout says: a row a shape, the same whether it is paid at once or later", () => {
  for (const type of ["completed", "async_payment_succeeded"]) {
    for (const [name, object, says] of CHECKOUTS) {
      const message = read(`checkout.session.${type}`, { ...PAID, ...object });
      assert.deepEqual(shown(message, says), says, name);
    }
  }
});

const LINE = { id: "il_1", amount: 500, quantity: 2, price: { id: "price_1" } };
const invoice = (line: object, members: object = {}) => ({
  id: "in_1",
  lines: { data: [{ ...LINE, ...line }] },
  ...members,
});
const NEW_LINE = { price: undefined, pricing: { price_details: { price: "price_1" } } };
const user = (name: string) => ({ metadata: { holdfast_user: name } });
const sold = (members: object = {}) => {
  return {
    externalRef: "il_1",
    formerRef: null,
    sold: { priceId: "price_1" },
    quantity: 2,
    userId: null,
    subscriptionId: null,
    amount: 500,
    unpaid: null,
    ...members,
  };
};

// deno-fmt-ignore: a row a shape
const INVOICES: readonly (readonly [name: string, object: object, lines: readonly object[]])[] = [
  ["a price as an object", invoice({}), [sold()]],
  ["a price as its id", invoice({ price: "price_1" }), [sold()]],
  ["a price in its present place", invoice(NEW_LINE), [sold()]],
  ["an expanded one there", invoice({ ...NEW_LINE, pricing: { price_details: { price: { id: "price_1" } } } }), [sold()]],
  ["an id of old, which is the subscription's", invoice({ id: "sub_1", unique_id: "il_1" }), [sold({ formerRef: "sub_1" })]],
  ["a unique id that is the id", invoice({ unique_id: "il_1" }), [sold()]],
  ["no price", invoice({ price: null }), []],
  ["no id", invoice({ id: null }), []],
  ["no quantity is one", invoice({ quantity: null }), [sold({ quantity: 1 })]],
  ["half a quantity", invoice({ quantity: 0.5 }), [sold({ quantity: null })]],
  ["a quantity below 0", invoice({ quantity: -2 }), [sold({ quantity: null })]],
  ["a quantity beyond all", invoice({ quantity: 1e300 }), [sold({ quantity: null })]],
  ["a credit", invoice({ amount: -1 }), []],
  ["for nothing", invoice({ amount: 0 }), [sold({ amount: 0, unpaid: "unexplained" })]],
  ["without an amount", invoice({ amount: undefined }), [sold({ amount: 0, unpaid: "unexplained" })]],
  ["for nothing, at a price above 0", invoice({ amount: 0, price: { id: "price_1", unit_amount: 1000 } }), [sold({ amount: 0, unpaid: "free" })]],
  ["of a trial, in its present place", invoice({ amount: 0, ...NEW_LINE, pricing: { ...NEW_LINE.pricing, unit_amount_decimal: "0" } }), [sold({ amount: 0, unpaid: "unexplained" })]],
  ["of a trial, at a plan of old", invoice({ amount: 0, price: undefined, plan: { id: "price_1", amount: 900 } }), [sold({ amount: 0, unpaid: "free" })]],
  ["for nothing, at a unit amount above 0 in its present place", invoice({ amount: 0, ...NEW_LINE, pricing: { ...NEW_LINE.pricing, unit_amount_decimal: "900" } }), [sold({ amount: 0, unpaid: "free" })]],
  ["at a price of 0", invoice({ amount: 0, price: { id: "price_1", unit_amount: 0 } }), [sold({ amount: 0 })]],
  ["at an exact price of 0", invoice({ amount: 0, price: { id: "price_1", unit_amount: null, unit_amount_decimal: "0" } }), [sold({ amount: 0 })]],
  ["at a price in tiers", invoice({ amount: 0, price: { id: "price_1", unit_amount: null, unit_amount_decimal: null } }), [sold({ amount: 0, unpaid: "unexplained" })]],
  ["at a plan of old of 0", invoice({ amount: 0, price: undefined, plan: { id: "price_1", amount: 0 } }), [sold({ amount: 0 })]],
  ["with a discount of all", invoice({ amount: 0, discount_amounts: [{ amount: 500, discount: "di_1" }] }), [sold({ amount: 0 })]],
  ["with a discount of nothing", invoice({ amount: 0, discount_amounts: [{ amount: 0, discount: "di_1" }] }), [sold({ amount: 0, unpaid: "unexplained" })]],
  ["a proration in its old place", invoice({ proration: true }), [sold({ unpaid: "proration" })]],
  ["of a subscription's item", invoice({ ...NEW_LINE, parent: { type: "subscription_item_details", subscription_item_details: { proration: true } } }), [sold({ unpaid: "proration" })]],
  ["of an invoice's item", invoice({ ...NEW_LINE, parent: { type: "invoice_item_details", invoice_item_details: { proration: true } } }), [sold({ unpaid: "proration" })]],
  ["no proration", invoice({ ...NEW_LINE, proration: false, parent: { subscription_item_details: { proration: false } } }), [sold()]],
  ["a discounted proration of 0", invoice({ amount: 0, proration: true, discount_amounts: [{ amount: 500 }] }), [sold({ amount: 0, unpaid: "proration" })]],
  ["the line's user before all others", invoice(user("ada"), { subscription_details: user("bob"), ...user("cat") }), [sold({ userId: "ada" })]],
  ["the subscription's in its old place", invoice({}, { subscription: "sub_1", subscription_details: user("ada"), ...user("cat") }), [sold({ userId: "ada", subscriptionId: "sub_1" })]],
  ["and in its present place", invoice({}, { parent: { subscription_details: { subscription: "sub_1", ...user("ada") } }, ...user("cat") }), [sold({ userId: "ada", subscriptionId: "sub_1" })]],
  ["the invoice's after them", invoice({}, user("cat")), [sold({ userId: "cat" })]],
  ["a line's subscription in its old place", invoice({ subscription: { id: "sub_2" } }, { subscription: "sub_1" }), [sold({ subscriptionId: "sub_2" })]],
  ["and in its present place", invoice({ parent: { subscription_item_details: { subscription: "sub_2" } } }, { subscription: "sub_1" }), [sold({ subscriptionId: "sub_2" })]],
  ["lines that are none", { id: "in_1", lines: { data: [null, 1, "il_1", [LINE], { __proto__: LINE }] } }, [sold()]],
  ["no lines", { id: "in_1" }, []],
];

Deno.test("what the lines of an invoice say: a row a shape", () => {
  for (const [name, object, lines] of INVOICES) {
    const message = read("invoice.paid", object);
    assert.deepEqual(shown(message, { lines, source: "", isCut: false }), {
      lines,
      source: "in_1",
      isCut: false,
    }, name);
  }
  const cut = read("invoice.paid", { id: "in_1", lines: { data: [], has_more: true } });
  assert.equal(cut.kind === "sale" && cut.isCut, true);
  assert.equal(read("invoice.paid", {}).kind, "other");
});

const listed = (...payments: object[]) => ({ payments: { data: payments.map((payment) => ({ payment })) } });

// deno-fmt-ignore: a row a shape
const PAYMENTS: readonly (readonly [name: string, type: string, object: object, says: object])[] = [
  ["of an invoice of old", "invoice.paid", { id: "in_1", payment_intent: "pi_1", charge: { id: "ch_1" } }, { kind: "sale", payments: ["pi_1", "ch_1"] }],
  ["of a present one", "invoice.paid", { id: "in_1", ...listed({ type: "payment_intent", payment_intent: "pi_1" }, { type: "charge", charge: "ch_2" }, { payment_intent: { id: "pi_1" } }) }, { payments: ["pi_1", "ch_2"] }],
  ["one of them canceled", "invoice.paid", { id: "in_1", payments: { data: [{ status: "canceled", payment: { payment_intent: "pi_0" } }, { status: "paid", payment: { payment_intent: "pi_1" } }] } }, { payments: ["pi_1"] }],
  ["told alone", "invoice_payment.paid", { invoice: "in_1", payment: { type: "payment_intent", payment_intent: "pi_1" } }, { kind: "payment", source: "in_1", payments: ["pi_1"] }],
  ["told alone, expanded", "invoice_payment.paid", { invoice: { id: "in_1" }, payment: { charge: { id: "ch_1" } } }, { source: "in_1", payments: ["ch_1"] }],
  ["of no invoice", "invoice_payment.paid", { payment: { payment_intent: "pi_1" } }, { kind: "other" }],
  ["of nothing", "invoice_payment.paid", { invoice: "in_1", payment: { type: "payment_record" } }, { kind: "other" }],
  ["refunded", "charge.refunded", { id: "ch_1", refunded: true, payment_intent: "pi_1", invoice: null }, { kind: "refund", payments: ["ch_1", "pi_1"] }],
  ["refunded, of an invoice of old", "charge.refunded", { id: "ch_1", refunded: true, invoice: { id: "in_1" }, amount: 500, currency: "usd" }, { payments: ["ch_1"], invoiceId: "in_1", money: { amount: 500, currency: "usd" } }],
  ["refunded in part", "charge.refunded", { id: "ch_1", refunded: false, amount_refunded: 5 }, { kind: "other", reason: "the charge is refunded in part only" }],
  ["refunded as a text", "charge.refunded", { id: "ch_1", refunded: "true" }, { kind: "other" }],
  ["refunded, without its id", "charge.refunded", { refunded: true }, { kind: "other", reason: "the charge has no id" }],
  ["disputed", "charge.dispute.funds_withdrawn", { id: "dp_1", charge: "ch_1", payment_intent: "pi_1", amount: 500, currency: "usd" }, { kind: "dispute", disputeId: "dp_1", payments: ["pi_1", "ch_1"], money: { amount: 500, currency: "usd" }, isReinstated: false }],
  ["disputed, of old", "charge.dispute.funds_reinstated", { id: "dp_1", charge: { id: "ch_1" } }, { payments: ["ch_1"], money: null, isReinstated: true }],
  ["a dispute of nothing", "charge.dispute.funds_withdrawn", { id: "dp_1" }, { kind: "other", reason: "the dispute has no id or charge" }],
  ["a dispute that only began", "charge.dispute.created", { id: "dp_1", charge: "ch_1" }, { kind: "other", reason: "event type not handled" }],
  ["another type", "customer.created", { id: "cus_1" }, { kind: "other", reason: "event type not handled" }],
];

Deno.test("what payments, refunds and disputes say: a row a shape", () => {
  for (const [name, type, object, says] of PAYMENTS) {
    assert.deepEqual(shown(read(type, object), says), says, name);
  }
});

Deno.test("an event needs an id, a type and a time that can be kept; whatever it is about is read without a fault", () => {
  const event = { id: "evt_1", type: "invoice.paid", created: AT_S };
  // deno-fmt-ignore: a row a fault
  const none: readonly unknown[] = [
    null, 7, "evt_1", [], {}, { ...event, id: 7 }, { ...event, id: "" }, { ...event, id: "a\0" },
    { ...event, type: undefined }, { ...event, type: "invoice.\0" }, { ...event, type: "\ud800" }, { ...event, type: "x".repeat(201) },
    { ...event, created: "now" }, { ...event, created: 0 }, { ...event, created: 1.5 }, { ...event, created: 1e300 },
  ];
  for (const value of none) assert.equal(readMessage(value), null, JSON.stringify(value));
  const types = [
    "customer.subscription.updated",
    "checkout.session.completed",
    "invoice.paid",
    "invoice_payment.paid",
    "charge.refunded",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
  ];
  for (const type of [...types, "toString", "__proto__"]) {
    for (
      const object of [
        undefined,
        null,
        1e300,
        "x",
        [],
        [[]],
        { id: {} },
        JSON.parse('{"__proto__":{"id":"x"}}'),
      ]
    ) {
      assert.equal(read(type, object).kind, "other", `${type} ${JSON.stringify(object)}`);
    }
  }
  assert.equal(read("invoice.paid", {}, { livemode: "true" }).head.isLive, false);
});

Deno.test("an event of a connected account is not handled, whatever it is about", () => {
  const reason = "the event is of a connected account";
  const sale = { ...PAID, client_reference_id: "ada" };
  for (const account of ["acct_1", "", 7]) {
    const message = read("checkout.session.completed", sale, { account });
    assert.deepEqual(shown(message, { kind: "", reason: "" }), { kind: "other", reason });
  }
  for (const account of [undefined, null]) {
    assert.equal(read("checkout.session.completed", sale, { account }).kind, "sale");
  }
});
