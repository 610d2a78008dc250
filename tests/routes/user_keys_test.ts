// Keys of users: what each may call, for whom it acts, and when it ends.

import assert from "node:assert/strict";
import { ENDPOINTS } from "../../routes/app.ts";
import { EventReader } from "../support/event_stream.ts";
import { send, type TestApp } from "../support/test_service.ts";
import { appWithUser, assertRefused, CATALOG, countOf, dataOf, serviceOfFile } from "./support.ts";

const service = serviceOfFile();
const DAY_MS = 86_400_000;

interface Made {
  readonly userKeyId: string;
  readonly key: string;
}

function make(app: TestApp, userId = "u", body: unknown = {}, as = app.secretLive): Promise<Made> {
  return dataOf(app.call("POST", `/users/${userId}/keys`, body, { key: as }));
}

function revoke(app: TestApp, { userKeyId }: Made, userId = "u") {
  return dataOf(app.call("DELETE", `/users/${userId}/keys/${userKeyId}`));
}

const usage = (app: TestApp, { key }: Made, query = "") =>
  app.call("GET", `/usage${query}`, undefined, { key });

async function listed(app: TestApp, userId = "u") {
  return (await dataOf(app.call("GET", `/users/${userId}/keys`))).keys;
}

Deno.test("a user's key opens usage, its stream and features, and every other call of the API refuses it", async () => {
  const app = await appWithUser(service);
  const { key } = await make(app);
  const revoked = await make(app);
  await revoke(app, revoked);
  for (const { method, path, takesUserKey } of ENDPOINTS) {
    const filled = path.slice("/v1".length).replace(/:\w+/g, "x");
    const body = method === "GET" ? undefined : "{";
    const answer = await app.call(method, filled, body, { key });
    if (takesUserKey !== true) assertRefused(answer, 403, "requires_secret_key", `${method} ${path}`);
    // The catalog names no feature.
    else assert.equal(answer.status, path.endsWith("/:key") ? 404 : 200, `${method} ${path}`);
    const late = await app.call(method, filled, body, { key: revoked.key });
    assertRefused(late, 401, "invalid_key", `${method} ${path}`);
  }
  const open = ENDPOINTS.filter(({ takesUserKey }) => takesUserKey === true).map(({ id }) => id);
  assert.deepEqual(open, ["getUsage", "listFeatures", "getFeature", "streamUsage"]);
  assertRefused(await app.call("GET", "/nothing", undefined, { key }), 404, "not_found");
  assertRefused(await app.call("GET", "/nothing", undefined, { key: revoked.key }), 401, "invalid_key");
  const tools = await send(service.http, "POST", "/mcp", "{}", { key });
  assert.equal(tools.body.error.code, "requires_secret_key");
});

Deno.test("a key acts for its own user, in the mode in which it was made", async () => {
  const app = await appWithUser(service);
  const made = await make(app);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x", count: 3 }));
  for (const query of ["", "?userId=u"]) {
    const own = await dataOf(usage(app, made, query));
    assert.deepEqual([own.userId, own.counters[0].count], ["u", 3]);
    assert.ok(!("duplicateActiveSubscriptions" in own));
  }
  assertRefused(await usage(app, made, "?userId=v"), 403, "forbidden");
  const test = await make(app, "u", {}, app.secretTest);
  assert.deepEqual([made.key.slice(0, 8), test.key.slice(0, 8)], ["uk_live_", "uk_test_"]);
  assert.deepEqual((await dataOf(usage(app, test))).counters, []);
  assert.deepEqual((await listed(app)).length, 1);
});

Deno.test("nothing of a key but its whole text opens anything", async () => {
  const app = await appWithUser(service);
  const [one, other] = [await make(app), await make(app, "v")];
  const [, , secret, realm, owner, unique] = one.key.split("_") as string[];
  const [, , otherSecret, , otherOwner, otherUnique] = other.key.split("_") as string[];
  const texts = [
    `uk_live_${otherSecret}_${realm}_${owner}_${unique}`,
    `uk_live_${secret}_${realm}_${otherOwner}_${otherUnique}`,
    `uk_live_${secret}_${realm}_${otherOwner}_${unique}`,
    `uk_test_${secret}_${realm}_${owner}_${unique}`,
    `uk_live_${secret}_zzzz_${owner}_${unique}`,
    `uk_live_${secret}_0${realm}_${owner}_${unique}`,
    `uk_live_${secret}_${realm}_zzzzzzz_${unique}`,
    `uk_live_${secret}_${realm}_${owner}`,
    `${one.key}x`,
    one.key.toUpperCase(),
    one.userKeyId,
  ];
  for (const key of texts) assertRefused(await usage(app, { ...one, key }), 401, "invalid_key", key);
  await dataOf(usage(app, one));
});

