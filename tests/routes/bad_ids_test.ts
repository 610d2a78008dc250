// Ids: their length in code points, unknown ones, and those of another app or of the other mode, which are as
// unknown as any.

import assert from "node:assert/strict";
import type { TestApp } from "../support/test_service.ts";
import {
  appWithUser,
  assertRefused,
  countOf,
  dataOf,
  holdImages,
  pictureOf,
  serviceOfFile,
} from "./support.ts";

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

/** Calls with ids that belong to somebody else, which answer as unknown ids do. */
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
