// Top-ups over HTTP, against a fake of Stripe on a port: what a call takes and answers, that credits come once they are paid,
// and go when the payment goes back.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { FakeStripe } from "../support/fake_stripe.ts";
import { connect, eventOf, send } from "./stripe_support.ts";
import { reconcile } from "../../src/storage/queries/reconcile.ts";
import { runErasures } from "../../src/people/erasure.ts";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";

const PRICE = { amount: 500, currency: "eur" };
const CATALOG = {
  packs: [
    {
      id: "cpk_images",
      name: "Images",
      kind: "per_type",
      price: PRICE,
      items: [{ id: "cpi", label: "Images", unit: "count", amount: 10, matches: [{ event: "image.*" }] }],
    },
    {
      id: "cpk_cents",
      name: "Cents",
      kind: "generic",
      unit: "cents",
      matches: [{ event: "*" }],
      price: { amount: 2, currency: "eur" },
      items: [],
    },
    { id: "cpk_free", name: "Free", kind: "generic", unit: "cents", matches: [{ event: "*" }], items: [] },
  ],
};

const live = new Map<string, string>();
const stripe = new FakeStripe();
let server: Deno.HttpServer<Deno.NetAddr> | null = null;
const keys = { byMode: { live, test: new Map<string, string>() }, base: null as string | null };
Deno.test.beforeAll(() => {
  server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => stripe.fetch(request),
  );
  keys.base = `http://127.0.0.1:${server.addr.port}`;
  stripe.now = () => service.clock.now();
});
const service = serviceOfFile({ stripe: keys });
Deno.test.afterAll(async () => {
  await server?.shutdown();
});

const SETTING = { packId: "cpk_images", below: 3, maxPerMonth: 2000 };
const IDS = { stripeCustomerId: "cus_1", stripePaymentMethodId: "pm_1" };

async function sellingApp(): Promise<TestApp> {
  const app = await service.newApp(CATALOG);
  await connect(service, app);
  live.set(app.appId, "sk_live_test");
  return app;
}

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

const topUpsOf = async (app: TestApp, userId = "ada"): Promise<Data[]> =>
  (await dataOf(app.call("GET", `/users/${userId}/top-ups`))).topUps;

/** Lets the worker look until the newest top-up has a status. */
async function until(app: TestApp, status: string, userId = "ada"): Promise<Data> {
  for (let tries = 0; tries < 500; tries++) {
    const [newest] = await topUpsOf(app, userId);
    if (newest?.status === status) return newest;
    const { topUps, registry } = service.serving();
    const { realm } = (registry.apps.get(app.appId) as Data).realms.live;
    if (newest !== undefined) topUps.note([{ id: newest.topUpId, realm, status: "open" }]);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`no top-up became ${status}: ${JSON.stringify(await topUpsOf(app, userId))}`);
}

const put = (app: TestApp, members: object = {}, userId = "ada") =>
  app.call("PUT", `/users/${userId}/top-up`, { ...SETTING, ...IDS, ...members });

Deno.test("credits are bought when they run low, granted once paid, and revoked when the payment goes back", async () => {
  const app = await sellingApp();
  const setting = await dataOf(put(app));
  const paid = await until(app, "paid");
  assert.deepEqual(setting, {
    ...{ userId: "ada", ...SETTING, quantity: 1, enabled: true, ...IDS },
    ...{ openIntentId: paid.topUpId, nextTryAt: null, failures: 0 },
  });
  assert.deepEqual([paid.amount, paid.currency, paid.reason], [500, "eur", null]);
  const { credits } = await dataOf(app.call("GET", "/credits?userId=ada"));
  assert.deepEqual(credits.map(({ remaining, origin }: Data) => [remaining, origin]), [[10, "topup"]]);

  // Stripe says it again, and once more: one grant.
  const success = eventOf("payment_intent.succeeded", stripe.intents.get(paid.paymentIntentId) as object);
  assert.equal((await dataOf(send(service, app, success))).handled, false);
  const track = () => app.call("POST", "/track", { userId: "ada", event: "image.a", count: 8 });
  await dataOf(track());
  await until(app, "paid");
  assert.equal((await topUpsOf(app)).length, 2);

  await dataOf(send(service, app, eventOf("charge.refunded", stripe.refundOf(paid.paymentIntentId))));
  const { credits: left } = await dataOf(app.call("GET", "/credits?userId=ada&includeExpired=true"));
  assert.deepEqual(left.map(({ status }: Data) => status).sort(), ["active", "revoked"]);
});

Deno.test("a dispute revokes a top-up's credits, and funds that come back grant them again", async () => {
  const app = await sellingApp();
  await dataOf(put(app));
  const { paymentIntentId } = await until(app, "paid");
  const dispute = { id: "dp_1", payment_intent: paymentIntentId, charge: `ch_${paymentIntentId}`, ...PRICE };
  await dataOf(send(service, app, eventOf("charge.dispute.funds_withdrawn", dispute)));
  const balances = async () => {
    const { credits } = await dataOf(app.call("GET", "/credits?userId=ada&includeExpired=true"));
    return credits.map(({ status, remaining, externalRef }: Data) => [status, remaining, externalRef]);
  };
  // The withdrawal leaves too little, so another top-up follows.
  assert.equal((await balances())[0][0], "revoked");
  await until(app, "paid");
  await dataOf(send(service, app, eventOf("charge.dispute.funds_reinstated", dispute)));
  assert.deepEqual((await balances()).filter(([status]: string[]) => status === "active").length, 2);
});

