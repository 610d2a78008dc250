// Several databases over HTTP: where workspaces are, what lists show, and what stays untouched when one is away.

import assert from "node:assert/strict";
import type { Answer } from "../support/test_service.ts";
import { assertRefused, CATALOG, dataOf } from "../routes/support.ts";
import { send } from "../support/test_service.ts";
import { Visitor } from "../routes/console_support.ts";
import { StoresProcess } from "./support.ts";

const ORIGIN = "https://shop.example.com";
const WITH_ORIGIN = { ...CATALOG, settings: { ...CATALOG.settings, corsOrigins: [ORIGIN] } };

let process: StoresProcess;
Deno.test.beforeAll(async () => {
  process = await StoresProcess.start("eu1", "eu2");
});
Deno.test.afterAll(() => process[Symbol.asyncDispose]());

// deno-lint-ignore no-explicit-any -- rows of lists
const listed = (path: string): Promise<any> => dataOf(process.admin("GET", path));

Deno.test("a workspace is created on the database with the fewest, or on the one that is named", async () => {
  const create = (body: object) => {
    // Ids grow with time.
    process.clock.advance(1);
    return process.admin("POST", "/workspaces", { name: "W", ...body });
  };
  const storeOf = async (body: object = {}) => (await dataOf(create(body))).store;
  assert.equal(await storeOf({ store: "eu2" }), "eu2");
  assert.deepEqual([await storeOf(), await storeOf(), await storeOf()], ["eu1", "eu1", "eu2"]);
  const error = assertRefused(await create({ store: "eu3" }), 400, "invalid_request");
  assert.match(error.message, /store: must be one of eu1, eu2/);
  const workspaces: { workspaceId: string; store: string }[] = await listed("/workspaces");
  assert.deepEqual(workspaces.map(({ store }) => store), ["eu2", "eu1", "eu1", "eu2"]);
  // The first of all workspaces, wherever it is.
  const app = await dataOf(process.admin("POST", "/apps", { name: "A" }));
  assert.equal(app.workspaceId, workspaces[0]?.workspaceId);
  assertRefused(
    await process.admin("POST", "/apps", { name: "A", workspaceId: "ws_nowhere" }),
    404,
    "not_found",
  );
});

Deno.test("a key leads to its database, and the same user on two of them is two users", async () => {
  const one = await process.app("eu1", CATALOG);
  const two = await process.app("eu2", CATALOG);
  const reserve = { userId: "u", event: "image.x", count: 60 };
  const holds: string[] = [];
  for (const app of [one, two]) {
    await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }));
    const { allowed, reservationId } = await dataOf(app.call("POST", "/reserve", reserve));
    assert.equal(allowed, true);
    holds.push(reservationId);
    assert.equal((await dataOf(app.call("POST", "/reserve", reserve))).allowed, false);
  }
  // An id of one leads nowhere at the other, because their users have different numbers.
  const owners = holds.map((id) => parseInt(id.split("_")[1] as string, 36));
  assert.ok((owners[0] as number) < 2 ** 47 && (owners[1] as number) > 2 ** 47, owners.join());
  assertRefused(await one.call("POST", "/commit", { reservationId: holds[1] }), 404, "not_found");
  await dataOf(two.call("POST", "/commit", { reservationId: holds[1] }));
  const userKey = await dataOf(two.call("POST", "/users/u/keys", {}));
  const mine = await dataOf(two.call("GET", "/usage", undefined, { key: userKey.key }));
  assert.equal(mine.userId, "u");
});

