// The form of refusals: each names the member at fault in its message and in details, and a known path says what it
// answers.

import assert from "node:assert/strict";
import { ADMIN_TOKEN, send } from "../support/test_service.ts";
import { appWithUser, assertRefused, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

/** Calls with the invalid member, and the begin of its message. */
const FAULTS:
  readonly (readonly [method: string, path: string, body: unknown, member: string, says: string])[] = [
    ["POST", "/reserve", { event: "image.x" }, "userId", "is required"],
    ["POST", "/reserve", { userId: "", event: "image.x" }, "userId", "must have 1 to 200 characters"],
    ["POST", "/reserve", { userId: 7, event: "image.x" }, "userId", "must be a string"],
    ["POST", "/reserve", { userId: "u", event: "image.x", count: "1" }, "count", "must be a number"],
    ["POST", "/commit", { reservationId: "" }, "reservationId", "must have 1 to 200 characters"],
    ["POST", "/commit", { reservationId: "r", response: "a\0b" }, "response", "must not contain U+0000"],
    ["POST", "/release", { reservationId: "r", response: "a\ud800" }, "response", "or a lone surrogate"],
    ["POST", "/track", { userId: "u", event: "e", metadata: { a: { b: "\0" } } }, "metadata.a.b", "U+0000"],
    ["POST", "/track", { userId: "u", event: "e", metadata: { "a\0": 1 } }, "metadata", "U+0000"],
    [
      "POST",
      "/commit",
      { reservationId: "r", extra: { count: 1 }, actual: { count: 1 } },
      "extra.count",
      "cannot be combined with actual.count",
    ],
    [
      "POST",
      "/commit",
      { reservationId: "r", costCents: 1, actual: { cents: 1 } },
      "costCents",
      "cannot be combined with actual.cents",
    ],
    [
      "POST",
      "/subscriptions",
      { userId: "u", planId: "plan_pro", provider: "p" },
      "externalId",
      "is required",
    ],
    [
      "POST",
      "/subscriptions",
      { userId: "u", planId: "plan_pro", externalId: "e" },
      "provider",
      "is required",
    ],
    [
      "POST",
      "/subscriptions",
      { userId: "u", planId: "plan_pro", endsAt: "2001-01-01T00:00:00Z" },
      "endsAt",
      "must be in the future",
    ],
    ["POST", "/test-clock", { advanceSeconds: 1, now: "2030-01-01T00:00:00Z" }, "advanceSeconds", "now"],
    ["GET", "/usage", undefined, "userId", "is required"],
    ["GET", "/usage?userId=", undefined, "userId", "must have 1 to 200 characters"],
    ["GET", "/usage?userId=%00", undefined, "userId", "U+0000"],
    ["GET", "/users/%ff", undefined, "userId", "invalid percent-encoding"],
    ["GET", "/credits/history?userId=u&cursor=x", undefined, "cursor", "must be the nextCursor"],
  ];

for (const [method, path, body, member, says] of FAULTS) {
  Deno.test(`${method} ${path} names ${member}: ${says}`, async () => {
    const app = await appWithUser(service, {}, "secretTest");
    const error = assertRefused(
      await app.call(method, path, body, { key: app.secretTest }),
      400,
      "invalid_request",
    );
    const [first] = error.details;
    assert.equal(first.path, member);
    assert.ok(first.message.includes(says), first.message);
    assert.equal(error.message, `${member}: ${first.message}`);
  });
}

Deno.test("a body that is no JSON object is a fault of no member", async () => {
  const app = await appWithUser(service);
  for (const body of ["[]", "1", "{", ""]) {
    const error = assertRefused(await app.call("POST", "/reserve", body), 400, "invalid_request", body);
    assert.deepEqual(error.details, [{ path: "", message: error.message }], body);
  }
});

Deno.test("a known path says which methods it answers", async () => {
  const app = await appWithUser(service);
  for (
    const [method, path, allow] of [
      ["GET", "/api/v1/reserve", "POST"],
      ["GET", "/api/v1/subscriptions", "POST, DELETE"],
      ["PUT", "/api/v1/users/u", "GET"],
      ["POST", "/healthz", "GET"],
    ] as const
  ) {
    const answer = await send(service.http, method, path, undefined, { key: app.secretLive });
    assertRefused(answer, 405, "method_not_allowed", path);
    assert.equal(answer.headers.get("allow"), allow, path);
  }
  const admin = await send(service.http, "GET", "/api/admin/v1/sweep", undefined, { key: ADMIN_TOKEN });
  assert.equal(admin.headers.get("allow"), "POST");
  const unknown = await app.call("GET", "/nothing");
  assert.equal(unknown.headers.get("allow"), null);
});

Deno.test("the scheme of Authorization has no case", async () => {
  const app = await appWithUser(service);
  for (const scheme of ["bearer", "BEARER", "BeArEr ", "Bearer"]) {
    const headers = { authorization: `${scheme} ${app.secretLive}` };
    await dataOf(send(service.http, "GET", "/api/v1/plans", undefined, { headers }));
  }
  const headers = { authorization: `Basic ${app.secretLive}` };
  assertRefused(await send(service.http, "GET", "/api/v1/plans", undefined, { headers }), 401, "invalid_key");
});

Deno.test("a cursor of another user, or of the other mode, is invalid", async () => {
  const pack = {
    id: "cpk_a",
    name: "A",
    kind: "generic",
    items: [{ id: "cpi_a", label: "A", unit: "count", amount: 5, matches: [{ event: "*" }] }],
  };
  const app = await service.newApp({ plans: [], packs: [pack] });
  for (const key of [app.secretLive, app.secretTest]) {
    for (const userId of ["u", "v"]) {
      for (const externalRef of ["1", "2"]) {
        const body = { userId, packId: "cpk_a", externalRef };
        await dataOf(app.call("POST", "/credits/grant", body, { key }));
      }
    }
  }
  const page = (userId: string, cursor: string, key = app.secretLive) =>
    app.call("GET", `/credits/history?userId=${userId}&limit=1${cursor}`, undefined, { key });
  const { nextCursor } = await dataOf(page("u", ""));
  const cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
  await dataOf(page("u", cursor));
  assertRefused(await page("v", cursor), 400, "invalid_request");
  assertRefused(await page("u", cursor, app.secretTest), 400, "invalid_request");
});
