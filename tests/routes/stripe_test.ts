// Stripe over HTTP: who is let in, what each message does to users, and that neither order nor repetition matters.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import {
  connect,
  eventOf,
  post,
  send,
  type SendOptions,
  sessionOf,
  STRIPE_CATALOG,
  subscriptionOf,
} from "./stripe_support.ts";

const service = serviceOfFile();

async function connectedApp(): Promise<TestApp> {
  const app = await service.newApp(STRIPE_CATALOG);
  await connect(service, app);
  return app;
}

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
const told = (app: TestApp, event: object, options?: SendOptions): Promise<any> =>
  dataOf(send(service, app, event, options));

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
  const app = await connectedApp();
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
  const app = await connectedApp();
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
