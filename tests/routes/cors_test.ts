// Calls from browsers by endpoint, origin and key; the headers that every answer carries; and bodies that never end.

import assert from "node:assert/strict";
import { ENDPOINTS } from "../../routes/app.ts";
import { withStrictTransport } from "../../routes/http/strict_transport.ts";
import { limitsOfFile } from "../support/limits.ts";
import { type Answer, send, type TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import { BODY_LIMITS } from "../../src/process/sent_limits.ts";

const service = serviceOfFile();
const SHOP = "https://shop.example.com";
const OTHER = "https://other.example.com:8443";

async function appWithOrigins(...corsOrigins: string[]): Promise<TestApp> {
  const app = await appWithUser(service);
  await setOrigins(app, corsOrigins);
  return app;
}

function setOrigins(app: TestApp, corsOrigins: unknown) {
  const document = { ...CATALOG, settings: { ...CATALOG.settings, corsOrigins } };
  return service.admin("PUT", `/apps/${app.appId}/catalog`, document);
}

function preflight(path: string, method: string, origin: string, extra: Record<string, string> = {}) {
  const headers = { origin, "access-control-request-method": method, ...extra };
  return send(service.http, "OPTIONS", `/api${path}`, undefined, { headers });
}

function allowedOrigin({ headers }: Answer): string | null {
  assert.equal(headers.get("access-control-allow-credentials"), null);
  return headers.get("access-control-allow-origin");
}

/** Calls that a public key may make. */
const FOR_BROWSERS = [
  "DELETE /v1/users/:userId/top-up",
  "GET /v1/credits",
  "GET /v1/features",
  "GET /v1/features/:key",
  "GET /v1/plans",
  "GET /v1/rates",
  "GET /v1/usage",
  "GET /v1/usage/me",
  "GET /v1/usage/stream",
  "GET /v1/users/:userId/top-up",
  "GET /v1/users/:userId/top-ups",
  "POST /v1/capture",
  "POST /v1/identify",
  "PUT /v1/usage/spend-cap",
  "PUT /v1/users/:userId/top-up",
];

Deno.test("a preflight passes for exactly the calls that a public key may make", async () => {
  await appWithOrigins(SHOP);
  const passed: string[] = [];
  for (const { method, path } of ENDPOINTS) {
    const answer = await preflight(path.replace(/:\w+/, "x"), method, SHOP);
    if (answer.status === 204) passed.push(`${method} ${path}`);
    else {
      assertRefused(answer, 401, "invalid_key", `${method} ${path}`);
      assert.equal(allowedOrigin(answer), null);
    }
  }
  assert.deepEqual(passed.sort(), FOR_BROWSERS);
  for (const [path, method] of [["/v1/plans", "POST"], ["/v1/plans", "DELETE"], ["/v1/capture", "GET"]]) {
    assert.equal(allowedOrigin(await preflight(path as string, method as string, SHOP)), null);
  }
  for (const path of ["/admin/v1/apps", "/v1/export-download", "/v1/nothing"]) {
    assert.equal(allowedOrigin(await preflight(path, "GET", SHOP)), null, path);
  }
});

Deno.test("a preflight names origin, methods and headers, and caches keep it by its origin", async () => {
  await appWithOrigins(SHOP, OTHER);
  const { status, headers, body } = await preflight("/v1/capture", "POST", OTHER);
  assert.deepEqual([status, body], [204, ""]);
  assert.equal(headers.get("access-control-allow-origin"), OTHER);
  assert.equal(headers.get("access-control-allow-methods"), "POST");
  const allowed = headers.get("access-control-allow-headers")?.toLowerCase().split(", ") ?? [];
  for (const name of ["authorization", "content-type", "x-end-user-token", "idempotency-key"]) {
    assert.ok(allowed.includes(name), name);
  }
  assert.match(headers.get("vary") ?? "", /^Origin\b/);
  assert.ok(headers.get("x-request-id"));
});

Deno.test("origins are compared exactly, and those that no app lists do not pass", async () => {
  await appWithOrigins(SHOP);
  const strangers = [
    "http://shop.example.com",
    "https://shop.example.com:444",
    "https://shop.example.com.evil.test",
    "https://evil-shop.example.com",
    "https://SHOP.example.com",
    "https://shop.example.com/",
    "https://nobody.example.com",
    "null",
    "*",
  ];
  for (const origin of strangers) {
    assert.equal(allowedOrigin(await preflight("/v1/plans", "GET", origin)), null, origin);
  }
  const plain = await send(service.http, "OPTIONS", "/api/v1/plans", undefined, {
    headers: { origin: SHOP },
  });
  assert.equal(allowedOrigin(plain), null, "what names no method is no preflight");
});

Deno.test("an answer follows the key's own app, refusals too, and always varies by origin", async () => {
  const app = await appWithOrigins(SHOP);
  const other = await appWithOrigins(OTHER);
  const get = (as: TestApp, key: string, origin: string | null, path = "/plans") =>
    as.call("GET", path, undefined, { key, headers: origin === null ? {} : { origin } });
  for (const key of [app.publicLive, app.publicTest]) {
    const answer = await get(app, key, SHOP);
    assert.equal(answer.status, 200);
    assert.equal(allowedOrigin(answer), SHOP);
    assert.match(answer.headers.get("access-control-expose-headers") ?? "", /X-Request-Id/);
    assert.equal(allowedOrigin(await get(app, key, OTHER)), null, "another app's origin");
    assert.equal(allowedOrigin(await get(app, key, null)), null);
  }
  assert.equal(allowedOrigin(await get(other, other.publicLive, OTHER)), OTHER);
  const refused = await get(app, app.publicLive, SHOP, "/usage");
  assertRefused(refused, 403, "forbidden");
  assert.equal(allowedOrigin(refused), SHOP);
  const unknown = await get(app, "pk_live_unknown", SHOP);
  assertRefused(unknown, 401, "invalid_key");
  assert.equal(allowedOrigin(unknown), null);
  for (const answer of [await get(app, app.publicLive, null), refused, unknown]) {
    assert.equal(answer.headers.get("vary"), "Origin");
  }
  const token = endUserToken(app.identitySecret, { userId: "u", exp: service.clock.now() / 1000 + 60 });
  const headers = { origin: SHOP, "x-end-user-token": token };
  const usage = await app.call("GET", "/usage/me", undefined, { key: app.publicLive, headers });
  assert.deepEqual([usage.status, allowedOrigin(usage)], [200, SHOP]);
});

Deno.test("calls that need a secret key never let a page read their answer", async () => {
  const app = await appWithOrigins(SHOP);
  for (const { method, path } of ENDPOINTS) {
    if (FOR_BROWSERS.includes(`${method} ${path}`)) continue;
    for (const key of [app.secretLive, app.publicLive]) {
      const answer = await app.call(method, path.replace("/v1", "").replace(/:\w+/, "x"), undefined, {
        key,
        headers: { origin: SHOP },
      });
      assert.equal(allowedOrigin(answer), null, `${method} ${path}`);
    }
  }
});

Deno.test("a changed list holds from the next call on, and what is no origin is a fault", async () => {
  const origin = "https://fresh.example.com";
  const app = await appWithOrigins();
  const isListed = async () => allowedOrigin(await preflight("/v1/plans", "GET", origin)) !== null;
  assert.equal(await isListed(), false);
  await dataOf(setOrigins(app, [origin]));
  assert.equal(await isListed(), true);
  await service.restart();
  assert.equal(await isListed(), true);
  await dataOf(setOrigins(app, []));
  assert.equal(await isListed(), false);
  const faults = [
    "*",
    "null",
    "",
    "shop.example.com",
    `${SHOP}/`,
    `${SHOP}:443`,
    `${SHOP}/a`,
    "https://A.test",
  ];
  const error = assertRefused(await setOrigins(app, [...faults, SHOP]), 400, "invalid_request");
  assert.deepEqual(
    error.details.map(({ path }: { path: string }) => path),
    faults.map((_, index) => `settings.corsOrigins[${index}]`),
  );
  await dataOf(setOrigins(app, ["http://localhost:3000", "capacitor://localhost"]));
});

Deno.test("every answer forbids sniffing, referrers and caching, and names no software", async () => {
  const app = await appWithOrigins(SHOP);
  const answers = [
    await app.call("GET", "/plans"),
    await app.call("POST", "/track", "{"),
    await app.call("GET", "/nothing"),
    await app.call("GET", "/plans", undefined, { key: "wrong" }),
    await service.admin("GET", "/apps"),
    await send(service.http, "GET", "/metrics", undefined, {}),
    await send(service.http, "GET", "/healthz", undefined, {}),
    await send(service.http, "GET", "/nothing", undefined, {}),
    await send(service.http, "GET", "/api/v1/export-download?token=x", undefined, {}),
  ];
  for (const { headers } of answers) {
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(headers.get("strict-transport-security"), null);
    for (const name of ["server", "x-powered-by", "via"]) assert.equal(headers.get(name), null);
  }
});

Deno.test("strict transport is asked for where the public address is https, and nowhere else", async () => {
  const info = {} as Deno.ServeHandlerInfo;
  const ask = async (publicUrl: string | null) => {
    const handler = withStrictTransport(() => new Response("x"), publicUrl);
    return (await handler(new Request("http://x.test"), info)).headers.get("strict-transport-security");
  };
  assert.equal(await ask("https://metering.example.com"), "max-age=31536000");
  assert.equal(await ask("http://metering.example.com"), null);
  assert.equal(await ask(null), null);
});

// Nothing in a test depends on how long it takes; the sum of large bodies is small enough to be reached.
limitsOfFile(BODY_LIMITS, { tickMs: 100, slowAfterMs: 300, largeBytesMax: 100_000 });

/** Sends only the first bytes of a body. */
async function sendPart(key: string, bytes: number, headers: Record<string, string> = {}) {
  const cancelled = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode(" ".repeat(bytes))),
    cancel: () => cancelled.resolve(),
  });
  const init = { method: "POST", headers: { authorization: `Bearer ${key}`, ...headers }, body };
  const response = await service.http.fetch(new Request("http://service.test/api/v1/track", init));
  const answer = { status: response.status, headers: response.headers, body: await response.json() };
  return { answer, cancelled: cancelled.promise };
}

