// What was paid for and not handled, over HTTP: it is kept with its reason, tried again, and leaves the list once it is handled.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { erase, MARK, rowsOf, sweep, tracesOf } from "./privacy_support.ts";
import { assertRefused, dataOf, driftsOf, serviceOfFile } from "./support.ts";
import {
  connect,
  connectedApp,
  eventOf,
  sender,
  sessionOf,
  STRIPE_CATALOG,
  subscriptionOf,
} from "./stripe_support.ts";

const service = serviceOfFile();

const told = sender(service);

interface Row {
  readonly eventId: string;
  readonly objectId: string;
  readonly reason: string;
}

async function listOf({ appId }: TestApp, mode = "live"): Promise<Row[]> {
  const { unhandled } = await dataOf(service.admin("GET", `/apps/${appId}/stripe/unhandled?mode=${mode}`));
  return unhandled;
}

const objectsOf = async (app: TestApp, mode?: string) =>
  (await listOf(app, mode)).map(({ objectId }) => objectId).sort();

const retry = ({ appId }: TestApp, eventId: string) =>
  service.admin("POST", `/apps/${appId}/stripe/unhandled/${eventId}/retry`);

const remainingOf = async (app: TestApp, userId: string) => {
  const { credits } = await dataOf(app.call("GET", `/credits?userId=${userId}`));
  return credits.map(({ remaining }: { remaining: number }) => remaining);
};

const COST = { amount_total: 1900, currency: "usd" };
const line = (members: object) => ({
  id: "il_1",
  amount: 500,
  quantity: 1,
  price: { id: "price_new" },
  ...members,
});
const invoiceOf = (members: object, ...data: object[]) =>
  eventOf("invoice.paid", { id: "in_1", currency: "usd", amount_paid: 500, lines: { data }, ...members });
const ADA = { metadata: { holdfast_user: "ada" } };

Deno.test("each is listed with its reason and amount, and a reading of another app or mode has none", async () => {
  const app = await connectedApp(service);
  await told(app, eventOf("customer.subscription.created", subscriptionOf({ id: "sub_x" }, "price_new")));
  await told(app, eventOf("checkout.session.completed", sessionOf({ ...COST, metadata: {} }), 1));
  const invoice = invoiceOf(
    ADA,
    line({}),
    line({ id: "il_2", proration: true }),
    line({ id: "il_3", amount: 0 }),
  );
  await told(app, invoice);
  await told(
    app,
    eventOf("checkout.session.completed", sessionOf({ id: "cs_2", metadata: {} }), 0, { account: "acct_1" }),
  );
  await told(app, eventOf("checkout.session.completed", sessionOf({ id: "cs_3", payment_status: "unpaid" })));
  const rows = await listOf(app);
  assert.deepEqual(rows[0], {
    eventId: rows[0]?.eventId,
    type: "checkout.session.completed",
    objectId: "cs_1",
    reason: "the session's metadata has no holdfast_pack",
    amount: 1900,
    currency: "usd",
    createdAt: "2026-01-10T00:00:01.000Z",
  });
  assert.deepEqual(await objectsOf(app), ["cs_1", "in_1", "sub_x"]);
  assert.deepEqual(await objectsOf(app, "test"), []);
  assert.deepEqual(await objectsOf(await connectedApp(service)), []);
  const { checks } = await dataOf(service.admin("GET", "/health"));
  const check = checks.find(({ name }: { name: string }) => name === "stripe");
  assert.match(`${check.verdict} ${check.found}`, new RegExp(`warn .*${app.appId} live 3`));
  assertRefused(await service.admin("GET", `/apps/${app.appId}/stripe/unhandled`), 400, "invalid_request");
});

