// The list of users for operators: what it shows of each, its orders, filters and pages, and whom a search finds.

import assert from "node:assert/strict";
import { USER_LIST_LIMITS } from "../../src/process/user_list_limits.ts";
import { changedLimits } from "../support/limits.ts";
import type { TestApp } from "../support/test_service.ts";
import { deletePerson } from "./privacy_support.ts";
import { Customer } from "./credits_support.ts";
import { connect, eventOf, send, STRIPE_CATALOG, subscriptionOf } from "./stripe_support.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const queryOf = (members: Record<string, string>) => new URLSearchParams(members).toString();

const listed = (app: TestApp, members: Record<string, string> = {}) =>
  service.admin("GET", `/apps/${app.appId}/users?${queryOf({ mode: "live", ...members })}`);

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
async function usersOf(app: TestApp, members: Record<string, string> = {}): Promise<any[]> {
  // Sums by day have the events of earlier moments.
  service.clock.advance(1);
  return (await dataOf(listed(app, members))).users;
}

async function idsOf(app: TestApp, members: Record<string, string> = {}): Promise<string[]> {
  return (await usersOf(app, members)).map(({ userId }) => userId);
}

/** The ids of all pages of two users. */
async function pagesOf(app: TestApp, members: Record<string, string>): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = "";;) {
    const next: Record<string, string> = cursor === "" ? {} : { cursor };
    const page = await dataOf(listed(app, { limit: "2", ...members, ...next }));
    ids.push(...page.users.map(({ userId }: { userId: string }) => userId));
    cursor = page.nextCursor;
    if (cursor === null) return ids;
  }
}

const track = (app: TestApp, userId: string, event: string, body: object = {}) =>
  app.call("POST", "/track", { userId, event, ...body });

const subscribe = (app: TestApp, userId: string, planId = "plan_pro") =>
  dataOf(app.call("POST", "/subscriptions", { userId, planId }));

/** Users at 90, 40 and 0 % of their limits, one that hit a limit, one without a plan, and an alias. */
async function appOfFive(): Promise<TestApp> {
  const app = await service.newApp(CATALOG);
  for (const userId of ["ann", "bob", "cleo", "dan"]) {
    await subscribe(app, userId, userId === "bob" ? "plan_team" : "plan_pro");
  }
  const video = { quantity: 4, metadata: { model: "veo" } };
  await dataOf(track(app, "ann", "image.a", { count: 90 }));
  service.clock.advance(60_000);
  await dataOf(track(app, "bob", "image.a", { count: 20 }));
  service.clock.advance(60_000);
  await dataOf(track(app, "cleo", "one"));
  for (let time = 0; time < 2; time++) assertRefused(await track(app, "cleo", "one"), 429, "limit_reached");
  service.clock.advance(60_000);
  await dataOf(track(app, "eve", "video.a", video));
  await dataOf(track(app, "bob_2", "video.a", { ...video, quantity: 1 }));
  await dataOf(app.call("POST", "/customers/alias", { from: "bob_2", to: "bob" }));
  return app;
}

Deno.test("a user is listed with its plan, fullest limit, cost, refusals and last call", async () => {
  const app = await appOfFive();
  const minute = new Date(service.clock.now() - service.clock.now() % 60_000).toISOString();
  const users = await usersOf(app);
  assert.deepEqual(users.map(({ userId, aliasOf }) => [userId, aliasOf]), [
    ["ann", null],
    ["bob", null],
    ["bob_2", "bob"],
    ["cleo", null],
    ["dan", null],
    ["eve", null],
  ]);
  const [ann, bob, alias, cleo, dan, eve] = users;
  assert.deepEqual({ ...bob, lastSeenAt: null }, {
    userId: "bob",
    aliasOf: null,
    deletionPending: false,
    planId: "plan_team",
    planName: "Team",
    fullest: { groupId: "lg_images", percent: 40 },
    costCents30d: 40,
    refusals7d: 0,
    lastSeenAt: null,
  });
  assert.equal(bob.lastSeenAt, minute);
  assert.deepEqual([ann.fullest, dan.fullest], [
    { groupId: "lg_images", percent: 90 },
    { groupId: "lg_images", percent: 0 },
  ]);
  assert.deepEqual([cleo.fullest, cleo.refusals7d], [{ groupId: "lg_one", percent: 100 }, 2]);
  assert.deepEqual([dan.lastSeenAt, eve.planId, eve.planName, eve.fullest, eve.costCents30d], [
    ...[null, null, null, null],
    160,
  ]);
  assert.deepEqual([alias.fullest, alias.lastSeenAt, alias.costCents30d], [null, null, 0]);
});

