// Credits over HTTP: the rate card, what answers say of credits, and where events and days keep them.

import assert from "node:assert/strict";
import { addAllUp } from "../../src/operations/sweeps/daily_use.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const RATES = [
  { event: "image.*", metadata: { size: "large" }, perImage: 12 },
  { event: "image.*", perImage: 5 },
  { event: "chat", perMillionInputTokens: 200, perMillionOutputTokens: 800, minimum: 0.1 },
  { event: "resold", perCent: 2 },
];
const CATALOG = {
  rates: RATES,
  plans: [{
    id: "plan_pro",
    name: "Pro",
    rank: 1,
    period: { type: "monthly", anchor: "calendar" },
    limits: [{ id: "lg", label: "Credits", unit: "credits", quota: 100, matches: [{ event: "*" }] }],
  }],
  packs: [{
    id: "cpk",
    name: "Top-up",
    kind: "generic",
    items: [{ id: "cpi", label: "50 credits", unit: "credits", amount: 50, matches: [{ event: "*" }] }],
  }],
};

async function newUser() {
  const app = await service.newApp(CATALOG);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  return { app, counter: async () => (await dataOf(app.call("GET", "/usage?userId=u"))).counters[0] };
}

Deno.test("either key reads the rate card without a token; an app without rates has none", async () => {
  const { app } = await newUser();
  for (const key of [app.secretLive, app.publicLive, app.publicTest]) {
    assert.deepEqual(await dataOf(app.call("GET", "/rates", undefined, { key })), { rates: RATES });
  }
  const plain = await appWithUser(service);
  assert.deepEqual(await dataOf(plain.call("GET", "/rates")), { rates: [] });
  const hold = await dataOf(plain.call("POST", "/reserve", { userId: "u", event: "image.a" }));
  assert.equal(Object.hasOwn(hold, "credits"), false);
});

Deno.test("the estimate, the hold, the settlement and the event say the same credits", async () => {
  const { app, counter } = await newUser();
  const call = { userId: "u", event: "chat", inputTokens: 1000, maxOutputTokens: 1000 };
  const estimate = { total: 1, rated: true };
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", call))).credits, estimate);
  assert.deepEqual((await dataOf(app.call("POST", "/explain", call))).rate, {
    ...estimate,
    event: "chat",
    minimum: 0.1,
    parts: [
      { part: "perMillionInputTokens", amount: 1000, rate: 200, credits: 0.2 },
      { part: "perMillionOutputTokens", amount: 1000, rate: 800, credits: 0.8 },
    ],
  });
  const hold = await dataOf(app.call("POST", "/reserve", call));
  assert.deepEqual(hold.credits, estimate);
  const providerUsage = { prompt_tokens: 1000, completion_tokens: 250 };
  const { reservationId } = hold;
  const settled = await dataOf(app.call("POST", "/commit", { reservationId, providerUsage }));
  assert.deepEqual(settled.credits, { total: 0.4, rated: true });
  assert.equal((await counter()).count, 0.4);
  const event = await dataOf(app.call("GET", `/events/${settled.eventId}`));
  assert.equal(event.costCredits, 0.4);
  assert.deepEqual(event.amounts, [{ groupId: "lg", unit: "credits", amount: 0.4 }]);
  const large = { userId: "u", event: "image.a", metadata: { size: "large" } };
  assert.deepEqual((await dataOf(app.call("POST", "/track", large))).credits, { total: 12, rated: true });
  const other = await dataOf(app.call("POST", "/track", { userId: "u", event: "other" }));
  assert.deepEqual([other.credits, other.warnings], [{ total: 0, rated: false }, ["unrated_event"]]);
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.deepEqual(events.map(({ costCredits }: { costCredits?: number }) => costCredits), [
    undefined,
    12,
    0.4,
  ]);
});

Deno.test("a pack in credits pays behind the plan, and credits may be corrected, though not beside a usage", async () => {
  const { app, counter } = await newUser();
  await dataOf(app.call("POST", "/credits/grant", { userId: "u", packId: "cpk" }));
  const call = { userId: "u", event: "image.a", count: 24 };
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call));
  const remaining = async () => {
    const { credits } = await dataOf(app.call("GET", "/credits?userId=u"));
    return credits.map(({ unit, remaining: left }: { unit: string; remaining: number }) => [unit, left]);
  };
  assert.deepEqual(await remaining(), [["credits", 30]]);
  for (const members of [{ extra: { credits: 1 } }, { actual: { credits: 1 } }]) {
    const body = { reservationId, usage: { calls: 1 }, ...members };
    const error = assertRefused(await app.call("POST", "/commit", body), 400, "invalid_request");
    assert.match(error.message, /^(extra|actual)\.credits: cannot be combined with usage$/);
  }
  const both = { reservationId, extra: { credits: 1 }, actual: { credits: 1 } };
  assertRefused(await app.call("POST", "/commit", both), 400, "invalid_request");
  const settled = await dataOf(app.call("POST", "/commit", { reservationId, extra: { credits: -15.5 } }));
  assert.deepEqual(settled.credits, { total: 104.5, rated: true });
  assert.deepEqual([(await counter()).count, await remaining()], [100, [["credits", 45.5]]]);
});

Deno.test("a hold keeps its rate through a new catalog, in the tables too", async () => {
  const { app, counter } = await newUser();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.a" }));
  const rates = [{ event: "*", perCall: 70 }, ...RATES];
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, { ...CATALOG, rates }));
  await dataOf(app.call("POST", "/commit", { reservationId, usage: { calls: 2 } }));
  assert.equal((await counter()).count, 10);
  const refused = await dataOf(app.call("POST", "/can-use", { userId: "u", event: "chat", count: 2 }));
  assert.deepEqual([refused.credits, refused.reasons], [{ total: 140, rated: true }, ["limit_reached"]]);
});

Deno.test("runs have limits in credits, and days have the credits of their events", async () => {
  const { app } = await newUser();
  const run = await dataOf(
    app.call("POST", "/runs", { userId: "u", limits: [{ unit: "credits", quota: 11 }] }),
  );
  const call = { userId: "u", event: "image.a", runId: run.runId };
  await dataOf(app.call("POST", "/track", { ...call, count: 2 }));
  assertRefused(await app.call("POST", "/track", call), 429, "run_limit_reached");
  service.clock.advance(1);
  await addAllUp(service.serving());
  const day = new Date(service.clock.now()).toISOString().slice(0, 10);
  const query = `mode=live&from=${day}&to=${day}&by=event`;
  const { days } = await dataOf(service.admin("GET", `/apps/${app.appId}/usage/daily?${query}`));
  assert.equal(days[0].costCredits, 10);
  assert.equal(days[0].parts[0].costCredits, 10);
});