Deno.test("a change of the catalog tries all of them again, a press tries one", async () => {
  const app = await connectedApp(service);
  await told(app, eventOf("customer.subscription.created", subscriptionOf({}, "price_new_plan")));
  await told(app, invoiceOf(ADA, line({})));
  const checkout = eventOf("checkout.session.completed", sessionOf({ metadata: { holdfast_pack: "later" } }));
  await told(app, checkout);
  assert.equal((await sweep(service)).stripeRetries, 0, "nothing has changed");
  assert.match((await dataOf(retry(app, checkout.id))).reason, /^the catalog has no pack "later"/);
  const [basic, pro] = STRIPE_CATALOG.plans;
  const [images, cents] = STRIPE_CATALOG.packs;
  const catalog = {
    plans: [basic, { ...pro, stripePrices: ["price_pro", "price_new_plan"] }],
    packs: [{ ...images, stripePrices: ["price_images", "price_new"] }, cents],
  };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, catalog));
  assert.equal((await sweep(service)).stripeRetries, 3);
  assert.deepEqual(await objectsOf(app), ["cs_1"], "its pack is still unknown");
  assert.deepEqual(await remainingOf(app, "ada"), [10, 2]);
  const user = await dataOf(app.call("GET", "/users/ada"));
  assert.equal(user.counters[0].quota, 1000);
  const named = { ...catalog, packs: [{ ...images, name: "later" }, cents] };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, named));
  assert.equal((await dataOf(retry(app, checkout.id))).handled, true);
  assert.deepEqual(await objectsOf(app), []);
  assertRefused(await retry(app, checkout.id), 404, "not_found");
});

Deno.test("a later message about the same objects tries it again: its subscription, its invoice, its payment", async () => {
  const app = await connectedApp(service);
  const nameless = subscriptionOf({ metadata: {} });
  await told(app, eventOf("customer.subscription.created", nameless));
  await told(app, invoiceOf({ subscription: "sub_stripe_1" }, line({ price: "price_images" })));
  assert.deepEqual(await objectsOf(app), ["in_1", "sub_stripe_1"]);
  await told(app, eventOf("customer.subscription.updated", subscriptionOf(), 1));
  assert.deepEqual(await objectsOf(app), []);
  assert.deepEqual(await remainingOf(app, "ada"), [10, 2], "the line that waited is granted once");
  // An invoice of a checkout names no user; the checkout does, and is one sale with it.
  await told(app, invoiceOf({ id: "in_2" }, line({ id: "il_2", price: "price_images" })));
  assert.deepEqual(await objectsOf(app), ["in_2"]);
  await told(
    app,
    eventOf("checkout.session.completed", sessionOf({ id: "cs_2", invoice: "in_2", payment_intent: null })),
  );
  assert.deepEqual(await objectsOf(app), []);
  await told(app, invoiceOf({ id: "in_3" }, line({ id: "il_3", price: "price_images" })));
  await told(app, eventOf("checkout.session.completed", sessionOf({ id: "cs_3", payment_intent: "pi_3" })));
  assert.deepEqual(await objectsOf(app), ["in_3"], "nothing connects the two yet");
  await told(app, eventOf("invoice_payment.paid", { invoice: "in_3", payment: { payment_intent: "pi_3" } }));
  assert.deepEqual(await objectsOf(app), []);
  assert.deepEqual(await remainingOf(app, "ada"), [10, 2, 10, 2, 10, 2]);
});

Deno.test("a hold that was open across a dispute gives its part back to what the reinstatement granted", async () => {
  const app = await connectedApp(service);
  const dispute = (kind: string) =>
    eventOf(`charge.dispute.funds_${kind}`, {
      id: "dp_1",
      charge: "ch_1",
      payment_intent: "pi_1",
      amount: 1900,
      currency: "usd",
    });
  await told(app, eventOf("checkout.session.completed", sessionOf(COST)));
  const reserve = { userId: "ada", event: "image.small", count: 3 };
  const { reservationId } = await dataOf(app.call("POST", "/reserve", reserve));
  await told(app, dispute("withdrawn"));
  await told(app, dispute("reinstated"));
  assert.deepEqual(await remainingOf(app, "ada"), [7, 2]);
  await service.restart();
  await dataOf(app.call("POST", "/release", { reservationId }));
  assert.deepEqual(await remainingOf(app, "ada"), [10, 2]);
  assert.deepEqual(await driftsOf(service), []);
});

