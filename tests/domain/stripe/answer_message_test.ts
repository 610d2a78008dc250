// The effect of Stripe's messages, given the earlier ones: whose a subscription is, which plan and pack, which of two
// messages is the newer one, and what is done again where a message was cut off.

import assert from "node:assert/strict";
import { type CatalogDocument, compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { answerMessage } from "../../../src/domain/stripe/answer_message.ts";
import { readMessage, type StripeMessage } from "../../../src/domain/stripe/message.ts";
import type { StripeAct } from "../../../src/domain/stripe/outcome.ts";
import { KeptFacts } from "./kept_facts.ts";
import { packOf, planOf } from "../scene.ts";

const items = [{ id: "one", label: "one", unit: "count", amount: 10, matches: [{ event: "x" }] }] as const;
const bundle = packOf("bundle", {
  unit: undefined,
  matches: undefined,
  items,
  stripePrices: ["price_bundle"],
});
const DOCUMENT: CatalogDocument = {
  plans: [
    planOf("low", { g: 1 }, { rank: 1, stripePrices: ["price_low", "price_low_year"] }),
    planOf("top", { g: 2 }, { rank: 2, stripePrices: ["price_top"] }),
    planOf("team", { g: 2 }, { rank: 2, perSeat: true, stripePrices: ["price_seat", "price_seat_eu"] }),
    planOf("more", { g: 2 }, { rank: 99, addon: true, perSeat: true, stripePrices: ["price_more"] }),
    planOf("old", { g: 3 }, { rank: 9, archived: true, stripePrices: ["price_old"] }),
  ],
  packs: [bundle, packOf("wallet", { stripePrices: ["price_wallet"] })],
};
const AT_S = 1_770_000_000;

function event(type: string, object: object, after = 0, id = `evt_${type}_${after}`): StripeMessage {
  const message = readMessage({ id, type, created: AT_S + after, livemode: true, data: { object } });
  assert.ok(message !== null);
  return message;
}

function subscription(kind: string, members: object = {}, after = 0, id?: string): StripeMessage {
  const object = { id: "sub_1", status: "active", items: { data: [{ price: "price_low" }] }, ...members };
  return event(`customer.subscription.${kind}`, object, after, id);
}

const of = (holdfast_user: string) => ({ metadata: { holdfast_user } });
const priced = (...prices: string[]) => ({ items: { data: prices.map((price) => ({ price })) } });
/** Items by id, each with its price and quantity. */
const itemsOf = (...rows: (readonly [id: string, price: string, quantity?: number])[]) => ({
  items: { data: rows.map(([id, price, quantity]) => ({ id, price, quantity })) },
});
const session = (metadata: object, members: object = {}) =>
  event("checkout.session.completed", {
    ...{ id: "cs_1", mode: "payment", payment_status: "paid", client_reference_id: "ada", metadata },
    ...members,
  });
const line = (members: object = {}) => ({
  id: "il_1",
  amount: 1,
  quantity: 3,
  price: "price_bundle",
  ...members,
});
const invoice = (lines: object[], members: object = {}) =>
  event("invoice.paid", { id: "in_1", lines: { data: lines }, ...members });

class Facts extends KeptFacts {
  catalog = compileCatalog(DOCUMENT, 1);

  /** Takes a message; an interrupted one is stored without effect. */
  take(message: StripeMessage, isCutOff = false) {
    const outcome = answerMessage(message, this, this.catalog);
    const { learned, acts, left, settled, reason } = outcome;
    this.keep(learned);
    if (isCutOff) return [];
    this.settle(settled);
    const done = [...left?.acts ?? [], ...acts].map(shown);
    return done.length > 0 ? done : [reason];
  }
}

/** An act in short. */
function shown(act: StripeAct): string {
  if (act.kind === "grant") {
    const { pack, quantity, paidPacks } = act.input;
    return `${act.userId} gets ${
      quantity === null || quantity === "malformed"
        ? `${paidPacks} ${pack}`
        : `${quantity / 1_000_000n} of ${pack}`
    }`;
  }
  if (act.kind === "refund") return `${act.userId} loses ${act.input.externalRef}: ${act.input.reason}`;
  if (act.kind === "reinstate") {
    return `${act.userId} gets ${act.input.externalRef} back as ${act.input.newRef}`;
  }
  if (act.kind === "topUp") return `${act.userId} gets ${act.input.topUpId}`;
  const { state, externalId } = act.input;
  // A row of an add-on is shown with its id and, where it ends, the time.
  const isMain = externalId === "sub_1";
  const row = isMain ? act.userId : `${externalId}: ${act.userId}`;
  if ("planId" in state) {
    return `${row} on ${state.planId}${state.quantity === undefined ? "" : ` x ${state.quantity}`}`;
  }
  const at = isMain || state.endedAt === null ? "" : ` at ${state.endedAt / 1000 - AT_S}`;
  return `${row} over: ${state.reason}${at}`;
}

const PRORATED = "a line is a proration, which grants nothing: the next invoice of its subscription does";
const FREE =
  "a line has the amount 0 without a discount or a free price, as that of a trial, and grants nothing";
const TRIAL = { amount: 0, price: { id: "price_bundle", unit_amount: 900 } };
const prorated = (members: object) => line({ id: "il_2", proration: true, ...of("ada"), ...members });
const OVERTAKEN = "a newer message of this subscription was already handled";
const NOBODY = "neither the subscription's metadata nor an earlier message names a holdfast_user";

/** Messages one after another, and the effect of the last one. */
type Row = readonly [name: string, messages: readonly StripeMessage[], last: readonly (string | null)[]];

// deno-fmt-ignore: a row a case
const ROWS: readonly Row[] = [
  ["a plan by its price", [subscription("created", of("ada"))], ["ada on low"]],
  ["the plan of the highest rank", [subscription("created", { ...of("ada"), ...priced("price_low", "price_top", "price_none") })], ["ada on top"]],
  ["the seats of a plan that is sold by the seat", [subscription("created", { ...of("ada"), items: { data: [{ price: "price_low", quantity: 2 }, { price: "price_seat", quantity: 5 }] } })], ["ada on team x 5"]],
  ["the seats of all items of one plan", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_seat_eu", 3], ["si_2", "price_low", 9], ["si_3", "price_seat", 4]) })], ["ada on team x 7"]],
  ["more seats than a subscription may have", [subscription("created", { ...of("ada"), items: { data: [{ price: "price_seat", quantity: 20_000 }] } })], ["ada on team x 10000"]],
  ["a quantity of 0 keeps the seats", [subscription("created", { ...of("ada"), items: { data: [{ price: "price_seat", quantity: 0 }] } })], ["ada on team"]],
  ["an add-on beside a plan, in a row of its item", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more", 3]) })], ["ada on low", "si_2: ada on more x 3"]],
  ["an add-on alone", [subscription("created", { ...of("ada"), ...itemsOf(["si_2", "price_more"]) })], ["si_2: ada on more"]],
  ["an item that is gone", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("updated", { ...of("ada"), ...itemsOf(["si_1", "price_low"]) }, 60)], ["ada on low", "si_2: ada over: Stripe: the item is gone at 60"]],
  ["an item of a plan that is gone, beside an add-on", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("updated", { ...of("ada"), ...itemsOf(["si_2", "price_more"]) }, 60)], ["ada over: Stripe: the item is gone", "si_2: ada on more"]],
  ["an item of a plan that is gone, beside a price that is not listed", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("updated", { ...of("ada"), ...itemsOf(["si_2", "price_more"], ["si_3", "price_none"]) }, 60)], ["si_2: ada on more"]],
  ["an item of an add-on that sells a plan", [subscription("created", { ...of("ada"), ...itemsOf(["si_2", "price_more"]) }), subscription("updated", { ...of("ada"), ...itemsOf(["si_2", "price_low"]) }, 60)], ["ada on low", "si_2: ada over: Stripe: the item is gone at 60"]],
  ["an item of an add-on at a price that is not listed", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("updated", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_none"]) }, 60)], ["ada on low"]],
  ["items that the message lacks", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"], ["si_3", "price_more"]) }), subscription("updated", { ...of("ada"), items: { ...itemsOf(["si_2", "price_more"]).items, has_more: true } }, 60)], ["si_2: ada on more"]],
  ["an older message about an item that is gone", [subscription("updated", { ...of("ada"), ...itemsOf(["si_1", "price_low"]) }, 60), subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) })], [OVERTAKEN]],
  ["the end of a subscription with an add-on", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("deleted", { ...of("ada"), ended_at: AT_S + 70 }, 70)], ["ada over: Stripe: deleted", "si_2: ada over: Stripe: deleted at 70"]],
  ["another user of a subscription with an add-on", [subscription("created", { ...of("ada"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }), subscription("updated", { ...of("bob"), ...itemsOf(["si_1", "price_low"], ["si_2", "price_more"]) }, 60)], ["ada over: Stripe: the subscription names another user", "si_2: ada over: Stripe: the subscription names another user", "bob on low", "si_2: bob on more"]],
  ["an archived plan", [subscription("created", { ...of("ada"), ...priced("price_low", "price_old") })], ["ada on old"]],
  ["a price of a pack", [subscription("created", { ...of("ada"), ...priced("price_bundle") })], ["no plan of the catalog lists price_bundle in stripePrices"]],
  ["unknown prices", [subscription("created", { ...of("ada"), ...priced("price_a", "price_b") })], ["no plan of the catalog lists price_a or price_b in stripePrices"]],
  ["no price", [subscription("created", { ...of("ada"), ...priced() })], ["the subscription has no price"]],
  ["incomplete", [subscription("created", { ...of("ada"), status: "incomplete" })], ["the subscription is incomplete: its first payment has not been made"]],
  ["over whatever its price", [subscription("updated", { ...of("ada"), ...priced(), status: "unpaid" })], ["ada over: Stripe: unpaid"]],
  ["no user", [subscription("created")], [NOBODY]],
  ["a user who was named before", [subscription("created", of("ada")), subscription("updated", priced("price_top"), 1)], ["ada on top"]],
  ["an older update", [subscription("updated", of("ada"), 1), subscription("updated", { ...of("ada"), ...priced("price_top") })], [OVERTAKEN]],
  ["a creation of the same moment", [subscription("updated", of("ada")), subscription("created", of("ada"))], [OVERTAKEN]],
  ["an update of the same moment", [subscription("created", of("ada")), subscription("updated", of("ada"))], ["ada on low"]],
  ["another update of the same moment", [subscription("updated", of("ada"), 0, "evt_1"), subscription("updated", { ...of("ada"), ...priced("price_top") }, 0, "evt_2")], ["ada on top"]],
  ["the first of them again", [subscription("updated", of("ada"), 0, "evt_1"), subscription("updated", of("ada"), 0, "evt_2"), subscription("updated", of("ada"), 0, "evt_1")], [OVERTAKEN]],
  ["the last of them again", [subscription("updated", of("ada"), 0, "evt_1"), subscription("updated", of("ada"), 0, "evt_2"), subscription("updated", of("ada"), 0, "evt_2")], ["ada on low"]],
  ["a deletion that is older than an update", [subscription("updated", of("ada"), 5), subscription("deleted", of("ada"))], ["ada over: Stripe: deleted"]],
  ["an update after a deletion", [subscription("deleted", of("ada")), subscription("updated", of("ada"), 5)], [OVERTAKEN]],
  ["an update after a cancellation", [subscription("updated", { ...of("ada"), status: "canceled" }), subscription("updated", of("ada"), 5)], [OVERTAKEN]],
  ["a deletion after a cancellation", [subscription("updated", { ...of("ada"), status: "canceled" }), subscription("deleted", of("ada"), 5)], [OVERTAKEN]],
  ["a deletion again", [subscription("deleted", of("ada")), subscription("deleted", of("ada"))], ["ada over: Stripe: deleted"]],
  ["active after a pause", [subscription("updated", { ...of("ada"), status: "paused" }), subscription("updated", of("ada"), 5)], ["ada on low"]],
  ["another user", [subscription("created", of("ada")), subscription("updated", of("bob"), 1)], ["ada over: Stripe: the subscription names another user", "bob on low"]],
  ["the first user again", [subscription("created", of("ada")), subscription("updated", of("bob"), 1), subscription("updated", of("ada"), 2)], ["bob over: Stripe: the subscription names another user", "ada on low"]],
  ["a pack by name", [session({ holdfast_pack: "BUNDLE" })], ["ada gets 1 bundle"]],
  ["several packs with items", [session({ holdfast_pack: "bundle", holdfast_quantity: "3" })], ["ada gets 3 bundle"]],
  ["no quantity of a pack with items", [session({ holdfast_pack: "bundle", holdfast_quantity: "oh" })], ["quantity must be a positive integer"]],
  ["units of a pack without", [session({ holdfast_pack: "wallet", holdfast_quantity: "25" })], ["ada gets 25 of wallet"]],
  ["a unit of it", [session({ holdfast_pack: "wallet" })], ["ada gets 1 of wallet"]],
  ["no quantity of it", [session({ holdfast_pack: "wallet", holdfast_quantity: "-1" })], ["quantity must be a positive integer"]],
  ["an unknown pack", [session({ holdfast_pack: "constructor" })], ['the catalog has no pack "constructor"']],
  ["a pack for no user", [session({ holdfast_pack: "bundle" }, { client_reference_id: null })], ["no user is named: set metadata.holdfast_user"]],
  ["lines of packs and plans", [invoice([line(of("ada")), line({ id: "il_2", price: "price_wallet", ...of("bob") }), line({ id: "il_3", price: "price_low" })])], ["ada gets 3 bundle", "bob gets 3 of wallet"]],
  ["a line that is listed twice", [invoice([line(of("ada")), line(of("ada"))])], ["ada gets 3 bundle"]],
  ["a line that may be free or a trial", [invoice([line({ amount: 0, ...of("ada") })])], ["a line has the amount 0, and its message does not say whether its price is free or this is a trial"]],
  ["lines of plans alone", [invoice([line({ price: "price_low" })])], ["no pack of the catalog lists price_low in stripePrices"]],
  ["a change of quantity within a month, and back", [invoice([prorated({ amount: -4000 }), prorated({ id: "il_3", amount: 6000, quantity: 100 })])], [PRORATED]],
  ["a change of quantity that is invoiced with the next month", [invoice([line(of("ada")), prorated({ amount: 133, quantity: 100 })])], ["ada gets 3 bundle"]],
  ["a trial", [invoice([line({ ...TRIAL, ...of("ada") })])], [FREE]],
  ["a trial, then its first month", [invoice([line({ ...TRIAL, ...of("ada") })]), invoice([line({ id: "il_2", ...of("ada") })], { id: "in_2" })], ["ada gets 3 bundle"]],
  ["a proration of a plan beside a pack", [invoice([prorated({ price: "price_low" }), line(of("ada"))])], ["ada gets 3 bundle"]],
  ["a second month, by lines with the subscription's id", [invoice([line({ id: "sub_1", unique_id: "il_1", ...of("ada") })]), invoice([line({ id: "sub_1", unique_id: "il_2", ...of("ada") })], { id: "in_2" })], ["ada gets 3 bundle"]],
  ["an empty invoice", [invoice([])], ["nothing was sold"]],
  ["a line of a known subscription", [subscription("created", of("ada")), invoice([line()], { subscription: "sub_1" })], ["ada gets 3 bundle"]],
  ["a line that comes before its subscription", [invoice([line()], { subscription: "sub_1" })], ["the grant waits for a message that names the holdfast_user of its subscription"]],
  ["and then its subscription", [invoice([line()], { subscription: "sub_1" }), subscription("created", of("ada"))], ["ada on low", "ada gets 3 bundle"]],
  ["and then its end", [invoice([line()], { subscription: "sub_1" }), subscription("deleted", of("ada"))], ["ada over: Stripe: deleted", "ada gets 3 bundle"]],
  ["and then an older message than one without a user", [invoice([line()], { subscription: "sub_1" }), subscription("deleted"), subscription("created", of("ada"))], ["ada gets 3 bundle"]],
  ["the invoice again, when it was granted", [invoice([line()], { subscription: "sub_1" }), subscription("created", of("ada")), invoice([line(of("bob"))], { subscription: "sub_1" })], ["ada gets 3 bundle"]],
  ["the subscription again does not grant again", [invoice([line()], { subscription: "sub_1" }), subscription("created", of("ada")), subscription("created", of("ada"))], ["ada on low"]],
];

