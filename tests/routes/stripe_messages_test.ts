// What messages of Stripe leave in the tables: the same in every order and however often each comes, across merges,
// restarts and messages that come at once; what an erasure removes, and what retention does.

import assert from "node:assert/strict";
import { far } from "../support/depth.ts";
import { Random } from "../model/random.ts";
import type { TestApp } from "../support/test_service.ts";
import { Customer } from "./credits_support.ts";
import { erase, MARK, rowsOf, sweep, tracesOf } from "./privacy_support.ts";
import { dataOf, driftsOf, serviceOfFile } from "./support.ts";
import {
  connect,
  connectedApp,
  eventOf,
  send,
  sender,
  sessionOf,
  STRIPE_CATALOG,
  subscriptionOf,
} from "./stripe_support.ts";

const service = serviceOfFile();

const told = sender(service);

const START_S = Date.UTC(2026, 0, 10) / 1000;

/** What a user has: subscriptions that have not ended, and every balance with the sum of its ledger. */
async function standingOf(app: TestApp, userId: string) {
  await rowsOf(service, "select 1");
  const user = [userId, app.appId];
  const rows = await rowsOf(
    service,
    `select plan_id as plan, external_id as id, ends_at_ms as ends from subscriptions s join users u on u.key = s.user_key
     join realms r using (realm) where u.id = $1 and r.app_id = $2 and not s.ended order by s.id`,
    user,
  );
  const balances = await rowsOf(
    service,
    `select b.external_ref as ref, b.pack_item_id as item, trim_scale(remaining)::text as remaining,
       revoked_at_ms is not null as revoked,
       (select trim_scale(sum(delta))::text from credit_ledger l where l.balance_id = b.id) as ledger
     from credit_balances b join users u on u.key = b.user_key join realms r on r.realm = u.realm
     where u.id = $1 and r.app_id = $2 order by 1, 2`,
    user,
  );
  return { rows, balances };
}

/** Everything that happens to one customer of Stripe, whose ids end in a number. */
function storyOf(no: number): object[] {
  const metadata = { holdfast_user: `user_${no}` };
  const subscription = { id: `sub_${no}`, metadata };
  const invoice = {
    ...{ id: `in_${no}`, parent: { subscription_details: { subscription: `sub_${no}` } } },
    lines: {
      data: [{
        id: `il_${no}`,
        amount: 5,
        quantity: 3,
        pricing: { price_details: { price: "price_images" } },
      }],
    },
  };
  const payment = { invoice: `in_${no}`, payment: { type: "payment_intent", payment_intent: `pi_${no}` } };
  return [
    eventOf("customer.subscription.created", subscriptionOf(subscription)),
    eventOf("customer.subscription.updated", subscriptionOf(subscription, "price_pro"), 60),
    eventOf("invoice.paid", invoice, 61),
    eventOf(
      "checkout.session.completed",
      sessionOf({
        id: `cs_${no}`,
        payment_intent: `pi_of_cs_${no}`,
        metadata: { ...metadata, holdfast_pack: "Cents", holdfast_quantity: "7" },
      }),
      62,
    ),
    eventOf("charge.refunded", { id: `ch_${no}`, payment_intent: `pi_${no}`, refunded: true }, 63),
    eventOf("invoice_payment.paid", payment, 64),
    eventOf(
      "customer.subscription.deleted",
      subscriptionOf({ ...subscription, status: "canceled", ended_at: START_S + 70 }),
      70,
    ),
  ];
}

function shuffled<Item>(random: Random, items: readonly Item[]): Item[] {
  const left = [...items];
  return items.map(() => left.splice(random.whole(0, left.length - 1), 1)[0] as Item);
}

