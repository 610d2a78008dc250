// The test clock: it moves the whole test mode of one app, forward only, and what became due is settled before it
// answers.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import {
  appWithUser,
  assertRefused,
  countOf,
  dataOf,
  holdImages,
  pictureOf,
  serviceOfFile,
} from "./support.ts";

const service = serviceOfFile();

function inTest(app: TestApp, method: string, path: string, body?: unknown) {
  return dataOf(app.call(method, path, body, { key: app.secretTest }));
}

async function nowOf(app: TestApp): Promise<number> {
  return Date.parse((await inTest(app, "GET", "/test-clock")).now);
}

Deno.test("the clock starts at the real time, goes on with it, and moves by seconds or to a moment", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const start = service.clock.now();
  assert.equal(await nowOf(app), start);
  assert.deepEqual(await inTest(app, "POST", "/test-clock", { advanceSeconds: 90 }), {
    now: new Date(start + 90_000).toISOString(),
  });
  service.clock.advance(1000);
  assert.equal(await nowOf(app), start + 91_000);
  const to = "2026-03-01T00:00:00.000Z";
  assert.deepEqual(await inTest(app, "POST", "/test-clock", { now: to }), { now: to });
  assert.deepEqual(
    await inTest(app, "POST", "/test-clock", { now: to }),
    { now: to },
    "not before the present",
  );
  assert.deepEqual(await inTest(app, "POST", "/test-clock", { now: "2026-03-01T02:00:00+01:00" }), {
    now: "2026-03-01T01:00:00.000Z",
  });
  assert.equal(
    (await inTest(app, "POST", "/test-clock", { advanceSeconds: 0.25, now: null })).now.slice(-4),
    "250Z",
  );
  await service.restart();
  assert.equal(await nowOf(app), Date.parse("2026-03-01T01:00:00.250Z"));
});

Deno.test("only secret test keys may see or move the clock", async () => {
  const app = await appWithUser(service);
  const body = { advanceSeconds: 1 };
  for (const method of ["GET", "POST"]) {
    const call = (key: string) =>
      app.call(method, "/test-clock", method === "GET" ? undefined : body, { key });
    assertRefused(await call(app.secretLive), 403, "forbidden");
    assertRefused(await call(app.publicLive), 403, "requires_secret_key");
    assertRefused(await call(app.publicTest), 403, "requires_secret_key");
  }
  assert.equal(await nowOf(app), service.clock.now());
});

Deno.test("the clock takes exactly one member, never goes back, and refuses what is no time", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  await inTest(app, "POST", "/test-clock", { advanceSeconds: 3600 });
  const now = await nowOf(app);
  const bodies = [
    {},
    { advanceSeconds: null, now: null },
    { advanceSeconds: 1, now: new Date(now + 1000).toISOString() },
    { advanceSeconds: 0 },
    { advanceSeconds: -1 },
    { advanceSeconds: "60" },
    { advanceSeconds: true },
    { advanceSeconds: [60] },
    { advanceSeconds: 1e300 },
    { advanceSeconds: 1e12 },
    { now: new Date(now - 1).toISOString() },
    { now: "2020-01-01" },
    { now: "tomorrow" },
    { now: now + 1000 },
    { now: "9999-12-31T23:59:59.999Z" },
    { now: "+010000-01-01T00:00:00Z" },
    '{"advanceSeconds":1e400}',
  ];
  for (const body of bodies) {
    const answer = await app.call("POST", "/test-clock", body, { key: app.secretTest });
    assertRefused(answer, 400, "invalid_request", JSON.stringify(body));
  }
  assert.equal(await nowOf(app), now);
});

Deno.test("parallel moves never take the clock back, and each answers a time it has reached", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const start = await nowOf(app);
  const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();
  const moves = [50, 10, 40].map((seconds) =>
    app.call("POST", "/test-clock", { now: at(seconds) }, { key: app.secretTest })
  );
  for (const { status } of await Promise.all(moves)) assert.ok(status === 200 || status === 400);
  assert.equal(await nowOf(app), start + 50_000);
  await service.restart();
  assert.equal(await nowOf(app), start + 50_000);
});

Deno.test("parallel advances add up", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const start = await nowOf(app);
  await Promise.all(
    [10, 20, 30].map((advanceSeconds) => inTest(app, "POST", "/test-clock", { advanceSeconds })),
  );
  assert.equal(await nowOf(app), start + 60_000);
});

