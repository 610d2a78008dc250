// The header Idempotency-Key: one write whatever is repeated, the first answer again, and which refusals are kept.

import assert from "node:assert/strict";
import type { Answer, CallOptions, TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, countOf, dataOf, holdImages, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const DAY_MS = 24 * 3_600_000;
const TRACK = { userId: "u", event: "image.x" };

function callOnce(app: TestApp, path: string, body: unknown, id = "k", options: CallOptions = {}) {
  const method = path.startsWith("DELETE ") ? "DELETE" : "POST";
  const headers = { ...options.headers, "idempotency-key": id };
  return app.call(method, path.replace("DELETE ", ""), body, { ...options, headers });
}

/** Checks that a second answer is the first again, marked as such. */
function assertReplayed(first: Answer, again: Answer) {
  assert.equal(first.headers.get("idempotent-replayed"), null);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(again.status, first.status);
  assert.equal(JSON.stringify(again.body), JSON.stringify(first.body));
}

Deno.test("the same call again gets the first answer and writes nothing, also after a restart", async () => {
  const app = await appWithUser(service);
  const reservationId = await holdImages(app, 2);
  const calls: [string, unknown][] = [
    ["/track", TRACK],
    ["/reserve", TRACK],
    ["/can-use", TRACK],
    ["/commit", { reservationId }],
    ["/subscriptions", { userId: "v", planId: "plan_pro" }],
    ["DELETE /subscriptions", { userId: "v" }],
    ["DELETE /subscriptions?userId=u", undefined],
  ];
  const firsts: Answer[] = [];
  for (const [index, [path, body]] of calls.entries()) {
    const first = await callOnce(app, path, body, `k${index}`);
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assertReplayed(first, await callOnce(app, path, body, `k${index}`));
    firsts.push(first);
  }
  const before = await dataOf(app.call("GET", "/events?limit=100"));
  assert.equal(before.events.length, 2);
  await service.restart();
  for (const [index, [path, body]] of calls.entries()) {
    assertReplayed(firsts[index] as Answer, await callOnce(app, path, body, `k${index}`));
  }
  assert.deepEqual(await dataOf(app.call("GET", "/events?limit=100")), before);
  const { history } = await dataOf(app.call("GET", "/users/v"));
  assert.deepEqual(history.map((row: { type: string }) => row.type), ["canceled", "created"]);
});

Deno.test("a replay carries its own request id and the headers of every answer", async () => {
  const app = await appWithUser(service);
  const headers = { "x-request-id": "first" };
  const first = await callOnce(app, "/track", TRACK, "k", { headers });
  const again = await callOnce(app, "/track", TRACK, "k", { headers: { "x-request-id": "second" } });
  assertReplayed(first, again);
  assert.equal(again.headers.get("x-request-id"), "second");
  assert.equal(again.headers.get("x-content-type-options"), "nosniff");
});

Deno.test("another body or path under the same key is a conflict and does nothing", async () => {
  const app = await appWithUser(service);
  await dataOf(callOnce(app, "/track", TRACK));
  const others: [string, unknown][] = [
    ["/track", { ...TRACK, count: 2 }],
    ["/track", `${JSON.stringify(TRACK)} `],
    ["/track", { event: "image.x", userId: "u" }],
    ["/reserve", TRACK],
    ["/can-use", TRACK],
    ["DELETE /subscriptions", { userId: "u" }],
    ["DELETE /subscriptions?userId=u", undefined],
    ["/subscriptions", { userId: "u", planId: "plan_pro" }],
  ];
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    for (const [path, body] of others) {
      assertRefused(await callOnce(app, path, body), 409, "idempotency_conflict", path);
    }
  }
  assert.equal(await countOf(app, "lg_images"), 1);
});

Deno.test("POST and DELETE of one path are two paths under one key", async () => {
  const app = await appWithUser(service);
  const body = { userId: "u", planId: "plan_pro" };
  await dataOf(callOnce(app, "/subscriptions", body));
  assertRefused(await callOnce(app, "DELETE /subscriptions", body), 409, "idempotency_conflict");
  await dataOf(callOnce(app, "DELETE /subscriptions?userId=u", undefined, "k2"));
  assertRefused(
    await callOnce(app, "DELETE /subscriptions?userId=v", undefined, "k2"),
    409,
    "idempotency_conflict",
  );
});

