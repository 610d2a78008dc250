// The header Idempotency-Key (one write whatever is repeated, the first answer again), and the caps of a workspace: where
// exactly they refuse, what goes on beyond them, and what they count.

import assert from "node:assert/strict";
import { REWRITE_LIMITS } from "../../src/domain/state/open_holds.ts";
import { changedLimits } from "../support/limits.ts";
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

const MODES = [
  { mode: "live", key: "secretLive", cap: "operationCap", code: "workspace_limit_reached" },
  { mode: "test", key: "secretTest", cap: "testOperationCap", code: "test_quota_exceeded" },
] as const;

async function usedOf(app: TestApp): Promise<{ live: number; test: number }> {
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === app.workspaceId);
  return { live: row.operationsUsed, test: row.testOperationsUsed };
}

function setCaps(app: TestApp, caps: Record<string, number | null>) {
  return service.admin("PATCH", `/workspaces/${app.workspaceId}`, caps);
}

for (const { mode, key, cap, code } of MODES) {
  const other = mode === "live" ? "test" : "live";

  Deno.test(`in ${mode} mode the call that finds the cap used is refused, and not the one before`, async () => {
    const app = await appWithUser(service, { [cap]: 3 }, key);
    const options = { key: app[key] };
    for (let used = 1; used <= 3; used++) {
      await dataOf(app.call("POST", "/track", TRACK, options));
      assert.equal((await usedOf(app))[mode], used);
    }
    for (const path of ["/track", "/reserve"]) {
      assertRefused(await app.call("POST", path, TRACK, options), 429, code, path);
    }
    assert.equal(await countOf(app, "lg_images", app[key]), 3);
    assert.equal((await dataOf(app.call("GET", "/events", undefined, options))).events.length, 3);
    assert.deepEqual(await usedOf(app), { live: 0, test: 0, [mode]: 3 });
  });

  Deno.test(`in ${mode} mode reads, subscriptions, commit and release work at the cap; ${other} mode too`, async () => {
    const app = await appWithUser(service, { [cap]: 1 }, key);
    const options = { key: app[key] };
    const held = [await holdImages(app, 2, app[key]), await holdImages(app, 3, app[key])];
    const lapsed = await holdImages(app, 4, app[key]);
    await dataOf(app.call("POST", "/track", TRACK, options));
    assertRefused(await app.call("POST", "/track", TRACK, options), 429, code);
    await dataOf(app.call("POST", "/commit", { reservationId: held[0] }, options));
    await dataOf(app.call("POST", "/release", { reservationId: held[1] }, options));
    assert.equal((await usedOf(app))[mode], 2, "a commit counts past the cap");
    if (mode === "test") await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 601 }, options));
    else service.clock.advance(601_000);
    const late = await dataOf(app.call("POST", "/commit", { reservationId: lapsed }, options));
    assert.equal(late.recharged, true);
    assert.equal((await dataOf(app.call("POST", "/can-use", TRACK, options))).allowed, true);
    const grant = await app.call("POST", "/credits/grant", { userId: "u", packId: "none" }, options);
    assertRefused(grant, 404, "credit_pack_not_found", "a grant gets to its own refusals");
    await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro" }, options));
    await dataOf(app.call("DELETE", "/subscriptions?userId=v", undefined, options));
    for (const path of ["/usage?userId=u", "/users/u", "/events", "/plans"]) {
      await dataOf(app.call("GET", path, undefined, options));
    }
    assert.equal(await countOf(app, "lg_images", app[key]), 7);
    const elsewhere = { key: mode === "live" ? app.secretTest : app.secretLive };
    await dataOf(app.call("POST", "/track", TRACK, elsewhere));
  });

  Deno.test(`in ${mode} mode a changed cap holds from the next call on`, async () => {
    const app = await appWithUser(service, { [cap]: 1 }, key);
    const track = () => app.call("POST", "/track", TRACK, { key: app[key] });
    await dataOf(track());
    assertRefused(await track(), 429, code);
    for (const raised of [2, 2.5, null]) {
      assert.equal((await setCaps(app, { [cap]: raised })).status, 200);
      await dataOf(track());
    }
    await setCaps(app, { [cap]: 4 });
    assertRefused(await track(), 429, code);
    await setCaps(app, { [cap]: 0 });
    assertRefused(await track(), 429, code);
  });

  Deno.test(`in ${mode} mode used operations survive a restart`, async () => {
    const app = await appWithUser(service, { [cap]: 5 }, key);
    const track = () => app.call("POST", "/track", TRACK, { key: app[key] });
    for (let used = 0; used < 4; used++) await dataOf(track());
    await service.restart();
    assert.equal((await usedOf(app))[mode], 4);
    await dataOf(track());
    assertRefused(await track(), 429, code);
    await service.restart();
    assertRefused(await track(), 429, code);
    assert.equal((await usedOf(app))[mode], 5);
  });
}

