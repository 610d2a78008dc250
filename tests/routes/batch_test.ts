// Batches of events: each event is a call of its own, in the order of its user, independent of the others.

import assert from "node:assert/strict";
import type { Answer, TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, countOf, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const IMAGE = { userId: "u", event: "image.x" };

async function resultsOf(app: TestApp, events: readonly unknown[]) {
  return (await dataOf(app.call("POST", "/track/batch", { events }))).results;
}

/** What became of each event: its status as a metered event, or the code that refused it. */
// deno-lint-ignore no-explicit-any -- results are looked at as they came
function codesOf(results: any[]): string[] {
  return results.map((result) => result.ok ? result.data.matchStatus : result.error.code);
}

function once(app: TestApp, body: unknown, key: string, path = "/track"): Promise<Answer> {
  return app.call("POST", path, body, { headers: { "idempotency-key": key } });
}

Deno.test("each event has its result at its place, as track alone would have answered", async () => {
  const app = await appWithUser(service);
  const results = await resultsOf(app, [
    IMAGE,
    { userId: "u", event: "chat.x", inputTokens: 1001 },
    { userId: "nobody", event: "image.x" },
    { userId: "u" },
    { ...IMAGE, count: -1 },
    { ...IMAGE, tokens: 5 },
    { userId: "u\0", event: "image.x" },
    "no object",
    null,
    { options: { count: 3 }, ...IMAGE },
    { ...IMAGE, idempotencyKey: "" },
    { ...IMAGE, idempotencyKey: 7 },
  ]);
  assert.deepEqual(codesOf(results), [
    "matched",
    "limit_reached",
    "no_subscription",
    ...Array(6).fill("invalid_request"),
    "matched",
    "invalid_request",
    "invalid_request",
  ]);
  assert.equal(results[3].error.details[0].path, "event");
  assert.equal(await countOf(app, "lg_images"), 4);
  const alone = await dataOf(app.call("POST", "/track", IMAGE));
  assert.deepEqual(Object.keys(results[0].data), Object.keys(alone));
  assert.equal(results[9].data.counters[0].count, 4);
});

Deno.test("events of one user are counted in the order in which they stand, also under an alias", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "old", event: "image.x" }));
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  const events = Array.from({ length: 60 }, (_, place) => ({
    userId: place % 3 === 0 ? "old" : "u",
    event: "image.x",
    count: 3,
    ...place % 2 === 0 ? { idempotencyKey: `k${place}` } : {},
  }));
  const results = await resultsOf(app, events);
  const counts = results.map((result: { ok: boolean; data: { counters: { count: number }[] } }) =>
    result.ok ? result.data.counters[0]?.count : "full"
  );
  assert.deepEqual(counts, events.map((_, place) => place < 33 ? (place + 1) * 3 : "full"));
});

Deno.test("users that must be loaded first keep their order, beside a user in memory", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "old", event: "image.x" }));
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  await service.restart();
  await dataOf(app.call("POST", "/track", { userId: "v", event: "image.x" }));
  const results = await resultsOf(app, ["old", "v", "u", "old", "v"].map((userId) => ({ ...IMAGE, userId })));
  assert.deepEqual(codesOf(results), [
    "matched",
    "no_subscription",
    "matched",
    "matched",
    "no_subscription",
  ]);
  const counts = [0, 2, 3].map((place) => results[place].data.counters[0].count);
  assert.deepEqual(counts, [1, 2, 3]);
});

Deno.test("an event's key is the key of track: alone, in another batch, and after a restart", async () => {
  const app = await appWithUser(service);
  const event = { userId: "u", event: "image.x", metadata: { b: 1, a: [1, { d: 2, c: 3 }] } };
  const same = { metadata: { a: [1, { c: 3, d: 2 }], b: 1 }, event: "image.x", userId: "u" };
  const [first] = await resultsOf(app, [{ ...event, idempotencyKey: "k" }]);
  const again = await resultsOf(app, [{ idempotencyKey: "k", ...same }, {
    ...event,
    count: 2,
    idempotencyKey: "k",
  }]);
  assert.deepEqual(again[0], first);
  assert.deepEqual(codesOf(again), ["matched", "idempotency_conflict"]);
  await service.restart();
  const alone = await once(app, same, "k");
  assert.deepEqual(alone.body, first);
  assert.equal(alone.headers.get("idempotent-replayed"), "true");
  assertRefused(await once(app, { ...event, count: 2 }, "k"), 409, "idempotency_conflict");

  const single = await once(app, event, "single");
  assert.deepEqual(await resultsOf(app, [{ ...same, idempotencyKey: "single" }]), [single.body]);
  assert.equal(await countOf(app, "lg_images"), 2);
});