Deno.test("twins in flight make one write and all get its answer; one with another body is a conflict", async () => {
  const app = await appWithUser(service);
  const twins = Array.from({ length: 30 }, () => callOnce(app, "/track", TRACK));
  const other = callOnce(app, "/track", { ...TRACK, count: 5 });
  const answers = await Promise.all(twins);
  assertRefused(await other, 409, "idempotency_conflict");
  const ids = new Set(answers.map(({ body }) => body.data.eventId));
  assert.equal(ids.size, 1);
  assert.equal(answers.filter(({ headers }) => headers.get("idempotent-replayed") === null).length, 1);
  assert.equal(await countOf(app, "lg_images"), 1);
});

Deno.test("twins of calls without a turn of their own make one move of the test clock", async () => {
  const app = await appWithUser(service);
  const options = { key: app.secretTest };
  const start = Date.parse((await dataOf(app.call("GET", "/test-clock", undefined, options))).now);
  const body = { advanceSeconds: 60 };
  const answers = await Promise.all([1, 2, 3].map(() => callOnce(app, "/test-clock", body, "k", options)));
  for (const { body } of answers) assert.equal(Date.parse(body.data.now), start + 60_000);
  await service.restart();
  const again = await callOnce(app, "/test-clock", body, "k", options);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(
    Date.parse((await dataOf(app.call("GET", "/test-clock", undefined, options))).now),
    start + 60_000,
  );
});

Deno.test("the domain's refusals are kept: not found, already settled, already canceled, blocked", async () => {
  const app = await appWithUser(service);
  const settled = await holdImages(app);
  await dataOf(app.call("POST", "/release", { reservationId: settled }));
  await dataOf(app.call("POST", "/track", { userId: "u", event: "one" }));
  const calls: [string, unknown, number, string][] = [
    ["/commit", { reservationId: "rsv_x" }, 404, "not_found"],
    ["/commit", { reservationId: settled }, 409, "reservation_not_pending"],
    ["/release", { reservationId: settled }, 409, "reservation_not_pending"],
    ["/subscriptions", { userId: "u", planId: "plan_later" }, 404, "not_found"],
    ["/subscriptions", { userId: "stranger", planId: "plan_later" }, 404, "not_found"],
    ["DELETE /subscriptions", { userId: "nobody" }, 404, "not_found"],
    ["/track", { userId: "u", event: "one" }, 429, "limit_reached"],
  ];
  const firsts: Answer[] = [];
  for (const [index, [path, body, status, code]] of calls.entries()) {
    const first = await callOnce(app, path, body, `k${index}`);
    assertRefused(first, status, code, path);
    firsts.push(first);
  }
  // What the second call would now be answered is another matter.
  const { CATALOG } = await import("./support.ts");
  const later = {
    ...CATALOG,
    plans: [...CATALOG.plans, { ...CATALOG.plans[1], id: "plan_later", name: "Later" }],
  };
  assert.equal((await service.admin("PUT", `/apps/${app.appId}/catalog`, later)).status, 200);
  await dataOf(app.call("POST", "/subscriptions", { userId: "nobody", planId: "plan_pro" }));
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    for (const [index, [path, body]] of calls.entries()) {
      assertReplayed(firsts[index] as Answer, await callOnce(app, path, body, `k${index}`));
    }
  }
  const { events } = await dataOf(app.call("GET", "/events?eventType=one"));
  assert.deepEqual(events.map((row: { matchStatus: string }) => row.matchStatus), ["blocked", "matched"]);
});

Deno.test("a user who was only ever refused takes no other user's number after a restart", async () => {
  const app = await appWithUser(service);
  assertRefused(await callOnce(app, "/subscriptions", { userId: "ghost", planId: "none" }), 404, "not_found");
  await dataOf(callOnce(app, "/can-use", { userId: "ghost2", event: "image.x" }, "k2"));
  await service.restart();
  await dataOf(app.call("POST", "/subscriptions", { userId: "new", planId: "plan_pro" }));
  await dataOf(app.call("POST", "/subscriptions", { userId: "ghost", planId: "plan_team" }));
  assert.equal((await dataOf(app.call("GET", "/users/new"))).subscription.planId, "plan_pro");
  assert.equal((await dataOf(app.call("GET", "/users/ghost"))).subscription.planId, "plan_team");
});

