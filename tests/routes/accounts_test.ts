// Accounts over HTTP: users in a tree, whose calls count at every level.

import assert from "node:assert/strict";
import { CATALOG, dataOf, driftsOf, serviceOfFile } from "./support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

const [PRO] = CATALOG.plans;
const images = (quota: number) => ({
  id: "lg_pool",
  label: "Pool",
  unit: "count",
  quota,
  matches: [{ event: "image.*" }],
});
const plan = (id: string, name: string, quota: number) => ({ ...PRO, id, name, limits: [images(quota)] });
const DOCUMENT = {
  ...CATALOG,
  plans: [plan("plan_org", "Org", 10), plan("plan_team", "Team", 6), plan("plan_person", "Person", 4)],
  packs: [{
    id: "cpk_images",
    name: "Images",
    kind: "generic",
    unit: "count",
    matches: [{ event: "*" }],
    items: [],
  }],
};

/** An app in which "u" and "v" are in a team of an organisation, each with a plan. */
async function organisation(keyOf = LIVE): Promise<TestApp> {
  const app = await service.newApp(DOCUMENT);
  const key = keyOf(app);
  const plans = { org: "Org", team: "Team", u: "Person", v: "Person" };
  for (const [userId, planId] of Object.entries(plans)) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId }, key));
  }
  await dataOf(app.call("PUT", "/users/team/parent", { parentId: "org" }, key));
  for (const userId of ["u", "v"]) {
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: "team" }, key));
  }
  return app;
}

const LIVE = ({ secretLive: key }: TestApp) => ({ key });
const TEST = ({ secretTest: key }: TestApp) => ({ key });
const call = (userId: string, count: number) => ({ userId, event: "image.render", count });

async function countsOf(app: TestApp, ids: readonly string[], keyOf = LIVE): Promise<number[]> {
  const key = keyOf(app);
  const users = await Promise.all(ids.map((id) => dataOf(app.call("GET", `/users/${id}`, undefined, key))));
  return users.map(({ counters }) => counters[0].count);
}

Deno.test("a reserve counts at every level, and its settlement too", async () => {
  const app = await organisation();
  const held = await dataOf(app.call("POST", "/reserve", call("u", 3)));
  assert.deepEqual(held.levels, [
    { userId: "team", groups: [{ groupId: "lg_pool", unit: "count", quota: 6, current: 3 }] },
    { userId: "org", groups: [{ groupId: "lg_pool", unit: "count", quota: 10, current: 3 }] },
  ]);
  assert.deepEqual(await countsOf(app, ["u", "v", "team", "org"]), [3, 0, 3, 3]);
  const { reservationId } = held;
  const settled = await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 2 } }));
  assert.deepEqual(settled.levels, [
    {
      userId: "team",
      groups: [{ groupId: "lg_pool", unit: "count", quota: 6, current: 2, overflow: false }],
      uncovered: {},
    },
    {
      userId: "org",
      groups: [{ groupId: "lg_pool", unit: "count", quota: 10, current: 2, overflow: false }],
      uncovered: {},
    },
  ]);
  const other = await dataOf(app.call("POST", "/reserve", call("v", 4)));
  assert.equal(other.allowed, true);
  await dataOf(app.call("POST", "/release", { reservationId: other.reservationId }));
  assert.deepEqual(await countsOf(app, ["u", "v", "team", "org"]), [2, 0, 2, 2]);
});

Deno.test("a level that is full refuses, is named, and nothing is counted anywhere", async () => {
  const app = await organisation();
  await dataOf(app.call("POST", "/track", call("u", 4)));
  const refused = await dataOf(app.call("POST", "/reserve", call("v", 3)));
  assert.deepEqual([refused.allowed, refused.reasons, refused.refusedBy], [false, ["limit_reached"], [
    "team",
  ]]);
  const checked = await dataOf(app.call("POST", "/can-use", call("v", 3)));
  assert.deepEqual([checked.allowed, checked.refusedBy], [false, ["team"]]);
  const explained = await dataOf(app.call("POST", "/explain", call("v", 3)));
  assert.equal(
    explained.text,
    'Refused at "team" by the limit "Pool": 4 of 6 are used, and the call needs 3.',
  );
  const tracked = await app.call("POST", "/track", call("v", 3));
  assert.equal(tracked.status, 429);
  assert.deepEqual(tracked.body.error.details.refusedBy, ["team"]);
  assert.deepEqual(await countsOf(app, ["u", "v", "team", "org"]), [4, 0, 4, 4]);
});