Deno.test("a wrong key loads no user", async () => {
  const app = await appWithUser(service);
  const { key, ...rest } = await make(app, "asleep");
  await service.restart();
  const { directory } = service.serving().term;
  const before = directory.size;
  const wrong = key.replace(/^uk_live_./, (start) => start.slice(0, -1) + (start.endsWith("x") ? "y" : "x"));
  assertRefused(await usage(app, { ...rest, key: wrong }), 401, "invalid_key");
  assert.equal(directory.size, before);
  await dataOf(usage(app, { ...rest, key }));
  assert.equal(directory.size, before + 1);
});

Deno.test("the list shows what people need to tell keys apart, and never a key", async () => {
  const app = await appWithUser(service);
  const expiresAt = new Date(service.clock.now() + DAY_MS).toISOString();
  const first = await make(app, "u", { name: "CI", expiresAt });
  const second = await make(app);
  const createdAt = new Date(service.clock.now()).toISOString();
  await dataOf(usage(app, second));
  assert.deepEqual(await listed(app), [
    {
      userKeyId: second.userKeyId,
      name: null,
      prefix: second.key.slice(0, 12),
      createdAt,
      expiresAt: null,
      lastUsedAt: createdAt,
    },
    {
      userKeyId: first.userKeyId,
      name: "CI",
      prefix: first.key.slice(0, 12),
      createdAt,
      expiresAt,
      lastUsedAt: null,
    },
  ]);
  await service.restart();
  assert.equal((await listed(app)).length, 2);
  const stored = JSON.stringify(await service.store.database.query("select * from end_user_keys"));
  for (const { key } of [first, second]) assert.ok(!stored.includes(key.split("_")[2] as string));
});

Deno.test("an expiry is real time and in the future, and ends the key", async () => {
  const app = await appWithUser(service, {}, "secretTest");
  const at = (ms: number) => new Date(service.clock.now() + ms).toISOString();
  const late = await app.call("POST", "/users/u/keys", { expiresAt: at(0) });
  assertRefused(late, 400, "invalid_request");
  const made = await make(app, "u", { expiresAt: at(60_000) }, app.secretTest);
  await dataOf(app.call("POST", "/test-clock", { advanceSeconds: 1e6 }, { key: app.secretTest }));
  await dataOf(usage(app, made));
  await using stream = await EventReader.open(service.http, "/usage/stream", made.key);
  await stream.data();
  service.clock.advance(60_000);
  assertRefused(await usage(app, made), 401, "invalid_key");
  await stream.ends("key_revoked");
});

Deno.test("a revoked key is refused from the answer on, also after a restart, and ends its streams alone", async () => {
  const app = await appWithUser(service);
  const [one, other] = [await make(app), await make(app)];
  await using ended = await EventReader.open(service.http, "/usage/stream", one.key);
  await using kept = await EventReader.open(service.http, "/usage/stream", other.key);
  for (const stream of [ended, kept]) await stream.data();
  await revoke(app, one);
  await dataOf(app.call("POST", "/track", { userId: "u", event: "image.x" }));
  await ended.ends("key_revoked");
  assert.equal((await kept.data()).counters[0].count, 1);
  assertRefused(await usage(app, one), 401, "invalid_key");
  const again = await app.call("DELETE", `/users/u/keys/${one.userKeyId}`);
  assertRefused(again, 404, "not_found");
  assertRefused(await app.call("DELETE", `/users/v/keys/${other.userKeyId}`), 404, "not_found");
  await service.restart();
  assertRefused(await usage(app, one), 401, "invalid_key");
  await dataOf(usage(app, other));
  assert.deepEqual((await listed(app)).map(({ userKeyId }: Made) => userKeyId), [other.userKeyId]);
});

Deno.test("no key is kept under an idempotency key, and a revocation is", async () => {
  const app = await appWithUser(service);
  const headers = { "idempotency-key": "k" };
  const [one, other] = await Promise.all(
    [1, 2].map(() => dataOf(app.call("POST", "/users/u/keys", { name: "k" }, { headers })) as Promise<Made>),
  ) as [Made, Made];
  assert.notEqual(one.key, other.key);
  const stored = JSON.stringify(await service.store.database.query("select key, body from idempotency"));
  for (const { key, userKeyId } of [one, other]) {
    assert.ok(!stored.includes(key) && !stored.includes(userKeyId));
  }
  const ending = { headers: { "idempotency-key": "d" } };
  const path = `/users/u/keys/${one.userKeyId}`;
  await dataOf(app.call("DELETE", path, undefined, ending));
  const replayed = await app.call("DELETE", path, undefined, ending);
  assert.deepEqual([replayed.status, replayed.headers.get("idempotent-replayed")], [200, "true"]);
});

