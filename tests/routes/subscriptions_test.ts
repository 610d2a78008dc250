// Subscriptions over HTTP: seats, and what else a call may say of them beside the plan.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { connect, eventOf, send, subscriptionOf } from "./stripe_support.ts";
import { packOf, planOf } from "../domain/short_catalog.ts";

const service = serviceOfFile();
const PLANS = [planOf("plan_team", { lg_a: 10 }), planOf("plan_less", { lg_a: 5 }, { rank: 0 })];
const TEAM = { userId: "u", planId: "plan_team" };
const DAY_S = 86_400;

Deno.test("seats multiply the quotas of the plan, and an answer shows them where there is more than one", async () => {
  const app = await service.newApp({ plans: PLANS });
  assert.equal("quantity" in await dataOf(app.call("POST", "/subscriptions", TEAM)), false);
  const seats = { ...TEAM, quantity: 3 };
  assert.equal((await dataOf(app.call("POST", "/subscriptions", seats))).quantity, 3);
  const { subscription, counters: [counter] } = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual([subscription.quantity, counter.quota, counter.remaining], [3, 30, 30]);
});

Deno.test("a change of plan that is asked for ahead is shown, keeps its plan in the catalog, and is made in time", async () => {
  const app = await service.newApp({ plans: PLANS });
  const key = { key: app.secretTest };
  assert.equal("scheduled" in await dataOf(app.call("POST", "/subscriptions", TEAM, key)), false);
  const at = new Date(service.clock.now() + 3 * DAY_S * 1000).toISOString();
  const ahead = { userId: "u", planId: "PLAN_LESS", at };
  const scheduled = { at, planId: "plan_less" };
  assert.deepEqual((await dataOf(app.call("POST", "/subscriptions", ahead, key))).scheduled, scheduled);
  assert.deepEqual(
    (await dataOf(app.call("GET", "/users/u", undefined, key))).subscription.scheduled,
    scheduled,
  );

  const { status, body } = await service.admin("PUT", `/apps/${app.appId}/catalog`, {
    plans: PLANS.slice(0, 1),
  });
  assert.deepEqual([status, body.error.details], [409, [{ planId: "plan_less" }]]);

  const unschedule = () => app.call("DELETE", "/subscriptions/scheduled?userId=u", undefined, key);
  const dropped = await dataOf(unschedule());
  assert.deepEqual([dropped.planId, dropped.scheduled], ["plan_team", null]);
  assertRefused(await unschedule(), 404, "not_found");

  await dataOf(app.call("POST", "/subscriptions", ahead, key));
  const days = { advanceSeconds: 4 * DAY_S };
  await dataOf(app.call("POST", "/test-clock", days, key));
  const { subscription, history: [last] } = await dataOf(app.call("GET", "/users/u", undefined, key));
  assert.deepEqual([subscription.planId, "scheduled" in subscription], ["plan_less", false]);
  assert.deepEqual([last.type, last.reason, last.at], ["plan_changed", "scheduled", at]);
});

Deno.test("a change that is asked for ahead without the ids of its subscription says that it needs them", async () => {
  const app = await service.newApp({ plans: PLANS });
  await dataOf(app.call("POST", "/subscriptions", { ...TEAM, provider: "stripe", externalId: "sub_1" }));
  const ahead = { userId: "u", planId: "plan_less", at: "period_end" };
  const { message } = assertRefused(await app.call("POST", "/subscriptions", ahead), 404, "not_found");
  assert.match(message, /provider and externalId/);
});

Deno.test("nothing else may be changed together with a change that is asked for ahead", async () => {
  const app = await service.newApp({ plans: PLANS });
  await dataOf(app.call("POST", "/subscriptions", TEAM));
  const ahead = { userId: "u", planId: "plan_less", at: "period_end" };
  const others = {
    quantity: 2,
    customLimits: null,
    cycleStart: null,
    endsAt: "2100-01-01",
    startsAt: "2020-01-01",
  };
  for (const [name, value] of Object.entries(others)) {
    const answer = await app.call("POST", "/subscriptions", { ...ahead, [name]: value });
    assert.deepEqual(assertRefused(answer, 400, "invalid_request").details, [
      { path: name, message: "must be left out together with at" },
    ]);
  }
  const rest = { quantity: null, trial: null, endsAt: null, startsAt: null };
  assert.ok((await dataOf(app.call("POST", "/subscriptions", { ...ahead, ...rest }))).scheduled);
});

