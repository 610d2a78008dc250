// Shares over HTTP: how much of an account's limit each user below may use, and used.

import assert from "node:assert/strict";
import { CATALOG, dataOf, serviceOfFile } from "./support.ts";
import { open } from "./people_support.ts";
import { Customer } from "./credits_support.ts";
import { erase } from "./privacy_support.ts";
import type { TestApp } from "../support/test_service.ts";

const service = serviceOfFile();

const [PRO] = CATALOG.plans;
const pool = (quota: number, more = {}) => ({
  id: "lg_pool",
  label: "Pool",
  unit: "count",
  quota,
  matches: [{ event: "image.*" }],
  ...more,
});
const plan = (id: string, name: string, limits: unknown[], more = {}) => ({
  ...PRO,
  id,
  name,
  limits,
  ...more,
});
const DOCUMENT = {
  ...CATALOG,
  plans: [
    plan("plan_org", "Org", [pool(100, { perMember: { quota: 5 } })]),
    plan("plan_team", "Team", [pool(60)]),
    plan("plan_fresh", "Fresh", [pool(100, { perMember: { quota: 5 } })], { onPlanChange: "reset" }),
  ],
};

const LIVE = ({ secretLive: key }: TestApp) => ({ key });
const TEST = ({ secretTest: key }: TestApp) => ({ key });

/** An app in which "u", "v" and "w" are in a team of an organisation. */
async function organisation(keyOf = LIVE): Promise<TestApp> {
  const app = await service.newApp(DOCUMENT);
  const key = keyOf(app);
  for (const [userId, planId] of Object.entries({ org: "Org", team: "Team" })) {
    await dataOf(app.call("POST", "/subscriptions", { userId, planId }, key));
  }
  await dataOf(app.call("PUT", "/users/team/parent", { parentId: "org" }, key));
  for (const userId of ["u", "v", "w"]) {
    await dataOf(app.call("PUT", `/users/${userId}/parent`, { parentId: "team" }, key));
  }
  return app;
}

const call = (userId: string, count: number) => ({ userId, event: "image.render", count });

function membersOf(app: TestApp, userId: string, more = "", keyOf = LIVE) {
  return dataOf(app.call("GET", `/users/${userId}/members?groupId=lg_pool${more}`, undefined, keyOf(app)));
}

const rowsOf = async (app: TestApp, userId: string, keyOf = LIVE) =>
  (await membersOf(app, userId, "", keyOf)).members.map((
    row: Record<string, unknown>,
  ) => [row.userId, row.count]);

Deno.test("a member may use its share of a group, and no more", async () => {
  const app = await organisation();
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("u", 4)));
  const refused = await dataOf(app.call("POST", "/reserve", call("u", 2)));
  assert.deepEqual([refused.allowed, refused.reasons, refused.refusedBy], [
    false,
    ["member_limit_reached"],
    ["org"],
  ]);
  assert.equal(refused.levels[1].groups[0].label, "Pool");
  assert.equal(refused.levels[0].groups[0].label, undefined);
  const explained = await dataOf(app.call("POST", "/explain", call("u", 2)));
  assert.equal(
    explained.text,
    'Refused at "org" by the limit of each member of "Pool": 4 of 5 are used by this user, and the call needs 2.',
  );
  const tracked = await app.call("POST", "/track", call("u", 2));
  assert.deepEqual([tracked.status, tracked.body.error.code], [429, "member_limit_reached"]);
  assert.equal(
    tracked.body.error.message,
    'Limit "Pool" of each member of "org" reached (4 of 5 used, 2 needed)',
  );
  assert.deepEqual(tracked.body.error.details.levels[1].groups, [
    { groupId: "lg_pool", unit: "count", quota: 100, current: 4, member: { count: 4, quota: 5 } },
  ]);
  assert.equal((await dataOf(app.call("POST", "/reserve", call("v", 5)))).allowed, true);
  assert.equal((await dataOf(app.call("POST", "/reserve", call("org", 20)))).allowed, true);
  await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 7 } }));
  assert.deepEqual(await rowsOf(app, "org"), [["u", 7], ["v", 5]]);
  const { levels } = await dataOf(app.call("GET", "/usage?userId=u&levels=true"));
  assert.deepEqual(levels.map((level: Any) => level.counters[0].member), [
    { count: 7, quota: null },
    { count: 7, quota: 5 },
  ]);
});

// deno-lint-ignore no-explicit-any
type Any = any;

Deno.test("a member's own limit replaces that of the group, on every level", async () => {
  const app = await organisation();
  const memberLimits = { lg_pool: { quota: 8 } };
  await dataOf(app.call("PUT", "/users/u/parent", { parentId: "team", memberLimits }));
  const tracked = await dataOf(app.call("POST", "/track", { ...call("u", 8), costCents: 3 }));
  assert.deepEqual(tracked.levels.map((level: Any) => level.counters[0].member), [
    { count: 8, quota: 8 },
    { count: 8, quota: 8 },
  ]);
  const refused = await dataOf(app.call("POST", "/can-use", call("u", 1)));
  assert.deepEqual([refused.reasons, refused.refusedBy], [["member_limit_reached"], ["team", "org"]]);
  const { members } = await membersOf(app, "team");
  assert.deepEqual(members, [{ userId: "u", count: 8, quota: 8, costCents: 3 }]);
  await dataOf(app.call("PUT", "/users/u/parent", { parentId: "team", memberLimits: {} }));
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", call("u", 1)))).refusedBy, ["org"]);
});

