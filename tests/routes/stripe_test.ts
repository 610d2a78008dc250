// Stripe over HTTP: who is let in, what each message does to users, and that neither order nor repetition matters.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { rowsOf } from "./privacy_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  connectedApp,
  eventOf,
  post,
  SECRET,
  send,
  sender,
  sessionOf,
  STRIPE_CATALOG,
  subscriptionOf,
} from "./stripe_support.ts";

const service = serviceOfFile();

const told = sender(service);

/** What entitles a user: the plan, every row of a subscription, every balance; without our own ids. */
async function standingOf(app: TestApp, userId: string) {
  const user = await dataOf(app.call("GET", `/users/${userId}`));
  const { credits } = await dataOf(app.call("GET", `/credits?userId=${userId}&includeExpired=true`));
  return JSON.parse(
    JSON.stringify(
      { user, credits },
      (name, value) =>
        /(^|[a-z])(Id|At)$/.test(name) && name !== "planId" && name !== "packItemId" ? undefined : value,
    ),
  );
}

Deno.test("a subscription and a pack that were paid for are given, and a refund takes the pack back", async () => {
  const app = await connectedApp(service);
  await told(app, eventOf("customer.subscription.created", subscriptionOf()));
  await told(app, eventOf("checkout.session.completed", sessionOf()));
  const { user, credits } = await standingOf(app, "ada");
  assert.equal(user.counters[0].quota, 100);
  assert.deepEqual(credits.map(({ remaining }: { remaining: number }) => remaining), [10, 2]);
  await told(app, eventOf("charge.refunded", { id: "ch_1", payment_intent: "pi_1", refunded: true }));
  const after = await standingOf(app, "ada");
  assert.deepEqual(after.credits.map(({ status }: { status: string }) => status), ["revoked", "revoked"]);
});

Deno.test("a message is let in by its signature alone", async () => {
  const app = await connectedApp(service);
  const event = eventOf("customer.subscription.created", subscriptionOf());
  const strangers = [
    { secret: "whsec_another_0123456789" },
    { mode: "test" },
    { mode: "prod" },
    { appId: "app_x" },
    { ahead: -301 },
  ];
  for (const options of strangers) {
    assertRefused(await send(service, app, event, options), 401, "invalid_key", JSON.stringify(options));
  }
  const path = `/api/v1/stripe/${app.appId}/live`;
  assertRefused(await post(service, path, JSON.stringify(event), {}), 401, "invalid_key");
});

const subOf = (type: string, members: object = {}, price?: string) =>
  eventOf(`customer.subscription.${type}`, subscriptionOf(members, price));

Deno.test("each type of message answers in the envelope what was done, or why nothing was", async () => {
  const app = await connectedApp(service);
  const invoice = {
    id: "in_1",
    parent: { subscription_details: { subscription: "sub_stripe_1" } },
    lines: {
      has_more: true,
      data: [{ id: "il_1", amount: 9, quantity: 2, pricing: { price_details: { price: "price_images" } } }],
    },
    payments: { data: [{ payment: { type: "payment_intent", payment_intent: "pi_in" } }] },
  };
  const refund = (payment: string, refunded = true) =>
    eventOf("charge.refunded", { id: `ch_${payment}`, payment_intent: payment, refunded });
  // deno-fmt-ignore: a row a message
  const rows: readonly (readonly [event: object, did: readonly string[] | RegExp])[] = [
    [subOf("created", { status: "incomplete" }), /^the subscription is incomplete/],
    [subOf("updated", { status: "trialing" }), ["subscription_written"]],
    [eventOf("customer.subscription.updated", subscriptionOf({ status: "active" }, "price_none"), 1), /^no plan of the catalog lists price_none/],
    [eventOf("customer.subscription.updated", subscriptionOf({ status: "paused" }), 2), ["subscription_ended"]],
    [subOf("updated"), /^a newer message/],
    [eventOf("checkout.session.completed", sessionOf({ payment_status: "unpaid" })), /^the session is not paid yet/],
    [eventOf("checkout.session.async_payment_succeeded", sessionOf()), ["credits_granted"]],
    [eventOf("invoice.paid", invoice), ["credits_granted"]],
    [eventOf("invoice_payment.paid", { invoice: "in_1", payment: { charge: "ch_pi_in" } }), /^the payment is recorded/],
    [refund("pi_1", false), /^the charge is refunded in part only/],
    [refund("pi_none"), /^no grant of this charge is known/],
    [refund("pi_in"), ["credits_revoked"]],
    [eventOf("customer.subscription.deleted", subscriptionOf({ ended_at: 1_768_000_000 }), 9), ["subscription_ended"]],
    [eventOf("customer.created", { id: "cus_1" }), /^event type not handled/],
    [subOf("updated", {}, "price_pro"), /^a newer message/],
    [{ ...subOf("updated"), livemode: false }, /^the message is not for live mode/],
  ];
  for (const [event, did] of rows) {
    const { done, reason, warnings } = await told(app, event);
    const { type } = event as { type: string };
    if (did instanceof RegExp) assert.match(reason ?? "", did, type);
    else assert.deepEqual(done?.map((each: { did: string }) => each.did), did, `${type}: ${reason}`);
    assert.deepEqual(
      warnings,
      did instanceof RegExp ? undefined : type === "invoice.paid" ? ["lines_left_out"] : [],
      type,
    );
  }
  const { user, credits } = await standingOf(app, "ada");
  assert.deepEqual(user.counters, []);
  assert.deepEqual(credits.map(({ remaining }: { remaining: number }) => remaining), [10, 2, 0, 0]);
});

