// The admin API without the catalog: its token, workspaces, apps, keys and the sweep.

import assert from "node:assert/strict";
import { makeApp } from "../../routes/app.ts";
import { rest } from "../../src/process/rest.ts";
import { cellOf } from "../../src/tenant/cell_of.ts";
import { ADMIN_TOKEN, type Answer, send } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, dataOf, holdImages, serviceOfFile } from "./support.ts";

const service = serviceOfFile();

const ENDPOINTS: readonly [string, string][] = [
  ["GET", "/workspaces"],
  ["POST", "/workspaces"],
  ["PATCH", "/workspaces/ws_x"],
  ["GET", "/apps"],
  ["POST", "/apps"],
  ["GET", "/apps/app_x"],
  ["GET", "/apps/app_x/keys"],
  ["POST", "/apps/app_x/keys"],
  ["DELETE", "/apps/app_x/keys/key_x"],
  ["PUT", "/apps/app_x/catalog"],
  ["GET", "/apps/app_x/catalog"],
  ["GET", "/apps/app_x/webhooks"],
  ["POST", "/apps/app_x/webhooks"],
  ["PATCH", "/apps/app_x/webhooks/whk_x"],
  ["DELETE", "/apps/app_x/webhooks/whk_x"],
  ["POST", "/apps/app_x/webhooks/whk_x/rotate"],
  ["POST", "/apps/app_x/webhooks/whk_x/ping"],
  ["GET", "/apps/app_x/webhooks/whk_x/messages"],
  ["POST", "/apps/app_x/webhooks/whk_x/messages/whm_x/redeliver"],
  ["GET", "/health"],
  ["GET", "/cluster"],
  ["POST", "/sweep"],
];

function workspaceOf(answer: Answer, workspaceId: string) {
  return answer.body.data.find((row: { workspaceId: string }) => row.workspaceId === workspaceId);
}

Deno.test("a missing or wrong admin token is refused by every operation and unknown path, before all else", async () => {
  const app = await appWithUser(service);
  const tokens = [
    "",
    "wrong",
    `${ADMIN_TOKEN}x`,
    ADMIN_TOKEN.slice(1),
    ADMIN_TOKEN.toUpperCase(),
    app.secretLive,
  ];
  for (const [method, path] of [...ENDPOINTS, ["GET", "/nothing"], ["DELETE", "/apps"]] as const) {
    assertRefused(
      await send(service.http, method, `/api/admin/v1${path}`, undefined, {}),
      401,
      "invalid_key",
    );
    // So many wrong tokens are within the limit of guesses.
    service.clock.advance(60_000);
    for (const key of tokens) {
      const answer = await send(service.http, method, `/api/admin/v1${path}`, undefined, { key });
      assertRefused(answer, 401, "invalid_key", `${method} ${path} ${key}`);
    }
  }
  assertRefused(await app.call("GET", "/plans", undefined, { key: ADMIN_TOKEN }), 401, "invalid_key");
});

Deno.test("without an admin token configured the admin API is off, whatever is presented", async () => {
  const http = makeApp(service.service, null);
  for (const [method, path] of ENDPOINTS) {
    for (const key of ["", "null", "undefined", ADMIN_TOKEN]) {
      assertRefused(
        await send(http, method, `/api/admin/v1${path}`, undefined, { key }),
        501,
        "not_implemented",
        path,
      );
    }
  }
  const answer = await send(http, "GET", "/api/admin/v1/apps", undefined, { key: ADMIN_TOKEN });
  assert.match(answer.body.error.message, /HOLDFAST_ADMIN_TOKEN/);
});

Deno.test("unknown workspaces, apps and keys are not found, unknown paths and methods too", async () => {
  const app = await appWithUser(service);
  const other = await appWithUser(service);
  const key = { class: "secret", mode: "live" };
  const bodies: Record<string, unknown> = {
    "PATCH /workspaces/ws_x": {},
    "POST /apps/app_x/keys": key,
    "POST /apps/app_x/webhooks": { url: "https://example.com", mode: "live", events: ["*"] },
    "PATCH /apps/app_x/webhooks/whk_x": {},
  };
  for (const [method, path] of ENDPOINTS.filter(([, path]) => path.includes("_x"))) {
    const body = bodies[`${method} ${path}`] ?? (method === "PUT" ? CATALOG : undefined);
    assertRefused(await service.admin(method, path, body), 404, "not_found", `${method} ${path}`);
  }
  assertRefused(await service.admin("POST", "/apps", { name: "x", workspaceId: "ws_x" }), 404, "not_found");
  const [{ keyId }] = (await service.admin("GET", `/apps/${other.appId}/keys`)).body.data;
  assertRefused(await service.admin("DELETE", `/apps/${app.appId}/keys/${keyId}`), 404, "not_found");
  await dataOf(other.call("GET", "/plans"));
  assertRefused(await service.admin("GET", "/nothing"), 404, "not_found");
  assertRefused(await service.admin("DELETE", "/workspaces/x"), 405, "method_not_allowed");
  assertRefused(await service.admin("PUT", "/apps"), 405, "method_not_allowed");
  assertRefused(await service.admin("GET", "/sweep"), 405, "method_not_allowed");
});