for (const isDeleted of [true, false]) {
  const name = isDeleted ? "to the end of the subscription" : "while the subscription lasts";
  Deno.test(`messages in any order, each of them twice, have the same result: ${name}`, async () => {
    const app = await connectedApp(service);
    const random = new Random(7);
    for (let no = 1; no <= far(10); no++) {
      const story = storyOf(no).slice(0, isDeleted ? 7 : 6);
      // The first order is that in which Stripe makes them, the second its reverse.
      const order = no === 1 ? story : no === 2 ? story.toReversed() : shuffled(random, [...story, ...story]);
      // Each third time all of them come at once.
      if (no % 3 === 0) await Promise.all(order.map((event) => told(app, event)));
      else for (const event of [...order, random.pick(story)]) await told(app, event);
      const { rows, balances } = await standingOf(app, `user_${no}`);
      const said = order.map((event) => (event as { type: string }).type).join(", ");
      assert.deepEqual(rows, isDeleted ? [] : [{ plan: "plan_pro", id: `sub_${no}`, ends: null }], said);
      assert.deepEqual(balances, [
        { ref: `cs_${no}`, item: null, remaining: "7", revoked: false, ledger: "7" },
        { ref: `il_${no}`, item: "cpi_large", remaining: "0", revoked: true, ledger: "0" },
        { ref: `il_${no}`, item: "cpi_small", remaining: "0", revoked: true, ledger: "0" },
      ], said);
    }
    assert.deepEqual(await driftsOf(service), []);
  });
}

Deno.test("a merge between two messages: whichever id they name, it is one user", async () => {
  const app = await connectedApp(service);
  const as = (holdfast_user: string) => ({ metadata: { holdfast_user } });
  await told(app, eventOf("customer.subscription.created", subscriptionOf(as("anon"))));
  await told(app, eventOf("checkout.session.completed", sessionOf({ client_reference_id: "anon" })));
  await dataOf(app.call("POST", "/customers/alias", { from: "anon", to: "ada" }));
  const moved = await told(
    app,
    eventOf("customer.subscription.updated", subscriptionOf(as("ada"), "price_pro"), 1),
  );
  assert.deepEqual(moved.done.map(({ did, userId }: { did: string; userId: string }) => [did, userId]), [[
    "subscription_written",
    "ada",
  ]]);
  // A price that sells no plan changes nothing, whatever the subscription's user is called.
  const unmapped = await told(
    app,
    eventOf("customer.subscription.updated", subscriptionOf(as("anon"), "price_x"), 2),
  );
  assert.equal(unmapped.handled, false);
  const { rows } = await standingOf(app, "ada");
  assert.deepEqual(rows, [{ plan: "plan_pro", id: "sub_stripe_1", ends: null }]);
  await told(app, eventOf("charge.refunded", { id: "ch_1", payment_intent: "pi_1", refunded: true }));
  const { balances } = await standingOf(app, "ada");
  assert.deepEqual(balances.map(({ revoked }) => revoked), [true, true]);
});

Deno.test("a subscription that goes to another user ends with the first", async () => {
  const app = await connectedApp(service);
  await told(app, eventOf("customer.subscription.created", subscriptionOf()));
  await told(
    app,
    eventOf("customer.subscription.updated", subscriptionOf({ metadata: { holdfast_user: "bob" } }), 1),
  );
  assert.deepEqual((await standingOf(app, "ada")).rows, []);
  assert.equal((await standingOf(app, "bob")).rows.length, 1);
  const [kept] = await rowsOf(
    service,
    "select user_id, left_user_ids from stripe_subscriptions where user_id = 'bob'",
  );
  assert.deepEqual(kept, { user_id: "bob", left_user_ids: "[]" });
});

Deno.test("the same message many times at once is done once, and after a restart it is still done", async () => {
  const app = await connectedApp(service);
  const sale = eventOf("checkout.session.completed", sessionOf());
  const created = eventOf("customer.subscription.created", subscriptionOf());
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, no) => told(app, no % 2 === 0 ? sale : created)),
  );
  assert.equal(new Set(answers.map((answer) => JSON.stringify(answer))).size, 2, "each time the same answer");
  const before = await standingOf(app, "ada");
  assert.deepEqual([before.rows.length, before.balances.length], [1, 2]);
  await service.restart();
  for (const event of [sale, created]) await told(app, event);
  assert.deepEqual(await standingOf(app, "ada"), before);
  const history = await rowsOf(
    service,
    "select type from subscription_events e join users u on u.key = e.user_key join realms r using (realm) where r.app_id = $1",
    [app.appId],
  );
  assert.deepEqual(history, [{ type: "created" }]);
});