Deno.test("a proration, a trial and an event of a connected account grant nothing, and the reason is kept", async () => {
  const app = await connectedApp(service);
  const price = { pricing: { price_details: { price: "price_images" } } };
  const line = (id: string, members: object) => ({ id, amount: 500, quantity: 1, ...price, ...members });
  const prorated = { parent: { subscription_item_details: { proration: true } } };
  const invoice = (...data: object[]) =>
    eventOf("invoice.paid", { id: "in_1", metadata: { holdfast_user: "ada" }, lines: { data } });
  const sale = eventOf("checkout.session.completed", sessionOf(), 0, { account: "acct_1" });
  // A change from 1 to 100 packs and back, invoiced at once: what a customer can do in Stripe's portal.
  const raised = line("il_2", { amount: 133, quantity: 100, ...prorated });
  const rows: readonly (readonly [event: object, reason: RegExp])[] = [
    [invoice(line("il_1", { amount: -133, ...prorated }), raised), /^a line is a proration/],
    [invoice(line("il_3", { amount: 0, description: "Trial period" })), /^a line has the amount 0/],
    [sale, /^the event is of a connected account/],
  ];
  for (const [event, reason] of rows) {
    const answer = await told(app, event);
    assert.match(answer.reason, reason);
    const { live: { lastMessage } } = await dataOf(service.admin("GET", `/apps/${app.appId}/stripe`));
    assert.equal(lastMessage.reason, answer.reason);
  }
  const { credits } = await standingOf(app, "ada");
  assert.deepEqual(credits, []);
  const { warnings, done } = await told(app, invoice(line("il_4", {}), raised));
  assert.deepEqual(warnings, ["proration_not_granted"]);
  assert.deepEqual(done.map(({ externalRef }: { externalRef: string }) => externalRef), ["il_4"]);
});

