// Live usage: a stream shows what GET /v1/usage shows, whatever changes it, for any caller, until a regular end.

import assert from "node:assert/strict";
import { STREAM_LIMITS } from "../../src/process/limits.ts";
import { EventReader } from "../support/event_stream.ts";
import { changedLimits } from "../support/limits.ts";
import { send, startTestService, type TestApp } from "../support/test_service.ts";
import {
  appWithUser,
  assertRefused,
  CATALOG,
  dataOf,
  endUserToken,
  holdImages,
  serviceOfFile,
} from "./support.ts";

const service = serviceOfFile();
const DAY_MS = 86_400_000;

function open(app: TestApp, path = "/usage/stream?userId=u", key = app.secretLive, headers = {}) {
  return EventReader.open(service.http, path, key, headers);
}

function track(app: TestApp, count = 1, event = "image.x", key = app.secretLive) {
  return dataOf(app.call("POST", "/track", { userId: "u", event, count }, { key }));
}

function usageOf(app: TestApp, query = "userId=u", key = app.secretLive) {
  return dataOf(app.call("GET", `/usage?${query}`, undefined, { key }));
}

const countIn = (usage: { counters: { groupId: string; count: number }[] }, groupId = "lg_images") =>
  usage.counters.find((row) => row.groupId === groupId)?.count;

function streamCounts() {
  return service.service.counts.streams;
}

Deno.test("a stream begins with what GET answers, and sends that again after each change", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app);
  assert.deepEqual(await stream.data(), await usageOf(app));
  await track(app, 3);
  assert.deepEqual(await stream.data(), await usageOf(app));
  const hold = await holdImages(app, 5);
  assert.deepEqual(await stream.data(), await usageOf(app));
  await dataOf(app.call("POST", "/release", { reservationId: hold }));
  assert.equal(countIn(await stream.data()), 3);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_team" }));
  assert.deepEqual(await stream.data(), await usageOf(app));
  assert.deepEqual(streamCounts().open, 1);
});

Deno.test("an unknown user is shown empty, and then with every change", async () => {
  const app = await service.newApp(CATALOG);
  await using stream = await open(app, "/usage/stream?userId=new");
  assert.deepEqual((await stream.data()).counters, []);
  await dataOf(app.call("POST", "/subscriptions", { userId: "new", planId: "plan_pro" }));
  assert.deepEqual(await stream.data(), await usageOf(app, "userId=new"));
});

Deno.test("a stream of one event says nothing of what others change", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app, "/usage/stream?userId=u&event=chat.*");
  assert.deepEqual(await stream.data(), await usageOf(app, "userId=u&event=chat.*"));
  await track(app);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "chat.x", inputTokens: 7 }));
  assert.equal(countIn(await stream.data(), "lg_chat"), 7);
});

Deno.test("states that follow fast on each other are gathered, and the last one is always sent", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app);
  await stream.data();
  const before = streamCounts().states;
  const startedAt = performance.now();
  for (let turn = 0; turn < 60; turn++) await track(app);
  await stream.until((usage) => countIn(usage) === 60);
  const states = streamCounts().states - before;
  const room = Math.ceil((performance.now() - startedAt) / STREAM_LIMITS.stateEveryMs) + 1;
  assert.ok(states <= room, `${states} states where ${room} may be`);
});

Deno.test("a slow reader gets the newest state and no queue", async () => {
  const app = await appWithUser(service);
  const before = streamCounts().states;
  await using slow = await open(app);
  await using quick = await open(app);
  await quick.data();
  for (const count of [1, 2, 3]) {
    await track(app);
    await quick.until((usage) => countIn(usage) === count);
  }
  // The first state of both, and three of the quick one.
  assert.equal(streamCounts().states - before, 5);
  assert.deepEqual([countIn(await slow.data()), countIn(await slow.data())], [0, 3]);
});

Deno.test("an alias shows its canonical user and goes on while others are merged into that one", async () => {
  const app = await appWithUser(service);
  const merge = (from: string, to: string) => dataOf(app.call("POST", "/customers/alias", { from, to }));
  await merge("older", "u");
  await using stream = await open(app, "/usage/stream?userId=older");
  assert.equal((await stream.data()).userId, "u");
  await dataOf(app.call("POST", "/subscriptions", { userId: "other", planId: "plan_pro" }));
  await dataOf(app.call("POST", "/track", { userId: "other", event: "image.x", count: 4 }));
  await merge("other", "u");
  assert.equal(countIn(await stream.until((usage) => countIn(usage) === 4)), 4);
});

