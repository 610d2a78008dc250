// A window that begins when an ended one began shares its counter, also for a user who left memory in between.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { applyCatalog } from "./credits_support.ts";
import { CATALOG, dataOf, driftsOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const DAILY = { type: "daily", anchor: "calendar" };
const MONTHLY = { type: "monthly", anchor: "calendar" };

/** A catalog with one group of 10. Each member may use 9. */
const documentOf = (period: unknown) => ({
  ...CATALOG,
  plans: [{
    id: "plan_a",
    name: "A",
    rank: 1,
    period,
    limits: [{
      id: "lg_x",
      label: "X",
      unit: "count",
      quota: 10,
      matches: [{ event: "x" }],
      perMember: { quota: 9 },
    }],
  }],
});

const track = (app: TestApp, count: number) =>
  dataOf(app.call("POST", "/track", { userId: "u", event: "x", count }));

async function countOf(app: TestApp, userId: string): Promise<number> {
  return (await dataOf(app.call("GET", `/usage?userId=${userId}`))).counters[0].count;
}

/** A year for each test, since the clock does not go back. */
const nextYear = () => new Date(service.clock.now()).getUTCFullYear() + 1;

/** Lets all users leave memory, or keeps them. */
const MEMORY = { "stay in memory": () => Promise.resolve(), "left memory": () => service.restart() };

for (const [memory, pass] of Object.entries(MEMORY)) {
  Deno.test(`a longer period of a group counts from its start for users who ${memory}`, async () => {
    service.clock.set(Date.UTC(nextYear(), 5, 1, 0, 30));
    const app = await service.newApp(documentOf(DAILY));
    await dataOf(app.call("POST", "/subscriptions", { userId: "org", planId: "plan_a" }));
    await dataOf(app.call("PUT", "/users/u/parent", { parentId: "org" }));
    await track(app, 5);
    service.clock.advance(4 * 86_400_000);
    await pass();
    await applyCatalog(service, app, documentOf(MONTHLY));
    assert.equal(await countOf(app, "org"), 5, "a read");
    const refused = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "x", count: 5 }));
    assert.deepEqual(refused.reasons, ["member_limit_reached"], "the share goes on too");
    await track(app, 4);
    assert.equal((await app.call("POST", "/track", { userId: "u", event: "x", count: 2 })).status, 429);
    assert.equal(await countOf(app, "org"), 9);
    await service.restart();
    assert.equal(await countOf(app, "org"), 9);
    assert.deepEqual(await driftsOf(service), []);
  });

  Deno.test(`another start of the cycle keeps the usage of users who ${memory}`, async () => {
    const year = nextYear();
    service.clock.set(Date.UTC(year, 0, 31, 12));
    const app = await service.newApp(documentOf({ type: "monthly", anchor: "subscription_start" }));
    const subscribe = (day: number) =>
      dataOf(app.call("POST", "/subscriptions", {
        userId: "u",
        planId: "plan_a",
        cycleStart: `${year}-01-${day}T00:00:00Z`,
      }));
    // February ends a cycle that begins on the 28th or the 29th as it does one that begins on the 31st.
    const last = new Date(Date.UTC(year, 2, 0)).getUTCDate();
    await subscribe(last);
    service.clock.set(Date.UTC(year, 1, last, 12));
    await track(app, 8);
    service.clock.set(Date.UTC(year, 2, 29, 12));
    await pass();
    await subscribe(31);
    await track(app, 1);
    assert.equal(await countOf(app, "u"), 9);
    assert.deepEqual(await driftsOf(service), []);
  });
}

Deno.test("a longer period leaves the books right before the group counts again", async () => {
  service.clock.set(Date.UTC(nextYear(), 5, 1, 0, 30));
  const app = await service.newApp(documentOf(DAILY));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a" }));
  await track(app, 5);
  await applyCatalog(service, app, documentOf(MONTHLY));
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_a", quantity: 2 }));
  await service.restart();
  assert.deepEqual(await driftsOf(service), []);
});

Deno.test("books are right where a merge brings a slot of a rate to the counter of an hour", async () => {
  service.clock.set(Date.UTC(nextYear(), 5, 1));
  const group = { id: "lg_all", label: "All", unit: "count", quota: 10, matches: [{ event: "x" }] };
  const documentWith = (...periods: object[]) => {
    const limits = [group, ...periods.map((period) => ({ ...group, id: "lg_x", label: "X", period }))];
    const document = documentOf(MONTHLY);
    return { ...document, plans: document.plans.map((plan) => ({ ...plan, limits })) };
  };
  const app = await service.newApp(documentWith({ type: "hourly", anchor: "calendar" }));
  for (const userId of ["u", "v"]) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId: "plan_a" }));
  }
  await track(app, 1);
  await applyCatalog(service, app, documentWith());
  await applyCatalog(service, app, documentWith({ type: "rolling", seconds: 60 }));
  await dataOf(app.call("POST", "/reserve", { userId: "v", event: "x", count: 2, ttlSeconds: 100 }));
  await dataOf(app.call("POST", "/track", { userId: "v", event: "x", count: 1 }));
  await dataOf(app.call("POST", "/customers/alias", { from: "u", to: "v" }));
  assert.deepEqual(await driftsOf(service), [], "while the slot counts");
  service.clock.advance(120_000);
  await dataOf(service.admin("POST", "/sweep"));
  assert.deepEqual(await driftsOf(service), [], "when its hold has lapsed");
});
