// Features over HTTP: who may read them, where they are shown, and what a stream of usage says of them.

import assert from "node:assert/strict";
import { STREAM_LIMITS } from "../../src/process/limits.ts";
import { consoleOf, Visitor } from "./console_support.ts";
import { EventReader } from "../support/event_stream.ts";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, endUserToken, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const [PRO, TEAM] = CATALOG.plans;
const FEATURED = {
  ...CATALOG,
  featureDefaults: { sso: false, seats: 1 },
  plans: [
    { ...PRO, features: { seats: 5, models: ["small", "large"] } },
    { ...TEAM, features: { sso: true, "export.pdf": true, support: "mail" } },
  ],
};

/** An app in which "u" has the plan Pro and is in "team", which is in "org". */
async function familyApp(): Promise<TestApp> {
  const app = await service.newApp(FEATURED);
  await subscribe(app, "u", "Pro");
  await dataOf(app.call("PUT", "/users/team/parent", { parentId: "org" }));
  await dataOf(app.call("PUT", "/users/u/parent", { parentId: "team" }));
  return app;
}

function subscribe(app: TestApp, userId: string, planId: string, more = {}) {
  return dataOf(app.call("POST", "/subscriptions", { userId, planId, ...more }));
}

function featuresOf(app: TestApp, key = app.secretLive, headers = {}, query = "?userId=u") {
  return dataOf(app.call("GET", `/features${query}`, undefined, { key, headers }));
}

const OWN = {
  seats: { value: 5, from: "plan", of: "u" },
  models: { value: ["small", "large"], from: "plan", of: "u" },
};
const DEFAULT_SSO = { sso: { value: false, from: "default", of: null } };
const OF_ORG = {
  sso: { value: true, from: "plan", of: "org" },
  "export.pdf": { value: true, from: "plan", of: "org" },
  support: { value: "mail", from: "plan", of: "org" },
};

Deno.test("features are those of the user, then of the users above, then the defaults", async () => {
  const app = await familyApp();
  assert.deepEqual(await featuresOf(app), { userId: "u", features: { ...DEFAULT_SSO, ...OWN } });
  await subscribe(app, "org", "Team");
  const expected = { ...OWN, ...OF_ORG };
  assert.deepEqual(await featuresOf(app), { userId: "u", features: expected });
  assert.deepEqual((await dataOf(app.call("GET", "/usage?userId=u"))).features, expected);
  assert.deepEqual((await dataOf(app.call("GET", "/users/u"))).features, expected);
});

Deno.test("one feature: its value, null for a user without one, not_found for an unknown key", async () => {
  const app = await familyApp();
  const one = (key: string) => app.call("GET", `/features/${encodeURIComponent(key)}?userId=u`);
  assert.deepEqual(await dataOf(one("seats")), {
    userId: "u",
    key: "seats",
    value: 5,
    from: "plan",
    of: "u",
  });
  const none = { userId: "u", key: "export.pdf", value: null, from: "default", of: null };
  assert.deepEqual(await dataOf(one("export.pdf")), none);
  for (const key of ["seat", "constructor", "a/b"]) assertRefused(await one(key), 404, "not_found", key);
  assertRefused(await one("a*"), 400, "invalid_request");
  assertRefused(await app.call("GET", "/features"), 400, "invalid_request");
});

Deno.test("a token and a user's key read the features of their user alone", async () => {
  const app = await familyApp();
  const expected = await featuresOf(app);
  const token = endUserToken(app.identitySecret, { userId: "u", exp: service.clock.now() / 1000 + 3600 });
  const headers = { "x-end-user-token": token };
  assert.deepEqual(await featuresOf(app, app.publicLive, headers, ""), expected);
  const { key } = await dataOf(app.call("POST", "/users/u/keys", {}));
  assert.deepEqual(await featuresOf(app, key, {}, ""), expected);
  for (const options of [{ key: app.publicLive, headers }, { key }]) {
    const one = await dataOf(app.call("GET", "/features/sso", undefined, options));
    assert.deepEqual([one.userId, one.value], ["u", false]);
    assertRefused(await app.call("GET", "/features?userId=org", undefined, options), 403, "forbidden");
    assertRefused(await app.call("GET", "/features/sso?userId=org", undefined, options), 403, "forbidden");
  }
  assertRefused(
    await app.call("GET", "/features?userId=u", undefined, { key: app.publicLive }),
    403,
    "forbidden",
  );
});

Deno.test("custom features are in the subscription, and invalid ones are refused", async () => {
  const app = await familyApp();
  assert.equal((await subscribe(app, "u", "Pro")).customFeatures, null);
  const customFeatures = { seats: 7, sso: true };
  assert.deepEqual((await subscribe(app, "u", "Pro", { customFeatures })).customFeatures, customFeatures);
  const user = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual(user.subscription.customFeatures, customFeatures);
  assert.deepEqual(user.features.seats, { value: 7, from: "custom", of: "u" });
  const bad = [
    '{"seat":1}',
    '{"seats":"7"}',
    '{"seats":null}',
    '{"models":[1]}',
    '{"__proto__":1}',
    "[]",
    "5",
  ];
  for (const text of bad) {
    const body = `{"userId":"u","planId":"plan_pro","customFeatures":${text}}`;
    const refused = assertRefused(
      await app.call("POST", "/subscriptions", body),
      400,
      "invalid_request",
      text,
    );
    assert.match(refused.message, /^customFeatures/, text);
  }
  assert.equal((await subscribe(app, "u", "Pro", { customFeatures: null })).customFeatures, null);
});

