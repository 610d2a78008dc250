// Requests and answers whatever they are about: ids of every shape and owner, queries, the header Host, and what every
// answer carries.

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { send, type TestApp } from "../support/test_service.ts";
import {
  appWithUser,
  assertRefused,
  countOf,
  dataOf,
  holdImages,
  pictureOf,
  serviceOfFile,
} from "./support.ts";
import fc from "npm:fast-check@4.10.2";
import { readQuery } from "../../routes/http/body.ts";
import { NO_FEATURES } from "../../src/process/features.ts";

const service = serviceOfFile();

Deno.test("an id has 1 to 200 characters counted in code points, in bodies, queries and paths", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  for (const char of ["x", "é", "€", "😀"]) {
    const ok = char.repeat(200);
    await dataOf(app.call("POST", "/can-use", { userId: ok, event: ok }));
    await dataOf(app.call("GET", `/usage?userId=${encodeURIComponent(ok)}`));
    assert.equal((await dataOf(app.call("GET", `/users/${encodeURIComponent(ok)}`))).userId, ok);
    await dataOf(
      app.call("GET", `/events?userId=${encodeURIComponent(ok)}&eventType=${encodeURIComponent(ok)}`),
    );
    const long = encodeURIComponent(char.repeat(201));
    const paths = [
      `/usage?userId=${long}`,
      `/usage?userId=u&event=${long}`,
      `/users/${long}`,
      `/events?userId=${long}`,
      `/events?eventType=${long}`,
      `/events/${long}`,
    ];
    for (const path of paths) assertRefused(await app.call("GET", path), 400, "invalid_request", path);
    assertRefused(await app.call("DELETE", `/subscriptions?userId=${long}`), 400, "invalid_request");
  }
  for (const path of ["/usage?userId=", "/usage?userId=u&event=", "/events?userId=", "/events?eventType="]) {
    assertRefused(await app.call("GET", path), 400, "invalid_request", path);
  }
  assertRefused(await app.call("GET", "/usage"), 400, "invalid_request");
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("ids are exact: case, blanks and forms of the same letter tell users apart", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  for (const id of ["U", " u", "u ", "u\u0301", "ｕ"]) {
    const usage = await dataOf(app.call("GET", `/usage?userId=${encodeURIComponent(id)}`));
    assert.deepEqual([usage.userId, usage.period, usage.counters], [id, null, []]);
  }
  assert.equal(await countOf(app, "lg_images"), 1);
});

Deno.test("a reservation that was never given out is not found, whatever its form, also after a restart", async () => {
  const app = await appWithUser(service);
  const id = await holdImages(app);
  const before = await pictureOf(app);
  const last = id.slice(0, -1) + (id.endsWith("0") ? "1" : "0");
  const unknown = [
    "x",
    "rsv_",
    "rsv_1",
    `${id}0`,
    id.toUpperCase(),
    last,
    id.replace(/_\w+_/, "_zzzzzzzzzzz_"),
    id.replace(/_\w+_/, "_0_"),
    "rsv_1_00000000000000000000",
    " " + id,
    "evt_" + id.slice(4),
    "' or 1=1 --",
    "😀",
  ];
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    for (const reservationId of unknown) {
      for (const path of ["/commit", "/release"]) {
        const answer = await app.call("POST", path, { reservationId });
        assertRefused(answer, 404, "not_found", `${path} ${reservationId}`);
      }
    }
    for (const eventId of ["x", "evt_", "evt_00000000000000000000", id]) {
      assertRefused(
        await app.call("GET", `/events/${encodeURIComponent(eventId)}`),
        404,
        "not_found",
        eventId,
      );
    }
  }
  assert.deepEqual(await pictureOf(app), before);
});

/** Calls with ids of another app, which answer like unknown ids. */
async function assertForeign(
  app: TestApp,
  key: string,
  { reservationId, settledId, eventId }: Record<"reservationId" | "settledId" | "eventId", string>,
) {
  for (const id of [reservationId, settledId]) {
    for (const path of ["/commit", "/release"]) {
      const body = { reservationId: id };
      const answer = await app.call("POST", path, body, { key });
      const unknown = await app.call("POST", path, { reservationId: "rsv_x" }, { key });
      assertRefused(answer, 404, "not_found", `${path} ${id}`);
      assert.deepEqual(answer.body, unknown.body, "a foreign id looks like an unknown one");
    }
  }
  const answer = await app.call("GET", `/events/${eventId}`, undefined, { key });
  assertRefused(answer, 404, "not_found");
  assert.deepEqual(answer.body, (await app.call("GET", "/events/evt_x", undefined, { key })).body);
  assert.deepEqual((await dataOf(app.call("GET", "/events?userId=u", undefined, { key }))).events, []);
  const user = await dataOf(app.call("GET", "/users/u", undefined, { key }));
  assert.deepEqual([user.subscription, user.history, user.counters, user.period], [null, [], [], null]);
  assertRefused(await app.call("DELETE", "/subscriptions?userId=u", undefined, { key }), 404, "not_found");
}

Deno.test("ids of another app and of the other mode are unknown, also after a restart", async () => {
  const app = await appWithUser(service);
  const other = await service.newApp();
  const reservationId = await holdImages(app, 2);
  const settledId = await holdImages(app, 3);
  await dataOf(app.call("POST", "/release", { reservationId: settledId }));
  const { eventId } = await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  const before = await pictureOf(app);
  const ids = { reservationId, settledId, eventId };
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    await assertForeign(app, app.secretTest, ids);
    await assertForeign(app, other.secretLive, ids);
    await assertForeign(app, other.secretTest, ids);
  }
  assert.deepEqual(await pictureOf(app), before);
  await dataOf(app.call("POST", "/commit", { reservationId }));
});