Deno.test("a success whose message arrives before the answer is granted once", async () => {
  const app = await sellingApp();
  const told: Promise<unknown>[] = [];
  stripe.onEvent = (type, object) => told.push(send(service, app, eventOf(type, { ...object })));
  stripe.fate = (call) => (call.endsWith("/confirm") ? "answer_lost" : "works");
  await dataOf(put(app));
  await until(app, "paid");
  [stripe.onEvent, stripe.fate] = [() => {}, () => "works"];
  await Promise.all(told);
  assert.equal((await dataOf(app.call("GET", "/credits?userId=ada"))).credits.length, 1);
});

Deno.test("a user may change the setting, but not the card, and not of another user", async () => {
  const app = await sellingApp();
  const exp = service.clock.now() / 1000 + 60;
  const headers = { "x-end-user-token": endUserToken(app.identitySecret, { userId: "ada", exp }) };
  const asUser = { key: app.publicLive, headers };
  const own = (method: string, body?: object, userId = "ada") =>
    app.call(method, `/users/${userId}/top-up`, body, asUser);
  assertRefused(await own("PUT", SETTING), 400, "invalid_request", "stripeCustomerId");
  await dataOf(put(app, { enabled: false }));
  assertRefused(await own("PUT", { ...SETTING, ...IDS }), 403, "forbidden");
  assertRefused(await own("GET", undefined, "eve"), 403, "forbidden");
  const shown = await dataOf(own("PUT", { ...SETTING, below: 5, enabled: false }));
  assert.equal(shown.below, 5);
  assert.equal("stripeCustomerId" in shown, false);
  assert.equal((await dataOf(app.call("GET", "/users/ada/top-up"))).stripeCustomerId, "cus_1");
  assert.deepEqual(await dataOf(own("DELETE")), { userId: "ada", underWay: false });
  assertRefused(await own("GET"), 404, "not_found");
});

Deno.test("a setting needs a key of Stripe, a pack with a price and one item at most, and a quantity of units", async () => {
  const app = await service.newApp(CATALOG);
  assertRefused(await put(app), 501, "not_implemented", `STRIPE_API_KEY_LIVE__${app.appId}`);
  live.set(app.appId, "sk_live_test");
  assertRefused(await put(app, { packId: "cpk_none" }), 404, "credit_pack_not_found");
  assertRefused(await put(app, { packId: "cpk_free", quantity: 1 }), 400, "invalid_request", "packId");
  assertRefused(await put(app, { packId: "cpk_cents" }), 400, "invalid_quantity");
  assertRefused(await put(app, { below: 0 }), 400, "invalid_request", "below");
  stripe.unknownCustomers.add("cus_none");
  await dataOf(put(app, { packId: "cpk_cents", quantity: 100, stripeCustomerId: "cus_none" }, "eve"));
  const failed = await until(app, "failed", "eve");
  assert.deepEqual([failed.amount, failed.reason], [200, "No such customer: 'cus_none'"]);
});

Deno.test("reconcile proves that paid top-ups and their grants are the same", async () => {
  const app = await sellingApp();
  await dataOf(put(app));
  const { topUpId } = await until(app, "paid");
  const { database } = service.store;
  const drifts = async () => {
    await service.serving().term.flush();
    const found: string[] = [];
    await reconcile(database, ({ text }) => found.push(text));
    return found;
  };
  assert.deepEqual(await drifts(), []);
  await database.query("update top_ups set status = 'failed' where id = $1", [topUpId]);
  assert.deepEqual((await drifts()).map((text) => text.replace(/"[^"]*"/g, "ID")), [
    "credit balance ID: no paid top-up is ID",
    "spent in 2026-01: 500 eur, but its top-ups cost 0",
    "top-up ID: it is failed, but it has a grant",
  ]);
  await database.query("update top_ups set status = 'paid' where id = $1", [topUpId]);
  await database.query("update credit_balances set own_ref = 'x' where own_ref = $1", [topUpId]);
  assert.equal((await drifts()).length, 2);
  await database.query("update credit_balances set own_ref = $1 where own_ref = 'x'", [topUpId]);
});

Deno.test("an erasure waits for what Stripe processes, and calls off everything else", async () => {
  const app = await sellingApp();
  stripe.bank = () => "processes";
  await dataOf(put(app));
  const { paymentIntentId } = await until(app, "processing");
  stripe.bank = () => "pays";
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId: "ada" }));
  const status = async () => (await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`))).status;
  await runErasures(service.serving());
  assert.equal(await status(), "in_progress");
  stripe.finish(paymentIntentId, true);
  const { term, registry, topUps } = service.serving();
  const { realm } = (registry.apps.get(app.appId) as Data).realms.live;
  for (let tries = 0; tries < 500 && await status() !== "completed"; tries++) {
    const [row] = await service.store.database.query<{ id: string }>(
      "select id from top_ups where realm = $1::int",
      [realm],
    );
    if (row !== undefined) topUps.note([{ id: row.id, realm, status: "open" }]);
    await new Promise((resolve) => setTimeout(resolve, 10));
    await term.flush();
    await runErasures(service.serving());
  }
  assert.equal(await status(), "completed");
  const left = await service.store.database.query("select id from top_ups where realm = $1::int", [realm]);
  assert.equal(left.length, 0);
});