Deno.test("a trial is shown where the catalog has one, is had once, and ends in the plan after it", async () => {
  const [team, less] = PLANS;
  const plans = [{ ...team, trial: { days: 2, thenPlanId: "plan_less" } }, less];
  const app = await service.newApp({ plans });
  const key = { key: app.secretTest };
  const subscribe = (more: object) => app.call("POST", "/subscriptions", { ...TEAM, ...more }, key);
  const listed = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(listed.map((plan: { trial?: object }) => plan.trial), [{ days: 2 }, undefined]);

  assert.equal((await dataOf(subscribe({ planId: "plan_less" }))).trialEndsAt, null);
  assertRefused(await subscribe({ planId: "plan_less", trial: true }), 400, "invalid_request");
  const trialEndsAt = new Date(service.clock.now() + 2 * DAY_S * 1000).toISOString();
  for (const more of [{ trial: true }, { trial: true }, {}]) {
    assert.equal((await dataOf(subscribe(more))).trialEndsAt, trialEndsAt);
  }
  assert.equal(
    (await dataOf(app.call("GET", "/users/u", undefined, key))).subscription.trialEndsAt,
    trialEndsAt,
  );

  const shorter = { plans: [team] };
  const { status, body } = await service.admin("PUT", `/apps/${app.appId}/catalog`, shorter);
  assert.deepEqual(
    [status, body.error.details],
    [409, [{ planId: "plan_less" }]],
    "the plan after the trial stays",
  );

  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 3 * DAY_S }, key));
  const { subscription, history: [last] } = await dataOf(app.call("GET", "/users/u", undefined, key));
  assert.deepEqual([subscription.planId, subscription.trialEndsAt], ["plan_less", null]);
  assert.deepEqual([last.type, last.reason, last.at], ["plan_changed", "trial_ended", trialEndsAt]);
  assert.match(assertRefused(await subscribe({ trial: true }), 409, "trial_used").message, /leave trial out/);
});

Deno.test("an add-on adds to the quotas of the plan, and explain shows the parts", async () => {
  const app = await service.newApp({ plans: [...PLANS, planOf("plan_more", { lg_a: 4 }, { addon: true })] });
  const listed = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(listed.map((plan: { addon?: boolean }) => plan.addon), [undefined, undefined, true]);
  const more = { userId: "u", planId: "plan_more" };
  assertRefused(await app.call("POST", "/subscriptions", more), 400, "invalid_request");
  await dataOf(app.call("POST", "/subscriptions", { ...TEAM, quantity: 2 }));
  const ids = { provider: "stripe", externalId: "si_1" };
  const { subscriptionId } = await dataOf(
    app.call("POST", "/subscriptions", { ...more, ...ids, quantity: 3 }),
  );
  const user = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual([user.counters[0].quota, user.duplicateActiveSubscriptions], [32, null]);
  const rows = user.addOns.map((
    row: Record<string, unknown>,
  ) => [row.subscriptionId, row.planId, row.quantity]);
  assert.deepEqual([user.subscription.planId, rows], [TEAM.planId, [[subscriptionId, "plan_more", 3]]]);
  const { groups: [group] } = await dataOf(app.call("POST", "/explain", { userId: "u", event: "x.y" }));
  const addOns = [{ subscriptionId, planId: "plan_more", quantity: 3, quota: 12 }];
  assert.deepEqual([group.quota, group.quotaParts], [32, { own: 20, quantity: 2, addOns }]);
});

Deno.test("items of Stripe give seats and add-ons, and an item that is gone takes its add-on, also after a restart", async () => {
  const [team] = PLANS;
  const plans = [
    { ...team, perSeat: true, stripePrices: ["price_team"] },
    planOf("plan_more", { lg_a: 4 }, { addon: true, perSeat: true, stripePrices: ["price_more"] }),
  ];
  const app = await service.newApp({ plans });
  await connect(service, app);
  const quota = async () => (await dataOf(app.call("GET", "/usage?userId=ada"))).counters[0].quota;
  const base = { id: "si_base", price: "price_team", quantity: 2 };
  const data = [base, { id: "si_more", price: "price_more", quantity: 3 }];
  const tell = (type: string, items: object[], after: number) =>
    dataOf(
      send(
        service,
        app,
        eventOf(`customer.subscription.${type}`, subscriptionOf({ items: { data: items } }), after),
      ),
    );
  await tell("created", data, 1);
  assert.equal(await quota(), 32);
  await service.restart();
  const { done } = await tell("updated", [base], 60);
  assert.deepEqual(done.map((each: { did: string; planId: string }) => [each.did, each.planId]), [
    ["subscription_written", "plan_team"],
    ["subscription_ended", "plan_more"],
  ]);
  assert.equal(await quota(), 20);
});

Deno.test("the latest test clock leaves each end that follows from it a year of four digits", async () => {
  const includes = [{
    packId: "cpk_a",
    quantity: 9,
    period: { type: "yearly", anchor: "calendar" } as const,
    rollover: { max: 9, periods: 12 },
  }];
  const app = await service.newApp({
    plans: [
      planOf("plan_team", { lg_a: 10 }, { trial: { days: 3650 } }),
      planOf("plan_year", {}, { includes }),
    ],
    packs: [packOf("cpk_a")],
  });
  const key = { key: app.secretTest };
  const moved = (now: string) => app.call("POST", "/test-clock", { now }, key);
  await dataOf(moved("9979-12-31T00:00:00.000Z"));
  const { trialEndsAt } = await dataOf(app.call("POST", "/subscriptions", { ...TEAM, trial: true }, key));
  assert.match(trialEndsAt, /^9989-/);
  await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_year" }, key));
  const { message } = assertRefused(await moved("9980-01-01T00:00:00.001Z"), 400, "invalid_request");
  assert.match(message, /past the year 9979/);
  await dataOf(moved("9980-01-01T00:00:00.000Z"));
  const { credits } = await dataOf(app.call("GET", "/credits?userId=v", undefined, key));
  assert.deepEqual(credits.map(({ expiresAt }: { expiresAt: string }) => expiresAt.slice(0, 4)), [
    "9981",
    "9992",
  ]);
});