Deno.test("the effect of a message after others: a row a case", () => {
  for (const [name, messages, last] of ROWS) {
    const facts = new Facts();
    const done = messages.map((message) => facts.take(message));
    assert.deepEqual(done.at(-1), last, name);
  }
});

Deno.test("lines that grant nothing are warned of beside lines that do", () => {
  const free = line({ id: "il_4", ...TRIAL, ...of("ada") });
  // deno-fmt-ignore: a row a case
  const rows: readonly (readonly [name: string, lines: object[], isCut: boolean, warnings: string[]])[] = [
    ["prorations", [line(of("ada")), prorated({}), prorated({ id: "il_3" })], false, ["proration_not_granted"]],
    ["a trial", [line(of("ada")), free], false, ["free_line_not_granted"]],
    ["both, and a cut", [line(of("ada")), free, prorated({})], true, ["lines_left_out", "proration_not_granted", "free_line_not_granted"]],
    ["a line of a plan", [line(of("ada")), prorated({ price: "price_low" })], false, []],
  ];
  for (const [name, data, has_more, warnings] of rows) {
    const message = invoice([], { lines: { data, has_more } });
    assert.deepEqual(
      answerMessage(message, new KeptFacts(), compileCatalog(DOCUMENT, 1)).warnings,
      warnings,
      name,
    );
  }
});

