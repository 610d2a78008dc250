// Several databases, and what is not a single call: streams, exports, messages of Stripe, top-ups, the gateway, agents'
// grants, a front. Each goes on with one database while the other is away, and with the other when it is back.

import assert from "node:assert/strict";
import { AGENT_TOKEN, type Visit, Visitor } from "../routes/console_support.ts";
import { CATALOG as GATEWAY_CATALOG } from "../routes/gateway_support.ts";
import { eventOf, SECRET, signatureOf, STRIPE_CATALOG, subscriptionOf } from "../routes/stripe_support.ts";
import { assertRefused, CATALOG, countOf, dataOf } from "../routes/support.ts";
import { EventReader } from "../support/event_stream.ts";
import { FakeStripe } from "../support/fake_stripe.ts";
import { chatChunk, eventOf as sentEvent, ModelServer } from "../support/model_server.ts";
import { type Answer, send, type TestApp } from "../support/test_service.ts";
import { testServerUrl } from "../support/test_store.ts";
import { StoresProcess, type SwitchedDatabase } from "./support.ts";
import { until } from "../support/until.ts";

const live = new Map<string, string>();
const stripe = new FakeStripe();
let stripeServer: Deno.HttpServer<Deno.NetAddr>;
let model: ModelServer;
let process: StoresProcess;
Deno.test.beforeAll(async () => {
  stripeServer = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (it) => stripe.fetch(it));
  model = new ModelServer();
  const base = `http://127.0.0.1:${stripeServer.addr.port}`;
  const features = {
    stripe: { byMode: { live, test: new Map<string, string>() }, base },
    modelServer: { apiKey: "sk-model-0123456789", baseUrl: model.baseUrl },
  };
  process = await StoresProcess.startWith({ features }, "eu1", "eu2");
  stripe.now = () => process.clock.now();
});
Deno.test.afterAll(async () => {
  await process[Symbol.asyncDispose]();
  await model.close();
  await stripeServer.shutdown();
});

/** Takes the second database away until work is done. */
async function withoutOther<T>(work: () => Promise<T>): Promise<T> {
  process.takeAway("eu2");
  try {
    return await work();
  } finally {
    await process.giveBack("eu2");
  }
}

/** An app on each database, in which user "u" has a plan. */
async function pair(catalog: unknown = CATALOG, planId = "plan_pro"): Promise<[TestApp, TestApp]> {
  const apps: TestApp[] = [];
  for (const store of ["eu1", "eu2"]) {
    const app = await process.app(store, catalog);
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId }));
    apps.push(app);
  }
  return apps as [TestApp, TestApp];
}

const track = (app: TestApp, count: number) =>
  dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count }));

Deno.test("streams of one database go on while the other is away, and those of the other when it is back", async () => {
  const [near, away] = await pair();
  const open = (app: TestApp) => EventReader.open(process.http, "/usage/stream?userId=u", app.secretLive);
  await using first = await open(near);
  await using other = await open(away);
  const shows = (reader: EventReader, count: number) =>
    reader.until(({ counters }) => counters[0].count === count);
  await shows(first, 0);
  await shows(other, 0);
  await withoutOther(async () => {
    await track(near, 1);
    await shows(first, 1);
    await track(near, 2);
    await shows(first, 3);
  });
  await track(away, 5);
  await shows(other, 5);
  await dataOf(process.admin("DELETE", `/apps/${away.appId}/keys/${await keyIdOf(away)}`));
  await other.ends("key_revoked");
  await track(near, 1);
  await shows(first, 4);
});

async function keyIdOf({ appId, secretLive }: TestApp): Promise<string> {
  const keys: { keyId: string; class: string; mode: string }[] = await dataOf(
    process.admin("GET", `/apps/${appId}/keys`),
  );
  assert.ok(secretLive !== "");
  return keys.find((key) => key.class === "secret" && key.mode === "live")?.keyId as string;
}

Deno.test("links to exports open the person of their own database, and no link is believed unread", async () => {
  const apps = await pair();
  const links = await Promise.all(apps.map(async (app, place) => {
    await dataOf(app.call("POST", "/identify", { distinctId: "u", properties: { place } }));
    const { downloadUrl } = await dataOf(app.call("POST", "/export-person", { distinctId: "u" }));
    return new URL(downloadUrl).pathname + new URL(downloadUrl).search;
  })) as [string, string];
  const open = (path: string) => send(process.http, "GET", path, undefined, {});
  const head = async (path: string) =>
    (await process.http.fetch(new Request(`http://service.test${path}`, { method: "HEAD" }))).status;
  for (const [place, link] of links.entries()) {
    const { status, body } = await open(link);
    assert.deepEqual([status, body.person.properties], [200, { place }], JSON.stringify(body));
    assert.equal(await head(link), 200);
  }
  await withoutOther(async () => {
    assert.equal((await open(links[0])).status, 200);
    assertRefused(await open(links[1]), 503, "unavailable");
    assert.equal(await head(links[1]), 503);
    assertRefused(await open(`${links[1]}x`), 401, "invalid_or_expired_token");
  });
  assert.equal((await open(links[1])).status, 200);
});