Deno.test("lists over all databases are whole, in the order of ids, and pages of the audit log pass through all", async () => {
  const apps = [await process.app("eu2", CATALOG), await process.app("eu1", CATALOG)];
  const ids: string[] = (await listed("/apps")).map(({ appId }: { appId: string }) => appId);
  assert.deepEqual(ids, ids.toSorted());
  assert.deepEqual(apps.filter(({ appId }) => !ids.includes(appId)), []);
  const whole = await listed("/audit?limit=100");
  const paged: string[] = [];
  for (let cursor: string | null = "first"; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listed>> = await listed(
      `/audit?limit=3${cursor === "first" ? "" : `&cursor=${cursor}`}`,
    );
    paged.push(...page.entries.map(({ auditId }: { auditId: string }) => auditId));
    cursor = page.nextCursor;
  }
  assert.deepEqual(paged, whole.entries.map(({ auditId }: { auditId: string }) => auditId));
  assert.deepEqual(paged, paged.toSorted().toReversed());
  const ofOne = await listed(`/audit?appId=${apps[0]?.appId}`);
  assert.deepEqual(ofOne.entries.map(({ what }: { what: string }) => what), ["applyCatalog", "createApp"]);
  const swept = await dataOf(process.admin("POST", "/sweep"));
  assert.equal(typeof swept.historyRows, "number");
  const stores = await listed("/stores");
  assert.deepEqual(stores.map(({ store, state }: Record<string, string>) => [store, state]), [
    ["eu1", "serving"],
    ["eu2", "serving"],
  ]);
  assert.equal((await listed("/cluster?store=eu2")).cellsWithoutOwner.length, 0);
});

/** What one caller sees, as statuses. */
async function statusesOf(requests: Record<string, () => Promise<Answer>>): Promise<Record<string, number>> {
  const seen: Record<string, number> = {};
  for (const [name, request] of Object.entries(requests)) seen[name] = (await request()).status;
  return seen;
}

Deno.test("with a database away its workspaces and all lists are 503, and nothing of the others changes", async () => {
  const near = await process.app("eu1", CATALOG);
  const away = await process.app("eu2", WITH_ORIGIN);
  const userKey = (await dataOf(away.call("POST", "/users/u/keys", {}))).key;
  const keysPath = `/apps/${near.appId}/keys`;
  const revoked = await dataOf(process.admin("POST", keysPath, { class: "secret", mode: "live" }));
  await dataOf(process.admin("DELETE", `${keysPath}/${revoked.keyId}`));
  const call = (path: string, key?: string) =>
    send(process.http, "GET", path, undefined, key === undefined ? {} : { key });
  const preflight = () =>
    send(process.http, "OPTIONS", "/api/v1/usage", undefined, {
      headers: { origin: ORIGIN, "access-control-request-method": "GET" },
    });
  const reserve = { userId: "u", event: "image.x" };
  const requests = {
    near: () => near.call("POST", "/reserve", reserve),
    away: () => away.call("POST", "/reserve", reserve),
    awayUserKey: () => call("/api/v1/usage", userKey),
    unknownKey: () => call("/api/v1/usage?userId=u", "sk_live_0123456789012345678901234567890123456789"),
    revokedKey: () => call("/api/v1/usage?userId=u", revoked.key),
    noKey: () => call("/api/v1/usage?userId=u"),
    preflight,
    unknownApp: () => process.admin("GET", "/apps/app_nowhere"),
    nearApp: () => process.admin("GET", `/apps/${near.appId}`),
    nearAudit: () => process.admin("GET", `/audit?appId=${near.appId}`),
    awayApp: () => process.admin("GET", `/apps/${away.appId}`),
    workspaces: () => process.admin("GET", "/workspaces"),
    apps: () => process.admin("GET", "/apps"),
    audit: () => process.admin("GET", "/audit"),
    sweep: () => process.admin("POST", "/sweep"),
    firstWorkspace: () => process.admin("POST", "/apps", { name: "A" }),
    place: () => process.admin("POST", "/workspaces", { name: "W" }),
    placeAway: () => process.admin("POST", "/workspaces", { name: "W", store: "eu2" }),
    stores: () => process.admin("GET", "/stores"),
    health: () => process.admin("GET", "/health"),
    ready: () => call("/readyz"),
    tools: () => send(process.http, "POST", "/mcp", {}, { key: away.secretLive }),
    gateway: () => call("/openai/v1/models", away.secretLive),
  };
  const whole = {
    ...Object.fromEntries(Object.keys(requests).map((name) => [name, 200])),
    ...{
      unknownKey: 401,
      revokedKey: 401,
      noKey: 401,
      preflight: 204,
      unknownApp: 404,
      tools: 406,
      gateway: 501,
    },
  };
  assert.deepEqual(await statusesOf(requests), whole);
  const term = process.of("eu1").serving?.lease.term;
  process.takeAway("eu2");
  try {
    assert.deepEqual(await statusesOf(requests), {
      ...whole,
      ...Object.fromEntries(
        [
          ...[
            "away",
            "awayUserKey",
            "unknownKey",
            "preflight",
            "unknownApp",
            "awayApp",
            "workspaces",
            "apps",
          ],
          ...["audit", "sweep", "firstWorkspace", "placeAway", "tools", "gateway"],
        ].map((name) => [name, 503]),
      ),
    });
    assert.equal((await dataOf(requests.place())).store, "eu1");
    const [, gone] = await dataOf(requests.stores());
    assert.deepEqual([gone.store, gone.workspaces, gone.cluster], ["eu2", null, null]);
    assert.notEqual(gone.state, "serving");
    const { verdict, checks } = await dataOf(requests.health());
    assert.equal(verdict, "fail");
    const failed = checks.filter((check: { verdict: string }) => check.verdict === "fail");
    assert.match(failed[0].found, /^eu2: this process does not serve it/);
    assert.equal((await dataOf(requests.ready())).stores.eu1, "serving");
    assert.equal(process.of("eu1").serving?.lease.term, term, "the other database goes on in its term");
  } finally {
    await process.giveBack("eu2");
  }
  assert.deepEqual(await statusesOf(requests), whole);
});