Deno.test("an event's key may be null for none, and blanks at its ends are no part of it, as in a header", async () => {
  const app = await appWithUser(service);
  const alone = await dataOf(once(app, IMAGE, " job 1\t"));
  const blank = { ...IMAGE, idempotencyKey: "\t job 1 " };
  const results = await resultsOf(app, [blank, { ...IMAGE, idempotencyKey: null }, {
    ...IMAGE,
    idempotencyKey: " ",
  }]);
  assert.deepEqual(codesOf(results), ["matched", "matched", "invalid_request"]);
  assert.equal(results[0].data.eventId, alone.eventId);
  assert.equal(await countOf(app, "lg_images"), 2);
});

Deno.test("a key that stands twice in a batch counts once, and another event under it is refused", async () => {
  const app = await appWithUser(service);
  const keyed = { ...IMAGE, idempotencyKey: "k" };
  const results = await resultsOf(app, [keyed, IMAGE, keyed, { ...keyed, userId: "v" }, IMAGE]);
  assert.deepEqual(results[2], results[0]);
  assert.deepEqual(codesOf(results), ["matched", "matched", "matched", "idempotency_conflict", "matched"]);
  assert.equal(await countOf(app, "lg_images"), 3);
});

Deno.test("batches and single calls that come at once with the same keys count each key once", async () => {
  const app = await appWithUser(service);
  const keys = ["a", "b", "c"];
  const batchOf = (names: string[]) =>
    resultsOf(app, names.map((name) => ({ ...IMAGE, idempotencyKey: name })));
  const [one, other, alone] = await Promise.all([
    batchOf(keys),
    batchOf(keys.toReversed()),
    once(app, IMAGE, "b"),
  ]);
  assert.deepEqual(other.toReversed(), one);
  assert.deepEqual(alone.body, one[1]);
  assert.deepEqual(codesOf(one), ["matched", "matched", "matched"]);
  assert.equal(await countOf(app, "lg_images"), 3);
});

Deno.test("a key on the batch itself gives all first results again", async () => {
  const app = await appWithUser(service);
  const body = { events: [IMAGE, { userId: "u" }] };
  const first = await once(app, body, "batch", "/track/batch");
  const again = await once(app, body, "batch", "/track/batch");
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(await countOf(app, "lg_images"), 1);
  assertRefused(await once(app, { events: [IMAGE] }, "batch", "/track/batch"), 409, "idempotency_conflict");
});

Deno.test("each event takes one call of the rate limit", async () => {
  const app = await service.newApp({ ...CATALOG, settings: { rateLimit: { perSecond: 0.001, burst: 4 } } });
  const results = await resultsOf(app, [IMAGE, { userId: "u" }, IMAGE, IMAGE, IMAGE, IMAGE]);
  assert.deepEqual(codesOf(results), [
    "no_subscription",
    "invalid_request",
    "no_subscription",
    "no_subscription",
    "rate_limited",
    "rate_limited",
  ]);
});

Deno.test("a workspace at its cap refuses event by event", async () => {
  const app = await appWithUser(service, { operationCap: 2 });
  const results = await resultsOf(app, [IMAGE, IMAGE, IMAGE]);
  assert.deepEqual(codesOf(results), ["matched", "matched", "workspace_limit_reached"]);
});

Deno.test("a batch has 1 to 500 events and up to 8 MiB, and is made with a secret key", async () => {
  const app = await appWithUser(service);
  const call = (body: unknown, key = app.secretLive) => app.call("POST", "/track/batch", body, { key });
  for (const body of [{}, { events: [] }, { events: IMAGE }, { events: Array(501).fill(IMAGE) }]) {
    assertRefused(await call(body), 400, "invalid_request");
  }
  assertRefused(await call({ events: [IMAGE] }, app.publicLive), 403, "requires_secret_key");
  const long = "x".repeat(1024 * 1024);
  const large = Array.from({ length: 7 }, () => ({ ...IMAGE, prompt: long }));
  assert.deepEqual(codesOf(await resultsOf(app, large)), Array(7).fill("matched"));
  assertRefused(await call({ events: [...large, ...large] }), 413, "payload_too_large");
  assert.equal((await resultsOf(app, Array(500).fill({ ...IMAGE, event: "other" }))).length, 500);
});