Deno.test("a move settles lapsed holds before it answers", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const short = await inTest(app, "POST", "/reserve", {
    userId: "u",
    event: "image.x",
    count: 5,
    ttlSeconds: 60,
  });
  const long = await holdImages(app, 2, app.secretTest);
  await inTest(app, "POST", "/test-clock", { advanceSeconds: 59.999 });
  assert.equal(await countOf(app, "lg_images", app.secretTest), 7);
  await inTest(app, "POST", "/test-clock", { advanceSeconds: 0.001 });
  // The tables show it before any call for this user came.
  await service.serving().term.flush();
  const rows = await service.store.database.query<{ id: string; status: string }>(
    "select id, status from reservations where id in ($1, $2) order by created_at_ms, id",
    [short.reservationId, long],
  );
  assert.deepEqual(
    Object.fromEntries(rows.map(({ id, status }) => [id, status])),
    { [short.reservationId]: "expired", [long]: "held" },
  );
  assert.equal(await countOf(app, "lg_images", app.secretTest), 2);
  const answer = await app.call("POST", "/release", { reservationId: short.reservationId }, {
    key: app.secretTest,
  });
  assertRefused(answer, 409, "reservation_not_pending");
  const late = await inTest(app, "POST", "/commit", { reservationId: short.reservationId });
  assert.equal(late.recharged, true);
  assert.equal(await countOf(app, "lg_images", app.secretTest), 7);
});

Deno.test("a move ends subscriptions and promotes the paid duplicate, each at its own time", async () => {
  const app = await service.newApp((await import("./support.ts")).CATALOG);
  const start = await nowOf(app);
  const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();
  const row = (members: object) => inTest(app, "POST", "/subscriptions", { userId: "u", ...members });
  const low = await row({ planId: "plan_pro", provider: "p", externalId: "low" });
  const high = await row({ planId: "plan_team", provider: "p", externalId: "high", endsAt: at(100) });
  const before = await inTest(app, "GET", "/users/u");
  assert.equal(before.subscription.subscriptionId, high.subscriptionId);
  assert.equal(before.duplicateActiveSubscriptions.duplicates[0].subscriptionId, low.subscriptionId);
  await inTest(app, "POST", "/test-clock", { advanceSeconds: 1000 });
  const user = await inTest(app, "GET", "/users/u");
  assert.equal(user.subscription.subscriptionId, low.subscriptionId);
  assert.equal(user.duplicateActiveSubscriptions, null);
  const shown = user.history.map((
    { type, subscriptionId, at }: { type: string; subscriptionId: string; at: string },
  ) => [type, subscriptionId, at]);
  assert.deepEqual(shown.slice(0, 2), [
    ["promoted", low.subscriptionId, at(100)],
    ["ended", high.subscriptionId, at(100)],
  ]);
  const { body } = await service.admin("GET", "/workspaces");
  const workspace = body.data.find((each: { workspaceId: string }) => each.workspaceId === app.workspaceId);
  assert.deepEqual([workspace.operationsUsed, workspace.testOperationsUsed], [0, 1]);
});

Deno.test("windows roll with the clock and timestamps follow it", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  await inTest(app, "POST", "/track", { userId: "u", event: "image.x" });
  await inTest(app, "POST", "/test-clock", { now: "2027-02-01T00:00:00Z" });
  const usage = await inTest(app, "GET", "/usage?userId=u");
  assert.deepEqual(usage.period, { start: "2027-02-01T00:00:00.000Z", end: "2027-03-01T00:00:00.000Z" });
  assert.equal(usage.counters[0].count, 0);
  await inTest(app, "POST", "/track", { userId: "u", event: "image.x" });
  const { events } = await inTest(app, "GET", "/events");
  assert.equal(events[0].createdAt, "2027-02-01T00:00:00.000Z");
  const hold = await inTest(app, "POST", "/reserve", { userId: "u", event: "image.x" });
  assert.equal(hold.expiresAt, "2027-02-01T00:10:00.000Z");
});

Deno.test("the live mode, and another app, are not touched", async () => {
  const app = await appWithUser(service);
  const other = await appWithUser(service, {}, "secretTest");
  await holdImages(app, 3);
  await holdImages(other, 4, other.secretTest);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro", endsAt: "2026-12-01" }));
  const before = await pictureOf(app);
  const beforeOther = await pictureOf(other, "u", other.secretTest);
  await inTest(app, "POST", "/test-clock", { now: "2030-01-01T00:00:00Z" });
  await service.admin("POST", "/sweep");
  assert.deepEqual(await pictureOf(app), before);
  assert.deepEqual(await pictureOf(other, "u", other.secretTest), beforeOther);
  assert.equal(await nowOf(other), service.clock.now());
});