Deno.test("a revoked key stops at once, in every operation, and the other keys go on", async () => {
  const app = await appWithUser(service);
  const before = await pictureOf(app);
  const { keyId, key } =
    (await service.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live" })).body.data;
  await dataOf(app.call("GET", "/plans", undefined, { key }));
  assert.equal((await service.admin("DELETE", `/apps/${app.appId}/keys/${keyId}`)).status, 200);
  const calls: [string, string, unknown?][] = [
    ["GET", "/plans"],
    ["GET", "/usage?userId=u"],
    ["POST", "/track", { userId: "u", event: "image.x" }],
    ["POST", "/reserve", { userId: "u", event: "image.x" }],
    ["GET", "/nothing"],
    ["PUT", "/plans"],
  ];
  for (const [method, path, body] of calls) {
    assertRefused(await app.call(method, path, body, { key }), 401, "invalid_key", path);
  }
  await service.restart();
  assertRefused(await app.call("GET", "/plans", undefined, { key }), 401, "invalid_key");
  assert.deepEqual(await pictureOf(app), before);
});

Deno.test("a query reads as URLSearchParams does, the first of a repeated name counts", () => {
  const piece = fc.constantFrom(
    "a",
    "userId",
    "=",
    "=",
    "&",
    "&",
    "x.y",
    "~1",
    ":@/",
    "-",
    "+",
    "%20",
    "%c3%a9",
    "?",
    "ü",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const request = new Request(`http://service.test/api/v1/usage?${pieces.join("")}`);
      const expected: Record<string, unknown> = Object.create(null);
      for (const [name, value] of new URL(request.url).searchParams) expected[name] ??= value;
      assert.deepEqual(readQuery(request).members, expected);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("a cursor that names what no text may have is invalid", async () => {
  const app = await appWithUser(service);
  const lists = [["users/u/children", "a\0"], ["users/u/members?groupId=lg_images", "1 a\0"], [
    "runs?userId=u",
    "1 a\0",
  ]];
  for (const [path = "", place = ""] of lists) {
    const cursor = `${path.includes("?") ? "&" : "?"}cursor=${Buffer.from(place).toString("base64url")}`;
    assertRefused(await app.call("GET", `/${path}${cursor}`), 400, "invalid_request", path);
  }
});

Deno.test("members named as those of objects are plain members of a query", () => {
  const { members } = readQuery(new Request("http://service.test/?__proto__=1&constructor=2"));
  assert.deepEqual(Object.entries(members), [["__proto__", "1"], ["constructor", "2"]]);
});

const BAD = [
  "%%%",
  "a b",
  "[::1",
  "x:99999999",
  "x:65536",
  "x/../y",
  "x/api/v1/plans?",
  "x?y",
  "x#y",
  "u@x",
  "\xff",
  "x, y",
  "1.2.3.4.5",
];
const GOOD = [
  "x",
  "x:1",
  "api.example.com",
  "API_1.example.com:8443",
  "[::1]:80",
  "127.0.0.1:8000",
  "localhost",
];

/** A request with an address made from its Host, like those of the runtime. */
function addressed(host: string, path: string, init: RequestInit = {}): Request {
  const request = new Request(`http://service.test${path}`, { ...init, headers: { ...init.headers, host } });
  Object.defineProperty(request, "url", { value: `http://${host}${path}` });
  return request;
}

Deno.test("an invalid Host is refused on every path before anything else, and is no part of the path", async () => {
  const app = await appWithUser(service);
  const authorization = `Bearer ${app.secretLive}`;
  const paths = [
    "/healthz",
    "/api/v1/plans",
    "/api/v1/users/u",
    "/api/v1/export-download?token=x",
    "/nothing",
    "/api/admin/v1/apps",
  ];
  for (const host of BAD) {
    for (const path of paths) {
      const response = await service.http.fetch(addressed(host, path, { headers: { authorization } }));
      const answer = { status: response.status, headers: response.headers, body: await response.json() };
      assertRefused(answer, 400, "invalid_request", `${host} ${path}`);
    }
  }
});

Deno.test("a host is taken with and without a port, and as an address", async () => {
  const app = await appWithUser(service);
  for (const host of GOOD) {
    const headers = { host };
    assert.equal((await app.call("GET", "/users/u", undefined, { headers })).status, 200, host);
    assert.equal((await send(service.http, "GET", "/healthz", undefined, { headers })).status, 200, host);
  }
});

Deno.test("without a public address a link has that of the request", async () => {
  const app = await appWithUser(service);
  const { body } = await app.call("POST", "/export-person", { distinctId: "u" });
  assert.match(body.data.downloadUrl, /^http:\/\/service\.test\/api\/v1\/export-download\?token=/);
});

Deno.test("a full address with an invalid port is refused if the answer would contain it", async () => {
  const app = await appWithUser(service);
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${app.secretLive}` },
    body: '{"distinctId":"u"}',
  };
  const request = new Request("http://service.test/api/v1/export-person", init);
  Object.defineProperty(request, "url", { value: "http://x:99999999/api/v1/export-person" });
  const response = await service.http.fetch(request);
  const answer = { status: response.status, headers: response.headers, body: await response.json() };
  assertRefused(answer, 400, "invalid_request");
});

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
  const { respondTo } = await import("../../routes/http/respond.ts");
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
  const { Service } = await import("../../src/cluster/service.ts");
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