Deno.test("members are listed by page, most first, then by id", async () => {
  const app = await organisation();
  for (const [userId, count] of [["w", 1], ["u", 1], ["v", 3], ["team", 2]] as const) {
    await dataOf(app.call("POST", "/track", call(userId, count)));
  }
  const { members: first, cursor } = await membersOf(app, "org", "&limit=2");
  const rest = await membersOf(app, "org", `&limit=2&cursor=${cursor}`);
  assert.deepEqual([...first, ...rest.members].map(({ userId }: Any) => userId), ["v", "team", "u", "w"]);
  assert.equal(rest.cursor, null);
  assert.deepEqual(await dataOf(app.call("GET", "/users/org/members?groupId=lg_other")), {
    members: [],
    cursor: null,
  });
  const bad = await app.call("GET", "/users/org/members?groupId=lg_pool&cursor=eA");
  assert.equal(bad.body.error.code, "invalid_request");
  assert.equal((await app.call("GET", "/users/org/members")).status, 400);
});

Deno.test("a released and a lapsed hold leave no share, wherever the account is", async () => {
  const app = await organisation(TEST);
  const key = TEST(app);
  const held = await dataOf(app.call("POST", "/reserve", { ...call("u", 3), ttlSeconds: 60 }, key));
  const other = await dataOf(app.call("POST", "/reserve", call("v", 2), key));
  assert.deepEqual(await rowsOf(app, "org", TEST), [["u", 3], ["v", 2]]);
  await dataOf(app.call("POST", "/release", { reservationId: other.reservationId }, key));
  await service.restart();
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 61 }, key));
  assert.deepEqual(await rowsOf(app, "org", TEST), []);
  await dataOf(app.call("POST", "/commit", { reservationId: held.reservationId }, key));
  assert.deepEqual(await rowsOf(app, "org", TEST), [["u", 3]]);
});

Deno.test("a plan entered by reset clears shares, and holds from before leave them alone", async () => {
  const app = await organisation();
  const before = await dataOf(app.call("POST", "/reserve", call("u", 4)));
  const late = await dataOf(app.call("POST", "/reserve", call("v", 2)));
  await dataOf(app.call("POST", "/subscriptions", { userId: "org", planId: "Fresh" }));
  assert.deepEqual(await rowsOf(app, "org"), []);
  assert.deepEqual(await rowsOf(app, "team"), [["u", 4], ["v", 2]]);
  await dataOf(app.call("POST", "/track", call("u", 5)));
  await dataOf(app.call("POST", "/release", { reservationId: before.reservationId }));
  await dataOf(app.call("POST", "/commit", { reservationId: late.reservationId }));
  assert.deepEqual(await rowsOf(app, "org"), [["u", 5]]);
  assert.deepEqual(await rowsOf(app, "team"), [["u", 5], ["v", 2]]);
  await service.restart();
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", call("u", 1)))).refusedBy, ["org"]);
});

Deno.test("an export has the person's own shares, and names no account; an erasure drops them", async () => {
  const app = await organisation(TEST);
  const key = TEST(app);
  await dataOf(app.call("POST", "/track", { ...call("u", 2), costCents: 4 }, key));
  await dataOf(app.call("POST", "/track", call("v", 1), key));
  await dataOf(app.call("POST", "/reserve", { ...call("u", 1), ttlSeconds: 60 }, key));
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 61 }, key));
  const { downloadUrl } = await dataOf(app.call("POST", "/export-person", { distinctId: "u" }, key));
  const { body } = await open(service, downloadUrl);
  const shown = body.shares.map(({ period: _, ...share }: Any) => share);
  const share = { groupId: "lg_pool", unit: "count", count: 2, costCents: 4 };
  assert.deepEqual(shown, [share, share]);
  await erase(service, new Customer(app, "u", app.secretTest), "u");
  assert.deepEqual(await rowsOf(app, "org", TEST), [["v", 1]]);
});

Deno.test("shares of merged accounts and of merged members are added", async () => {
  const app = await organisation();
  await dataOf(app.call("POST", "/subscriptions", { userId: "other", planId: "Org" }));
  await dataOf(app.call("PUT", "/users/x/parent", { parentId: "other" }));
  await dataOf(app.call("POST", "/track", call("u", 2)));
  await dataOf(app.call("POST", "/track", call("v", 1)));
  await dataOf(app.call("POST", "/track", call("x", 1)));
  const { reservationId } = await dataOf(app.call("POST", "/reserve", call("v", 1)));
  await dataOf(app.call("POST", "/customers/alias", { from: "v", to: "u" }));
  await dataOf(app.call("POST", "/customers/alias", { from: "other", to: "org" }));
  assert.deepEqual(await rowsOf(app, "org"), [["u", 4], ["x", 1]]);
  const { reservationId: next } = await dataOf(app.call("POST", "/reserve", call("x", 4)));
  assert.deepEqual((await dataOf(app.call("POST", "/can-use", call("x", 1)))).refusedBy, ["org"]);
  await dataOf(app.call("POST", "/commit", { reservationId, actual: { count: 2 } }));
  await dataOf(app.call("POST", "/release", { reservationId: next }));
  assert.deepEqual(await rowsOf(app, "org"), [["u", 5], ["x", 1]]);
});