Deno.test("only counted events are operations: not holds, releases, reads, blocked or unmatched events", async () => {
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/release", { reservationId: await holdImages(app) }));
  const reservationId = await holdImages(app);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "nothing" }));
  await dataOf(app.call("POST", "/track", { userId: "nobody", event: "image.x" }));
  assertRefused(await app.call("POST", "/track", { ...TRACK, count: 1000 }), 429, "limit_reached");
  await dataOf(app.call("POST", "/reserve", { ...TRACK, count: 1000 }));
  await dataOf(app.call("POST", "/can-use", TRACK));
  assert.deepEqual(await usedOf(app), { live: 0, test: 0 });
  await dataOf(app.call("POST", "/commit", { reservationId }));
  assertRefused(await app.call("POST", "/commit", { reservationId }), 409, "reservation_not_pending");
  await dataOf(app.call("POST", "/track", TRACK));
  assert.deepEqual(await usedOf(app), { live: 2, test: 0 });
});

Deno.test("a track with a key that is replayed counts once", async () => {
  const app = await appWithUser(service, { operationCap: 2 });
  const headers = { "idempotency-key": "k" };
  for (let call = 0; call < 5; call++) await dataOf(app.call("POST", "/track", TRACK, { headers }));
  assert.deepEqual(await usedOf(app), { live: 1, test: 0 });
});

Deno.test("of parallel tracks exactly as many pass as the cap has left, over all users and apps of a workspace", async () => {
  const app = await appWithUser(service, { operationCap: 10 });
  const { appId, keys } =
    (await service.admin("POST", "/apps", { name: "B", workspaceId: app.workspaceId })).body.data;
  const { CATALOG } = await import("./support.ts");
  await service.admin("PUT", `/apps/${appId}/catalog`, CATALOG);
  const isSecretLive = (row: { class: string; mode: string }) =>
    row.class === "secret" && row.mode === "live";
  const other = keys.find(isSecretLive).key;
  const users = ["u", "v", "w"];
  for (const userId of users) {
    for (const key of [app.secretLive, other]) {
      await dataOf(app.call("POST", "/subscriptions", { userId, planId: "plan_pro" }, { key }));
    }
  }
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const body = { userId: users[index % 3], event: "image.x" };
      return app.call("POST", "/track", body, { key: index % 2 === 0 ? app.secretLive : other });
    }),
  );
  assert.equal(answers.filter(({ status }) => status === 200).length, 10);
  for (const answer of answers) {
    if (answer.status !== 200) assertRefused(answer, 429, "workspace_limit_reached");
  }
  assert.deepEqual(await usedOf(app), { live: 10, test: 0 });
});

Deno.test("months are those of the real clock in UTC, whatever a test clock says", async () => {
  service.clock.set(Date.UTC(2026, 4, 31, 23, 59, 59, 0));
  const app = await appWithUser(service, { operationCap: 1, testOperationCap: 1 }, "secretTest");
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
  const track = (key: string) => app.call("POST", "/track", TRACK, { key });
  await dataOf(track(app.secretTest));
  await dataOf(track(app.secretLive));
  await dataOf(app.call("POST", "/test-clock", { now: "2026-09-01" }, { key: app.secretTest }));
  assertRefused(await track(app.secretTest), 429, "test_quota_exceeded");
  service.clock.set(Date.UTC(2026, 4, 31, 23, 59, 59, 999));
  assertRefused(await track(app.secretTest), 429, "test_quota_exceeded");
  assertRefused(await track(app.secretLive), 429, "workspace_limit_reached");
  service.clock.set(Date.UTC(2026, 5, 1));
  assert.deepEqual(await usedOf(app), { live: 0, test: 0 });
  await dataOf(track(app.secretTest));
  await service.restart();
  assertRefused(await track(app.secretTest), 429, "test_quota_exceeded");
  await dataOf(track(app.secretLive));
  assert.deepEqual(await usedOf(app), { live: 1, test: 1 });
});

Deno.test("a change of plan that would move too many open holds is refused for now, and not kept", async () => {
  using _limits = changedLimits(REWRITE_LIMITS, { holdsMax: 1 });
  const app = await appWithUser(service);
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_team" }));
  const held = [await holdImages(app), await holdImages(app)];
  const change = { userId: "u", planId: "plan_pro" };
  const { message } = assertRefused(await callOnce(app, "/subscriptions", change), 503, "unavailable");
  assert.match(message, /open holds/);
  await dataOf(app.call("POST", "/release", { reservationId: held[0] }));
  await dataOf(callOnce(app, "/subscriptions", change));
});
