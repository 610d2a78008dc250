// Who may call what: key classes and modes for every endpoint, the order of refusals, end-user tokens, and the rate limit
// of an app's keys.

import assert from "node:assert/strict";
import { type Answer, send, type TestApp } from "../support/test_service.ts";
import { ENDPOINTS } from "../../routes/app.ts";
import { appWithUser, assertRefused, CATALOG, countOf, dataOf, endUserToken } from "./support.ts";
import { pictureOf, readerKey, serviceOfFile } from "./support.ts";
import { createHmac } from "node:crypto";
import { Buffer } from "node:buffer";

const service = serviceOfFile();

/** Each operation with a call that works for whom it is meant. */
const CALLS: Readonly<Record<string, { path?: string; body?: unknown }>> = {
  "POST /v1/reserve": { body: { userId: "u", event: "image.x" } },
  "POST /v1/commit": { body: { reservationId: "rsv_x" } },
  "POST /v1/release": { body: { reservationId: "rsv_x" } },
  "POST /v1/track": { body: { userId: "u", event: "image.x" } },
  "POST /v1/track/batch": { body: { events: [{ userId: "u", event: "image.x" }] } },
  "POST /v1/can-use": { body: { userId: "u", event: "image.x" } },
  "POST /v1/explain": { body: { userId: "u", event: "image.x" } },
  "POST /v1/subscriptions": { body: { userId: "u", planId: "plan_pro" } },
  "DELETE /v1/subscriptions": { body: { userId: "u" } },
  "DELETE /v1/subscriptions/scheduled": { body: { userId: "u" } },
  "GET /v1/usage": { path: "/usage?userId=u" },
  "GET /v1/usage/stream": { path: "/usage/stream?userId=u" },
  "GET /v1/usage/me": {},
  "GET /v1/overage": { path: "/overage?userId=u" },
  "PUT /v1/usage/spend-cap": { body: { userId: "u", groupId: "lg_sold", max: 1 } },
  "GET /v1/users/:userId": { path: "/users/u" },
  "PUT /v1/users/:userId/parent": { path: "/users/u/parent", body: { parentId: null } },
  "GET /v1/users/:userId/children": { path: "/users/u/children" },
  "GET /v1/users/:userId/members": { path: "/users/u/members?groupId=lg" },
  "POST /v1/users/:userId/keys": { path: "/users/u/keys", body: {} },
  "GET /v1/users/:userId/keys": { path: "/users/u/keys" },
  "DELETE /v1/users/:userId/keys/:userKeyId": { path: "/users/u/keys/uky_x" },
  "GET /v1/plans": {},
  "GET /v1/events": {},
  "GET /v1/refusals": {},
  "GET /v1/events/:eventId": { path: "/events/evt_x" },
  "GET /v1/test-clock": {},
  "POST /v1/test-clock": { body: { advanceSeconds: 1 } },
};

/** What a key without a token gets, by operation; secret keys of test mode and public ones of either mode. */
const ANY = ["GET /v1/plans"];
const END_USER = ["GET /v1/usage", "GET /v1/usage/stream", "PUT /v1/usage/spend-cap"];
const TOKEN = ["GET /v1/usage/me"];
const CLOCK = ["GET /v1/test-clock", "POST /v1/test-clock"];
const READS = /^GET|can-use|explain/;

function outcomeOf({ status, body }: Answer): string {
  return status === 200 ? "200" : `${status} ${body.error.code}`;
}

Deno.test("every operation has its place in the table of access", () => {
  const known = ENDPOINTS.map(({ method, path }) => `${method} ${path}`);
  const areas =
    /\/v1\/(reserve|commit|release|track|can-use|explain|subscriptions|usage|users(?!.*top-up)|plans|events|test-clock)\b/;
  assert.deepEqual(known.filter((name) => areas.test(name) && !(name in CALLS)), []);
  for (const name of Object.keys(CALLS)) assert.ok(known.includes(name), name);
});

