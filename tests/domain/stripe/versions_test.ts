// The same sale in the forms of several versions of Stripe's API: whole objects, as Stripe sends them, lead to the same facts
// and commands.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { answerMessage } from "../../../src/domain/stripe/answer_message.ts";
import { readMessage } from "../../../src/domain/stripe/message.ts";
import { KeptFacts } from "./kept_facts.ts";
import { PACKS, PLANS } from "./stripe_world.ts";

const CREATED = 1_790_000_000;
const PERIOD = { start: CREATED, end: CREATED + 2_592_000 };
const METADATA = { holdfast_user: "ada" };

function eventOf(api_version: string, type: string, object: object) {
  return {
    id: `evt_${type}`,
    object: "event",
    ...{ api_version, type, created: CREATED, livemode: true, pending_webhooks: 1, request: { id: null } },
    data: { object },
  };
}

const LIST = { object: "list", has_more: false, total_count: 2, url: "/v1/invoices/in_1/lines" };
const PRICE = {
  ...{ id: "price_bundle", object: "price", active: true, billing_scheme: "per_unit", currency: "usd" },
  ...{ product: "prod_1", recurring: { interval: "month", interval_count: 1, usage_type: "licensed" } },
  ...{ type: "recurring", unit_amount: 500, unit_amount_decimal: "500" },
};
const PLAN = {
  ...{
    id: "price_bundle",
    object: "plan",
    active: true,
    amount: 500,
    amount_decimal: "500",
    currency: "usd",
  },
  ...{ interval: "month", interval_count: 1, product: "prod_1", usage_type: "licensed" },
};

/** An invoice of 2 bundles for 1000 and a proration of another one, until 2025-03-31. */
function invoiceBefore(version: string, isIdOfSubscription: boolean) {
  const line = (no: number, amount: number, quantity: number, proration: boolean) => ({
    id: isIdOfSubscription ? "sub_1" : `il_${no}`,
    ...isIdOfSubscription ? { unique_id: `il_${no}` } : {},
    ...{ object: "line_item", amount, amount_excluding_tax: amount, currency: "usd", description: "Bundle" },
    ...{
      discount_amounts: [],
      discountable: true,
      discounts: [],
      invoice: "in_1",
      livemode: true,
      metadata: {},
    },
    ...{ period: PERIOD, plan: PLAN, proration, quantity, subscription: "sub_1", subscription_item: "si_1" },
    ...isIdOfSubscription ? {} : { price: PRICE },
    type: "subscription",
  });
  return eventOf(version, "invoice.paid", {
    ...{
      id: "in_1",
      object: "invoice",
      amount_due: 1120,
      amount_paid: 1120,
      amount_remaining: 0,
      attempted: true,
    },
    ...{ billing_reason: "subscription_cycle", charge: "ch_1", currency: "usd", customer: "cus_1" },
    lines: { ...LIST, data: [line(1, 1000, 2, false), line(2, 120, 9, true)] },
    ...{
      metadata: {},
      paid: true,
      payment_intent: "pi_1",
      status: "paid",
      subscription: "sub_1",
      total: 1120,
    },
    subscription_details: { metadata: METADATA },
  });
}

/** The same since 2025-03-31, where the payment has a message of its own. */
function invoiceSince(version: string) {
  const line = (no: number, amount: number, quantity: number, proration: boolean) => ({
    ...{ id: `il_${no}`, object: "line_item", amount, currency: "usd", description: "Bundle" },
    ...{
      discount_amounts: [],
      discountable: true,
      discounts: [],
      invoice: "in_1",
      livemode: true,
      metadata: {},
    },
    parent: {
      invoice_item_details: null,
      subscription_item_details: {
        ...{ invoice_item: null, proration, proration_details: { credited_items: null } },
        ...{ subscription: "sub_1", subscription_item: "si_1" },
      },
      type: "subscription_item_details",
    },
    ...{ period: PERIOD, pretax_credit_amounts: [], quantity, subtotal: amount, taxes: [] },
    pricing: {
      price_details: { price: "price_bundle", product: "prod_1" },
      type: "price_details",
      unit_amount_decimal: "500",
    },
  });
  return eventOf(version, "invoice.paid", {
    ...{
      id: "in_1",
      object: "invoice",
      amount_due: 1120,
      amount_overpaid: 0,
      amount_paid: 1120,
      attempted: true,
    },
    ...{
      billing_reason: "subscription_cycle",
      currency: "usd",
      customer: "cus_1",
      status: "paid",
      total: 1120,
    },
    lines: { ...LIST, data: [line(1, 1000, 2, false), line(2, 120, 9, true)] },
    metadata: {},
    parent: {
      quote_details: null,
      subscription_details: { metadata: METADATA, subscription: "sub_1" },
      type: "subscription_details",
    },
  });
}