Deno.test("bad input, wrong keys and refusals at a cap are not kept", async () => {
  const app = await appWithUser(service, { operationCap: 0 });
  const past = { userId: "u", planId: "plan_pro", endsAt: "2020-01-01T00:00:00Z" };
  assertRefused(await callOnce(app, "/subscriptions", past), 400, "invalid_request");
  assertRefused(await callOnce(app, "/subscriptions", { userId: "" }), 400, "invalid_request");
  assertRefused(await callOnce(app, "/track", "{"), 400, "invalid_request");
  assertRefused(
    await callOnce(app, "/track", TRACK, "k", { key: app.publicLive }),
    403,
    "requires_secret_key",
  );
  assertRefused(await callOnce(app, "/track", TRACK), 429, "workspace_limit_reached");
  assertRefused(await callOnce(app, "/reserve", TRACK), 429, "workspace_limit_reached");
  await service.admin("PATCH", `/workspaces/${app.workspaceId}`, { operationCap: null });
  const first = await callOnce(app, "/track", TRACK);
  assert.equal(first.status, 200);
  await service.admin("PATCH", `/workspaces/${app.workspaceId}`, { operationCap: 0 });
  assertReplayed(first, await callOnce(app, "/track", TRACK));
});

Deno.test("a refusal by reserve is an answer and is kept", async () => {
  const app = await appWithUser(service);
  const body = { userId: "u", event: "image.x", count: 101 };
  const first = await callOnce(app, "/reserve", body);
  assert.deepEqual(first.body.data.reasons, ["limit_reached"]);
  assertReplayed(first, await callOnce(app, "/reserve", body));
});

Deno.test("a first answer is kept for 24 hours of real time, then the call is a new one", async () => {
  const app = await appWithUser(service);
  const first = await callOnce(app, "/track", TRACK);
  const options = { key: app.secretTest };
  const inTest = await callOnce(app, "/track", TRACK, "k", options);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 7 * 86_400 }, options));
  assertReplayed(inTest, await callOnce(app, "/track", TRACK, "k", options));
  service.clock.advance(DAY_MS - 1);
  assertReplayed(first, await callOnce(app, "/track", TRACK));
  await service.restart();
  assertReplayed(first, await callOnce(app, "/track", TRACK));
  service.clock.advance(1);
  const second = await callOnce(app, "/track", { ...TRACK, count: 2 });
  assert.equal(second.status, 200, "another body, since the key is free again");
  assert.equal(second.headers.get("idempotent-replayed"), null);
  assert.equal(await countOf(app, "lg_images"), 3);
  await service.restart();
  assertReplayed(second, await callOnce(app, "/track", { ...TRACK, count: 2 }));
  service.clock.advance(DAY_MS - 1);
  assertReplayed(second, await callOnce(app, "/track", { ...TRACK, count: 2 }));
});

Deno.test("keys are of their app and mode", async () => {
  const app = await appWithUser(service);
  const other = await appWithUser(service);
  const live = await callOnce(app, "/track", TRACK);
  const test = await callOnce(app, "/track", TRACK, "k", { key: app.secretTest });
  const foreign = await callOnce(other, "/track", TRACK);
  assert.equal(new Set([live, test, foreign].map(({ body }) => body.data.eventId)).size, 3);
  const { key } =
    (await service.admin("POST", `/apps/${app.appId}/keys`, { class: "secret", mode: "live" })).body.data;
  assertReplayed(live, await callOnce(app, "/track", TRACK, "k", { key }));
});

Deno.test("a key has 1 to 200 characters and is exact; a GET ignores it", async () => {
  const app = await appWithUser(service);
  for (const id of ["", "x".repeat(201), "x".repeat(5000)]) {
    assertRefused(await callOnce(app, "/track", TRACK, id), 400, "invalid_request");
  }
  assert.equal(await countOf(app, "lg_images"), 0);
  for (const id of ["a", "A", "x".repeat(200), "a b", "ü", "'", "__proto__"]) {
    assertReplayed(await callOnce(app, "/track", TRACK, id), await callOnce(app, "/track", TRACK, id));
  }
  assert.equal(await countOf(app, "lg_images"), 7);
  const headers = { "idempotency-key": "a" };
  for (const path of ["/plans", "/usage?userId=u"]) {
    const answer = await app.call("GET", path, undefined, { headers });
    assert.deepEqual([answer.status, answer.headers.get("idempotent-replayed")], [200, null]);
  }
});