Deno.test("a message that was cut off does the rest when it comes again, also where another came between", () => {
  const moves = subscription("updated", of("bob"), 1);
  const over = (id: string) => `${id} over: Stripe: the subscription names another user`;
  // deno-fmt-ignore: a row a case
  const rows: readonly (readonly [name: string, before: StripeMessage, cut: StripeMessage, between: readonly StripeMessage[], again: readonly (string | null)[]])[] = [
    ["another user", subscription("created", of("ada")), moves, [], [over("ada"), "bob on low"]],
    ["an invoice between", subscription("created", of("ada")), moves, [invoice([line(of("bob"))])], [over("ada"), "bob on low"]],
    ["what waited", invoice([line()], { subscription: "sub_1" }), subscription("created", of("ada")), [], ["ada on low", "ada gets 3 bundle"]],
    ["a session", subscription("created", of("ada")), session({ holdfast_pack: "bundle" }), [], ["ada gets 1 bundle"]],
  ];
  for (const [name, before, cut, between, again] of rows) {
    const facts = new Facts();
    facts.take(before);
    facts.take(cut, true);
    for (const message of between) facts.take(message);
    assert.deepEqual(facts.take(cut), again, name);
  }
  const facts = new Facts();
  facts.take(subscription("created", of("ada")));
  facts.take(moves, true);
  assert.deepEqual(
    facts.take(subscription("updated", of("cat"), 2)),
    [over("ada"), over("bob"), "cat on low"],
    "no user who may have it is forgotten",
  );
  assert.deepEqual(facts.take(moves), [OVERTAKEN]);
});