Deno.test("the tree has no circle, and no path longer than eight users", async () => {
  const app = await organisation();
  for (const parentId of ["u", "org"]) {
    const refused = await app.call("PUT", "/users/org/parent", { parentId });
    assert.deepEqual([refused.status, refused.body.error.code], [409, "parent_cycle"]);
  }
  for (let depth = 4; depth <= 8; depth++) {
    const below = depth === 4 ? "u" : `below${depth - 1}`;
    await dataOf(app.call("PUT", `/users/below${depth}/parent`, { parentId: below }));
  }
  const tooLong = await app.call("PUT", "/users/below9/parent", { parentId: "below8" });
  assert.deepEqual([tooLong.status, tooLong.body.error.code], [409, "path_too_long"]);
  const onTop = await app.call("PUT", "/users/org/parent", { parentId: "holding" });
  assert.equal(onTop.body.error.code, "path_too_long");
  const { path } = await dataOf(app.call("GET", "/users/below8"));
  assert.deepEqual(path, ["below8", "below7", "below6", "below5", "below4", "u", "team", "org"]);
  const { children, cursor } = await dataOf(app.call("GET", "/users/team/children?limit=1"));
  assert.deepEqual(children, [{ userId: "u", children: 1 }]);
  const next = await dataOf(app.call("GET", `/users/team/children?cursor=${cursor}`));
  assert.deepEqual(next, { children: [{ userId: "v", children: 0 }], cursor: null });
});

Deno.test("a hold settles where it was taken, whatever the tree is by then", async () => {
  const app = await organisation();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("u", 2)));
  await dataOf(app.call("PUT", "/users/u/parent", { parentId: null }));
  const alone = await dataOf(app.call("POST", "/reserve", call("u", 1)));
  assert.equal(alone.levels, undefined);
  assert.deepEqual(await countsOf(app, ["u", "team", "org"]), [3, 2, 2]);
  await service.restart();
  await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 3 } }));
  assert.deepEqual(await countsOf(app, ["u", "team", "org"]), [4, 3, 3]);
});

Deno.test("a lapsed hold counts at no level, and its late commit at all of them again", async () => {
  const app = await organisation(TEST);
  const { reservationId } = await dataOf(
    app.call("POST", "/reserve", { ...call("u", 4), ttlSeconds: 60 }, TEST(app)),
  );
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 61 }, TEST(app)));
  assert.deepEqual(await countsOf(app, ["u", "team", "org"], TEST), [0, 0, 0]);
  const { recharged } = await dataOf(app.call("POST", "/commit", { reservationId }, TEST(app)));
  assert.equal(recharged, true);
  assert.deepEqual(await countsOf(app, ["u", "team", "org"], TEST), [4, 4, 4]);
});

Deno.test("merges keep the tree a tree: children follow, a parent is taken over, one path does not merge", async () => {
  const app = await organisation();
  const onePath = await app.call("POST", "/customers/alias", { from: "u", to: "org" });
  assert.deepEqual([onePath.status, onePath.body.error.code], [409, "alias_conflict"]);
  await dataOf(app.call("POST", "/track", call("u", 2)));
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("v", 1)));
  const dry = await dataOf(app.call("POST", "/customers/alias", { from: "team", to: "crew", dryRun: true }));
  const merged = await dataOf(app.call("POST", "/customers/alias", { from: "team", to: "crew" }));
  assert.deepEqual([dry.moved.movedChildren, merged.moved.movedChildren], [2, 2]);
  assert.deepEqual((await dataOf(app.call("GET", "/users/u"))).path, ["u", "crew", "org"]);
  assert.deepEqual(await countsOf(app, ["u", "v", "crew", "org"]), [2, 1, 3, 3]);
  await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 2 } }));
  assert.deepEqual(await countsOf(app, ["v", "team", "org"]), [2, 4, 4]);
  const flat = await dataOf(app.call("POST", "/customers/alias", { from: "x", to: "y" }));
  assert.equal(flat.moved.movedChildren, undefined);
});

