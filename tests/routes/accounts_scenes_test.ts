// Accounts whose members call, while users leave memory, holds lapse, and users move, merge and are erased. After each
// scene every level adds up, in memory and in the tables.

import assert from "node:assert/strict";
import { passivateIdle } from "../actors/runtime.ts";
import type { TestApp } from "../support/test_service.ts";
import { CATALOG, dataOf, driftsOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const [PRO] = CATALOG.plans;
const planOf = (name: string, quota: number) => ({
  ...PRO,
  id: `plan_${name.toLowerCase()}`,
  name,
  limits: [{ id: "lg_pool", label: "Pool", unit: "count", quota, matches: [{ event: "image.*" }] }],
});
const DOCUMENT = {
  ...CATALOG,
  plans: [planOf("One", 1), planOf("Ten", 10), planOf("Thousand", 1000)],
  packs: [{
    id: "cpk_images",
    name: "Images",
    kind: "generic",
    unit: "count",
    matches: [{ event: "*" }],
    items: [],
  }],
};

const image = (userId: string, count = 1) => ({ userId, event: "image.render", count });

/** An app with the calls of these scenes. */
async function scene() {
  const app = await service.newApp(DOCUMENT);
  const call = (method: string, path: string, body?: unknown) => dataOf(app.call(method, path, body));
  return {
    app,
    subscribe: (userId: string, planId: string) => call("POST", "/subscriptions", { userId, planId }),
    under: (userId: string, parentId: string | null) => call("PUT", `/users/${userId}/parent`, { parentId }),
    reserve: (userId: string, count = 1, more = {}) =>
      call("POST", "/reserve", { ...image(userId, count), ...more }),
    commit: (reservationId: string, count: number) =>
      call("POST", "/commit", { reservationId, actual: { count } }),
    alias: (from: string, to: string) => call("POST", "/customers/alias", { from, to }),
    countsOf: (...ids: string[]) => countsOf(app, ids),
    erase: (userId: string) => erase(app, userId),
  };
}

async function countsOf(app: TestApp, ids: readonly string[]): Promise<number[]> {
  const answers = await Promise.all(ids.map((userId) => dataOf(app.call("GET", `/usage?userId=${userId}`))));
  return answers.map(({ counters }) => counters[0]?.count ?? 0);
}

async function erase(app: TestApp, distinctId: string): Promise<void> {
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId }));
  await service.admin("POST", "/sweep");
  const { status } = await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`));
  assert.equal(status, "completed");
}

/** Lets every user leave memory. */
async function unloadAll(): Promise<void> {
  const { term } = service.serving();
  await term.flush();
  passivateIdle(term.directory);
  assert.equal(term.directory.size, 0);
}

const assertBooks = async () => assert.deepEqual(await driftsOf(service), []);

Deno.test("of 100 members who race for the last unit one gets it, as a sibling's hold lapses in that millisecond", async () => {
  const { subscribe, under, reserve, countsOf } = await scene();
  await subscribe("org", "plan_one");
  const members = Array.from({ length: 100 }, (_, place) => `m${place}`);
  for (const userId of [...members, "sibling"]) await under(userId, "org");
  const { expiresAt } = await reserve("sibling", 1, { ttlSeconds: 10 });
  await unloadAll();
  service.clock.set(Date.parse(expiresAt) - 1);
  const before = await Promise.all(members.slice(0, 10).map((userId) => reserve(userId)));
  assert.ok(before.every(({ allowed, refusedBy }) => !allowed && refusedBy[0] === "org"));
  await unloadAll();
  service.clock.set(Date.parse(expiresAt));
  const answers = await Promise.all(members.map((userId) => reserve(userId)));
  assert.equal(answers.filter(({ allowed }) => allowed).length, 1);
  assert.deepEqual(await countsOf("org", "sibling"), [1, 0]);
  await service.restart();
  assert.deepEqual(await countsOf("org"), [1]);
  await assertBooks();
});

Deno.test("calls of members in one batch add up at the account, where the first of them counts nothing there", async () => {
  const { app, subscribe, under, countsOf } = await scene();
  for (const userId of ["org", "a", "b"]) await subscribe(userId, "plan_thousand");
  await subscribe("full", "plan_one");
  for (const userId of ["full", "a", "b"]) await under(userId, "org");
  for (const userId of ["a", "b", "full"]) await dataOf(app.call("POST", "/track", image(userId)));
  const tracks = ["a", "b", "a", "b", "b", "a"].map((userId) => ({ call: "track", ...image(userId) }));
  const refused = { call: "reserve", ...image("full"), idempotencyKey: "refused" };
  const { results } = await dataOf(app.call("POST", "/batch", { calls: [refused, ...tracks] }));
  assert.equal(results[0].data.allowed, false);
  assert.deepEqual(await countsOf("org", "a", "b"), [9, 4, 4]);
  await service.restart();
  assert.deepEqual(await countsOf("org", "a", "b"), [9, 4, 4]);
  await assertBooks();
});

Deno.test("a hold of one account, of a user who moved to another that was merged, lapses and is committed late", async () => {
  const { subscribe, under, reserve, commit, alias, countsOf } = await scene();
  for (const userId of ["org1", "org2", "org3"]) await subscribe(userId, "plan_ten");
  await under("u", "org1");
  const { reservationId, expiresAt } = await reserve("u", 2, { ttlSeconds: 10 });
  await under("u", "org2");
  await alias("org2", "org3");
  await reserve("u", 3, { ttlSeconds: 3600 });
  assert.deepEqual(await countsOf("org1", "org3"), [2, 3]);
  service.clock.set(Date.parse(expiresAt));
  assert.deepEqual(await countsOf("org1", "org3"), [0, 3]);
  await unloadAll();
  const { recharged, groups } = await commit(reservationId, 12);
  assert.deepEqual([recharged, groups], [true, []]);
  assert.deepEqual(await countsOf("org1", "org2", "org3"), [12, 3, 3]);
  await service.restart();
  assert.deepEqual(await countsOf("org1", "org3"), [12, 3]);
  await assertBooks();
});

Deno.test("a member is erased with an open hold, then its account, while 500 calls of other members run", async () => {
  const { app, subscribe, under, reserve, commit, countsOf, erase } = await scene();
  await subscribe("org", "plan_thousand");
  await subscribe("team", "plan_thousand");
  await under("team", "org");
  const members = Array.from({ length: 20 }, (_, place) => `m${place}`);
  for (const userId of ["gone", ...members]) await under(userId, "team");
  const kept = await reserve("m0", 5, { ttlSeconds: 3600 });
  const { reservationId } = await reserve("gone", 7);
  assert.deepEqual(await countsOf("team", "org"), [12, 12]);
  await erase("gone");
  assert.equal((await app.call("POST", "/commit", { reservationId })).status, 404);
  assert.deepEqual(await countsOf("team", "org"), [5, 5]);
  const calls = Array.from(
    { length: 500 },
    (_, place) => app.call("POST", "/track", image(members[place % members.length] as string)),
  );
  await erase("team");
  const statuses = new Set((await Promise.all(calls)).map(({ status }) => status));
  // A call that meets the erasure may have to come again.
  assert.ok([...statuses].every((status) => status === 200 || status === 503), [...statuses].join());
  const [before = 0] = await countsOf("org");
  await commit(kept.reservationId, 6);
  assert.deepEqual(await countsOf("org", "team"), [before + 1, 0]);
  assert.deepEqual((await dataOf(app.call("GET", "/users/m0"))).path, ["m0", "org"]);
  await service.restart();
  assert.deepEqual(await countsOf("org"), [before + 1]);
  await assertBooks();
});

Deno.test("two accounts are merged while their members call: nothing is lost, and the quota holds", async () => {
  const { app, subscribe, under, alias, countsOf } = await scene();
  for (const userId of ["a", "b"]) await subscribe(userId, "plan_ten");
  const members = Array.from({ length: 12 }, (_, place) => `m${place}`);
  for (const [place, userId] of members.entries()) await under(userId, place % 2 === 0 ? "a" : "b");
  const send = (ids = members) => ids.map((userId) => app.call("POST", "/reserve", image(userId)));
  const first = [...send(members.slice(0, 6)), app.call("POST", "/customers/alias", { from: "a", to: "b" })];
  const answers = await Promise.all([...first, ...send()]);
  assert.ok(answers.every(({ status }) => status === 200), answers.map(({ status }) => status).join());
  const held = answers.filter(({ body }) => body.data.allowed === true).length;
  assert.deepEqual(await countsOf("a", "b"), [held, held]);
  const again = await alias("a", "b");
  assert.equal(again.alreadyMerged, true);
  const more = await Promise.all(send());
  const all = held + more.filter(({ body }) => body.data.allowed).length;
  assert.deepEqual(await countsOf("b"), [all]);
  assert.ok(all <= 10 || more.every(({ body }) => !body.data.allowed));
  await service.restart();
  assert.deepEqual(await countsOf("b"), [all]);
  await assertBooks();
});

Deno.test("who may call once an account's plan is canceled and its credits are spent", async () => {
  const { app, subscribe, under, reserve, countsOf } = await scene();
  await subscribe("org", "plan_one");
  await subscribe("rich", "plan_ten");
  for (const userId of ["rich", "poor"]) await under(userId, "org");
  for (const userId of ["org", "rich"]) {
    await dataOf(app.call("POST", "/credits/grant", { userId, packId: "cpk_images", quantity: 2 }));
  }
  // The account pays by its plan, then by its credits; a member without a plan is silent.
  assert.equal((await reserve("poor", 3)).allowed, true);
  const spent = await reserve("rich", 1);
  assert.deepEqual([spent.reasons, spent.refusedBy], [["limit_reached"], ["org"]]);
  await dataOf(app.call("DELETE", "/subscriptions", { userId: "org" }));
  for (const [userId, refusedBy] of [["rich", ["org"]], ["poor", ["poor", "org"]]] as const) {
    const refused = await reserve(userId, 1);
    assert.deepEqual([refused.reasons, refused.refusedBy], [["no_subscription"], refusedBy]);
  }
  assert.deepEqual((await reserve("org", 1)).reasons, ["no_subscription"]);
  // Out of the account, a member has its own plan and credits again.
  await under("rich", null);
  assert.equal((await reserve("rich", 12)).allowed, true);
  assert.deepEqual(await countsOf("rich"), [10]);
  await assertBooks();
});

Deno.test("a user stays in memory while its call waits for the users above to be loaded", async () => {
  const { app, subscribe, under, countsOf } = await scene();
  await subscribe("org", "plan_ten");
  await subscribe("u", "plan_ten");
  await under("u", "org");
  await unloadAll();
  assert.deepEqual(await countsOf("u"), [0]);
  const { query } = service.statements;
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  service.statements.query = async (text, params) => {
    if (text.includes("as ended_until from unnest")) {
      reached.resolve();
      await held.promise;
    }
    return await query(text, params);
  };
  try {
    const answer = app.call("POST", "/reserve", image("u", 4));
    await reached.promise;
    await service.serving().term.flush();
    passivateIdle(service.serving().term.directory);
    held.resolve();
    assert.equal((await answer).body.data.allowed, true);
  } finally {
    service.statements.query = query;
  }
  assert.deepEqual(await countsOf("u", "org"), [4, 4]);
  assert.equal((await app.call("POST", "/reserve", image("u", 7))).body.data.allowed, false);
  await assertBooks();
});