Deno.test("what waited goes to the user of the message that was cut off, who may have it already", () => {
  const moves = subscription("updated", of("bob"), 1);
  const waiting = invoice([line()], { subscription: "sub_1" });
  const cut = (...messages: StripeMessage[]) => {
    const facts = new Facts();
    facts.take(waiting);
    for (const message of messages) facts.take(message, true);
    return facts;
  };
  const created = subscription("created", of("ada"));
  const over = "ada over: Stripe: the subscription names another user";
  assert.deepEqual(cut(created).take(moves), [over, "bob on low", "ada gets 3 bundle"]);
  assert.deepEqual(cut(created, moves).take(moves), [over, "bob on low", "ada gets 3 bundle"]);
  assert.deepEqual(cut(created, moves).take(waiting), ["ada gets 3 bundle"]);
});

Deno.test("a line that was granted under the subscription's id is not granted again, those of other invoices are", () => {
  const old = { id: "sub_1", ...of("ada") };
  for (const [source, ref] of [["in_1", "sub_1"], ["in_2", "il_1"]] as const) {
    const facts = new Facts();
    facts.take(invoice([line(old)]));
    const { acts } = answerMessage(
      invoice([line({ ...old, unique_id: "il_1" })], { id: source }),
      facts,
      facts.catalog,
    );
    assert.deepEqual(acts.map((act) => act.kind === "grant" && act.input.externalRef), [ref]);
  }
});