function paymentSince(version: string) {
  return eventOf(version, "invoice_payment.paid", {
    ...{
      id: "inpay_1",
      object: "invoice_payment",
      amount_paid: 1120,
      amount_requested: 1120,
      currency: "usd",
    },
    ...{ invoice: "in_1", is_default: true, livemode: true, status: "paid" },
    payment: { payment_intent: "pi_1", type: "payment_intent" },
    status_transitions: { canceled_at: null, paid_at: CREATED },
  });
}

/** A refund of the charge; the invoice is named until 2025-03-31. */
function refundOf(version: string) {
  return eventOf(version, "charge.refunded", {
    ...{ id: "ch_1", object: "charge", amount: 1120, amount_captured: 1120, amount_refunded: 1120 },
    ...{ captured: true, currency: "usd", customer: "cus_1", disputed: false, paid: true },
    ...version < "2025-03-31" ? { invoice: "in_1" } : {},
    ...{ payment_intent: "pi_1", refunded: true, status: "succeeded" },
  });
}

/** Periods moved from the subscription to its items with 2025-03-31. */
function subscriptionOf(version: string) {
  const period = { current_period_start: PERIOD.start, current_period_end: PERIOD.end };
  const isNew = version >= "2025-03-31";
  const price = version < "2020"
    ? { plan: { ...PLAN, id: "price_plan" } }
    : { price: { ...PRICE, id: "price_plan" } };
  return eventOf(version, "customer.subscription.updated", {
    ...{
      id: "sub_1",
      object: "subscription",
      billing_cycle_anchor: CREATED,
      cancel_at: null,
      canceled_at: null,
    },
    ...{ cancel_at_period_end: false, created: CREATED, currency: "usd", customer: "cus_1", ended_at: null },
    ...isNew ? {} : period,
    items: {
      object: "list",
      data: [{ id: "si_1", object: "subscription_item", ...isNew ? period : {}, ...price, quantity: 5 }],
    },
    ...{ latest_invoice: "in_1", metadata: METADATA, start_date: CREATED, status: "active", trial_end: null },
  });
}

const VERSIONS: Readonly<Record<string, readonly object[]>> = {
  "2019-10-08": [invoiceBefore("2019-10-08", true)],
  "2024-10-28.acacia": [invoiceBefore("2024-10-28.acacia", false)],
  "2025-03-31.basil": [invoiceSince("2025-03-31.basil"), paymentSince("2025-03-31.basil")],
  "2026-01-28.clover": [paymentSince("2026-01-28.clover"), invoiceSince("2026-01-28.clover")],
};

/** The effect of events after each other: commands in short. */
function effectsOf(events: readonly object[]) {
  const catalog = compileCatalog({ plans: PLANS, packs: PACKS }, 1);
  const facts = new KeptFacts();
  const effects: unknown[] = [];
  for (const event of events) {
    const message = readMessage(event);
    assert.ok(message !== null);
    const { learned, acts, paid, warnings } = answerMessage(message, facts, catalog);
    facts.keep(learned);
    assert.equal(paid?.reason ?? null, null);
    effects.push(...acts.map(({ kind, userId, input }) => [kind, userId, input]), ...warnings);
  }
  return effects;
}

Deno.test("every version of a subscription, its invoice and the refund of it has the same effect", () => {
  const [expected] = Object.entries(VERSIONS).map(([version, sale]) =>
    effectsOf([subscriptionOf(version), ...sale, refundOf(version)])
  );
  assert.deepEqual(expected?.map((effect) => Array.isArray(effect) ? effect.slice(0, 2) : effect), [
    ["mirror", "ada"],
    ["grant", "ada"],
    "proration_not_granted",
    ["refund", "ada"],
  ]);
  for (const [version, sale] of Object.entries(VERSIONS)) {
    const effects = effectsOf([subscriptionOf(version), ...sale, refundOf(version)]);
    assert.deepEqual(effects, expected, version);
    const [, grant] = effects as [
      unknown,
      [string, string, { readonly paidPacks: number; externalRef: string }],
    ];
    assert.deepEqual([grant[2].externalRef, grant[2].paidPacks], ["il_1", 2], version);
  }
});

Deno.test("every version knows a checkout and its invoice as one sale", () => {
  for (const [version, sale] of Object.entries(VERSIONS)) {
    const session = eventOf(version, "checkout.session.completed", {
      ...{
        id: "cs_1",
        object: "checkout.session",
        amount_total: 1120,
        client_reference_id: "ada",
        currency: "usd",
      },
      ...{ invoice: null, invoice_creation: { enabled: true }, livemode: true, mode: "payment" },
      ...{
        metadata: { holdfast_pack: "bundle" },
        payment_intent: "pi_1",
        payment_status: "paid",
        status: "complete",
      },
    });
    const named = { ...session, data: { object: { ...session.data.object, invoice: "in_1" } } };
    for (const events of [[named, ...sale], [...sale, named], [...sale, session]]) {
      const grants = effectsOf(events).filter((effect) => Array.isArray(effect) && effect[0] === "grant");
      assert.equal(grants.length, 1, version);
    }
  }
});
