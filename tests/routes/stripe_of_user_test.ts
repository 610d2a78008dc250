// What Stripe reported about a user, in the admin API and on the user's page: payments, subscriptions, and what is paid and
// not handled with its reason.

import assert from "node:assert/strict";
import { consoleOf, Visitor } from "./console_support.ts";
import { dataOf, serviceOfFile } from "./support.ts";
import { connectedApp, eventOf, send, sessionOf, subscriptionOf } from "./stripe_support.ts";

const service = serviceOfFile();
const COST = { amount_total: 1900, currency: "usd" };

Deno.test("payments, subscriptions and unhandled messages of a user are listed, and those of others are not", async () => {
  const app = await connectedApp(service);
  const sent = (event: object) => dataOf(send(service, app, event));
  await sent(eventOf("customer.subscription.created", subscriptionOf()));
  const pack = (id: string, user: string, packId: string) =>
    sessionOf({
      id,
      ...COST,
      payment_intent: `pi_${id}`,
      metadata: { holdfast_user: user, holdfast_pack: packId },
    });
  await sent(eventOf("checkout.session.completed", pack("cs_1", "ada", "cpk_images")));
  await sent(eventOf("checkout.session.completed", pack("cs_2", "bob", "cpk_images")));
  await sent(eventOf("checkout.session.completed", pack("cs_3", "ada", "cpk_unknown")));
  const refund = {
    id: "ch_1",
    payment_intent: "pi_cs_2",
    amount: 1900,
    amount_refunded: 1900,
    refunded: true,
    currency: "usd",
  };
  await sent(eventOf("charge.refunded", refund, 9));
  const of = (userId: string, mode = "live") =>
    dataOf(service.admin("GET", `/apps/${app.appId}/users/${userId}/stripe?mode=${mode}`));
  const ada = await of("ada");
  assert.deepEqual(
    ada.payments.map((
      row: Record<string, unknown>,
    ) => [row["source"], row["packId"], row["amount"], row["isRefunded"]]),
    [["cs_1", "cpk_images", 1900, false]],
  );
  assert.deepEqual(
    ada.subscriptions.map((row: Record<string, unknown>) => [row["subscriptionId"], row["isEnded"]]),
    [["sub_stripe_1", false]],
  );
  assert.deepEqual(ada.unhandled.map(({ objectId }: { objectId: string }) => objectId), ["cs_3"]);
  assert.deepEqual((await of("bob")).payments.map((row: Record<string, unknown>) => row["isRefunded"]), [
    true,
  ]);
  assert.deepEqual(await of("ada", "test"), { payments: [], subscriptions: [], unhandled: [] });

  await dataOf(app.call("POST", "/customers/alias", { from: "ada", to: "ada2" }));
  assert.deepEqual((await of("ada2")).payments.length, 1, "payments of an alias are those of its user");

  const visitor = await Visitor.signedIn(consoleOf(service));
  const { text } = await visitor.get(`/console/apps/${app.appId}/live/users/ada2/billing`);
  for (
    const words of [
      "Paid and not handled",
      `checkout.session.completed cs_3 19.00 USD ${ada.unhandled[0].reason}`,
      "1 × Images cs_1 19.00 USD granted",
      "sub_stripe_1",
    ]
  ) assert.ok(text.includes(words), `${words}: ${text}`);
  const other = await visitor.get(`/console/apps/${app.appId}/live/users/unpaid/billing`);
  assert.doesNotMatch(other.text, /cs_/);
});