Deno.test("what was bought stays, and is given by the pack as the catalog has it", () => {
  const sale = session({ holdfast_pack: "wallet", holdfast_quantity: "500" });
  const facts = new Facts();
  facts.take(sale, true);
  const wallet = { ...bundle, id: "wallet", name: "wallet", stripePrices: [] };
  facts.catalog = compileCatalog({ ...DOCUMENT, packs: [wallet] }, 2);
  assert.deepEqual(
    facts.take(sale),
    ["ada gets 500 wallet"],
    "a pack that has items now: as many, as of a new session",
  );
  facts.catalog = compileCatalog({ plans: [], packs: [] }, 3);
  assert.deepEqual(facts.take(sale), ["ada gets 500 wallet"], "which the grant refuses, unless it is known");
});

const payment = (source: string, payment_intent: string) =>
  event("invoice_payment.paid", { invoice: source, payment: { payment_intent } });
const refund = (payment_intent: string, amount = 500, members: object = {}) =>
  event("charge.refunded", {
    ...{ id: `ch_${payment_intent}`, payment_intent, refunded: true, amount, currency: "usd" },
    ...members,
  });
const dispute = (kind: string, amount = 500, id = "dp_1") =>
  event(`charge.dispute.funds_${kind}`, {
    ...{ id, charge: "ch_pi_1", payment_intent: "pi_1", amount, currency: "usd" },
  });