Deno.test("a newer message that comes while an older one is being done waits for it", async () => {
  const app = await connectedApp(service);
  const { directory } = service.serving().term;
  const { runById } = directory;
  const reached = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  Object.assign(directory, {
    runById: async (...args: Parameters<typeof runById>) => {
      Object.assign(directory, { runById });
      reached.resolve();
      await going.promise;
      return await runById.apply(directory, args);
    },
  });
  const older = told(app, eventOf("customer.subscription.created", subscriptionOf()));
  await reached.promise;
  const newer = told(app, eventOf("customer.subscription.updated", subscriptionOf({}, "price_pro"), 1));
  // Time in which it would be done if it did not wait.
  for (let call = 0; call < 150; call++) await dataOf(service.admin("GET", `/apps/${app.appId}/stripe`));
  going.resolve();
  await Promise.all([older, newer]);
  assert.deepEqual((await standingOf(app, "ada")).rows, [{
    plan: "plan_pro",
    id: "sub_stripe_1",
    ends: null,
  }]);
});

Deno.test("a message that was cut off after its facts were kept does the rest when Stripe sends it again", async () => {
  const app = await connectedApp(service);
  const as = (holdfast_user: string) => ({ metadata: { holdfast_user } });
  const line = { id: "il_1", amount: 5, price: "price_images" };
  await told(app, eventOf("customer.subscription.created", subscriptionOf(as("ada"))));
  await told(
    app,
    eventOf("invoice.paid", { id: "in_1", subscription: "sub_other", lines: { data: [line] } }),
  );
  // deno-fmt-ignore: a row a message
  const cut = [
    eventOf("customer.subscription.updated", subscriptionOf(as("bob")), 1),
    eventOf("customer.subscription.created", subscriptionOf({ id: "sub_other", ...as("cat") })),
    eventOf("checkout.session.completed", sessionOf()),
  ];
  const { directory } = service.serving().term;
  const { runById } = directory;
  for (const event of cut) {
    Object.assign(directory, { runById: () => Promise.reject(new Error("the process dies here")) });
    assert.equal((await send(service, app, event)).status, 500);
    Object.assign(directory, { runById });
    assert.equal((await told(app, event)).handled, true);
  }
  assert.deepEqual((await standingOf(app, "ada")).rows, []);
  assert.equal((await standingOf(app, "bob")).rows.length, 1);
  const refs = async (userId: string) => (await standingOf(app, userId)).balances.map(({ ref }) => ref);
  assert.deepEqual(await refs("cat"), ["il_1", "il_1"]);
  assert.deepEqual(await refs("ada"), ["cs_1", "cs_1"]);
});

Deno.test("a message that was cut off between a grant that waited and its revoke does the rest", async () => {
  const app = await connectedApp(service);
  const line = { id: "il_1", amount: 5, price: "price_images" };
  await told(app, eventOf("invoice.paid", { id: "in_1", subscription: "sub_1", lines: { data: [line] } }));
  await told(app, eventOf("charge.refunded", { id: "ch_1", invoice: "in_1", refunded: true }));
  const created = eventOf("customer.subscription.created", subscriptionOf({ id: "sub_1" }));
  const { directory } = service.serving().term;
  const { runById } = directory;
  Object.assign(directory, {
    runById: (...[userId, call]: Parameters<typeof runById>) =>
      call.name === "refund"
        ? Promise.reject(new Error("the process dies here"))
        : runById.call(directory, userId, call),
  });
  assert.equal((await send(service, app, created)).status, 500);
  Object.assign(directory, { runById });
  assert.deepEqual((await standingOf(app, "ada")).balances.map(({ revoked }) => revoked), [false, false]);
  await told(app, created);
  assert.deepEqual((await standingOf(app, "ada")).balances.map(({ revoked }) => revoked), [true, true]);
});