Deno.test("a workspace takes its defaults, null means no limit, and the list shows what is used", async () => {
  const plain = await dataOf(service.admin("POST", "/workspaces", { name: "Plain" }));
  const defaults = {
    name: "Plain",
    operationCap: null,
    aiBudgetCents: null,
    testOperationCap: 10_000,
    testCreditBalanceCap: 1000,
  };
  assert.match(plain.workspaceId, /^ws_/);
  assert.deepEqual(plain, { workspaceId: plain.workspaceId, ...defaults });
  const nulls = {
    operationCap: null,
    aiBudgetCents: null,
    testOperationCap: null,
    testCreditBalanceCap: null,
  };
  const free = await dataOf(service.admin("POST", "/workspaces", { name: "Free", ...nulls }));
  assert.deepEqual(free, { workspaceId: free.workspaceId, name: "Free", ...nulls });
  const caps = { operationCap: 0, aiBudgetCents: 12.5, testOperationCap: 1e12, testCreditBalanceCap: 3 };
  const full = await dataOf(service.admin("POST", "/workspaces", { name: "Full", ...caps, unknown: 1 }));
  assert.deepEqual(full, { workspaceId: full.workspaceId, name: "Full", ...caps });
  const made: { workspaceId: string }[] = [plain, free, full];
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    const list = await service.admin("GET", "/workspaces");
    const used = { operationsUsed: 0, testOperationsUsed: 0, aiSpentCents: 0 };
    for (const workspace of made) {
      assert.deepEqual(workspaceOf(list, workspace.workspaceId), { ...workspace, ...used });
    }
  }
});

Deno.test("a list waits while a cell is handed over, and never leaves its workspaces out", async () => {
  const { workspaceId } = await dataOf(service.admin("POST", "/workspaces", { name: "Moving" }));
  const { doors } = service.serving().term;
  const moving = [cellOf(workspaceId)];
  await doors.shut(moving);
  const asked = service.admin("GET", "/workspaces");
  const opened = rest(20).then(() => doors.open(moving));
  assert.ok(workspaceOf(await asked, workspaceId) !== undefined);
  await opened;
});

Deno.test("a PATCH changes the members it names and no others, also beside a parallel one", async () => {
  const made = await dataOf(service.admin("POST", "/workspaces", { name: "W", operationCap: 5 }));
  const patch = (body: unknown) => service.admin("PATCH", `/workspaces/${made.workspaceId}`, body);
  assert.deepEqual(await dataOf(patch({})), made);
  assert.deepEqual(await dataOf(patch({ name: null })), made, "null leaves a name unchanged");
  assert.deepEqual(await dataOf(patch({ testOperationCap: null })), { ...made, testOperationCap: null });
  await Promise.all([
    patch({ name: "New" }),
    patch({ operationCap: null }),
    patch({ aiBudgetCents: 7 }),
    patch({ testOperationCap: 8 }),
    patch({ testCreditBalanceCap: 9 }),
  ]);
  const expected = {
    name: "New",
    operationCap: null,
    aiBudgetCents: 7,
    testOperationCap: 8,
    testCreditBalanceCap: 9,
  };
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    const row = workspaceOf(await service.admin("GET", "/workspaces"), made.workspaceId);
    for (const [member, value] of Object.entries(expected)) assert.equal(row[member], value, member);
  }
});

