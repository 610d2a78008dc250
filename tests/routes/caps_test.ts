// The workspace cap and the sandbox cap: where exactly they refuse, what goes on beyond them, and what they count.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, countOf, dataOf, holdImages, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const TRACK = { userId: "u", event: "image.x" };

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
