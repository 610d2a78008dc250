// The rate limit of an app's keys: off unless the catalog sets it, a bucket for each key, real time, and its place in
// the order of refusals.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** An app with a user, of whose keys each may call so often. */
async function appWithLimit(perSecond: number, burst: number): Promise<TestApp> {
  const app = await appWithUser(service);
  await limit(app, { perSecond, burst });
  return app;
}

function limit(app: TestApp, rateLimit?: { perSecond: number; burst: number }) {
  const settings = { ...CATALOG.settings, ...rateLimit === undefined ? {} : { rateLimit } };
  return dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, { ...CATALOG, settings }));
}

/** How many of some calls at one moment pass. */
async function passing(app: TestApp, key: string, calls: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: calls }, () => app.call("GET", "/plans", undefined, { key })),
  );
  return answers.filter(({ status }) => status === 200).length;
}

Deno.test("without a rate limit every call passes", async () => {
  const app = await appWithUser(service);
  assert.equal(await passing(app, app.secretLive, 300), 300);
});

Deno.test("a key gets its burst at once, then so many a second, and is told how long to wait", async () => {
  const app = await appWithLimit(0.25, 3);
  assert.equal(await passing(app, app.secretLive, 10), 3);
  const answer = await app.call("GET", "/plans");
  assertRefused(answer, 429, "rate_limited");
  assert.equal(answer.headers.get("retry-after"), "4");
  service.clock.advance(3_000);
  assert.equal((await app.call("GET", "/plans")).headers.get("retry-after"), "1");
  service.clock.advance(1_000);
  assert.equal(await passing(app, app.secretLive, 10), 1);
  service.clock.advance(3_600_000);
  assert.equal(await passing(app, app.secretLive, 10), 3, "it never holds more than the burst");
});

Deno.test("each key has a bucket of its own, and other apps have none", async () => {
  const app = await appWithLimit(1, 2);
  const other = await appWithUser(service);
  for (const key of [app.secretLive, app.secretTest, app.publicLive, app.publicTest]) {
    assert.equal(await passing(app, key, 5), 2);
  }
  assert.equal(await passing(other, other.secretLive, 5), 5);
});

Deno.test("a refused call comes after the key's rights and before its body, and does nothing", async () => {
  const app = await appWithLimit(1, 1);
  const refused = await app.call("POST", "/track", {}, { key: app.publicLive });
  assertRefused(refused, 403, "requires_secret_key");
  assert.equal(await passing(app, app.publicLive, 2), 1, "what the key may not call is not counted");
  assertRefused(await app.call("POST", "/track", "{"), 400, "invalid_request");
  assertRefused(await app.call("POST", "/track", "x".repeat(2 ** 20 + 1)), 429, "rate_limited");
  const body = { userId: "u", event: "image.x" };
  const options = { headers: { "idempotency-key": "again" } };
  assertRefused(await app.call("POST", "/track", body, options), 429, "rate_limited");
  service.clock.advance(1_000);
  await dataOf(app.call("POST", "/track", body, options));
  service.clock.advance(1_000);
  const replayed = await app.call("POST", "/track", body, options);
  assert.equal(replayed.headers.get("idempotent-replayed"), "true");
  assertRefused(await app.call("POST", "/track", body, options), 429, "rate_limited");
  service.clock.advance(1_000);
  const { events } = await dataOf(app.call("GET", "/events"));
  assert.equal(events.length, 1);
});

Deno.test("a changed limit holds from the next call on, and taking it away lifts it", async () => {
  const app = await appWithLimit(1, 1);
  assert.equal(await passing(app, app.secretLive, 3), 1);
  await limit(app, { perSecond: 100, burst: 50 });
  service.clock.advance(100);
  assert.equal(await passing(app, app.secretLive, 30), 10);
  await limit(app);
  assert.equal(await passing(app, app.secretLive, 30), 30);
});

Deno.test("real time fills the buckets, whatever the test clock says", async () => {
  const app = await appWithLimit(1, 1);
  const options = { key: app.secretTest };
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 3_600 }, options));
  assertRefused(await app.call("GET", "/plans", undefined, options), 429, "rate_limited");
});

Deno.test("the admin API and the service pages have no rate limit", async () => {
  const app = await appWithLimit(1, 1);
  for (let calls = 0; calls < 5; calls++) await dataOf(service.admin("GET", `/apps/${app.appId}`));
});