Deno.test("members of a workspace, an app and a key of a wrong type or size are refused", async () => {
  const app = await appWithUser(service);
  const workspace = `/workspaces/${app.workspaceId}`;
  const keys = `/apps/${app.appId}/keys`;
  const before = (await service.admin("GET", "/workspaces")).body;
  const names = ['""', "5", "true", "[]", JSON.stringify("x".repeat(201)), '"a\\u0000"', '"\\ud800"'];
  for (const text of names) {
    assertRefused(
      await service.admin("POST", "/workspaces", `{"name":${text}}`),
      400,
      "invalid_request",
      text,
    );
    assertRefused(await service.admin("PATCH", workspace, `{"name":${text}}`), 400, "invalid_request", text);
    assertRefused(await service.admin("POST", "/apps", `{"name":${text}}`), 400, "invalid_request", text);
  }
  for (const cap of ["operationCap", "aiBudgetCents", "testOperationCap", "testCreditBalanceCap"]) {
    for (const text of ["-1", '"5"', "true", "[]", "{}", "1e400", "1e13"]) {
      const body = `{"name":"x","${cap}":${text}}`;
      assertRefused(await service.admin("POST", "/workspaces", body), 400, "invalid_request", body);
      assertRefused(await service.admin("PATCH", workspace, body), 400, "invalid_request", body);
    }
  }
  for (const path of ["/workspaces", "/apps", keys]) {
    for (const text of ["", "{", "null", "[]", "{}", '{"name":null}', "x".repeat(2 ** 20 + 1)]) {
      const [status, code] = text.length > 2 ** 20 ? [413, "payload_too_large"] : [400, "invalid_request"];
      assertRefused(
        await service.admin("POST", path, text),
        status as number,
        code as string,
        `${path} ${text}`,
      );
    }
  }
  for (
    const body of [{ class: "secret" }, { mode: "live" }, { class: "admin", mode: "live" }, {
      class: 1,
      mode: 1,
    }]
  ) {
    assertRefused(await service.admin("POST", keys, body), 400, "invalid_request");
  }
  assertRefused(await service.admin("POST", "/apps", { name: "x", workspaceId: 5 }), 400, "invalid_request");
  assert.deepEqual((await service.admin("GET", "/workspaces")).body, before);
  assert.equal((await service.admin("GET", keys)).body.data.length, 4);
});

Deno.test("an app comes with four keys of the four forms and an identity secret, shown once", async () => {
  const { workspaceId } = await dataOf(service.admin("POST", "/workspaces", { name: "W" }));
  const made = await dataOf(service.admin("POST", "/apps", { name: "Shop", workspaceId }));
  assert.deepEqual(Object.keys(made), ["appId", "workspaceId", "identitySecret", "keys"]);
  assert.match(made.appId, /^app_/);
  assert.equal(made.workspaceId, workspaceId);
  assert.ok(made.identitySecret.length >= 32);
  const forms = new Set<string>();
  for (const row of made.keys) {
    assert.deepEqual(Object.keys(row), ["keyId", "key", "class", "mode"]);
    assert.match(row.keyId, /^key_/);
    const start = `${row.class === "secret" ? "sk" : "pk"}_${row.mode}_`;
    assert.ok(row.key.startsWith(start));
    assert.match(row.key.slice(start.length), /^[A-Za-z0-9]{32,}$/);
    forms.add(start);
  }
  assert.equal(forms.size, 4);
  assert.equal(new Set(made.keys.map(({ key }: { key: string }) => key)).size, 4);
  const shown = await dataOf(service.admin("GET", `/apps/${made.appId}`));
  assert.deepEqual([shown.appId, shown.workspaceId, shown.name], [made.appId, workspaceId, "Shop"]);
  const texts = [
    JSON.stringify(shown),
    ...(await Promise.all(["/apps", "/workspaces", `/apps/${made.appId}/keys`].map(async (path) => {
      return JSON.stringify((await service.admin("GET", path)).body);
    }))),
  ];
  for (const secret of [made.identitySecret, ...made.keys.map(({ key }: { key: string }) => key.slice(12))]) {
    for (const text of texts) assert.ok(!text.includes(secret));
  }
  const tables = await Promise.all(
    ["keys", "apps"].map((table) => service.store.database.query(`select * from ${table}`)),
  );
  for (const { key } of made.keys) {
    assert.ok(!JSON.stringify(tables).includes(key.slice(12)), "only a hash is kept");
  }
});

Deno.test("an app without a workspace goes to the first one", async () => {
  const [first] = (await service.admin("GET", "/workspaces")).body.data;
  for (const body of [{ name: "A" }, { name: "A", workspaceId: null }]) {
    assert.equal((await dataOf(service.admin("POST", "/apps", body))).workspaceId, first.workspaceId);
  }
});