Deno.test("signed JSON that makes no sense is answered, and leaves nothing behind", async () => {
  const app = await connectedApp(service);
  const lone = "\ud800", nul = "a\0b";
  const lines = (line: object) => ({
    id: "in_x",
    lines: { data: [{ id: "il_x", price: "price_images", amount: 1, ...line }] },
  });
  // deno-fmt-ignore: a row a message
  const events: readonly object[] = [
    [], { ...eventOf("invoice.paid", {}), type: nul }, { ...eventOf("invoice.paid", {}), type: "x".repeat(100_000) },
    { ...eventOf("invoice.paid", {}), id: lone }, { ...eventOf("invoice.paid", {}), created: 1e308 }, { ...eventOf("x", {}), data: null },
    eventOf(lone, {}), eventOf("__proto__", {}), eventOf("constructor", {}),
    subOf("created", { status: "toString" }), subOf("created", { status: nul }), subOf("created", { id: nul }), subOf("created", { id: { id: lone } }),
    subOf("created", { metadata: { holdfast_user: nul } }), subOf("created", { metadata: [lone] }), subOf("created", { items: "x".repeat(1000) }),
    subOf("created", { items: { data: Array.from({ length: 5_000 }, () => ({ price: "price_none" })) } }),
    eventOf("checkout.session.completed", sessionOf({ metadata: { holdfast_pack: nul } })),
    eventOf("checkout.session.completed", sessionOf({ metadata: { holdfast_pack: "cpk_cents", holdfast_quantity: "1e400" } })),
    eventOf("checkout.session.completed", sessionOf({ client_reference_id: lone })),
    eventOf("invoice.paid", lines({ quantity: 1e308, metadata: { holdfast_user: "ada" } })), eventOf("invoice.paid", lines({ amount: -5e300, metadata: { holdfast_user: "ada" } })),
    eventOf("invoice.paid", lines({ id: nul, metadata: { holdfast_user: "ada" } })), eventOf("charge.refunded", { id: nul, refunded: true }),
    eventOf("charge.refunded", JSON.parse('{"__proto__":{"refunded":true,"id":"ch_x"}}')),
  ];
  for (const event of events) {
    const { handled, reason } = await told(app, event);
    assert.equal(handled, false, JSON.stringify(event).slice(0, 200));
    assert.ok(reason.length < 5_000);
  }
  const { user, credits } = await standingOf(app, "ada");
  assert.deepEqual([user.counters, user.history, credits], [[], [], []]);
  const large = JSON.stringify(eventOf("invoice.paid", { id: "x".repeat(2_000_000) }));
  assertRefused(await post(service, `/api/v1/stripe/${app.appId}/live`, large, {}), 413, "payload_too_large");
});

Deno.test("the secret is set, replaced and removed; it is never shown, and the log keeps the fact", async () => {
  const app = await service.newApp(STRIPE_CATALOG);
  const path = `/apps/${app.appId}/stripe`;
  const event = subOf("created");
  const set = (body: object) => service.admin("PUT", path, body);
  const none = { isSet: false, setAt: null, lastMessage: null };
  const live = { ...none, path: `/api/v1/stripe/${app.appId}/live` };
  const test = { ...none, path: `/api/v1/stripe/${app.appId}/test` };
  assert.deepEqual(await dataOf(service.admin("GET", path)), { live, test });
  assertRefused(await send(service, app, event), 401, "invalid_key");
  assertRefused(await service.admin("DELETE", `${path}?mode=live`), 404, "not_found");
  for (
    const webhookSecret of [
      undefined,
      "",
      "whsec_",
      "sk_live_0123456789abcdef",
      `whsec_${"x".repeat(200)}`,
      "whsec_0123456789 abc",
    ]
  ) {
    assertRefused(await set({ mode: "live", webhookSecret }), 400, "invalid_request", webhookSecret);
  }
  assertRefused(await set({ mode: "prod", webhookSecret: SECRET }), 400, "invalid_request");
  const setAt = new Date(service.clock.now()).toISOString();
  assert.deepEqual(await dataOf(set({ mode: "live", webhookSecret: SECRET })), {
    live: { ...live, isSet: true, setAt },
    test,
  });
  await told(app, event);
  const { live: { lastMessage } } = await dataOf(service.admin("GET", path));
  const { id: eventId, type } = event;
  assert.deepEqual(lastMessage, { eventId, type, at: setAt, handled: true, reason: null });
  const another = `${SECRET}_another`;
  await dataOf(set({ mode: "live", webhookSecret: another }));
  assertRefused(await send(service, app, event), 401, "invalid_key");
  await told(app, event, { secret: another });
  await service.restart();
  await told(app, event, { secret: another });
  assert.deepEqual(await dataOf(service.admin("DELETE", `${path}?mode=live`)), {});
  assertRefused(await send(service, app, event, { secret: another }), 401, "invalid_key");
  assert.deepEqual(await dataOf(service.admin("GET", path)), { live, test });
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${app.appId}&limit=100`));
  const ofStripe = entries.filter(({ what }: { what: string }) => /Stripe$/.test(what));
  assert.deepEqual(ofStripe.map(({ what, after }: { what: string; after: object | null }) => [what, after]), [
    ["deleteStripe", { mode: "live", isSet: false }],
    ["setStripe", { mode: "live", isSet: true }],
    ["setStripe", { mode: "live", isSet: true }],
  ]);
  assert.ok(!JSON.stringify(entries).includes("whsec_"));
  const [kept] = await rowsOf(service, "select webhook_secret from stripe_connections where app_id = $1", [
    app.appId,
  ]);
  assert.deepEqual(kept, { webhook_secret: "" });
});