Deno.test("disputes and refunds of several payments change what the user has", async () => {
  const app = await connectedApp(service);
  const dispute = (kind: string) =>
    eventOf(`charge.dispute.funds_${kind}`, {
      id: "dp_1",
      charge: "ch_1",
      payment_intent: "pi_1",
      amount: 1900,
      currency: "usd",
    });
  await told(app, eventOf("checkout.session.completed", sessionOf(COST)));
  await dataOf(app.call("POST", "/track", { userId: "ada", event: "image.small", count: 4 }));
  const withdrawn = await told(app, dispute("withdrawn"));
  assert.deepEqual(withdrawn.done.map(({ did }: { did: string }) => did), ["credits_revoked"]);
  assert.deepEqual(await remainingOf(app, "ada"), []);
  const reinstated = await told(app, dispute("reinstated"));
  assert.deepEqual(
    reinstated.done.map(({ did, externalRef }: Record<string, string>) => [did, externalRef]),
    [["credits_granted", "cs_1:dp_1"]],
  );
  assert.deepEqual(await remainingOf(app, "ada"), [6, 2]);
  await service.restart();
  await told(app, dispute("reinstated"));
  assert.match((await told(app, dispute("withdrawn"))).reason, /have come back already/);
  assert.deepEqual(await remainingOf(app, "ada"), [6, 2], "neither is done twice");
  const refund = (no: number, amount: number) =>
    eventOf("charge.refunded", {
      id: `ch_in_${no}`,
      payment_intent: `pi_in_${no}`,
      refunded: true,
      amount,
      currency: "usd",
    });
  await told(app, invoiceOf(ADA, line({ price: "price_images" })));
  for (const no of [1, 2]) {
    await told(
      app,
      eventOf("invoice_payment.paid", { invoice: "in_1", payment: { payment_intent: `pi_in_${no}` } }),
    );
  }
  assert.equal((await told(app, refund(1, 200))).handled, false);
  assert.deepEqual(await remainingOf(app, "ada"), [6, 2, 10, 2]);
  assert.equal((await told(app, refund(2, 300))).handled, true);
  assert.deepEqual(await remainingOf(app, "ada"), [6, 2]);
});

Deno.test("an erasure removes what names the person; the rest goes after 30 days of the realm's clock", async () => {
  const app = await service.newApp(STRIPE_CATALOG);
  await connect(service, app, "test");
  const take = (type: string, object: object) =>
    told(app, eventOf(type, object, 0, { livemode: false }), { mode: "test" });
  const named = { metadata: { holdfast_user: MARK } };
  await take("customer.subscription.created", subscriptionOf({ id: "sub_z", ...named }, "price_new"));
  await take(
    "checkout.session.completed",
    sessionOf({ id: "cs_z", client_reference_id: MARK, metadata: {} }),
  );
  await take("checkout.session.completed", sessionOf({ id: "cs_other", metadata: {} }));
  const customer = new Customer(app, MARK, app.secretTest);
  await customer.post("/track", { event: "image.x" });
  assert.ok(Object.keys(await tracesOf(service, MARK)).includes("stripe_unhandled"));
  await erase(service, customer, MARK);
  assert.deepEqual(await tracesOf(service, MARK), {});
  assert.deepEqual(await objectsOf(app, "test"), ["cs_other"]);
  const other = new Customer(app, "ada", app.secretTest);
  await other.pass(30 * 86_400 - 1);
  assert.deepEqual(await objectsOf(app, "test"), ["cs_other"]);
  await other.pass(1);
  assert.deepEqual(await objectsOf(app, "test"), [], "whether or not a sweep has removed it");
  assert.equal((await sweep(service)).stripeFacts, 1);
  const kept = await rowsOf(service, "select event_id from stripe_unhandled where object_id = 'cs_other'");
  assert.deepEqual(kept, []);
});

Deno.test("what a grant refuses is kept too, until there is room", async () => {
  const app = await service.newApp(STRIPE_CATALOG, { testCreditBalanceCap: 1 });
  await connect(service, app, "test");
  const sale = eventOf("checkout.session.completed", sessionOf(COST), 0, { livemode: false });
  await told(app, sale, { mode: "test" });
  const [row] = await listOf(app, "test");
  assert.match(row?.reason ?? "", /^test_quota_exceeded: /);
  await dataOf(service.admin("PATCH", `/workspaces/${app.workspaceId}`, { testCreditBalanceCap: 2 }));
  assert.equal((await dataOf(retry(app, sale.id))).handled, true);
  assert.deepEqual(await objectsOf(app, "test"), []);
});
