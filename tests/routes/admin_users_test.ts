// The admin lists of users and of their holds, and ids that are looked up.

import assert from "node:assert/strict";
import { stopQueued } from "./privacy_support.ts";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

const queryOf = (members: Record<string, string>) => new URLSearchParams(members).toString();

function listed(app: TestApp, members: Record<string, string> = {}) {
  return service.admin("GET", `/apps/${app.appId}/users?${queryOf({ mode: "live", ...members })}`);
}

async function appWith(...users: string[]): Promise<TestApp> {
  const app = await service.newApp();
  for (const userId of users) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId: "plan_pro" }));
  }
  return app;
}

async function idsOf(app: TestApp, startsWith: string): Promise<string[]> {
  const { users } = await dataOf(listed(app, { startsWith }));
  return users.map(({ userId }: { userId: string }) => userId);
}

Deno.test("users are found by the beginning of their ids, exactly and in the order of code points", async () => {
  const ids = ["ann", "ann\u{10FFFF}", "anna", "Anna", "ann_1", "annä", "ann%", "bob", "ann\u{D7FF}x", "a"];
  const app = await appWith(...ids);
  const rows: [startsWith: string, expected: string[]][] = [
    ["ann", ["ann", "ann%", "ann_1", "anna", "annä", "ann\u{D7FF}x", "ann\u{10FFFF}"]],
    ["ann_", ["ann_1"]],
    ["ann%", ["ann%"]],
    ["Ann", ["Anna"]],
    ["ann\u{D7FF}", ["ann\u{D7FF}x"]],
    ["ann\u{10FFFF}", ["ann\u{10FFFF}"]],
    ["annax", []],
    ["", ["Anna", "a", "ann", "ann%", "ann_1", "anna", "annä", "ann\u{D7FF}x", "ann\u{10FFFF}", "bob"]],
  ];
  for (const [startsWith, expected] of rows) {
    assert.deepEqual(await idsOf(app, startsWith), expected, startsWith);
  }
});

Deno.test("aliases are listed as such, and a person who waits for an erasure is marked", async () => {
  const app = await appWith("anna", "annb", "annc");
  await dataOf(app.call("POST", "/customers/alias", { from: "annb", to: "anna" }));
  const stop = stopQueued(service);
  await dataOf(app.call("POST", "/delete-person", { distinctId: "annc" }));
  await stop.reached;
  const { users } = await dataOf(listed(app, { startsWith: "ann" }));
  const kinds = users.map(({ userId, aliasOf, deletionPending }: Record<string, unknown>) => {
    return { userId, aliasOf, deletionPending };
  });
  assert.deepEqual(kinds, [
    { userId: "anna", aliasOf: null, deletionPending: false },
    { userId: "annb", aliasOf: "anna", deletionPending: false },
    { userId: "annc", aliasOf: null, deletionPending: true },
  ]);
  stop.go();
});