Deno.test("every order has every user once, also in pages, and filters leave out the others", async () => {
  const app = await appOfFive();
  service.clock.advance(1);
  const ORDERS: [Record<string, string>, string[]][] = [
    [{ sort: "limit" }, ["cleo", "ann", "bob", "dan", "eve"]],
    [{ sort: "limit", order: "asc" }, ["dan", "eve", "bob", "ann", "cleo"]],
    [{ sort: "cost" }, ["eve", "bob", "ann", "cleo", "dan"]],
    [{ sort: "cost", order: "asc" }, ["ann", "cleo", "dan", "bob", "eve"]],
    [{ sort: "refusals" }, ["cleo", "ann", "bob", "dan", "eve"]],
    [{ sort: "lastSeen", order: "asc" }, ["ann", "cleo", "bob", "eve", "dan"]],
    [{ sort: "plan" }, ["ann", "cleo", "dan", "bob", "eve"]],
    [{ sort: "plan", order: "desc" }, ["bob", "dan", "cleo", "ann", "eve"]],
    [{ sort: "id", order: "desc" }, ["eve", "dan", "cleo", "bob_2", "bob", "ann"]],
    [{ filter: "near", sort: "limit" }, ["cleo", "ann"]],
    [{ filter: "near" }, ["ann", "cleo"]],
    [{ filter: "hit" }, ["cleo"]],
    [{ filter: "hit", sort: "refusals" }, ["cleo"]],
    [{ plan: "plan_pro" }, ["ann", "cleo", "dan"]],
    [{ plan: "plan_pro", sort: "plan" }, ["ann", "cleo", "dan"]],
    [{ plan: "plan_pro", sort: "limit", filter: "near" }, ["cleo", "ann"]],
    [{ plan: "plan_none" }, []],
    [{ startsWith: "bob", sort: "cost" }, ["bob", "bob_2"]],
  ];
  for (const [members, expected] of ORDERS) {
    const name = JSON.stringify(members);
    assert.deepEqual(await idsOf(app, members), expected, name);
    assert.deepEqual(await pagesOf(app, members), expected, `${name} in pages`);
  }
  const { nextCursor } = await dataOf(listed(app, { sort: "cost", limit: "1" }));
  assertRefused(await listed(app, { sort: "limit", cursor: nextCursor }), 400, "invalid_request");
});

Deno.test("a window that ended reads 0, and refusals count for seven days", async () => {
  const app = await appOfFive();
  service.clock.advance(8 * DAY_MS);
  const [bob] = await usersOf(app, { startsWith: "bob" });
  assert.deepEqual([bob.fullest, bob.costCents30d], [{ groupId: "lg_images", percent: 0 }, 40]);
  assert.deepEqual(await idsOf(app, { filter: "hit" }), []);
  service.clock.advance(31 * DAY_MS);
  assert.deepEqual(await idsOf(app, { filter: "near" }), []);
  const all = await usersOf(app, { sort: "limit" });
  assert.deepEqual(all.map(({ userId, costCents30d }) => [userId, costCents30d]), [
    ...[["ann", 0], ["bob", 0], ["cleo", 0], ["dan", 0], ["eve", 0]],
  ]);
});

Deno.test("a search finds inside ids, names and customers, whatever the case, and no hidden person", async () => {
  const app = await service.newApp(STRIPE_CATALOG);
  await connect(service, app);
  const ids = ["Felix@studio.example", "user_1", "user_12", "100%", "hidden", "."];
  for (const userId of ids) await subscribe(app, userId);
  const identify = (distinctId: string, properties: object) =>
    dataOf(app.call("POST", "/identify", { distinctId, properties }));
  await identify("user_1", { email: "Müller@Post.example", plan: "felix" });
  await identify("user_12", { $name: 'Fe"lix\\' });
  await identify("hidden", { email: "hidden@post.example" });
  const bought = subscriptionOf({ metadata: { holdfast_user: "user_12" }, customer: "cus_Ab1" });
  await send(service, app, eventOf("customer.subscription.created", bought));
  const FOUND: [q: string, expected: string[]][] = [
    ["felix@STUDIO", ["Felix@studio.example"]],
    ["R_1", ["user_1", "user_12"]],
    ["_", ["user_1", "user_12"]],
    ["%", ["100%"]],
    [".", [".", "Felix@studio.example", "hidden", "user_1"]],
    ["mÜLLER@post", ["user_1"]],
    ['fe"LIX\\', ["user_12"]],
    ["cus_Ab1", ["user_12"]],
    ["cus_ab1", []],
    ["nobody", []],
  ];
  for (const [q, expected] of FOUND) assert.deepEqual((await idsOf(app, { q })).sort(), expected, q);
  {
    using _limits = changedLimits(USER_LIST_LIMITS, { searchedMax: 0 });
    assert.deepEqual(
      await idsOf(app, { q: "Hidden@POST" }),
      ["hidden"],
      "the beginning of an email is found",
    );
    assert.deepEqual(await idsOf(app, { q: "post.example" }), [], "its middle is not");
  }
  await dataOf(app.call("POST", "/opt-out", { distinctId: "hidden", scope: "analytics" }));
  assert.deepEqual((await idsOf(app, { q: "post.EXAMPLE" })).sort(), ["user_1"]);
  assert.deepEqual(await idsOf(app, { q: "HIDD" }), ["hidden"]);
  await deletePerson(new Customer(app, "user_1", app.secretLive), "user_1");
  assert.deepEqual(await idsOf(app, { q: "post.example" }), []);
});