Deno.test("plans on offer show their features", async () => {
  const app = await familyApp();
  const plans = await dataOf(app.call("GET", "/plans", undefined, { key: app.publicLive }));
  assert.deepEqual(
    plans.map(({ features }: { features: unknown }) => features),
    FEATURED.plans.map(({ features }) => features),
  );
});

Deno.test("a catalog without features shows none anywhere", async () => {
  const app = await appWithUser(service);
  const row = await subscribe(app, "u", "Pro");
  const usage = await dataOf(app.call("GET", "/usage?userId=u"));
  const user = await dataOf(app.call("GET", "/users/u"));
  const [plan] = await dataOf(app.call("GET", "/plans"));
  for (const shown of [row, user.subscription]) assert.ok(!("customFeatures" in shown));
  for (const shown of [usage, user, plan]) assert.ok(!("features" in shown));
  assert.deepEqual(await featuresOf(app), { userId: "u", features: {} });
  const customFeatures = { sso: true };
  assertRefused(
    await app.call("POST", "/subscriptions", { userId: "u", planId: "Pro", customFeatures }),
    400,
    "invalid_request",
  );
});

Deno.test("a stream of usage follows the features of every user above", async () => {
  const app = await familyApp();
  await using stream = await EventReader.open(service.http, "/usage/stream?userId=u", app.secretLive);
  const features = async () => (await stream.data()).features;
  /** Changes something once the stream waits, so that nothing but the change itself can wake it. */
  const after = async (change: () => unknown) => {
    await new Promise((resolve) => setTimeout(resolve, STREAM_LIMITS.stateEveryMs * 2));
    await change();
    return await features();
  };
  assert.deepEqual(await features(), { ...DEFAULT_SSO, ...OWN });
  const endsAt = new Date(service.clock.now() + 60_000).toISOString();
  const ofOrg = await after(() => subscribe(app, "org", "Team", { endsAt }));
  assert.deepEqual(ofOrg.sso, OF_ORG.sso, "a plan of the user at the top");
  const ofTeam = await after(() => subscribe(app, "team", "Pro", { customFeatures: { sso: true } }));
  assert.deepEqual(ofTeam.sso, { value: true, from: "custom", of: "team" });
  const put = (parentId: string | null) => dataOf(app.call("PUT", "/users/team/parent", { parentId }));
  assert.equal((await after(() => put(null))).support, undefined, "a move of a user above");
  assert.deepEqual((await after(() => put("org"))).support, OF_ORG.support);
  assert.equal((await after(() => service.clock.advance(120_000))).support, undefined, "an end above");
});

Deno.test("a message about a change of plan has the features after it, those from above too", async () => {
  const app = await familyApp();
  await subscribe(app, "org", "Team", { customFeatures: { seats: 9 } });
  const bare = { ...PRO, id: "plan_bare", name: "Bare" };
  const catalog = { ...FEATURED, plans: [...FEATURED.plans, bare] };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, catalog));
  const webhook = { url: "https://features.test/", mode: "live", events: ["subscription.plan_changed"] };
  const { webhookId } = await dataOf(service.admin("POST", `/apps/${app.appId}/webhooks`, webhook));
  await subscribe(app, "u", "Bare");
  const { term, database } = service.serving();
  await term.flush();
  const [row] = await database.query("select body from webhook_messages where webhook_id = $1", [webhookId]);
  const { data: message } = JSON.parse(String(row?.body));
  assert.deepEqual(message.features, { ...OF_ORG, seats: { value: 9, from: "custom", of: "org" } });
});

Deno.test("the console shows the features of a user, and what a change of plan changes", async () => {
  const app = await familyApp();
  await subscribe(app, "org", "Team");
  await subscribe(app, "u", "Pro", { customFeatures: { seats: 7 } });
  const visitor = await Visitor.signedIn(consoleOf(service));
  const base = `/console/apps/${app.appId}/live/users`;
  const { text, html } = await visitor.get(`${base}/u/billing`);
  assert.match(
    text,
    /Features Feature Value From sso on plan of org seats 7 custom value of the subscription/,
  );
  assert.match(text, /models small, large plan /);
  assert.ok(html.includes(`<a href="${base}/org">org</a>`));
  const preview = await visitor.press(await visitor.get(`${base}/u/plan`), "Continue", {
    planId: "plan_team",
  });
  assert.match(preview.text, /The custom features are removed/);
  assert.match(preview.text, /Feature seats 5 none Feature models small, large none Feature sso none on/);
  const without = await appWithUser(service);
  assert.doesNotMatch(
    (await visitor.get(`/console/apps/${without.appId}/live/users/u/billing`)).text,
    /Features/,
  );
});