const COST = { amount_total: 500, amount_paid: 500, currency: "usd" };
const bundle1 = { holdfast_pack: "bundle" };
const bought = session(bundle1, { ...COST, payment_intent: "pi_1" });
const boughtWithInvoice = session(bundle1, { ...COST, payment_intent: "pi_1", invoice: "in_1" });
const invoiceOf = (lines: object[], members: object = {}) =>
  invoice(lines, { ...COST, ...of("ada"), ...members });
const GRANTED = (ref: string) => `the sale is granted already, as ${ref}`;
const LOST = (ref: string, how = "refunded") => `ada loses ${ref}: Stripe: the payment was ${how}`;
const TWICE = "ada loses il_1: Stripe: the checkout of this invoice has granted it";

// deno-fmt-ignore: a row a case
const MONEY: readonly Row[] = [
  ["a checkout, then its invoice", [boughtWithInvoice, invoiceOf([line()])], [GRANTED("cs_1")]],
  ["the invoice first", [invoiceOf([line()]), boughtWithInvoice], [GRANTED("il_1")]],
  ["by the same payment", [bought, invoiceOf([line()], { payment_intent: "pi_1" })], [GRANTED("cs_1")]],
  ["by the same payment, the invoice first", [invoiceOf([line()], { payment_intent: "pi_1" }), bought], [GRANTED("il_1")]],
  ["by a payment that was reported before", [payment("in_1", "pi_1"), bought, invoiceOf([line()])], [GRANTED("cs_1")]],
  ["by a payment that is reported last", [bought, invoiceOf([line()]), payment("in_1", "pi_1")], [TWICE]],
  ["and once more", [bought, invoiceOf([line()]), payment("in_1", "pi_1"), invoiceOf([line()])], [TWICE]],
  ["another pack in the invoice too", [boughtWithInvoice, invoiceOf([line(), line({ id: "il_2", price: "price_wallet" })])], [GRANTED("cs_1")]],
  ["another pack in the invoice alone", [boughtWithInvoice, invoiceOf([line({ price: "price_wallet" })])], [GRANTED("cs_1")]],
  ["another invoice", [boughtWithInvoice, invoiceOf([line()], { id: "in_2", payment_intent: "pi_2" })], ["ada gets 3 bundle"]],
  ["a refund of a checkout with an invoice", [boughtWithInvoice, payment("in_1", "pi_1"), refund("pi_1")], [LOST("cs_1")]],
  ["one of two payments refunded", [invoiceOf([line()]), payment("in_1", "pi_1"), payment("in_1", "pi_2"), refund("pi_1", 200)], ["other payments of the sale are not refunded"]],
  ["both refunded", [invoiceOf([line()]), payment("in_1", "pi_1"), payment("in_1", "pi_2"), refund("pi_1", 200), refund("pi_2", 300)], [LOST("il_1")]],
  ["one refunded before the other is known", [invoiceOf([line()]), payment("in_1", "pi_1"), refund("pi_1", 200)], ["other payments of the sale are not refunded"]],
  ["both refunded before one is known", [invoiceOf([line()]), payment("in_1", "pi_1"), refund("pi_1", 200), refund("pi_2", 300), payment("in_1", "pi_2")], [LOST("il_1")]],
  ["refunds before the invoice", [refund("pi_1", 200), refund("pi_2", 300), payment("in_1", "pi_1"), payment("in_1", "pi_2"), invoiceOf([line()])], ["ada gets 3 bundle", LOST("il_1")]],
  ["a refund that names the invoice, of old", [invoiceOf([line()]), refund("pi_1", 500, { invoice: "in_1" })], [LOST("il_1")]],
  ["a part of such an invoice", [invoiceOf([line()]), refund("pi_1", 200, { invoice: "in_1" })], ["other payments of the sale are not refunded"]],
  ["a refund where no message has a cost", [invoice([line(of("ada"))], { payment_intent: "pi_1" }), refund("pi_1")], [LOST("il_1")]],
  ["a refund in another currency", [bought, refund("pi_1", 2, { currency: "eur" })], [LOST("cs_1")]],
  ["a dispute over all", [bought, dispute("withdrawn")], [LOST("cs_1", "disputed")]],
  ["a dispute with fees", [bought, dispute("withdrawn", 515)], [LOST("cs_1", "disputed")]],
  ["a dispute over a part", [bought, dispute("withdrawn", 499)], ["the dispute is over a part of the sale only"]],
  ["funds of a part that come back", [bought, dispute("withdrawn", 499), dispute("reinstated", 499)], ["the dispute is over a part of the sale only"]],
  ["a dispute of a sale without a cost", [session(bundle1, { payment_intent: "pi_1" }), dispute("withdrawn")], ["what the sale cost is not known, so the dispute changes nothing"]],
  ["and after the sale was sent again with its cost", [session(bundle1, { payment_intent: "pi_1" }), bought, dispute("withdrawn")], [LOST("cs_1", "disputed")]],
  ["a dispute of one of two payments", [invoiceOf([line()]), payment("in_1", "pi_1"), payment("in_1", "pi_2"), dispute("withdrawn", 200)], ["the dispute is over a part of the sale only"]],
  ["a dispute before the sale", [dispute("withdrawn"), bought], ["ada gets 1 bundle", LOST("cs_1", "disputed")]],
  ["a dispute of something else", [dispute("withdrawn")], ["no grant of this charge is known yet; the dispute is kept for a later one"]],
  ["funds that come back", [bought, dispute("withdrawn"), dispute("reinstated")], ["ada gets cs_1 back as cs_1:dp_1"]],
  ["a withdrawal after its own return", [bought, dispute("reinstated"), dispute("withdrawn")], ["the funds of this dispute have come back already"]],
  ["both before the sale", [dispute("reinstated"), dispute("withdrawn"), bought], ["ada gets 1 bundle"]],
  ["a second dispute", [bought, dispute("withdrawn"), dispute("reinstated"), dispute("withdrawn", 500, "dp_2")], [LOST("cs_1", "disputed"), LOST("cs_1:dp_1", "disputed")]],
  ["funds of one of two disputes", [bought, dispute("withdrawn"), dispute("withdrawn", 500, "dp_2"), dispute("reinstated")], [LOST("cs_1", "disputed"), LOST("cs_1:dp_1", "disputed")]],
  ["a refund after a dispute", [bought, dispute("withdrawn"), dispute("reinstated"), refund("pi_1")], [LOST("cs_1"), LOST("cs_1:dp_1")]],
  ["funds that come back after a refund", [bought, refund("pi_1"), dispute("reinstated")], [LOST("cs_1"), LOST("cs_1:dp_1")]],
];