Deno.test("each key class and mode may call exactly what is meant for it", async () => {
  for (const [operation, { path, body }] of Object.entries(CALLS)) {
    const app = await appWithUser(service);
    const [method, pattern] = operation.split(" ") as [string, string];
    const call = (key: string, headers = {}) =>
      app.call(method, path ?? pattern.slice("/v1".length), body, { key, headers });
    // Nothing of the plan is sold past its quota.
    const done = operation.endsWith("spend-cap") ? "400 invalid_request" : "200";
    const unknownId = /commit|release|scheduled|:eventId|:userKeyId/.test(operation) ? "404 not_found" : done;
    const testCancel = operation.startsWith("DELETE") ? "404 not_found" : "200";
    const expected = {
      secretTest: TOKEN.includes(operation) ? "403 forbidden" : unknownId === "200" ? testCancel : unknownId,
      secretLive: TOKEN.includes(operation) || CLOCK.includes(operation) ? "403 forbidden" : unknownId,
      public: ANY.includes(operation)
        ? "200"
        : END_USER.includes(operation) || TOKEN.includes(operation)
        ? "403 forbidden"
        : "403 requires_secret_key",
    };
    assert.equal(outcomeOf(await call(app.publicLive)), expected.public, `public live: ${operation}`);
    assert.equal(outcomeOf(await call(app.publicTest)), expected.public, `public test: ${operation}`);
    const token = endUserToken(app.identitySecret, { userId: "u", exp: service.clock.now() / 1000 + 60 });
    const withToken = [...END_USER, ...TOKEN, ...ANY].includes(operation) ? done : "403 requires_secret_key";
    for (const key of [app.publicLive, app.publicTest]) {
      assert.equal(outcomeOf(await call(key, { "x-end-user-token": token })), withToken, operation);
    }
    const ofReader = READS.test(operation) ? expected.secretLive : "403 forbidden";
    assert.equal(outcomeOf(await call(await readerKey(service, app))), ofReader, `reader: ${operation}`);
    assert.equal(outcomeOf(await call(app.secretTest)), expected.secretTest, `secret test: ${operation}`);
    assert.equal(outcomeOf(await call(app.secretLive)), expected.secretLive, `secret live: ${operation}`);
  }
});

Deno.test("a public key is refused before anything of the call is looked at and writes nothing", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  for (
    const path of [
      "/reserve",
      "/commit",
      "/release",
      "/track",
      "/can-use",
      "/explain",
      "/subscriptions",
      "/test-clock",
    ]
  ) {
    for (const body of ["{", { userId: 5 }, "x".repeat(2 * 1024 * 1024)]) {
      const answer = await app.call("POST", path, body, { key: app.publicLive });
      assertRefused(answer, 403, "requires_secret_key", path);
    }
  }
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("a key that is missing, malformed or of no app is refused, whatever the call", async () => {
  const app = await appWithUser(service);
  const { secretLive } = app;
  const headers = [
    undefined,
    "",
    "Bearer",
    "Bearer ",
    secretLive,
    `Basic ${secretLive}`,
    `Token ${secretLive}`,
    `Bearer  ${secretLive}`,
    `Bearer ${secretLive} x`,
    `Bearer ${secretLive}x`,
    `Bearer ${secretLive.slice(0, -1)}`,
    `Bearer ${secretLive.toUpperCase()}`,
    `Bearer ${secretLive.replace("live", "test")}`,
    `Bearer ${secretLive.replace("sk", "pk")}`,
    "Bearer sk_live_",
    "Bearer sk_live_" + "0".repeat(40),
    "Bearer constructor",
    "Bearer ü",
  ];
  for (const authorization of headers) {
    for (const path of ["/plans", "/nothing", "/usage?userId=", "/reserve"]) {
      const init = authorization === undefined ? {} : { headers: { authorization } };
      const error = assertRefused(
        await send(service.http, "GET", `/api/v1${path}`, undefined, init),
        401,
        "invalid_key",
        `${authorization} ${path}`,
      );
      assert.ok(!error.message.includes("sk_"));
    }
  }
});

Deno.test("refusals come in order: key, route, method, class, mode, validation, idempotency, cap, domain", async () => {
  const app = await appWithUser(service, { operationCap: 0, testOperationCap: 0 });
  const key = { "idempotency-key": "k" };
  const commit = { reservationId: "rsv_x" };
  assertRefused(await app.call("POST", "/commit", commit, { headers: key }), 404, "not_found");
  const bad = { userId: 5 };
  const good = { userId: "nobody", event: "nothing" };
  const steps: [string, string, unknown, string, Record<string, string>, string][] = [
    ["POST", "/nothing", "{", "x", key, "401 invalid_key"],
    ["POST", "/nothing", "{", app.publicLive, key, "404 not_found"],
    ["PUT", "/track", "{", app.publicLive, key, "405 method_not_allowed"],
    ["POST", "/track", "{", app.publicLive, key, "403 requires_secret_key"],
    ["POST", "/test-clock", bad, app.publicTest, key, "403 requires_secret_key"],
    ["POST", "/test-clock", "{", app.secretLive, key, "403 forbidden"],
    ["POST", "/track", "{", app.secretLive, key, "400 invalid_request"],
    ["POST", "/track", bad, app.secretLive, key, "400 invalid_request"],
    ["POST", "/track", good, app.secretLive, { "idempotency-key": "" }, "400 invalid_request"],
    ["POST", "/track", good, app.secretLive, key, "409 idempotency_conflict"],
    ["POST", "/track", good, app.secretLive, {}, "429 workspace_limit_reached"],
    ["POST", "/reserve", good, app.secretLive, {}, "429 workspace_limit_reached"],
    ["POST", "/track", good, app.secretTest, {}, "429 test_quota_exceeded"],
    ["POST", "/commit", commit, app.secretLive, {}, "404 not_found"],
    ["GET", "/usage?userId=", undefined, app.publicLive, {}, "403 forbidden"],
  ];
  for (const [method, path, body, as, headers, expected] of steps) {
    const answer = await app.call(method, path, body, { key: as, headers });
    assert.equal(outcomeOf(answer), expected, `${method} ${path} ${expected}`);
  }
  const size = "x".repeat(1024 * 1024 + 1);
  assertRefused(await app.call("POST", "/track", size, { key: "x" }), 401, "invalid_key");
  assertRefused(await app.call("POST", "/nothing", size), 404, "not_found");
  assert.equal(await countOf(app, "lg_images"), 0);
});

Deno.test("modes share plans and nothing else", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const test = await pictureOf(app, "u", app.secretTest);
  assert.deepEqual([test.usage.counters, test.user.history, test.feed.events], [[], [], []]);
  const plans = await dataOf(app.call("GET", "/plans"));
  for (const key of [app.secretTest, app.publicLive, app.publicTest]) {
    assert.deepEqual(await dataOf(app.call("GET", "/plans", undefined, { key })), plans);
  }
});

