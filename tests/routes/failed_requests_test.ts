// The log of failed requests over HTTP: which answers are in it, what of them, who finds them, and what an erasure and time
// do to them.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { TestApp } from "../support/test_service.ts";
import { REQUEST_LOG_LIMITS } from "../../src/process/sent_limits.ts";
import { changedLimits } from "../support/limits.ts";
import type { Customer } from "./credits_support.ts";
import { erase } from "./privacy_support.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const DAY = 24 * 3_600_000;

interface Row {
  readonly requestId: string;
  readonly requestIds: readonly string[];
  readonly mode: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly keyPrefix: string;
  readonly userId: string | null;
  readonly body: string | null;
  readonly count: number;
}

async function requestsOf({ appId }: TestApp, query = ""): Promise<Row[]> {
  return (await dataOf(service.admin("GET", `/apps/${appId}/requests?limit=100${query}`))).requests;
}

async function shownOf(app: TestApp, query = ""): Promise<string[]> {
  const rows = await requestsOf(app, query);
  return rows.map((row) => `${row.status} ${row.code} ${row.method} ${row.path} ${row.mode} ${row.count}`);
}

Deno.test("failed requests of a key are rows, alike ones one row; successes and refused reserves are none", async () => {
  const app = await appWithUser(service);
  const send = (id: string, body: unknown, path = "/track") =>
    app.call("POST", path, body, { headers: { "x-request-id": id } });
  await send("r1", { userId: "u", event: "image.x", count: 0 });
  await send("r2", { userId: "u", event: "image.x", prompt: "SECRET", count: -1, metadata: { a: "SECRET" } });
  await dataOf(send("r3", { userId: "u", event: "image.x" }));
  assert.equal(
    (await dataOf(send("r4", { userId: "u", event: "image.x", count: 1000 }, "/reserve"))).allowed,
    false,
  );
  assertRefused(await send("r5", { userId: "u", event: "image.x", count: 1000 }), 429, "limit_reached");
  assertRefused(await send("r6", "{", "/track"), 400, "invalid_request");
  assertRefused(await send("r7", {}, "/nowhere"), 404, "not_found");
  assertRefused(await send("r8", { reservationId: "rsv_1_unknown" }, "/commit"), 404, "not_found");
  const rows = await requestsOf(app);
  assert.deepEqual(rows.map(({ status, path, count }) => `${status} ${path} ${count}`).sort(), [
    "400 /api/v1/track 3",
    "404 /api/v1/commit 1",
    "404 /api/v1/nowhere 1",
    "429 /api/v1/track 1",
  ]);
  const track = rows.find(({ status }) => status === 400) as Row;
  assert.deepEqual(track.requestIds, ["r6", "r2", "r1"]);
  assert.equal(track.keyPrefix, app.secretLive.slice(0, 12));
  assert.match(String(track.body), /^\d+ bytes$/);
  assert.deepEqual(await shownOf(app, "&requestId=r1"), await shownOf(app, "&status=400"));
  assert.deepEqual(await shownOf(app, "&code=limit_reached&path=track&mode=live"), [
    "429 limit_reached POST /api/v1/track live 1",
  ]);
  assert.deepEqual(await shownOf(app, "&mode=test"), []);
  assert.equal(JSON.stringify(rows).includes("SECRET"), false);
});

Deno.test("a row has who the newest request was about, and its body without what people wrote", async () => {
  const app = await appWithUser(service);
  const body = { userId: "u", event: "image.x", count: -1, metadata: { a: "SECRET" }, prompt: "SECRET" };
  await app.call("POST", "/track", body);
  const [row] = await requestsOf(app);
  assert.equal(row?.userId, "u");
  assert.deepEqual(JSON.parse(String(row?.body)), { ...body, metadata: "[hidden]", prompt: "[hidden]" });
  assert.equal(row?.message, "count: must be greater than 0");
});

Deno.test("a method that a caller made up is cut, and the log goes on", async () => {
  const app = await appWithUser(service);
  const method = "x" + randomBytes(2500).toString("hex");
  assertRefused(await app.call(method, "/plans"), 405, "method_not_allowed");
  assertRefused(await app.call("GET", "/nowhere"), 404, "not_found");
  assert.deepEqual((await requestsOf(app)).map((row) => row.method).sort(), [
    "GET",
    method.slice(0, 20),
  ]);
});

Deno.test("a call with an id that no table can hold is logged like any other", async () => {
  const app = await appWithUser(service);
  const calls = [{ call: "track", userId: "u\0", event: "image.x" }];
  assert.equal((await dataOf(app.call("POST", "/batch", { calls }))).results[0].status, 400);
  await app.call("POST", "/track", { userId: "v".repeat(5000), event: "image.x" });
  assert.deepEqual((await requestsOf(app)).map(({ userId }) => userId).sort(), ["u\uFFFD", "v".repeat(400)]);
});

Deno.test("failed calls of a batch are rows of its path by code, which show the last of them", async () => {
  const app = await appWithUser(service);
  const tracked = (count: number) => ({ userId: "u", event: "image.x", count, prompt: "SECRET" });
  const calls = [tracked(-1), tracked(1), tracked(1000), tracked(-2)].map((sent) => ({
    call: "track",
    ...sent,
  }));
  assert.equal((await dataOf(app.call("POST", "/batch", { calls }))).results.length, 4);
  await dataOf(app.call("POST", "/track/batch", { events: [tracked(1), "text"] }));
  assert.deepEqual((await shownOf(app)).sort(), [
    "400 invalid_request POST /api/v1/batch live 2",
    "400 invalid_request POST /api/v1/track/batch live 1",
    "429 limit_reached POST /api/v1/batch live 1",
  ]);
  const [row] = await requestsOf(app, "&status=400&path=v1/batch");
  assert.equal(row?.message, "calls[3]: count: must be greater than 0");
  assert.equal(row?.userId, "u");
  assert.deepEqual(JSON.parse(String(row?.body)), { ...calls[3], prompt: "[hidden]" });
});