Deno.test("a merge moves the keys, which then act for the canonical user", async () => {
  const app = await appWithUser(service);
  const [ofFrom, ofTo] = [await make(app, "old"), await make(app)];
  const gone = await make(app, "old");
  await revoke(app, gone, "old");
  await dataOf(app.call("POST", "/customers/alias", { from: "old", to: "u" }));
  for (const restarts of [false, true]) {
    if (restarts) await service.restart();
    for (const made of [ofFrom, ofTo]) {
      for (const query of ["", "?userId=old", "?userId=u"]) {
        assert.equal((await dataOf(usage(app, made, query))).userId, "u", query);
      }
      assertRefused(await usage(app, made, "?userId=v"), 403, "forbidden");
    }
    assertRefused(await usage(app, gone), 401, "invalid_key");
  }
  const ids = (await listed(app, "old")).map(({ userKeyId }: Made) => userKeyId);
  assert.deepEqual(ids.sort(), [ofFrom.userKeyId, ofTo.userKeyId].sort());
  await revoke(app, ofFrom, "old");
  assertRefused(await usage(app, ofFrom), 401, "invalid_key");
});

Deno.test("an erasure removes a user's keys, its export shows them, and nobody has them after it", async () => {
  const app = await appWithUser(service);
  const { key, userKeyId } = await make(app, "u", { name: "Laptop of Ada" });
  await revoke(app, await make(app));
  const { downloadUrl } = await dataOf(app.call("POST", "/export-person", { distinctId: "u" }));
  const path = downloadUrl.slice(new URL(downloadUrl).origin.length);
  const { body } = await send(service.http, "GET", path, undefined, {});
  assert.deepEqual(body.keys.map(({ id, name }: { id: string; name: string }) => ({ id, name }))[0], {
    id: userKeyId,
    name: "Laptop of Ada",
  });
  assert.ok(!JSON.stringify(body).includes(key.slice(12)) && !JSON.stringify(body).includes("hash"));
  const { jobId } = await dataOf(app.call("POST", "/delete-person", { distinctId: "u" }));
  const status = async () =>
    (await dataOf(app.call("GET", `/deletion-status?jobId=${jobId}`))).status as string;
  await dataOf(service.admin("POST", "/sweep"));
  assert.equal(await status(), "completed");
  assertRefused(await usage(app, { key, userKeyId }), 401, "invalid_key");
  const rows = await service.store.database.query("select 1 from end_user_keys where id = $1", [userKeyId]);
  assert.deepEqual([...rows], []);
});

Deno.test("a user has at most 100 keys, and an expired one gives way", async () => {
  const app = await appWithUser(service);
  const expiresAt = new Date(service.clock.now() + 1_000).toISOString();
  const first = await make(app, "many", { expiresAt });
  for (let place = 1; place < 100; place++) await make(app, "many");
  assertRefused(await app.call("POST", "/users/many/keys", {}), 400, "invalid_request");
  service.clock.advance(1_000);
  await make(app, "many");
  const keys = await listed(app, "many");
  assert.equal(keys.length, 100);
  assert.ok(!keys.some(({ userKeyId }: Made) => userKeyId === first.userKeyId));
  assertRefused(await app.call("POST", "/users/many/keys", {}), 400, "invalid_request");
});

Deno.test("each key has a bucket of its own in the app's rate limit, and a wrong key has none", async () => {
  const app = await appWithUser(service);
  const document = { ...CATALOG, settings: { ...CATALOG.settings, rateLimit: { perSecond: 1, burst: 10 } } };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, document));
  const made = [await make(app), await make(app)] as const;
  for (const each of made) {
    const answers = await Promise.all(Array.from({ length: 14 }, () => usage(app, each)));
    assert.equal(answers.filter(({ status }) => status === 200).length, 10);
    assert.equal(answers.filter(({ status }) => status === 429).length, 4);
  }
  await revoke(app, made[0]);
  assertRefused(await usage(app, made[0]), 401, "invalid_key");
});

Deno.test("a page of the app's origins may read its user's usage with a key", async () => {
  const app = await appWithUser(service);
  const origin = "https://shop.example";
  const document = { ...CATALOG, settings: { ...CATALOG.settings, corsOrigins: [origin] } };
  await dataOf(service.admin("PUT", `/apps/${app.appId}/catalog`, document));
  const { key } = await make(app);
  const answer = await app.call("GET", "/usage", undefined, { key, headers: { origin } });
  assert.deepEqual([answer.status, answer.headers.get("access-control-allow-origin")], [200, origin]);
});

Deno.test("creating and revoking are in the audit log with the API key that did it, and no key is", async () => {
  const app = await appWithUser(service);
  const made = await make(app, "u", { name: "CI" });
  await revoke(app, made);
  const { entries } = await dataOf(service.admin("GET", `/audit?appId=${app.appId}&limit=5`));
  const shown = entries.filter(({ what }: { what: string }) => what.endsWith("UserKey"))
    .map(({ who, via, what, mode, userId, after }: Record<string, unknown>) => ({
      ...{ isKey: /^key_/.test(who as string), via, what, mode, userId, after },
    }));
  const { userKeyId } = made;
  const by = { isKey: true, via: "api", mode: "live", userId: "u" };
  assert.deepEqual(shown, [
    { ...by, what: "revokeUserKey", after: { userKeyId } },
    { ...by, what: "createUserKey", after: { userKeyId, name: "CI" } },
  ]);
  assert.equal(await countOf(app, "lg_images"), 0);
});