/** Sends a message of Stripe to an app. */
async function message(app: TestApp, event: object): Promise<Answer> {
  const signature = await signatureOf(event, SECRET, process.clock.now());
  const body = JSON.stringify(event);
  const headers = { "stripe-signature": signature };
  return await send(process.http, "POST", `/api/v1/stripe/${app.appId}/live`, body, { headers });
}

Deno.test("a message of Stripe counts once at its app; one for a database that is away is sent again", async () => {
  const apps = [await process.app("eu1", STRIPE_CATALOG), await process.app("eu2", STRIPE_CATALOG)] as const;
  for (const { appId } of apps) {
    await dataOf(process.admin("PUT", `/apps/${appId}/stripe`, { mode: "live", webhookSecret: SECRET }));
  }
  const [near, away] = apps;
  // The same message to both: each app has its own account of Stripe.
  const begun = eventOf("customer.subscription.created", subscriptionOf());
  const plansOf = async (app: TestApp) => {
    const usage = await dataOf(app.call("GET", "/usage?userId=ada"));
    assert.equal(usage.duplicateActiveSubscriptions, null);
    return usage.counters.length;
  };
  await withoutOther(async () => {
    assert.equal((await dataOf(message(near, begun))).handled, true);
    assertRefused(await message(away, begun), 503, "unavailable");
    assertRefused(await message({ ...near, appId: "app_nowhere" }, begun), 503, "unavailable");
  });
  assert.equal((await dataOf(message(away, begun))).handled, true);
  for (const app of apps) {
    await dataOf(message(app, begun));
    assert.equal(await plansOf(app), 1);
  }
  assertRefused(await message({ ...near, appId: "app_nowhere" }, begun), 401, "invalid_key");
});

const TOP_UP_CATALOG = {
  packs: [{
    id: "cpk",
    name: "Images",
    kind: "per_type",
    price: { amount: 500, currency: "eur" },
    items: [{ id: "cpi", label: "Images", unit: "count", amount: 10, matches: [{ event: "image.*" }] }],
  }],
};

Deno.test("top-ups of one database are paid while the other is away, and each is paid once", async () => {
  const apps = [await process.app("eu1", TOP_UP_CATALOG), await process.app("eu2", TOP_UP_CATALOG)] as const;
  const [near, away] = apps;
  const paidBefore = stripe.payments.length;
  const statusOf = async (app: TestApp) =>
    (await dataOf(app.call("GET", "/users/ada/top-ups"))).topUps[0]?.status;
  const begin = async (app: TestApp) => {
    live.set(app.appId, "sk_live_test");
    await dataOf(process.admin("PUT", `/apps/${app.appId}/stripe`, { mode: "live", webhookSecret: SECRET }));
    const setting = { packId: "cpk", below: 3, maxPerMonth: 2000 };
    const who = { stripeCustomerId: "cus_1", stripePaymentMethodId: "pm_1" };
    await dataOf(app.call("PUT", "/users/ada/top-up", { ...setting, ...who }));
  };
  // The money is taken, and the answer of Stripe never comes: the database goes away before it is known.
  stripe.fate = (call) => call.endsWith("/confirm") ? "answer_lost" : "works";
  await begin(away);
  await until(() => Promise.resolve(stripe.payments.length > paidBefore));
  process.takeAway("eu2");
  stripe.fate = () => "works";
  await begin(near);
  await until(async () => await statusOf(near) === "paid");
  assert.equal((await away.call("GET", "/users/ada/top-ups")).status, 503);
  await process.giveBack("eu2");
  const [{ topUpId }] = (await dataOf(away.call("GET", "/users/ada/top-ups"))).topUps;
  await until(async () => {
    // The worker looks by itself too, but seldom.
    const { topUps, registry } = process.of("eu2").requireServing();
    const realm = registry.apps.get(away.appId)?.realms.live.realm as number;
    topUps.note([{ id: topUpId, realm, status: "open" }]);
    return await statusOf(away) === "paid";
  });
  assert.equal(stripe.payments.length, paidBefore + 2);
  for (const app of apps) {
    const { credits } = await dataOf(app.call("GET", "/credits?userId=ada"));
    assert.deepEqual(credits.map(({ remaining }: { remaining: number }) => remaining), [10]);
  }
});