Deno.test("calls above a limit are one row a day, others one an hour", async () => {
  const app = await appWithUser(service);
  service.clock.advance(DAY - service.clock.now() % DAY);
  for (let hour = 0; hour < 3; hour++) {
    for (const count of [1000, -1]) {
      await app.call("POST", "/track", { userId: "u", event: "image.x", count });
    }
    service.clock.advance(12 * 3_600_000);
  }
  const counts = async (status: number) =>
    (await requestsOf(app, `&status=${status}`)).map((row) => row.count);
  assert.deepEqual([await counts(429), await counts(400)], [[1, 2], [1, 1, 1]]);
});

Deno.test("keys of an app's users share rows, so that many users leave room for the app's own keys", async () => {
  const app = await appWithUser(service);
  for (const userId of ["u", "other"]) {
    await dataOf(app.call("POST", "/can-use", { userId, event: "image.x" }));
    const { key } = await dataOf(app.call("POST", `/users/${userId}/keys`, { name: "Laptop" }));
    assertRefused(await app.call("POST", "/can-use", { event: 1 }, { key }), 403, "requires_secret_key");
  }
  const [row, ...others] = await requestsOf(app);
  assert.deepEqual(others, []);
  assert.deepEqual([row?.count, row?.keyPrefix], [2, "uk_live_"]);
});

Deno.test("a revoked key is the app's, an unknown one is of no app, and no key is nobody's", async () => {
  const app = await appWithUser(service);
  const { keyId, key } = await dataOf(
    service.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live" }),
  );
  await dataOf(service.admin("DELETE", `/apps/${app.appId}/keys/${keyId}`));
  assertRefused(await app.call("GET", "/credits?userId=u", undefined, { key }), 401, "invalid_key");
  const strange = "sk_live_Strange0123456789";
  assertRefused(await app.call("GET", "/credits?userId=u", undefined, { key: strange }), 401, "invalid_key");
  assert.deepEqual(await shownOf(app), ["401 invalid_key GET /api/v1/credits live 1"]);
  const { keys } = await dataOf(service.admin("GET", "/unknown-keys"));
  const found = keys.filter((row: { keyPrefix: string }) => row.keyPrefix === strange.slice(0, 12));
  assert.equal(found.length, 1);
  assert.equal(JSON.stringify(keys).includes(strange), false);
});

Deno.test("pages continue where the last one ended", async () => {
  const app = await appWithUser(service);
  for (const path of ["/commit", "/reserve", "/track", "/release"]) await app.call("POST", path, {});
  const list = (query: string) => dataOf(service.admin("GET", `/apps/${app.appId}/requests?limit=2${query}`));
  const first = await list("");
  const second = await list(`&cursor=${first.cursor}`);
  assert.equal(first.requests.length + second.requests.length, (await requestsOf(app)).length);
  assert.equal(second.cursor, null);
  assertRefused(await service.admin("GET", `/apps/${app.appId}/requests?cursor=x`), 400, "invalid_request");
});

Deno.test("an erasure removes a user's rows, whatever names the user, and those that are written later", async () => {
  const app = await appWithUser(service);
  const bad = (userId: string, path = "/track") => app.call("POST", path, { userId, event: "*" });
  await bad("gone");
  await dataOf(app.call("POST", "/track", { userId: "gone", event: "image.x" }));
  await app.call("GET", "/users/gone/keys?limit=x");
  await app.call("POST", "/track/batch", { events: "none", about: ["gone"] });
  await bad("u", "/reserve");
  await requestsOf(app);
  await bad("gone", "/can-use");
  await erase(service, { app, userId: "gone", key: app.secretLive } as Customer, "gone");
  assert.deepEqual(
    (await requestsOf(app)).map(({ path, userId }) => [path, userId]),
    [["/api/v1/can-use", null], ["/api/v1/reserve", "u"]],
  );
  const rows = await service.store.database.query("select * from failed_requests where app_id = $1", [
    app.appId,
  ]);
  assert.equal(JSON.stringify(rows).includes("gone"), false);
});

Deno.test("rows are removed 7 days after their last request, and beyond the number of an app", async () => {
  const app = await appWithUser(service);
  await app.call("PUT", "/track", {});
  assert.equal((await requestsOf(app)).length, 1);
  service.clock.set(service.clock.now() + 7 * DAY + 1);
  assert.deepEqual(await requestsOf(app), []);
  assert.ok((await dataOf(service.admin("POST", "/sweep"))).failedRequests >= 1);
  using _limits = changedLimits(REQUEST_LOG_LIMITS, { storedMax: 2 });
  for (const path of ["/commit", "/reserve", "/track"]) {
    service.clock.advance(1);
    await app.call("POST", path, {});
    await requestsOf(app);
  }
  assert.deepEqual((await requestsOf(app)).map(({ path }) => path), ["/api/v1/track", "/api/v1/reserve"]);
});
