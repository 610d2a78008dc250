// What can be read of a user and of the plans: usage with its filter, the user's view, the public listing.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, CATALOG, dataOf, holdImages, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

Deno.test("usage shows every group of the plan with its exact members", async () => {
  const app = await appWithUser(service);
  await holdImages(app, 3);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", inputCostCents: 0.5 }));
  const usage = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual(Object.keys(usage), [
    "userId",
    "period",
    "counters",
    "credits",
    "duplicateActiveSubscriptions",
  ]);
  assert.deepEqual(usage.period, { start: "2026-01-01T00:00:00.000Z", end: "2026-02-01T00:00:00.000Z" });
  assert.equal(usage.counters.length, 5);
  assert.deepEqual(usage.counters[0], {
    groupId: "lg_images",
    event: "image.*",
    label: "Images",
    unit: "count",
    quota: 100,
    count: 4,
    remaining: 96,
    costCents: 0.5,
    filters: {},
  });
});

Deno.test("the filter event narrows usage to the groups whose rules cover it, by name alone", async () => {
  const document = structuredClone(CATALOG) as { plans: { limits: unknown[] }[] };
  const group = (id: string, ...matches: unknown[]) => ({ id, label: id, unit: "count", quota: 5, matches });
  (document.plans[0] as { limits: unknown[] }).limits = [
    group("all", { event: "*" }),
    group("images", { event: "image.*" }),
    group("render", { event: "image.render", metadata: { model: "a" } }, {
      event: "image.render",
      metadata: { model: "b", size: "xl" },
    }),
    group("two", { event: "chat.x" }, { event: "image.re*" }),
  ];
  const app = await service.newApp(document);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const groups = async (event: string) => {
    const { counters } = await dataOf(app.call("GET", `/usage?userId=u&event=${encodeURIComponent(event)}`));
    return counters.map((row: { groupId: string }) => row.groupId);
  };
  assert.deepEqual(await groups("image.render"), ["all", "images", "render", "two"]);
  assert.deepEqual(await groups("image.x"), ["all", "images"]);
  assert.deepEqual(await groups("image.*"), ["all", "images"]);
  assert.deepEqual(await groups("image.re*"), ["all", "images", "two"]);
  assert.deepEqual(await groups("image.*".toUpperCase()), ["all"]);
  assert.deepEqual(await groups("*"), ["all"]);
  assert.deepEqual(await groups("chat.x"), ["all", "two"]);
  assert.deepEqual(await groups("chat"), ["all"]);
  const { counters } = await dataOf(app.call("GET", "/usage?userId=u"));
  assert.deepEqual(counters[2].filters, { model: ["a", "b"], size: ["xl"] });
  for (const event of ["", "a*b", "**", "a\n", "x".repeat(201)]) {
    const answer = await app.call("GET", `/usage?userId=u&event=${encodeURIComponent(event)}`);
    assertRefused(answer, 400, "invalid_request", event);
  }
});

Deno.test("a repeated member of a query counts by its first value, and unknown members are ignored", async () => {
  const app = await appWithUser(service);
  const usage = await dataOf(app.call("GET", "/usage?userId=u&userId=v&x=1&event=image.*&constructor=2"));
  assert.deepEqual([usage.userId, usage.counters.length], ["u", 1]);
});

Deno.test("the user's view has exact members, and empty values for a stranger", async () => {
  const app = await appWithUser(service);
  const stranger = await dataOf(app.call("GET", "/users/stranger"));
  assert.deepEqual(stranger, {
    userId: "stranger",
    aliases: [],
    subscription: null,
    history: [],
    period: null,
    counters: [],
    credits: [],
    duplicateActiveSubscriptions: null,
  });
  const row = await dataOf(
    app.call("POST", "/subscriptions", {
      userId: "u",
      planId: "team",
      provider: "stripe",
      externalId: "s1",
      cycleStart: "2026-01-10T06:00:00+02:00",
      endsAt: "2027-01-01",
    }),
  );
  const user = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual(user.subscription, {
    customLimits: null,
    subscriptionId: row.subscriptionId,
    userId: "u",
    planId: "plan_team",
    startedAt: new Date(service.clock.now()).toISOString(),
    endsAt: "2027-01-01T00:00:00.000Z",
    cycleAnchorAt: "2026-01-10T04:00:00.000Z",
    provider: "stripe",
    externalId: "s1",
  });
  assert.deepEqual(row, user.subscription);
  assert.deepEqual(user.period, { start: "2026-01-15T04:00:00.000Z", end: "2026-01-16T04:00:00.000Z" });
  const [duplicate, ...others] = user.duplicateActiveSubscriptions.duplicates;
  assert.deepEqual(Object.keys(duplicate), [
    "subscriptionId",
    "planId",
    "planName",
    "provider",
    "externalId",
    "startedAt",
    "endsAt",
  ]);
  assert.deepEqual([duplicate.planName, duplicate.provider, others], ["Pro", null, []]);
  assert.equal(user.duplicateActiveSubscriptions.primary.subscriptionId, row.subscriptionId);
  assert.deepEqual(Object.keys(user.history[0]), [
    "id",
    "type",
    "subscriptionId",
    "planId",
    "previousPlanId",
    "reason",
    "at",
  ]);
});

Deno.test("the user's history is newest first and shows the last 50 rows", async () => {
  const app = await appWithUser(service);
  for (let turn = 0; turn < 30; turn++) {
    const planId = turn % 2 === 0 ? "plan_team" : "plan_pro";
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId }));
    await dataOf(app.call("DELETE", "/subscriptions", { userId: "u", reason: `r${turn}` }));
  }
  const { history } = await dataOf(app.call("GET", "/users/u"));
  assert.equal(history.length, 50);
  assert.deepEqual([history[0].type, history[0].reason], ["canceled", "r29"]);
  const ids = history.map(({ id }: { id: string }) => id);
  assert.deepEqual(ids, [...ids].sort().reverse());
});

Deno.test("plans are listed to both key classes, oldest first, without prices, ranks and policies", async () => {
  const app = await service.newApp(CATALOG);
  const expected = CATALOG.plans.map(({ id, name, period, limits }) => ({
    id,
    name,
    period,
    limits: limits.map((limit) => ({ ...limit, event: limit.matches[0]?.event })),
  }));
  for (const key of [app.secretLive, app.secretTest, app.publicLive, app.publicTest]) {
    assert.deepEqual(await dataOf(app.call("GET", "/plans", undefined, { key })), expected);
  }
  const empty = await service.newApp({});
  assert.deepEqual(await dataOf(empty.call("GET", "/plans")), []);
});

Deno.test("archived plans leave the list and take no new subscriptions, and stay valid for their holders", async () => {
  const app = await appWithUser(service);
  const [pro, team] = CATALOG.plans;
  await service.admin("PUT", `/apps/${app.appId}/catalog`, {
    ...CATALOG,
    plans: [{ ...pro, archived: true }, team],
  });
  const listed = await dataOf(app.call("GET", "/plans"));
  assert.deepEqual(listed.map(({ id }: { id: string }) => id), ["plan_team"]);
  for (const planId of ["plan_pro", "Pro", "PRO"]) {
    const answer = await app.call("POST", "/subscriptions", { userId: "v", planId });
    assertRefused(answer, 404, "not_found", planId);
  }
  assert.equal((await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }))).allowed, true);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "pro", endsAt: "2027-01-01" }));
  assert.equal((await dataOf(app.call("GET", "/usage?userId=u"))).counters.length, 5);
});
