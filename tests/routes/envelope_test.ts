// What every answer carries, whatever it says: the envelope, the request id, the headers of security.

import { NO_FEATURES } from "../../src/process/features.ts";
import assert from "node:assert/strict";
import { send } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

Deno.test("every answer carries a request id and the headers of security, refusals and pages too", async () => {
  const app = await appWithUser(service);
  const calls: [string, string, string | undefined, number][] = [
    ["GET", "/api/v1/plans", app.secretLive, 200],
    ["GET", "/api/v1/usage", app.secretLive, 400],
    ["GET", "/api/v1/plans", undefined, 401],
    ["GET", "/api/v1/events", app.publicLive, 403],
    ["GET", "/api/v1/nothing", app.secretLive, 404],
    ["DELETE", "/api/v1/plans", app.secretLive, 405],
    ["GET", "/api/admin/v1/apps", undefined, 401],
    ["GET", "/healthz", undefined, 200],
    ["GET", "/readyz", undefined, 200],
    ["GET", "/metrics", undefined, 200],
    ["POST", "/metrics", undefined, 405],
    ["GET", "/nowhere", undefined, 404],
  ];
  for (const [method, path, key, status] of calls) {
    const answer = await send(service.http, method, path, undefined, key === undefined ? {} : { key });
    const note = `${method} ${path}`;
    assert.equal(answer.status, status, note);
    assert.match(answer.headers.get("x-request-id") ?? "", /^[A-Za-z0-9._-]{1,100}$/, note);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff", note);
    assert.equal(answer.headers.get("referrer-policy"), "no-referrer", note);
    if (path === "/metrics" && method === "GET") continue;
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json/, note);
    assert.equal(answer.body.ok, status === 200, note);
    assert.deepEqual(Object.keys(answer.body), status === 200 ? ["ok", "data"] : ["ok", "error"], note);
  }
});

Deno.test("a well-formed X-Request-Id comes back, any other is replaced by a new one", async () => {
  const app = await appWithUser(service);
  const idOf = async (id: string, path = "/plans") =>
    (await app.call("GET", path, undefined, { headers: { "x-request-id": id } })).headers.get("x-request-id");
  for (const id of ["a", "A-Za_z0.9", "x".repeat(100)]) {
    assert.equal(await idOf(id), id);
    assert.equal(await idOf(id, "/nothing"), id);
  }
  const made = new Set<string | null>();
  for (const id of ["", "a b", "ü", "x".repeat(101), "a/b", "a,b"]) made.add(await idOf(id));
  assert.equal(made.size, 6);
  for (const id of made) assert.match(id ?? "", /^[0-9a-f-]{36}$/);
});

Deno.test("the log of a failed request names the id that its answer carries", async () => {
  const { respondTo } = await import("../../routes/respond.ts");
  const lines: string[] = [];
  const { writeSync } = Deno.stderr;
  Deno.stderr.writeSync = (bytes) => {
    lines.push(new TextDecoder().decode(bytes));
    return bytes.byteLength;
  };
  let response: Response;
  try {
    response = respondTo(new Request("http://service.test/"), new Error("a bug"));
  } finally {
    Deno.stderr.writeSync = writeSync;
  }
  assert.equal(response.status, 500);
  const body = await response.json();
  assert.equal(body.error.code, "internal_error");
  assert.ok(!JSON.stringify(body).includes("a bug"));
  assert.equal(JSON.parse(lines[0] ?? "{}").requestId, response.headers.get("x-request-id"));
});

Deno.test("results without a value answer an empty object", async () => {
  const app = await appWithUser(service);
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }));
  assert.deepEqual(await dataOf(app.call("POST", "/release", { reservationId })), {});
});

Deno.test("times are ISO 8601 in UTC with milliseconds", async () => {
  const app = await appWithUser(service);
  const hold = await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x" }));
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const user = await dataOf(app.call("GET", "/users/u"));
  const feed = await dataOf(app.call("GET", "/events"));
  const times = [
    hold.expiresAt,
    user.subscription.startedAt,
    user.history[0].at,
    user.period.start,
    user.period.end,
    feed.events[0].createdAt,
  ];
  for (const time of times) assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

Deno.test("while the process is not the writer every call under /api is unavailable before its key is looked at", async () => {
  const { Service } = await import("../../src/service/service.ts");
  const { makeIdSource } = await import("../../src/process/id_source.ts");
  const { makeApp } = await import("../../routes/app.ts");
  const standby = new Service(
    service.store.database,
    makeIdSource(service.clock),
    service.clock,
    NO_FEATURES,
  );
  const http = makeApp(standby, "an-admin-token-0123456789");
  const paths = ["/v1/plans", "/v1/nothing", "/admin/v1/apps", "/admin/v1/nothing", "/admin/v1/sweep"];
  for (const path of paths) {
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await send(http, method, `/api${path}`, undefined, { key: "wrong" });
      assertRefused(answer, 503, "unavailable", `${method} ${path}`);
      assert.ok(Number(answer.headers.get("retry-after")) >= 1);
      assert.equal(answer.headers.get("connection"), null);
    }
  }
  assert.equal((await send(http, "GET", "/healthz", undefined, {})).status, 200);
  assertRefused(await send(http, "GET", "/readyz", undefined, {}), 503, "unavailable");
  standby.refuseCalls();
  for (const path of [...paths.map((path) => `/api${path}`), "/api/v1/export-download", "/readyz"]) {
    const answer = await send(http, "GET", path, undefined, { key: "wrong" });
    assertRefused(answer, 503, "unavailable", path);
    assert.equal(answer.headers.get("connection"), "close", `${path} of a stopping process`);
  }
});