const inSeconds = (seconds: number) => Math.floor(service.clock.now() / 1000) + seconds;

function tokenOf(app: TestApp, payload: unknown = { userId: "u", exp: inSeconds(60) }): string {
  return endUserToken(app.identitySecret, payload);
}

function ask(app: TestApp, path: string, token: string | null, key = app.publicLive) {
  return app.call("GET", path, undefined, {
    key,
    headers: token === null ? {} : { "x-end-user-token": token },
  });
}

Deno.test("a valid token opens usage and usage/me of its own user, in the mode of the key", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const token = tokenOf(app);
  for (const path of ["/usage?userId=u", "/usage", "/usage/me", "/usage/me?event=image.*"]) {
    const usage = await dataOf(ask(app, path, token));
    assert.deepEqual([usage.userId, usage.counters[0].count], ["u", 1], path);
    assert.ok(!("duplicateActiveSubscriptions" in usage), path);
  }
  const test = await dataOf(ask(app, "/usage/me", token, app.publicTest));
  assert.deepEqual([test.userId, test.period], ["u", null]);
  const own = await dataOf(ask(app, "/usage/me", token, app.secretLive));
  assert.deepEqual(own.counters[0].count, 1);
  assert.ok(!("duplicateActiveSubscriptions" in own), "usage/me never shows duplicates");
  assert.ok("duplicateActiveSubscriptions" in await dataOf(app.call("GET", "/usage?userId=u")));
});

Deno.test("usage/me needs the token with every key, usage with public ones alone", async () => {
  const app = await appWithUser(service);
  for (const key of [app.secretLive, app.secretTest, app.publicLive, app.publicTest]) {
    assertRefused(await ask(app, "/usage/me", null, key), 403, "forbidden");
    assertRefused(await ask(app, "/usage/me", "x.y", key), 403, "forbidden");
  }
  for (const key of [app.publicLive, app.publicTest]) {
    assertRefused(await ask(app, "/usage?userId=u", null, key), 403, "forbidden");
    assertRefused(await ask(app, "/usage", null, key), 403, "forbidden");
  }
  await dataOf(ask(app, "/usage?userId=u", "broken", app.secretLive));
  assertRefused(await ask(app, "/usage", tokenOf(app), app.secretLive), 400, "invalid_request");
});

Deno.test("a token of another user does not open a user's usage, and usage/me answers its own user", async () => {
  const app = await appWithUser(service);
  const token = tokenOf(app, { userId: "v", exp: inSeconds(60) });
  assertRefused(await ask(app, "/usage?userId=u", token), 403, "forbidden");
  assertRefused(await ask(app, "/usage?userId=V", token), 403, "forbidden");
  assert.equal((await dataOf(ask(app, "/usage/me?userId=u", token))).userId, "v");
});