Deno.test("a stream opened for the user that a merge takes away ends, of whatever id it was opened by", async () => {
  const app = await appWithUser(service);
  const merge = (from: string, to: string) => dataOf(app.call("POST", "/customers/alias", { from, to }));
  await merge("older", "u");
  await using direct = await open(app);
  await using byAlias = await open(app, "/usage/stream?userId=older");
  await using unknown = await open(app, "/usage/stream?userId=unknown");
  for (const stream of [direct, byAlias, unknown]) await stream.data();
  await merge("u", "v");
  await merge("unknown", "v");
  for (const stream of [direct, byAlias, unknown]) await stream.ends("merged");
  await using again = await open(app);
  assert.equal((await again.data()).userId, "v");
});

Deno.test("an erasure ends the streams of the user, and who comes back is new", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app);
  await stream.data();
  await dataOf(app.call("POST", "/delete-person", { distinctId: "u" }));
  await dataOf(service.admin("POST", "/sweep"));
  await stream.ends("erased");
  await using again = await open(app);
  assert.deepEqual((await again.data()).counters, []);
});

Deno.test("a token opens the stream of its own user alone, without duplicates, and ends it", async () => {
  const app = await appWithUser(service);
  const exp = Math.floor(service.clock.now() / 1000) + 60;
  const headers = { "x-end-user-token": endUserToken(app.identitySecret, { userId: "u", exp }) };
  const other = { key: app.publicLive, headers };
  assertRefused(await app.call("GET", "/usage/stream?userId=v", undefined, other), 403, "forbidden");
  await using stream = await open(app, "/usage/stream", app.publicLive, headers);
  assert.ok(!("duplicateActiveSubscriptions" in await stream.data()));
  await track(app);
  const shown = await stream.data();
  assert.deepEqual(shown, await dataOf(app.call("GET", "/usage", undefined, other)));
  service.clock.set(exp * 1000);
  await stream.ends("token_expired");
});

Deno.test("a token ends with the identity secret that signed it", async () => {
  const app = await appWithUser(service);
  const exp = Math.floor(service.clock.now() / 1000) + 3600;
  const headers = { "x-end-user-token": endUserToken(app.identitySecret, { userId: "u", exp }) };
  await using stream = await open(app, "/usage/stream", app.publicLive, headers);
  await stream.data();
  await dataOf(service.admin("POST", `/apps/${app.appId}/identity-secret`, { keepOldSeconds: 60 }));
  await track(app);
  assert.equal(countIn(await stream.data()), 1);
  service.clock.advance(60_000);
  await stream.ends("token_expired");
});

Deno.test("a revoked key ends its streams and no others", async () => {
  const app = await appWithUser(service);
  const made = await dataOf(
    service.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live" }),
  );
  await using revoked = await open(app, "/usage/stream?userId=u", made.key);
  await using other = await open(app);
  await revoked.data();
  await other.data();
  await dataOf(service.admin("DELETE", `/apps/${app.appId}/keys/${made.keyId}`));
  await revoked.ends("key_revoked");
  await track(app);
  assert.equal(countIn(await other.data()), 1);
});

Deno.test("a changed catalog is shown", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app);
  await stream.data();
  const changed = structuredClone(CATALOG);
  Object.assign(changed.plans[0]?.limits[0] as object, { label: "Pictures", quota: 7 });
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, changed));
  const usage = await stream.data();
  assert.deepEqual([usage.counters[0].label, usage.counters[0].quota], ["Pictures", 7]);
});

Deno.test("what time alone changes is shown: a lapsed hold, an expired balance, an ended plan, a new window", async () => {
  const catalog = {
    ...CATALOG,
    packs: [{
      id: "cpk",
      name: "Pack",
      kind: "per_type",
      items: [{ id: "cpi", label: "One", unit: "count", amount: 5, matches: [{ event: "image.*" }] }],
    }],
  };
  const app = await service.newApp(catalog);
  const now = service.clock.now();
  const inDays = (days: number) => new Date(now + days * DAY_MS).toISOString();
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  await dataOf(
    app.call("POST", "/subscriptions", {
      userId: "u",
      planId: "plan_team",
      provider: "p",
      externalId: "x",
      endsAt: inDays(3),
    }),
  );
  await dataOf(app.call("POST", "/credits/grant", { userId: "u", packId: "cpk", expiresAt: inDays(2) }));
  await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", count: 2, ttlSeconds: 60 }));
  await using stream = await open(app);
  const first = await stream.data();
  assert.deepEqual([countIn(first), first.credits.length], [2, 1]);
  service.clock.set(now + 60_000);
  assert.equal(countIn(await stream.data()), 0);
  service.clock.set(now + DAY_MS);
  assert.equal(Date.parse((await stream.data()).period.start), now + DAY_MS);
  service.clock.set(now + 2 * DAY_MS);
  assert.deepEqual((await stream.until(({ credits }) => credits.length === 0)).credits, []);
  service.clock.set(now + 3 * DAY_MS);
  const last = await stream.until(({ counters }) => counters[0].quota === 100);
  assert.deepEqual(last, await usageOf(app));
});