async function erase(app: TestApp, distinctId: string): Promise<void> {
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId }));
  await service.admin("POST", "/sweep");
  const { status } = await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`));
  assert.equal(status, "completed");
}

const assertBooks = async () => assert.deepEqual(await driftsOf(service), []);

Deno.test("an erased member gives its open holds back, and what it used stays counted above", async () => {
  const app = await organisation();
  await dataOf(app.call("POST", "/track", call("u", 2)));
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("u", 2)));
  assert.deepEqual(await countsOf(app, ["team", "org"]), [4, 4]);
  await erase(app, "u");
  assert.deepEqual(await countsOf(app, ["team", "org"]), [2, 2]);
  assert.equal((await app.call("POST", "/commit", { reservationId })).status, 404);
  await assertBooks();
});

Deno.test("an erased account leaves its members to its parent, and their holds settle without it", async () => {
  const app = await organisation();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("u", 2)));
  await erase(app, "team");
  const { path } = await dataOf(app.call("GET", "/users/u"));
  assert.deepEqual(path, ["u", "org"]);
  await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 3 } }));
  assert.deepEqual(await countsOf(app, ["u", "org"]), [3, 3]);
  const held = await dataOf(app.call("POST", "/reserve", call("v", 4)));
  assert.deepEqual(held.levels.map(({ userId }: { userId: string }) => userId), ["org"]);
  await assertBooks();
});

Deno.test("an event shows what it took above, and who refused is found from above", async () => {
  const app = await organisation();
  const { eventId } = await dataOf(app.call("POST", "/track", call("u", 4)));
  const event = await dataOf(app.call("GET", `/events/${eventId}`));
  const amount = { groupId: "lg_pool", unit: "count", amount: 4 };
  assert.deepEqual(event.amounts, [amount, { ...amount, userId: "team" }, { ...amount, userId: "org" }]);
  assert.deepEqual(event.matchedGroupIds, ["lg_pool"]);
  await dataOf(app.call("POST", "/reserve", call("v", 3)));
  const { refusals } = await dataOf(app.call("GET", "/refusals?refusedBy=team"));
  assert.deepEqual(refusals.map((row: Record<string, unknown>) => [row["userId"], row["refusedBy"]]), [["v", [
    "team",
  ]]]);
  assert.deepEqual((await dataOf(app.call("GET", "/refusals?refusedBy=org"))).refusals, []);
  const usage = await dataOf(app.call("GET", "/usage?userId=v&levels=true"));
  assert.deepEqual(usage.levels.map((level: Record<string, unknown>) => level["userId"]), ["team", "org"]);
});

Deno.test("parallel calls of many members never pass a level, and every level adds up", async () => {
  const app = await organisation();
  const members = Array.from({ length: 30 }, (_, place) => `m${place}`);
  for (const userId of members) {
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: userId < "m15" ? "team" : "org" }));
  }
  const calls = Array.from({ length: 200 }, (_, place) => {
    const userId = members[place % members.length] as string;
    return dataOf(app.call("POST", place % 3 === 0 ? "/can-use" : "/reserve", call(userId, 1)));
  });
  const answers = await Promise.all(calls);
  const held = answers.filter(({ reservationId }) => reservationId !== undefined);
  const refused = answers.filter(({ allowed }) => !allowed);
  assert.equal(held.length, 10);
  assert.ok(refused.every(({ refusedBy }) => refusedBy.every((id: string) => ["team", "org"].includes(id))));
  const [team = 0, org] = await countsOf(app, ["team", "org"]);
  assert.equal(org, 10);
  assert.ok(team <= 6);
  await service.restart();
  assert.deepEqual(await countsOf(app, ["team", "org"]), [team, 10]);
  await assertBooks();
});
