// Use by day over the admin API: what counts, by kind of event and by user, for merged, hidden and erased users.

import assert from "node:assert/strict";
import { addUpDailyUse } from "../../src/storage/stores/daily_use_store.ts";
import { addAllUp } from "../../src/operations/sweeps/daily_use.ts";
import type { TestApp } from "../support/test_service.ts";
import { deletePerson, sweep } from "./privacy_support.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { Customer } from "./credits_support.ts";

const service = serviceOfFile();
const DAY_MS = 86_400_000;

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The days of a range that ends today, once everything that was sent is in the past. */
async function daily(app: TestApp, query = "by=event", days = 3, mode = "live") {
  service.clock.advance(1);
  const now = service.clock.now();
  const range = `from=${dayOf(now - (days - 1) * DAY_MS)}&to=${dayOf(now)}`;
  const data = await dataOf(
    service.admin("GET", `/apps/${app.appId}/usage/daily?mode=${mode}&${range}&${query}`),
  );
  assert.equal(data.days.length, days);
  return data;
}

const track = (app: TestApp, userId: string, event: string, body: object = {}) =>
  app.call("POST", "/track", { userId, event, ...body });

Deno.test("each day has its own sums, and what was blocked or released is no use", async () => {
  const app = await appWithUser(service);
  await dataOf(track(app, "u", "image.a", { count: 2 }));
  await dataOf(track(app, "u", "one"));
  service.clock.advance(DAY_MS);
  await dataOf(track(app, "u", "image.a", { quantity: 3 }));
  await dataOf(track(app, "other", "image.a"));
  assertRefused(await track(app, "u", "one"), 429, "limit_reached");
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.b" }));
  await dataOf(app.call("POST", "/release", { reservationId }));
  const { days, countedUntil } = await daily(app);
  const part = (event: string, events: number, quantity: number, blocked = 0) => ({
    event,
    userId: null,
    model: null,
    planId: null,
    hour: null,
    events,
    blocked,
    costCents: 0,
    quantity,
  });
  const now = service.clock.now();
  assert.equal(countedUntil, new Date(now).toISOString());
  assert.deepEqual(days, [
    { day: dayOf(now - 2 * DAY_MS), events: 0, blocked: 0, costCents: 0, users: 0, parts: [] },
    {
      day: dayOf(now - DAY_MS),
      events: 2,
      blocked: 0,
      costCents: 0,
      users: 1,
      parts: [part("image.a", 1, 2), part("one", 1, 1)],
    },
    {
      day: dayOf(now),
      events: 2,
      blocked: 1,
      costCents: 0,
      users: 2,
      parts: [part("image.a", 2, 4), part("one", 0, 0, 1)],
    },
  ]);
});

Deno.test("by user, those of an alias are the canonical user's, moved or not, and one user can be asked for alone", async () => {
  const app = await appWithUser(service);
  for (const [userId, times] of [["u", 1], ["old", 2], ["third", 1]] as const) {
    for (let time = 0; time < times; time++) await dataOf(track(app, userId, `image.${userId}`));
  }
  await daily(app);
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  await dataOf(service.admin("POST", "/move-history"));
  const [today] = (await daily(app, "by=user", 1)).days;
  assert.deepEqual(
    today.parts.map((part: { userId: string; events: number }) => [part.userId, part.events]),
    [["u", 3], ["third", 1]],
  );
  const [own] = (await daily(app, "by=event&userId=old", 1)).days;
  assert.deepEqual(
    own.parts.map((part: Record<string, unknown>) => [part.event, part.userId, part.events]),
    [["image.old", "old", 2], ["image.u", "old", 1]],
  );
  assert.equal(own.events, 3);
  const [nobody] = (await daily(app, "by=user&userId=nobody", 1)).days;
  assert.deepEqual([nobody.events, nobody.parts], [0, []]);
});

/** The parts of the last day, each as its name and the numbers of a test. */
function partsOf(days: readonly { parts: readonly Record<string, unknown>[] }[], name: string) {
  return (days.at(-1)?.parts ?? []).map((part) => [
    part.isUnknown === true ? "unknown" : part[name],
    part.events,
    part.blocked,
    part.costCents,
    part.unpriced,
  ]);
}

Deno.test("by model and by plan, the parts are the whole, and events without a price are counted apart", async () => {
  const app = await appWithUser(service);
  await dataOf(track(app, "u", "image.a", { metadata: { model: "sdxl" } }));
  await dataOf(track(app, "u", "image.a", { metadata: { model: "sdxl" }, costCents: 3 }));
  await dataOf(track(app, "u", "image.a", { metadata: { model: "two\nlines" } }));
  await dataOf(track(app, "u", "video.veo", { quantity: 2 }));
  await dataOf(track(app, "u", "one"));
  assertRefused(await track(app, "u", "one"), 429, "limit_reached");
  await dataOf(track(app, "nobody", "image.a"));
  await dataOf(app.call("PUT", "/users/member/parent", { parentId: "u" }));
  const { reservationId } = await dataOf(
    app.call("POST", "/reserve", { userId: "member", event: "video.veo", quantity: 1 }),
  );
  await dataOf(app.call("POST", "/commit", { reservationId }));
  const byModel = (await daily(app, "by=model", 1)).days;
  assert.deepEqual(partsOf(byModel, "model"), [
    [null, 3, 1, 0, 0],
    ["sdxl", 2, 0, 3, 1],
    ["veo", 2, 0, 120, 0],
  ]);
  assert.deepEqual(partsOf((await daily(app, "by=plan", 1)).days, "planId"), [
    ["plan_pro", 6, 1, 123, 1],
    [null, 1, 0, 0, 0],
  ]);
  const byCost = partsOf((await daily(app, "by=model&order=cost", 1)).days, "model");
  assert.deepEqual(byCost.map(([name]) => name), ["veo", "sdxl"]);
  const costly = (await daily(app, "by=user&order=cost", 1)).days;
  assert.deepEqual(partsOf(costly, "userId").map((part) => part.slice(0, 4)), [
    ["u", 5, 1, 83],
    ["member", 1, 0, 40],
  ]);
  for (const by of ["event", "user", "model", "plan", "hour"] as const) {
    const [day] = (await daily(app, `by=${by}&status=blocked`, 1)).days;
    assert.deepEqual([day.events, day.blocked], [7, 1]);
    assert.deepEqual(day.parts.map(({ blocked }: { blocked: number }) => blocked), [1], by);
  }
  const { hour } = (await daily(app, "by=hour", 1)).days[0].parts[0];
  assert.equal(hour, new Date(service.clock.now()).getUTCHours());
  const [own] = (await daily(app, "by=model&userId=member", 1)).days;
  assert.deepEqual(partsOf([own], "model"), [["veo", 1, 0, 40, 0]]);
});