Deno.test("an erasure leaves nothing of what a person bought, others keep theirs, and a refund afterwards does nothing", async () => {
  const app = await connectedApp(service, "test");
  const test = { mode: "test" };
  const of = (userId: string) => ({ metadata: { holdfast_user: userId } });
  const take = (type: string, object: object) =>
    told(app, eventOf(type, object, 0, { livemode: false }), test);
  await take("customer.subscription.created", subscriptionOf({ id: "sub_z", ...of(MARK) }));
  const lines = [MARK, "bob"].map((id) => ({ id: `il_${id}`, amount: 1, price: "price_images", ...of(id) }));
  await take("invoice.paid", { id: `in_of_both`, lines: { data: lines }, payment_intent: "pi_both" });
  await take(
    "checkout.session.completed",
    sessionOf({ id: `cs_${MARK}`, client_reference_id: MARK, payment_intent: `pi_${MARK}` }),
  );
  await take("charge.refunded", { id: `ch_z`, payment_intent: `pi_${MARK}`, refunded: true });
  const found = Object.keys(await tracesOf(service, MARK));
  for (const table of ["stripe_subscriptions", "stripe_purchases", "stripe_payments", "stripe_refunds"]) {
    assert.ok(found.includes(table), `there is something to erase in ${table}: ${found}`);
  }
  await rowsOf(
    service,
    "update stripe_subscriptions set user_id = 'bob', left_user_ids = $1 where id = 'sub_z'",
    [
      JSON.stringify([MARK, "cat"]),
    ],
  );
  await erase(service, new Customer(app, MARK, app.secretTest), MARK);
  assert.deepEqual(await tracesOf(service, MARK), {});
  const [{ left_user_ids: left } = {}] = await rowsOf(
    service,
    "select left_user_ids from stripe_subscriptions where id = 'sub_z'",
  );
  assert.deepEqual(JSON.parse(left as string), ["cat"]);
  const refunded = await take("charge.refunded", { id: "ch_2", payment_intent: `pi_both`, refunded: true });
  assert.deepEqual(refunded.done.map(({ userId }: { userId: string }) => userId), ["bob"]);
});

Deno.test("payments and refunds that belong to no purchase go after 90 days of the realm's clock", async () => {
  const app = await connectedApp(service, "test");
  const take = (type: string, object: object) =>
    told(app, eventOf(type, object, 0, { livemode: false }), { mode: "test" });
  await take("checkout.session.completed", sessionOf({ id: "cs_kept", payment_intent: "pi_kept" }));
  await take("charge.refunded", { id: "ch_kept", payment_intent: "pi_kept", refunded: true });
  await take("invoice_payment.paid", { invoice: "in_stray", payment: { payment_intent: "pi_stray" } });
  await take("charge.refunded", { id: "ch_stray", refunded: true });
  const kept = async () =>
    [
      ...await rowsOf(
        service,
        "select payment from stripe_payments where payment ~ '_(kept|stray)$' order by 1",
      ),
      ...await rowsOf(
        service,
        "select payment from stripe_refunds where payment ~ '_(kept|stray)$' order by 1",
      ),
    ].map(({ payment }) => payment);
  const customer = new Customer(app, "ada", app.secretTest);
  await customer.pass(90 * 86_400 - 1);
  assert.equal((await sweep(service)).stripeFacts, 0);
  assert.deepEqual(await kept(), ["pi_kept", "pi_stray", "ch_kept", "ch_stray", "pi_kept"]);
  await customer.pass(1);
  // A charge of its own belongs to nothing either; its payment does.
  assert.equal((await sweep(service)).stripeFacts, 3);
  assert.deepEqual(await kept(), ["pi_kept", "pi_kept"]);
});

Deno.test("the cap of balances in test mode holds for paid credits too, and the answer reports it", async () => {
  const app = await service.newApp(STRIPE_CATALOG, { testCreditBalanceCap: 3 });
  await connect(service, app, "test");
  const take = (type: string, object: object) =>
    told(app, eventOf(type, object, 0, { livemode: false }), { mode: "test" });
  const sale = (id: string) => take("checkout.session.completed", sessionOf({ id, payment_intent: null }));
  assert.equal((await sale("cs_1")).handled, true);
  const { handled, reason } = await sale("cs_2");
  assert.equal(handled, false);
  assert.match(reason, /^test_quota_exceeded: /);
  assert.equal((await sale("cs_1")).handled, true, "what was granted is known");
  await dataOf(service.admin("PATCH", `/workspaces/${app.workspaceId}`, { testCreditBalanceCap: 4 }));
  assert.equal((await sale("cs_2")).handled, true, "Stripe is asked to send it again when there is room");
});
