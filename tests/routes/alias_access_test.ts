// Aliases and who may call: keys, end-user tokens of either id, modes, ids of every shape, and first answers.

import assert from "node:assert/strict";
import { appWithUser, assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import { Town } from "./alias_support.ts";

const service = serviceOfFile();

const inSeconds = (seconds: number) => Math.floor(service.clock.now() / 1000) + seconds;

function askWithToken(town: Town, path: string, userId: string, key = town.app.publicLive) {
  const token = endUserToken(town.app.identitySecret, { userId, exp: inSeconds(60) });
  return town.app.call("GET", path, undefined, { key, headers: { "x-end-user-token": token } });
}

Deno.test("a public key may not merge, and learns of no customer", async () => {
  const town = await Town.open(service);
  await dataOf(town.askAlias("a", "b"));
  for (const key of [town.app.publicLive, town.app.publicTest]) {
    const options = { key };
    for (const body of [{ from: "c", to: "b" }, { from: "a", to: "b", dryRun: true }, {}, undefined]) {
      assertRefused(
        await town.app.call("POST", "/customers/alias", body, options),
        403,
        "requires_secret_key",
      );
      const pairs = [body];
      const answer = await town.app.call("POST", "/customers/alias/batch", { pairs }, options);
      assertRefused(answer, 403, "requires_secret_key");
    }
    const hidden = [];
    for (const id of ["a", "b", "c", "u".repeat(201)]) {
      const answer = await town.app.call("GET", `/customers/${id}`, undefined, options);
      assertRefused(answer, 404, "not_found", id);
      hidden.push(answer.body.error);
      assertRefused(await askWithToken(town, `/customers/${id}`, "a", key), 404, "not_found", id);
    }
    for (const error of hidden) assert.deepEqual(error, hidden[0], "known and unknown ids look the same");
    const nowhere = await town.app.call("GET", "/nothing/a", undefined, options);
    assert.deepEqual(hidden[0], nowhere.body.error, "and the path looks like one that is not there");
  }
  assert.equal((await town.customer("c")).canonicalId, "c");
  for (const [method, path] of [["POST", "/customers/alias"], ["GET", "/customers/a"]] as const) {
    const body = method === "POST" ? { from: "a", to: "b" } : undefined;
    assertRefused(await town.app.call(method, path, body, { key: "sk_live_unknown" }), 401, "invalid_key");
  }
});

Deno.test("a token of either id opens usage and credits of both, and nobody else's does", async () => {
  const town = await Town.open(service);
  await town.subscribe("a", "plan_pro");
  await town.track("a", "image.x");
  await town.grant("a", 5);
  const paths = (id: string) => [`/usage?userId=${id}`, `/credits?userId=${id}`];
  for (const path of paths("b")) assertRefused(await askWithToken(town, path, "a"), 403, "forbidden");
  await dataOf(town.askAlias("a", "b"));
  await dataOf(town.askAlias("x", "a"));
  const mine = ["a", "b", "x"];
  for (let restart = 0; restart < 2; restart++) {
    for (const token of mine) {
      for (const id of mine) {
        const usage = await dataOf(askWithToken(town, `/usage?userId=${id}`, token));
        assert.deepEqual([usage.userId, usage.counters[0].count], ["b", 1]);
        const { credits } = await dataOf(askWithToken(town, `/credits?userId=${id}`, token));
        assert.equal(credits[0].remaining, 5);
      }
      assert.equal((await dataOf(askWithToken(town, "/usage", token))).userId, "b");
      assert.equal((await dataOf(askWithToken(town, "/usage/me", token))).userId, "b");
      for (const path of paths("c")) assertRefused(await askWithToken(town, path, token), 403, "forbidden");
      for (const path of paths("A")) assertRefused(await askWithToken(town, path, token), 403, "forbidden");
    }
    for (const token of ["c", "A", "B"]) {
      for (const path of mine.flatMap(paths)) {
        assertRefused(await askWithToken(town, path, token), 403, "forbidden");
      }
    }
    await service.restart();
  }
  const test = await askWithToken(town, "/usage?userId=b", "a", town.app.publicTest);
  assertRefused(test, 403, "forbidden", "aliases of live mode are none in test mode");
});

Deno.test("modes and apps are apart: an alias in one is none in the other", async () => {
  const town = await Town.open(service);
  const test = new Town(service, town.app, "test");
  const other = await Town.open(service);
  for (const each of [town, test, other]) {
    await each.subscribe("a", "plan_pro");
    await each.subscribe("b", "plan_pro");
    await each.track("a", "image.x");
  }
  const before = [await town.picture("a"), await other.picture("a")];
  const report = await test.merge("a", "b");
  assert.equal(report.mode, "test");
  assert.deepEqual([await town.picture("a"), await other.picture("a")], before);
  assert.deepEqual([await test.operations(), await town.operations()], [2, 1]);
  assert.deepEqual(await town.counts("b"), { lg_images: 0, lg_chat: 0, lg_only: 0 });
  assert.equal((await test.counts("b")).lg_images, 1);
  await town.merge("b", "a");
  assert.equal((await town.customer("b")).canonicalId, "a");
  assert.equal((await test.customer("a")).canonicalId, "b");
});

Deno.test("ids have 1 to 200 characters, counted as such, and are exact", async () => {
  const town = await Town.open(service);
  const long = "𝕦".repeat(200);
  for (
    const wrong of ["", "u".repeat(201), "𝕦".repeat(201), 7, null, undefined, ["a"], {}, "a\0", "\ud800"]
  ) {
    assertRefused(await town.askAlias(wrong, "b"), 400, "invalid_request", `from ${wrong}`);
    assertRefused(await town.askAlias("a", wrong), 400, "invalid_request", `to ${wrong}`);
    assertRefused(await town.askAlias(wrong, wrong), 400, "invalid_request", `both ${wrong}`);
  }
  for (const path of [`/customers/${"u".repeat(201)}`, "/customers/%ff"]) {
    assertRefused(await town.ask("GET", path), 400, "invalid_request", path);
  }
  for (const members of [{ dryRun: "true" }, { dryRun: 1 }, { consentGiven: "yes" }]) {
    assertRefused(await town.askAlias("a", "b", members), 400, "invalid_request", JSON.stringify(members));
  }
  assert.equal((await town.customer("a")).canonicalId, "a");
  const pairs = [
    [long, `${"u".repeat(199)}x`],
    ["A", "a"],
    ["a/b?c=d&e#f", "100% é \\ \"'"],
    [" a", "a "],
    ["\ufeffz", "z"],
    ["e\u0301", "\u00e9"],
    ["0", "null"],
  ] as const;
  for (const [from, to] of pairs) {
    await town.subscribe(from, "plan_free");
    await town.track(from, "image.x");
    const report = await town.merge(from, to);
    assert.deepEqual([report.from, report.to], [from, to]);
    assert.deepEqual(await town.customer(from), {
      canonicalId: to,
      aliases: [from],
      duplicateActiveSubscriptions: null,
    });
  }
  await service.restart();
  for (const [from, to] of pairs) assert.deepEqual((await town.customer(to)).aliases, [from]);
});

Deno.test("every answer names the canonical user, whichever id was asked", async () => {
  const town = await Town.open(service);
  await town.merge("a", "b");
  assert.equal((await town.subscribe("a", "plan_pro")).userId, "b");
  assert.equal((await town.get("/usage?userId=a")).userId, "b");
  assert.equal((await town.get("/users/a")).userId, "b");
  const { eventId } = await town.track("a", "image.x");
  assert.equal((await town.get(`/events/${eventId}`)).endUserId, "b");
  for (const query of ["", "userId=a", "userId=b"]) {
    const { events } = await town.get(`/events?${query}`);
    assert.deepEqual(events.map(({ endUserId }: { endUserId: string }) => endUserId), ["b"], query);
  }
  const canceled = await dataOf(town.ask("DELETE", "/subscriptions?userId=a"));
  assert.equal(canceled.userId, "b");
});

Deno.test("a repeated alias call under its Idempotency-Key answers the first report again", async () => {
  const app = await appWithUser(service);
  const town = new Town(service, app);
  const alias = (key: string, body: object) =>
    town.ask("POST", "/customers/alias", body, { "idempotency-key": key });
  const [first, twin] = await Promise.all([
    alias("k1", { from: "a", to: "u" }),
    alias("k1", { from: "a", to: "u" }),
  ]);
  assert.deepEqual(first.body, twin.body);
  assert.deepEqual(
    [first, twin].map(({ headers }) => headers.get("idempotent-replayed")).sort(),
    [null, "true"].sort(),
  );
  assert.equal(first.body.data.alreadyMerged, false);
  const refused = await alias("k2", { from: "a", to: "c" });
  assertRefused(refused, 409, "alias_conflict");
  const dry = await alias("k3", { from: "u", to: "c", dryRun: true });
  assert.equal(dry.body.data.dryRun, true);
  await dataOf(town.askAlias("u", "c"));
  for (let restart = 0; restart < 2; restart++) {
    for (
      const [key, body, answer] of [
        ["k1", { from: "a", to: "u" }, first],
        ["k2", { from: "a", to: "c" }, refused],
        ["k3", { from: "u", to: "c", dryRun: true }, dry],
      ] as const
    ) {
      const again = await alias(key, body);
      assert.deepEqual([again.status, again.body], [answer.status, answer.body], key);
      assert.equal(again.headers.get("idempotent-replayed"), "true", key);
    }
    assertRefused(await alias("k1", { from: "a", to: "c" }), 409, "idempotency_conflict");
    await service.restart();
  }
  const other = await dataOf(alias("k4", { from: "a", to: "u" }));
  assert.deepEqual([other.alreadyMerged, other.mergeId], [true, first.body.data.mergeId]);
});

Deno.test("a first answer of an id stays when the id becomes an alias", async () => {
  const town = await Town.open(service);
  await town.subscribe("a", "plan_pro");
  const track = () =>
    town.ask("POST", "/track", { userId: "a", event: "image.x" }, { "idempotency-key": "t" });
  const first = await track();
  await town.merge("a", "b");
  const again = await track();
  assert.deepEqual([again.body, again.headers.get("idempotent-replayed")], [first.body, "true"]);
  assert.equal((await town.counts("b")).lg_images, 1);
});
