// Who may call what: key classes and modes for every operation, and the order in which refusals come when a call
// has several faults.

import assert from "node:assert/strict";
import { type Answer, send } from "../support/test_service.ts";
import { ENDPOINTS } from "../../routes/app.ts";
import {
  appWithUser,
  assertRefused,
  countOf,
  dataOf,
  endUserToken,
  pictureOf,
  serviceOfFile,
} from "./support.ts";

const service = serviceOfFile();

/** Each operation with a call that works for whom it is meant. */
const CALLS: Readonly<Record<string, { path?: string; body?: unknown }>> = {
  "POST /v1/reserve": { body: { userId: "u", event: "image.x" } },
  "POST /v1/commit": { body: { reservationId: "rsv_x" } },
  "POST /v1/release": { body: { reservationId: "rsv_x" } },
  "POST /v1/track": { body: { userId: "u", event: "image.x" } },
  "POST /v1/can-use": { body: { userId: "u", event: "image.x" } },
  "POST /v1/subscriptions": { body: { userId: "u", planId: "plan_pro" } },
  "DELETE /v1/subscriptions": { body: { userId: "u" } },
  "GET /v1/usage": { path: "/usage?userId=u" },
  "GET /v1/usage/me": {},
  "GET /v1/users/:userId": { path: "/users/u" },
  "GET /v1/plans": {},
  "GET /v1/events": {},
  "GET /v1/events/:eventId": { path: "/events/evt_x" },
  "GET /v1/test-clock": {},
  "POST /v1/test-clock": { body: { advanceSeconds: 1 } },
};

/** What a key without a token gets, by operation; secret keys of test mode and public ones of either mode. */
const ANY = ["GET /v1/plans"];
const END_USER = ["GET /v1/usage"];
const TOKEN = ["GET /v1/usage/me"];
const CLOCK = ["GET /v1/test-clock", "POST /v1/test-clock"];

function outcomeOf({ status, body }: Answer): string {
  return status === 200 ? "200" : `${status} ${body.error.code}`;
}

Deno.test("every operation has its place in the table of access", () => {
  const known = ENDPOINTS.map(({ method, path }) => `${method} ${path}`);
  const untested = known.filter((name) =>
    /\/v1\/(reserve|commit|release|track|can-use|subscriptions|usage|users|plans|events|test-clock)\b/.test(
      name,
    ) &&
    !(name in CALLS)
  );
  assert.deepEqual(untested, []);
  for (const name of Object.keys(CALLS)) assert.ok(known.includes(name), name);
});

Deno.test("each key class and mode may call exactly what is meant for it", async () => {
  for (const [operation, { path, body }] of Object.entries(CALLS)) {
    const app = await appWithUser(service);
    const [method, pattern] = operation.split(" ") as [string, string];
    const call = (key: string, headers = {}) =>
      app.call(method, path ?? pattern.slice("/v1".length), body, { key, headers });
    const unknownId = /commit|release|:eventId/.test(operation) ? "404 not_found" : "200";
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
    const withToken = [...END_USER, ...TOKEN, ...ANY].includes(operation) ? "200" : "403 requires_secret_key";
    for (const key of [app.publicLive, app.publicTest]) {
      assert.equal(outcomeOf(await call(key, { "x-end-user-token": token })), withToken, operation);
    }
    assert.equal(outcomeOf(await call(app.secretTest)), expected.secretTest, `secret test: ${operation}`);
    assert.equal(outcomeOf(await call(app.secretLive)), expected.secretLive, `secret live: ${operation}`);
  }
});

Deno.test("a public key is refused before anything of the call is looked at and writes nothing", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  for (
    const path of ["/reserve", "/commit", "/release", "/track", "/can-use", "/subscriptions", "/test-clock"]
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