Deno.test("pages follow each other without a gap or a repeat, and a mode shows its own users", async () => {
  const ids = ["a1", "a2", "a3", "a4", "a5"];
  const app = await appWith(...ids);
  await dataOf(app.call("POST", "/track", { userId: "a6", event: "x" }, { key: app.secretTest }));
  const seen: string[] = [];
  for (let cursor = "";;) {
    const page = await dataOf(listed(app, { limit: "2", ...(cursor === "" ? {} : { cursor }) }));
    seen.push(...page.users.map(({ userId }: { userId: string }) => userId));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  assert.deepEqual(seen, ids);
  const ofTest = await dataOf(listed(app, { mode: "test" }));
  assert.deepEqual(ofTest.users.map(({ userId }: { userId: string }) => userId), ["a6"]);
  assertRefused(await listed(app, { cursor: "nonsense" }), 400, "invalid_request");
  assertRefused(await listed(app, { limit: "101" }), 400, "invalid_request");
  assertRefused(await service.admin("GET", `/apps/${app.appId}/users`), 400, "invalid_request");
  assertRefused(await service.admin("GET", "/apps/app_none/users?mode=live"), 404, "not_found");
});

Deno.test("open holds show with what they hold of groups and balances until they are settled or expire", async () => {
  const app = await appWith("u", "v");
  const holds = (userId: string) =>
    dataOf(service.admin("GET", `/apps/${app.appId}/users/${encodeURIComponent(userId)}/holds?mode=live`));
  const { balanceId } = await dataOf(
    app.call("POST", "/credits/grant", { userId: "u", packId: "cpk_wallet", quantity: 7 }),
  );
  const reserve = async (count: number, options = {}) =>
    (await dataOf(app.call("POST", "/reserve", { userId: "u", event: "image.x", count, ...options })))
      .reservationId;
  const first = await reserve(96, { metadata: { model: "m" } });
  service.clock.advance(1000);
  const second = await reserve(6, { ttlSeconds: 30 });
  await dataOf(app.call("POST", "/customers/alias", { from: "u", to: "v" }));
  const { holds: shown, hasMore } = await holds("u");
  assert.equal(hasMore, false);
  const at = (ms: number) => new Date(service.clock.now() + ms).toISOString();
  assert.deepEqual(shown, [
    {
      reservationId: second,
      event: "image.x",
      metadata: null,
      amounts: [
        { groupId: "lg_pro_images", unit: "count", amount: 4 },
        { balanceId, unit: "count", amount: 2 },
      ],
      createdAt: at(0),
      expiresAt: at(30_000),
    },
    {
      reservationId: first,
      event: "image.x",
      metadata: { model: "m" },
      amounts: [{ groupId: "lg_pro_images", unit: "count", amount: 96 }],
      createdAt: at(-1000),
      expiresAt: at(599_000),
    },
  ]);
  service.clock.advance(30_000);
  assert.deepEqual((await holds("v")).holds.map((hold: { reservationId: string }) => hold.reservationId), [
    first,
  ]);
  await dataOf(app.call("POST", "/release", { reservationId: first }));
  assert.deepEqual(await holds("v"), { holds: [], hasMore: false });
  assert.deepEqual(await holds("nobody"), { holds: [], hasMore: false });
});

Deno.test("an id is looked up by its form, and any other text as a reference of the caller's", async () => {
  const app = await appWith("u", "old");
  const reference = { userId: "old", packId: "cpk_wallet", quantity: 1, externalRef: "order-7" };
  const { balanceId } = await dataOf(app.call("POST", "/credits/grant", reference));
  const paid = { userId: "u", planId: "plan_team", provider: "stripe", externalId: "sub_of_stripe" };
  const { subscriptionId } = await dataOf(app.call("POST", "/subscriptions", paid));
  const { eventId } = await dataOf(app.call("POST", "/track", { userId: "old", event: "image.x" }));
  const { reservationId } = await dataOf(app.call("POST", "/reserve", { userId: "old", event: "image.x" }));
  const { mergeId } = await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  const find = async (id: string, mode = "live") =>
    (await dataOf(service.admin("GET", `/apps/${app.appId}/lookup?${queryOf({ mode, id })}`))).found;
  const of = (kind: string, id: string) => ({
    kind,
    id,
    userId: "u",
    alias: null,
    status: kind === "reservation" ? "held" : null,
  });
  assert.deepEqual(await find(balanceId), [of("balance", balanceId)]);
  assert.deepEqual(await find("order-7"), [of("balance", balanceId)]);
  assert.deepEqual(await find(subscriptionId), [of("subscription", subscriptionId)]);
  assert.deepEqual(await find("sub_of_stripe"), [of("subscription", subscriptionId)]);
  assert.deepEqual(await find(eventId), [of("event", eventId)]);
  assert.deepEqual(await find(reservationId), [of("reservation", reservationId)]);
  assert.deepEqual(await find(mergeId), [{
    kind: "merge",
    id: mergeId,
    userId: "u",
    alias: "old",
    status: null,
  }]);
  for (const id of [balanceId, eventId, reservationId, mergeId, subscriptionId, "order-7"]) {
    assert.deepEqual(await find(id, "test"), [], "Another mode knows nothing of it");
  }
  assert.deepEqual(await find("ORDER-7"), []);
  assert.deepEqual(await find("evt_none"), []);
});
