// A catalog of test mode alone, and the versions that are kept: what each mode sees, what is refused, who made a version.

import assert from "node:assert/strict";
import { ADMIN_TOKEN, type Answer, send, type TestApp } from "../support/test_service.ts";
import { readNamedServers, readOldPrices, readOpenApps } from "../../src/storage/queries/store_facts.ts";
import { assertRefused, CATALOG, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

function call(app: TestApp, method: string, path = "", body?: unknown): Promise<Answer> {
  return send(service.http, method, `/api/admin/v1/apps/${app.appId}/catalog${path}`, body, {
    key: ADMIN_TOKEN,
  });
}

/** The catalog with another quota of the first limit. */
function withQuota(quota: number, more: object = {}) {
  const [plan, ...rest] = CATALOG.plans;
  const [limit, ...limits] = plan?.limits ?? [];
  return { ...CATALOG, ...more, plans: [{ ...plan, limits: [{ ...limit, quota }, ...limits] }, ...rest] };
}

/** The quota in each mode, as calls with keys of the mode see it. */
async function quotas(app: TestApp): Promise<Record<"live" | "test", number>> {
  const seen = async (key: string) => {
    const plans = await dataOf(send(service.http, "GET", "/api/v1/plans", undefined, { key }));
    return plans[0].limits[0].quota;
  };
  return { live: await seen(app.secretLive), test: await seen(app.secretTest) };
}

const QUOTA = CATALOG.plans[0]?.limits[0]?.quota as number;

Deno.test("a catalog of test mode is in force for test users alone until it is promoted", async () => {
  const app = await service.newApp(CATALOG);
  assert.deepEqual((await dataOf(call(app, "GET", "?mode=test"))).testOnly, false);
  const applied = await dataOf(call(app, "PUT", "?mode=test", { ...withQuota(7), expectedVersion: 1 }));
  assert.deepEqual([applied.version, applied.changes.length], [2, 1]);
  assert.deepEqual(await quotas(app), { live: QUOTA, test: 7 });
  const test = await dataOf(call(app, "GET", "?mode=test"));
  assert.deepEqual([test.version, test.testOnly, test.plans[0].limits[0].quota], [2, true, 7]);
  assert.equal((await dataOf(call(app, "GET"))).version, 1);

  // Without mode, live mode changes alone.
  assert.equal((await dataOf(call(app, "PUT", "", { ...withQuota(9), expectedVersion: 1 }))).version, 3);
  assert.deepEqual(await quotas(app), { live: 9, test: 7 });
  // What GET answered can be put back: it changes nothing.
  assert.deepEqual(await dataOf(call(app, "PUT", "?mode=test", test)), { version: 2, changes: [] });

  const moved = assertRefused(
    await call(app, "POST", "/promote", { expectedVersion: 3 }),
    409,
    "catalog_in_use",
  );
  assert.equal(moved.details.version, 2);
  const promoted = await dataOf(call(app, "POST", "/promote", { expectedVersion: 2 }));
  assert.deepEqual(promoted, {
    version: 4,
    changes: [{ path: "plans[0].limits[0].quota", id: "lg_images", change: "changed" }],
  });
  assert.deepEqual(await quotas(app), { live: 7, test: 7 });
  assert.equal((await dataOf(call(app, "GET", "?mode=test"))).testOnly, false);
  assertRefused(await call(app, "POST", "/promote", {}), 404, "not_found");
  assert.equal((await dataOf(call(app, "PUT", "", withQuota(5)))).version, 5);
  assert.deepEqual(await quotas(app), { live: 5, test: 5 });
});

Deno.test("a dropped catalog leaves test mode with that of live mode, and a first one may equal it", async () => {
  const app = await service.newApp(CATALOG);
  assert.deepEqual(await dataOf(call(app, "PUT", "?mode=test", CATALOG)), { version: 2, changes: [] });
  await dataOf(call(app, "PUT", "", withQuota(3)));
  assert.deepEqual(await quotas(app), { live: 3, test: QUOTA });
  const dropped = await dataOf(call(app, "DELETE", "?mode=test"));
  assert.deepEqual([dropped.version, dropped.changes.length], [3, 1]);
  assert.deepEqual(await quotas(app), { live: 3, test: 3 });
  assert.deepEqual(await dataOf(call(app, "DELETE", "?mode=test")), { version: 3, changes: [] });
  assertRefused(await call(app, "DELETE"), 400, "invalid_request");
  assertRefused(await call(app, "DELETE", "?mode=live"), 400, "invalid_request");
});

Deno.test("no mode loses a plan that its users have, whichever way its catalog changes", async () => {
  const app = await service.newApp(CATALOG);
  const [pro, team, ...rest] = CATALOG.plans;
  const extra = { ...team, id: "plan_extra", name: "Extra" };
  const without = { ...CATALOG, plans: [pro, ...rest] };
  const subscribe = (key: string, planId: string) =>
    dataOf(send(service.http, "POST", "/api/v1/subscriptions", { userId: "u", planId }, { key }));
  await subscribe(app.secretLive, team?.id as string);
  // Live users keep a plan from being removed in live mode alone.
  assertRefused(await call(app, "PUT", "", without), 409, "catalog_in_use");
  await dataOf(call(app, "PUT", "?mode=test", { ...without, plans: [...without.plans, extra] }));
  assertRefused(await call(app, "POST", "/promote", {}), 409, "catalog_in_use");
  // Test users keep a plan of the catalog of test mode.
  await subscribe(app.secretTest, "plan_extra");
  const { message } = assertRefused(await call(app, "DELETE", "?mode=test"), 409, "catalog_in_use");
  assert.match(message, /plan_extra/);
  assertRefused(await call(app, "PUT", "?mode=test", without), 409, "catalog_in_use");
  // A plan that was closed for the check is on offer again after a refusal.
  await subscribe(app.secretTest, "plan_extra");
  await dataOf(call(app, "PUT", "", { ...CATALOG, plans: [...CATALOG.plans, extra] }));
  await dataOf(call(app, "DELETE", "?mode=test"));
});

Deno.test("a unit never changes under its id, also on the way back to the catalog of live mode", async () => {
  const app = await service.newApp(CATALOG);
  const [plan, ...rest] = CATALOG.plans;
  const withUnit = (unit: string) => ({
    ...CATALOG,
    plans: [{
      ...plan,
      limits: [...plan?.limits ?? [], {
        id: "lg_new",
        label: "New",
        unit,
        quota: 1,
        matches: [{ event: "new" }],
      }],
    }, ...rest],
  });
  await dataOf(call(app, "PUT", "?mode=test", withUnit("tokens")));
  await dataOf(call(app, "PUT", "", withUnit("seconds")));
  for (const [method, path] of [["POST", "/promote"], ["DELETE", "?mode=test"]] as const) {
    const { details } = assertRefused(
      await call(app, method, path, method === "POST" ? {} : undefined),
      400,
      "invalid_request",
    );
    assert.match(details[0].path, /^plans\[0\]\.limits\[\d\]\.unit$/);
  }
});

Deno.test("a hold of test mode keeps the price of its reserve when the catalog with that price is dropped", async () => {
  const model = (cents: number) => ({
    id: "m",
    modality: "image",
    amountMode: "per_call",
    centsPerCall: cents,
  });
  const plan = {
    ...CATALOG.plans[0],
    limits: [{ id: "lg_cents", label: "Spend", unit: "cents", quota: 1000, matches: [{ event: "*" }] }],
  };
  const app = await service.newApp({ plans: [plan], models: [model(2)] });
  const ask = (path: string, body: object) =>
    dataOf(send(service.http, "POST", `/api/v1${path}`, body, { key: app.secretTest }));
  await ask("/subscriptions", { userId: "u", planId: "plan_pro" });
  await dataOf(call(app, "PUT", "?mode=test", { plans: [plan], models: [model(30)] }));
  const body = { userId: "u", event: "image.x", metadata: { model: "m" } };
  const { reservationId } = await ask("/reserve", body);
  // Prices of live mode after that of the test get numbers of their own.
  await dataOf(call(app, "DELETE", "?mode=test"));
  await dataOf(call(app, "PUT", "", { plans: [plan], models: [model(4)] }));
  const committed = await ask("/commit", { reservationId });
  assert.equal(committed.cost.cents, 30);
});

Deno.test("versions say who made them, in which mode and what changed, and can be put back", async () => {
  const app = await service.newApp(CATALOG);
  await dataOf(call(app, "PUT", "?mode=test", withQuota(7)));
  await dataOf(call(app, "POST", "/promote", {}));
  const versions = await dataOf(call(app, "GET", "/versions"));
  assert.deepEqual(
    versions.map(({ version, who, mode, changes }: Record<string, unknown>) => [
      version,
      who,
      mode,
      (changes as { path: string }[]).map(({ path }) => path),
    ]),
    [
      [3, "api", "live", ["plans[0].limits[0].quota"]],
      [2, "api", "test", ["plans[0].limits[0].quota"]],
      [1, "api", "live", versions[2].changes.map(({ path }: { path: string }) => path)],
    ],
  );
  const first = await dataOf(call(app, "GET", "/versions/1"));
  assert.equal(first.plans[0].limits[0].quota, QUOTA);
  assert.equal((await dataOf(call(app, "PUT", "", first))).version, 4);
  assert.deepEqual(await quotas(app), { live: QUOTA, test: QUOTA });
  assertRefused(await call(app, "GET", "/versions/9"), 404, "not_found");
  assertRefused(await call(app, "GET", "/versions/x"), 400, "invalid_request");
});

Deno.test("the doctor looks at the gateway of test mode's catalog, and at the prices of both", async () => {
  const checkedAt = "2020-01-01T00:00:00.000Z";
  const model = { ...CATALOG.models[0], checkedAt };
  const upstreams = [{ models: ["gpt"], upstream: "us" }, { models: ["o*"], upstream: "us" }];
  const app = await service.newApp({ ...CATALOG, gateway: { upstreams }, models: [model] });
  const { database } = service.store;
  const named = await readNamedServers(database, 1000);
  assert.deepEqual(named.filter(({ appId }) => appId === app.appId), [{ appId: app.appId, upstream: "us" }]);
  const seen = async () => [
    (await readOpenApps(database, 1000)).includes(app.appId),
    (await readOldPrices(database, Date.parse(checkedAt) + 1, 1000)).filter(({ appId }) =>
      appId === app.appId
    ),
  ];
  const old = (id: string) => ({ appId: app.appId, model: id });
  assert.deepEqual(await seen(), [false, [old("gpt")]]);
  const other = { ...model, id: "other" };
  await dataOf(call(app, "PUT", "?mode=test", { ...CATALOG, models: [model, other] }));
  assert.deepEqual(await seen(), [true, [old("gpt"), old("other")]]);
  await dataOf(call(app, "DELETE", "?mode=test"));
  assert.deepEqual(await seen(), [false, [old("gpt")]]);
});

Deno.test("a dry run counts the users of each mode whose plan changes", async () => {
  const app = await service.newApp(CATALOG);
  const [pro, team] = CATALOG.plans;
  const subscribe = (key: string, userId: string, planId = pro?.id) =>
    dataOf(send(service.http, "POST", "/api/v1/subscriptions", { userId, planId }, { key }));
  for (const user of ["a", "b"]) await subscribe(app.secretLive, user);
  await subscribe(app.secretLive, "c", team?.id);
  await subscribe(app.secretTest, "a");
  const affected = async (query: string, body: object) =>
    (await dataOf(call(app, "PUT", `?dryRun=true${query}`, body))).usersAffected;
  assert.deepEqual(await affected("", withQuota(7)), { live: 2, test: 1 });
  assert.deepEqual(await affected("&mode=test", withQuota(7)), { live: 0, test: 1 });
  assert.deepEqual(await affected("", { ...CATALOG, settings: { promptLogging: true } }), {
    live: 0,
    test: 0,
  });
});