Deno.test("a database that has not answered for a while is not shown as served, although its term goes on", async () => {
  const lease = process.of("eu2").requireServing().lease;
  const { isValid } = lease;
  Object.assign(lease, { isValid: () => false });
  try {
    const [, lost] = await listed("/stores");
    assert.deepEqual([lost.state, lost.workspaces], ["starting", null]);
    const { checks } = await listed("/health");
    assert.ok(
      checks.some(({ found }: { found: string }) => /^eu2: this process does not serve it/.test(found)),
    );
    const ready = await send(process.http, "GET", "/readyz", undefined, {});
    assert.deepEqual(ready.body.data.stores, { eu1: "serving", eu2: "starting" });
  } finally {
    Object.assign(lease, { isValid });
  }
});

Deno.test("metrics of a database have its name as a label, those of the process none", async () => {
  const { body } = await send(process.http, "GET", "/metrics", undefined, {});
  const lines: string[] = body.split("\n");
  const of = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  assert.deepEqual(of("holdfast_cells"), [
    'holdfast_cells{store="eu1"} 64',
    'holdfast_cells{store="eu2"} 64',
  ]);
  assert.equal(of("holdfast_streams").length, 1);
  assert.equal(lines.filter((line) => line.startsWith("# HELP holdfast_append_seconds ")).length, 1);
  assert.equal(of("holdfast_append_seconds_count").length, 2);
});

Deno.test("the console shows the workspaces of all databases, and a sign-out holds after any of them was away", async () => {
  const [near, away] = [await process.app("eu1", CATALOG), await process.app("eu2", CATALOG)];
  const visitor = await Visitor.signedIn(process.http);
  const twin = await Visitor.signedIn(process.http);
  const home = await visitor.get("/console/apps");
  for (const { appId } of [near, away]) assert.ok(home.html.includes(appId));
  for (const text of ["on eu1", "on eu2"]) assert.ok(home.text.includes(text), text);
  const keysOf = ({ appId }: { appId: string }) => `/console/apps/${appId}/live/keys`;
  assert.equal((await visitor.get(keysOf(away))).status, 200);
  const system = await visitor.get("/console/system");
  assert.match(system.text, /Processes on eu1[^]*Processes on eu2/);
  process.takeAway("eu2");
  try {
    const paths = ["/console/apps", keysOf(near), keysOf(away), "/console/system", "/console/system/checks"];
    const seen = await Promise.all(paths.map(async (path) => (await visitor.get(path)).status));
    assert.deepEqual(seen, [503, 200, 503, 200, 200]);
    assert.match((await visitor.get("/console/system")).text, /does not serve this database/);
    const out = await visitor.press(await visitor.get(keysOf(near)), "Sign out", {}, false);
    assert.equal(out.status, 303);
  } finally {
    await process.giveBack("eu2");
  }
  assert.equal((await visitor.get("/console/apps", {}, false)).status, 303, "signed out");
  assert.equal((await twin.get("/console/apps", {}, false)).status, 200);
});