Deno.test("a model's answer under way is passed on and charged at its own database, though that was away meanwhile", async () => {
  const apps = await pair(GATEWAY_CATALOG);
  const goOn = Promise.withResolvers<void>();
  let begun = 0;
  model.reply = ({ body }) => ({
    events: async function* () {
      yield sentEvent(chatChunk("A "));
      begun += 1;
      await goOn.promise;
      yield sentEvent(chatChunk("word"));
      const usage = { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 };
      if (body.stream_options?.include_usage === true) {
        yield sentEvent(chatChunk({}, { choices: [], usage }));
      }
      yield sentEvent("[DONE]");
    }(),
  });
  const chat = { model: "mini", stream: true, messages: [{ role: "user", content: "Hello" }] };
  const ask = ({ secretLive }: TestApp) =>
    process.http.fetch(
      new Request("http://service.test/openai/v1/chat/completions", {
        method: "POST",
        headers: {
          authorization: `Bearer ${secretLive}`,
          "content-type": "application/json",
          "x-holdfast-user": "u",
        },
        body: JSON.stringify(chat),
      }),
    );
  const answers = (await Promise.all(apps.map(ask))).map((answer) => answer.text());
  await until(() => Promise.resolve(begun === 2));
  const charged = async (app: TestApp) => await countOf(app, "lg_tokens") === 1500;
  await withoutOther(async () => {
    assert.equal((await ask(apps[1])).status, 503);
    goOn.resolve();
    await until(() => charged(apps[0]));
  });
  for (const text of await Promise.all(answers)) assert.match(text, /"word"[^]*\[DONE\]/);
  await until(() => charged(apps[1]));
  model.reset();
});

Deno.test("an agent's units of the day count over all databases, and none is granted while one cannot be asked", async () => {
  process.clock.advance(86_400_000);
  const wallet = {
    packs: [{
      id: "cpk",
      name: "Wallet",
      kind: "generic",
      unit: "count",
      matches: [{ event: "*" }],
      items: [],
    }],
  };
  const apps = [await process.app("eu1", wallet), await process.app("eu2", wallet)] as const;
  for (const app of apps) {
    await dataOf(app.call("POST", "/credits/grant", { userId: "ann", packId: "cpk", quantity: 1 }));
  }
  const agent = await Visitor.signedIn(process.http, AGENT_TOKEN);
  const form = ({ appId }: TestApp) => agent.get(`/console/apps/${appId}/live/users/ann/grant`);
  const preview = async (app: TestApp, quantity: number) =>
    await agent.press(await form(app), "Continue", { packId: "cpk", quantity: String(quantity) });
  const grant = (previewed: Visit) => agent.press(previewed, "Grant");
  assert.match((await grant(await preview(apps[0], 70))).text, /Granted Wallet to ann/);
  assert.match((await form(apps[1])).text, /You may grant 30 more units today/);
  const above = await grant(await preview(apps[1], 31));
  assert.equal(above.status, 403);
  assert.match(above.text, /30 of the 100 units that you may grant today are left/);
  const more = await preview(apps[0], 10);
  await withoutOther(async () => {
    assert.equal((await grant(more)).status, 503);
  });
  assert.match((await grant(await preview(apps[1], 20))).text, /Granted Wallet to ann/);
  // Grants at once never pass the cap together.
  const both = [await preview(apps[0], 7), await preview(apps[1], 7)];
  const all = await Promise.all(both.map(grant));
  assert.ok(all.filter(({ text }) => /Granted Wallet/.test(text)).length <= 1);
});

Deno.test("a database with the schema of a newer program is away, and the other is served", async () => {
  await using older = await StoresProcess.start("eu1", "eu2");
  const { databases } = older;
  const apps = [await older.app("eu1", CATALOG), await older.app("eu2", CATALOG)] as const;
  await older.stores.stop();
  const { database } = (databases["eu2"] as SwitchedDatabase).store;
  await database.query("insert into migrations (name, checksum) values ('9999_newer', 'x')");
  await using process = await StoresProcess.startWith({ databases, isReady: false });
  await process.of("eu1").ready();
  const ask = (app: TestApp) =>
    send(process.http, "GET", "/api/v1/usage?userId=u", undefined, { key: app.secretLive });
  assert.equal((await ask(apps[0])).status, 200);
  assertRefused(await ask(apps[1]), 503, "unavailable");
  await database.query("delete from migrations where name = '9999_newer'");
  await process.of("eu2").ready();
  for (const app of apps) assert.equal((await ask(app)).status, 200);
});

Deno.test({
  name:
    "a front passes the calls of each database to the owner there, and those of one while the other is away",
  ignore: testServerUrl() === null,
  fn: async () => {
    const apps = await pair();
    await using front = await StoresProcess.startWith({ databases: process.databases, share: 0 });
    const ask = (app: TestApp) =>
      send(front.http, "POST", "/api/v1/track", { userId: "u", event: "image.x" }, { key: app.secretLive });
    for (const app of apps) assert.equal((await ask(app)).status, 200);
    assert.equal((await front.admin("GET", "/workspaces")).status, 200);
    await withoutOther(async () => {
      assert.equal((await ask(apps[0])).status, 200);
      assertRefused(await ask(apps[1]), 503, "unavailable");
    });
    await until(async () => (await ask(apps[1])).status === 200);
    for (const app of apps) assert.ok(await countOf(app, "lg_images") >= 2);
  },
});