Deno.test("on an empty store the first apps share one workspace that is made for them", async () => {
  const { startTestService } = await import("../support/test_service.ts");
  const fresh = await startTestService();
  try {
    assert.deepEqual((await fresh.admin("GET", "/workspaces")).body.data, []);
    const made = await Promise.all([1, 2, 3].map(() => fresh.admin("POST", "/apps", { name: "A" })));
    assert.equal(new Set(made.map(({ body }) => body.data.workspaceId)).size, 1);
    const list = (await fresh.admin("GET", "/workspaces")).body.data;
    assert.deepEqual([list.length, list[0].testOperationCap], [1, 10_000]);
  } finally {
    await fresh.close();
  }
});

Deno.test("keys are listed by prefix, made of any class and mode, and stop when they are revoked", async () => {
  const app = await appWithUser(service);
  const keys = `/apps/${app.appId}/keys`;
  for (const keyClass of ["secret", "public"]) {
    for (const mode of ["live", "test"]) {
      const made = await dataOf(service.admin("POST", keys, { class: keyClass, mode }));
      assert.deepEqual([made.class, made.mode], [keyClass, mode]);
      const listed = (await service.admin("GET", keys)).body.data.at(-1);
      assert.deepEqual(
        Object.keys(listed).join(),
        "keyId,prefix,class,mode,name,createdAt,createdBy,lastUsedAt,validUntil,revokedAt",
      );
      assert.deepEqual([listed.keyId, listed.revokedAt], [made.keyId, null]);
      assert.ok(made.key.startsWith(listed.prefix) && listed.prefix.length < made.key.length - 20);
      await dataOf(app.call("GET", "/plans", undefined, { key: made.key }));
      const revoked = await dataOf(service.admin("DELETE", `${keys}/${made.keyId}`));
      assert.equal(revoked.revokedAt, new Date(service.clock.now()).toISOString());
      assertRefused(await app.call("GET", "/plans", undefined, { key: made.key }), 401, "invalid_key");
      service.clock.advance(1000);
      assert.deepEqual(
        await dataOf(service.admin("DELETE", `${keys}/${made.keyId}`)),
        revoked,
        "the first time stays",
      );
    }
  }
  await dataOf(app.call("GET", "/plans"));
  assert.equal((await service.admin("GET", keys)).body.data.length, 8);
});

Deno.test("a sweep settles what is due of idle users in both modes, counts it by kind, and then finds nothing", async () => {
  await service.admin("POST", "/sweep");
  const app = await appWithUser(service);
  const options = { key: app.secretTest };
  await dataOf(app.call("POST", "/subscriptions", { userId: "u", planId: "plan_pro" }, options));
  for (const count of [1, 2, 3]) await holdImages(app, count);
  await holdImages(app, 4, app.secretTest);
  const endsAt = new Date(service.clock.now() + 60_000).toISOString();
  await dataOf(app.call("POST", "/subscriptions", { userId: "v", planId: "plan_pro", endsAt }));
  await dataOf(
    app.call("POST", "/track", { userId: "u", event: "image.x" }, { headers: { "idempotency-key": "k" } }),
  );
  const empty = {
    expiredReservations: 0,
    endedSubscriptions: 0,
    idempotencyRecords: 0,
    historyRows: 0,
    promptLogs: 0,
    refusals: 0,
    messages: 0,
    stripeFacts: 0,
    runs: 0,
    rates: 0,
    stripeRetries: 0,
    failedSignIns: 0,
    failedRequests: 0,
    movedRows: 0,
    erasures: 0,
  };
  assert.deepEqual(await dataOf(service.admin("POST", "/sweep")), empty);
  service.clock.advance(601_000);
  assert.deepEqual(await dataOf(service.admin("POST", "/sweep")), {
    ...empty,
    expiredReservations: 4,
    endedSubscriptions: 1,
  });
  assert.deepEqual(await dataOf(service.admin("POST", "/sweep")), empty);
  service.clock.advance(24 * 3_600_000);
  assert.deepEqual(await dataOf(service.admin("POST", "/sweep")), { ...empty, idempotencyRecords: 1 });
  const { history } = await dataOf(app.call("GET", "/users/v"));
  assert.deepEqual([history[0].type, history[0].at], ["ended", endsAt]);
});