Deno.test("a test clock that is moved shows the new window", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  await using stream = await open(app, "/usage/stream?userId=u", app.secretTest);
  await stream.data();
  await track(app, 2, "image.x", app.secretTest);
  assert.equal(countIn(await stream.data()), 2);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 40 * 86_400 }, { key: app.secretTest }));
  assert.deepEqual(await stream.data(), await usageOf(app, "userId=u", app.secretTest));
});

Deno.test("a stream outlives the term that it began in", async () => {
  const app = await appWithUser(service);
  await using stream = await open(app);
  await stream.data();
  await service.restart();
  await track(app);
  assert.equal(countIn(await stream.data()), 1);
});

Deno.test("a process takes so many streams, counts those that left, and opens none for HEAD", async () => {
  const app = await appWithUser(service);
  const { open: opened, left } = streamCounts();
  assert.equal((await app.call("HEAD", "/usage/stream?userId=u")).status, 200);
  assert.equal(streamCounts().open, opened);
  const limits = STREAM_LIMITS as { openMax: number };
  const { openMax } = limits;
  limits.openMax = opened + 1;
  try {
    {
      await using stream = await open(app);
      await stream.data();
      const refused = await app.call("GET", "/usage/stream?userId=u");
      assertRefused(refused, 503, "unavailable");
      assert.equal(refused.headers.get("retry-after"), "1");
    }
    assert.deepEqual([streamCounts().open, streamCounts().left], [opened, left + 1]);
  } finally {
    limits.openMax = openMax;
  }
});

Deno.test("a comment says that an idle stream lives", async () => {
  const app = await appWithUser(service);
  const limits = STREAM_LIMITS as { commentEveryMs: number };
  const { commentEveryMs } = limits;
  await using stream = await open(app);
  await stream.data();
  limits.commentEveryMs = 0;
  try {
    assert.deepEqual(await stream.next(), { name: null, data: null });
  } finally {
    limits.commentEveryMs = commentEveryMs;
  }
});

Deno.test("a reader that takes nothing for long is let go", async () => {
  const app = await appWithUser(service);
  const limits = STREAM_LIMITS as { readerGoneMs: number };
  const { readerGoneMs } = limits;
  await using stream = await open(app);
  const { left } = streamCounts();
  limits.readerGoneMs = 0;
  try {
    while (streamCounts().left === left) await new Promise((resolve) => setTimeout(resolve, 10));
    await assert.rejects(async () => {
      await stream.next();
      await stream.next();
    });
  } finally {
    limits.readerGoneMs = readerGoneMs;
  }
});

Deno.test("no proxy compresses or gathers a stream, and a page may read it", async () => {
  const app = await service.newApp({
    ...CATALOG,
    settings: { ...CATALOG.settings, corsOrigins: ["https://shop.test"] },
  });
  const exp = Math.floor(service.clock.now() / 1000) + 60;
  const answer = await send(service.http, "GET", "/api/v1/usage/stream", undefined, {
    key: app.publicLive,
    headers: {
      origin: "https://shop.test",
      "x-end-user-token": endUserToken(app.identitySecret, { userId: "u", exp }),
    },
  });
  assert.equal(answer.headers.get("cache-control"), "no-store, no-transform");
  assert.equal(answer.headers.get("access-control-allow-origin"), "https://shop.test");
  assert.ok(answer.headers.get("x-request-id"));
});

Deno.test("a stop ends streams with their reason, and refuses new ones", async () => {
  const stopping = await startTestService();
  try {
    const app = await appWithUser(stopping);
    await using stream = await EventReader.open(stopping.http, "/usage/stream?userId=u", app.secretLive);
    await stream.data();
    stopping.service.refuseCalls();
    await stream.ends("stopping");
    assertRefused(await app.call("GET", "/usage/stream?userId=u"), 503, "unavailable");
  } finally {
    await stopping.close();
  }
});

Deno.test("a page cannot take the streams of others: its token has a share, and so has its app", async () => {
  using _limits = changedLimits(STREAM_LIMITS, { ofTokenMax: 2, ofAppMax: 4 });
  const app = await appWithUser(service);
  const headers = {
    "x-end-user-token": endUserToken(app.identitySecret, { userId: "u", exp: Date.now() / 1000 + 60 }),
  };
  const byToken = () => open(app, "/usage/stream", app.publicLive, headers);
  await using backend = await open(app);
  await using first = await byToken();
  await using second = await byToken();
  await using third = await byToken();
  for (const stream of [backend, first, second, third]) await stream.data();
  await first.ends("replaced");
  await using fourth = await open(app, "/usage/stream?userId=other");
  await fourth.data();
  assertRefused(await app.call("GET", "/usage/stream?userId=third"), 503, "unavailable");
  const neighbour = await appWithUser(service);
  await using free = await open(neighbour);
  await free.data();
  await track(app);
  for (const stream of [backend, second, third]) assert.equal(countIn(await stream.data()), 1);
});