Deno.test("a token holds until its exp in seconds, by the real clock and not the test clock", async () => {
  const app = await appWithUser(service);
  const exp = inSeconds(100);
  const token = tokenOf(app, { userId: "u", exp });
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1e6 }, { key: app.secretTest }));
  await dataOf(ask(app, "/usage/me", token, app.publicTest));
  service.clock.set(exp * 1000 - 1);
  await dataOf(ask(app, "/usage/me", token));
  service.clock.set(exp * 1000);
  assertRefused(await ask(app, "/usage/me", token), 403, "forbidden");
  for (const past of [inSeconds(-1), 0, -5, -1e308]) {
    assertRefused(await ask(app, "/usage/me", tokenOf(app, { userId: "u", exp: past })), 403, "forbidden");
  }
  const late = await ask(app, "/usage/me", tokenOf(app, { userId: "u", exp: exp * 1000 }));
  assertRefused(late, 403, "forbidden");
  assert.match(late.body.error.message, /exp .* Unix seconds and at most 400 days ahead/);
});

Deno.test("a token changed at any one character is refused", async () => {
  const app = await appWithUser(service);
  const token = tokenOf(app);
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (let at = 0; at < token.length; at++) {
    const place = digits.indexOf(token[at] as string);
    // The next digit differs in the last bit, which a lenient decoder would drop at the end of a signature.
    for (const other of [digits[place ^ 1] ?? "A", "=", ""]) {
      const changed = token.slice(0, at) + other + token.slice(at + 1);
      assertRefused(await ask(app, "/usage/me", changed), 403, "forbidden", `${at}: ${other}`);
    }
  }
  for (
    const changed of [
      `${token}=`,
      `${token}.`,
      `.${token}`,
      `${token}.x`,
      token.replace(".", ""),
      token + "A",
    ]
  ) {
    assertRefused(await ask(app, "/usage/me", changed), 403, "forbidden", changed);
  }
});

Deno.test("a token under another secret, or another way of signing, is refused", async () => {
  const app = await appWithUser(service);
  const other = await appWithUser(service);
  const payload = { userId: "u", exp: inSeconds(60) };
  const first = Buffer.from(JSON.stringify(payload)).toString("base64url");
  const sign = (text: string, encoding: "hex" | "base64" | "base64url", hash = "sha256") =>
    createHmac(hash, app.identitySecret).update(text).digest(encoding);
  const bad = [
    endUserToken(other.identitySecret, payload),
    endUserToken("", payload),
    endUserToken(app.secretLive, payload),
    `${first}.`,
    `.${sign("", "base64url")}`,
    `${first}.${sign(first, "hex")}`,
    `${first}.${sign(first, "base64")}`,
    `${first}.${sign(first, "base64url", "sha512")}`,
    `${first}.${sign(JSON.stringify(payload), "base64url")}`,
  ];
  for (const token of bad) assertRefused(await ask(app, "/usage/me", token), 403, "forbidden", token);
  await dataOf(ask(app, "/usage/me", `${first}.${sign(first, "base64url")}`));
});

Deno.test("a signed payload that is no user and time is refused", async () => {
  const app = await appWithUser(service);
  const exp = inSeconds(60);
  const payloads: unknown[] = [
    { userId: "u", exp: String(exp) },
    { userId: "u", exp: null },
    { userId: "u", exp: inSeconds(400 * 86_400) + 1 },
    `{"userId":"u","exp":1e999}`,
    { userId: "u", exp, mode: "test" },
    { userId: "u", exp, mode: null },
    { userId: "u", exp, mode: "Live" },
    { userId: "u" },
    { exp },
    { userId: 5, exp },
    { userId: null, exp },
    { userId: "", exp },
    { userId: "x".repeat(201), exp },
    { userId: ["u"], exp },
    { userId: "u", exp: [exp] },
    { userId: "u", exp: {} },
    { userId: "u", exp: true },
    `{"userId":"u\\u0000","exp":${exp}}`,
    `{"userId":"\\ud800","exp":${exp}}`,
    `{"__proto__":{"userId":"u","exp":${exp}}}`,
    "null",
    "5",
    "[]",
    '"u"',
    "{",
    "",
    [],
  ];
  for (const payload of payloads) {
    for (const path of ["/usage/me", "/usage", "/usage?userId=u"]) {
      assertRefused(await ask(app, path, tokenOf(app, payload)), 403, "forbidden", JSON.stringify(payload));
    }
  }
});

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

Deno.test("a key gets its burst at once, then so many a second, and a refused call says how long to wait", async () => {
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
  const { appId } = await appWithLimit(1, 1);
  for (let calls = 0; calls < 5; calls++) await dataOf(service.admin("GET", `/apps/${appId}`));
});