Deno.test("events whose model and plan were not stored are a part of their own", async () => {
  const app = await appWithUser(service);
  await dataOf(track(app, "u", "video.veo", { quantity: 1 }));
  await service.serving().term.flush();
  await service.store.database.query(
    "update events set plan_id = null, model = null where type = 'video.veo'",
  );
  await daily(app);
  await dataOf(track(app, "u", "image.a"));
  for (const query of ["by=plan", "by=plan&userId=u"]) {
    const { days } = await daily(app, query, 1);
    assert.deepEqual(partsOf(days, "planId"), [["plan_pro", 1, 0, 0, 0], ["unknown", 1, 0, 40, 0]], query);
  }
});

Deno.test("who opted out is not named and still counts, and who was erased does not count any more", async () => {
  const app = await appWithUser(service);
  const customer = new Customer(app, "gone", app.secretLive);
  for (const userId of ["u", "hidden", "gone"]) await dataOf(track(app, userId, "image.a"));
  assert.equal((await daily(app, "by=user", 1)).days[0].parts.length, 3);
  await dataOf(app.call("POST", "/opt-out", { distinctId: "hidden", scope: "all" }));
  await deletePerson(customer, "gone");
  await sweep(service);
  const [today] = (await daily(app, "by=user", 1)).days;
  assert.deepEqual(today.parts.map(({ userId }: { userId: string }) => userId), ["u"]);
  assert.equal(today.events, 2);
  const kept = await service.store.database.query(
    `select 1 from (select user_key from daily_use_of_users union select user_key from daily_use_parts_of_users) d
     where not exists (select 1 from users u where u.key = d.user_key)`,
  );
  assert.deepEqual([...kept], []);
  const byPlan = partsOf((await daily(app, "by=plan", 1)).days, "planId");
  assert.deepEqual(byPlan.map(([plan, events]) => [plan, events]), [[null, 1], ["plan_pro", 1]]);
  assert.equal((await daily(app, "by=plan", 1)).days[0].users, 2);
});

Deno.test("steps of any size give the same sums, each event once, also after a restart", async () => {
  const app = await appWithUser(service);
  for (let count = 0; count < 7; count++) await dataOf(track(app, `u${count % 2}`, "image.a"));
  service.clock.advance(1);
  await service.serving().term.flush();
  const { database, registry } = service.serving();
  const realm = registry.apps.get(app.appId)?.realms.live.realm as number;
  const step = (limit: number) =>
    database.transaction((session) => addUpDailyUse(session, realm, service.clock.now(), limit));
  assert.deepEqual([await step(2), await step(4)], [2, 4]);
  const partly = await service.store.database.query<{ events: number }>(
    "select events from daily_use where realm = $1::int and type = ''",
    [realm],
  );
  assert.equal(partly[0]?.events, 6);
  await service.restart();
  await addAllUp(service.serving());
  assert.equal(await addAllUp(service.serving()), 0);
  assert.equal((await daily(app, "by=event", 1)).days[0].events, 7);
});

Deno.test("test mode has its own days, on its clock", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const key = { key: app.secretTest };
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 5 * 86_400 }, key));
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.a" }, key));
  service.clock.advance(1);
  const day = dayOf(service.clock.now() + 5 * DAY_MS);
  const path = (mode: string) => `/apps/${app.appId}/usage/daily?mode=${mode}&by=event&from=${day}&to=${day}`;
  assert.equal((await dataOf(service.admin("GET", path("test")))).days[0].events, 1);
  assert.equal((await dataOf(service.admin("GET", path("live")))).days[0].events, 0);
});

Deno.test("ranges that make no sense, unknown apps and unknown kinds are refused", async () => {
  const { appId } = await appWithUser(service);
  const ask = (query: string, id = appId) => service.admin("GET", `/apps/${id}/usage/daily?${query}`);
  const range = "from=2026-01-01&to=2026-01-02";
  for (
    const query of [
      range,
      `mode=live&${range}`,
      `mode=live&by=day&${range}`,
      `mode=all&by=event&${range}`,
      "mode=live&by=event&from=2026-01-02&to=2026-01-01",
      "mode=live&by=event&from=2026-01-01&to=2026-04-03",
      "mode=live&by=event&from=yesterday&to=2026-04-03",
      `mode=live&by=event&userId=&${range}`,
    ]
  ) {
    assertRefused(await ask(query), 400, "invalid_request", query);
  }
  assertRefused(await ask(`mode=live&by=event&${range}`, "app_x"), 404, "not_found");
  await dataOf(ask("mode=live&by=event&from=2026-01-01&to=2026-04-02"));
});