Deno.test("a body that does not arrive in time is refused, declared or in chunks, and changes nothing", async () => {
  const app = await appWithUser(service);
  const lengths = [{}, { "content-length": "100" }, { "content-length": "100000" }];
  const parts = await Promise.all(lengths.map((headers) => sendPart(app.secretLive, 10, headers)));
  for (const [at, headers] of lengths.entries()) {
    const { answer, cancelled } = parts[at] as (typeof parts)[number];
    const { message } = assertRefused(answer, 400, "invalid_request", JSON.stringify(headers));
    assert.equal(message, "The body did not arrive in time");
    // A small body of known length is read in one piece, which nothing can cancel.
    if (headers["content-length"] !== "100") await cancelled;
  }
  const { body } = await app.call("GET", "/usage?userId=u");
  assert.deepEqual(body.data.counters.map(({ count }: { count: number }) => count), [0, 0, 0, 0, 0]);
});

Deno.test("large bodies that are being sent take a bounded memory; small ones pass beside them", async () => {
  const app = await appWithUser(service);
  const first = sendPart(app.secretLive, 60_000);
  const { answer } = await sendPart(app.secretLive, 60_000);
  assertRefused(answer, 503, "unavailable");
  assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]/);
  const small = await app.call("POST", "/track", { userId: "u", event: "image.x" });
  assert.equal(small.status, 200);
  assertRefused((await first).answer, 400, "invalid_request");
  const pad = "x".repeat(90_000);
  const large = await app.call("POST", "/track", { userId: "u", event: "image.x", pad });
  assert.equal(large.status, 200, "what was given up is given back");
});