Deno.test("checkouts and invoices of one sale, refunds and disputes: a row a case", () => {
  for (const [name, messages, last] of MONEY) {
    const facts = new Facts();
    const done = messages.map((message) => facts.take(message));
    assert.deepEqual(done.at(-1), last, name);
  }
});

const UNLISTED = "no plan or pack of the catalog lists price_x in stripePrices";
const NO_PACK = "the session's metadata has no holdfast_pack";
const NO_PLAN = "no plan of the catalog lists price_x in stripePrices";
const UNNAMED = "no user is named: set metadata.holdfast_user";
const PRICED = {
  ...of("ada"),
  currency: "usd",
  items: { data: [{ price: { id: "price_x", unit_amount: 700 } }] },
};

// deno-fmt-ignore: a row a case
const OWED: readonly (readonly [name: string, messages: readonly StripeMessage[], owed: string | null, amount?: number | null])[] = [
  ["a checkout that is granted", [bought], null],
  ["a checkout without a pack", [session({}, COST)], NO_PACK, 500],
  ["a checkout of an unknown pack", [session({ holdfast_pack: "gone" }, COST)], 'the catalog has no pack "gone"', 500],
  ["a checkout of no user", [session(bundle1, { ...COST, client_reference_id: null })], UNNAMED, 500],
  ["a checkout with a bad quantity", [session({ ...bundle1, holdfast_quantity: "x" })], "quantity must be a positive integer", null],
  ["a checkout that is not paid", [session({}, { ...COST, payment_status: "unpaid" })], null],
  ["a checkout for nothing", [session({}, { ...COST, amount_total: 0, payment_status: "no_payment_required" })], null],
  ["a checkout after its granted invoice", [invoiceOf([line()]), session({}, { ...COST, invoice: "in_1" })], null],
  ["lines that nothing sells", [invoiceOf([line({ price: "price_x", amount: 70 }), line({ id: "il_2", price: "price_x", amount: 30 })])], UNLISTED, 100],
  ["such a line beside a pack", [invoiceOf([line({ price: "price_x", amount: 70 }), line({ id: "il_2" })])], UNLISTED, 70],
  ["such a line of half a cent", [invoiceOf([line({ price: "price_x", amount: 0.5 })])], UNLISTED, null],
  ["such lines of more than any money", [invoiceOf([line({ price: "price_x", amount: 9e15 }), line({ id: "il_2", price: "price_x", amount: 9e15 })])], UNLISTED, null],
  ["such a line of amount 0", [invoiceOf([line({ price: "price_x", amount: 0 })])], null],
  ["such a line that is a proration", [invoiceOf([line({ price: "price_x", proration: true })])], null],
  ["such an invoice of a checkout that is granted", [boughtWithInvoice, invoiceOf([line({ price: "price_x" })])], null],
  ["another pack in the invoice of a checkout", [boughtWithInvoice, invoiceOf([line(), line({ id: "il_2", price: "price_wallet", amount: 9 })])], "the checkout granted bundle alone: it names no other pack", 9],
  ["another pack in its place", [boughtWithInvoice, invoiceOf([line({ price: "price_wallet" })])], null],
  ["a line of a plan", [invoiceOf([line({ price: "price_low" })])], null],
  ["a trial", [invoiceOf([line(TRIAL)])], null],
  ["a line without an explanation of its amount 0", [invoiceOf([line({ amount: 0 })])], "a line has the amount 0, and its message does not say whether its price is free or this is a trial", 0],
  ["a line of no user", [invoice([line()], COST)], UNNAMED, 1],
  ["a line that waits", [invoice([line()], { ...COST, subscription: "sub_1" })], "the grant waits for a message that names the holdfast_user of its subscription", 1],
  ["a subscription to an unlisted price", [subscription("created", PRICED)], NO_PLAN, 700],
  ["a subscription without a user", [subscription("created")], NOBODY, null],
  ["a subscription to a pack", [subscription("created", { ...of("ada"), ...priced("price_bundle") })], null],
  ["an older message of it", [subscription("updated", of("ada"), 1), subscription("created", PRICED)], null],
  ["a subscription that is over", [subscription("updated", { ...PRICED, status: "canceled" })], null],
  ["one that is incomplete", [subscription("updated", { ...PRICED, status: "incomplete" })], null],
  ["a refund", [refund("pi_1")], null],
];

Deno.test("what was paid for and is not granted is kept, with the reason: a row a case", () => {
  for (const [name, messages, owed, amount] of OWED) {
    const facts = new Facts();
    for (const message of messages.slice(0, -1)) facts.take(message);
    const { paid } = answerMessage(messages.at(-1) as StripeMessage, facts, facts.catalog);
    assert.equal(paid?.reason ?? null, owed, name);
    if (owed !== null) assert.equal(paid?.money?.amount ?? null, amount, name);
  }
});
