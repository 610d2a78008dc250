// Aliases and who may call: keys, end-user tokens of either id, modes, ids of every shape, first answers, and batches.

import { changedLimits } from "../support/limits.ts";
import assert from "node:assert/strict";
import { appWithUser, assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import { Town } from "./alias_support.ts";
import { MERGE_LIMITS } from "../../src/process/limits.ts";

const service = serviceOfFile();

const inSeconds = (seconds: number) => Math.floor(service.clock.now() / 1000) + seconds;

function askWithToken(town: Town, path: string, userId: string, key = town.app.publicLive) {
  const token = endUserToken(town.app.identitySecret, { userId, exp: inSeconds(60) });
  return town.app.call("GET", path, undefined, { key, headers: { "x-end-user-token": token } });
}

/** An error without the path that its caller wrote. */
function withoutPath(error: { message: string }) {
  return { ...error, message: error.message.replace(/ \/.*/, "") };
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
      hidden.push(withoutPath(answer.body.error));
      assertRefused(await askWithToken(town, `/customers/${id}`, "a", key), 404, "not_found", id);
    }
    for (const error of hidden) assert.deepEqual(error, hidden[0], "known and unknown ids look the same");
    const nowhere = await town.app.call("GET", "/nothing/a", undefined, options);
    assert.deepEqual(
      hidden[0],
      withoutPath(nowhere.body.error),
      "and the path looks unknown",
    );
  }
  assert.equal((await town.customer("c")).canonicalId, "c");
  for (const [method, path] of [["POST", "/customers/alias"], ["GET", "/customers/a"]] as const) {
    const body = method === "POST" ? { from: "a", to: "b" } : undefined;
    assertRefused(await town.app.call(method, path, body, { key: "sk_live_unknown" }), 401, "invalid_key");
  }
});

Deno.test("a token of either id opens usage and credits of both, and no other token does", async () => {
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

Deno.test("modes and apps are apart: an alias in one is unknown in the other", async () => {
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
    const report = await dataOf(town.askAlias(from, to));
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

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

interface Pair {
  readonly from: unknown;
  readonly to: unknown;
}

const pair = (from: unknown, to: unknown): Pair => ({ from, to });

function askBatch(town: Town, pairs: unknown, members: object = {}, headers: Record<string, string> = {}) {
  return town.ask("POST", "/customers/alias/batch", { pairs, ...members }, headers);
}

/** Sends a batch and checks its shape: results in the order of the pairs, operations that add up. */
async function batch(town: Town, pairs: readonly Pair[], members: object = {}): Promise<Data[]> {
  const data = await dataOf(askBatch(town, pairs, members));
  assert.deepEqual(Object.keys(data).sort(), ["billableOperations", "results"]);
  assert.deepEqual(data.results.map(({ from, to }: Data) => ({ from, to })), pairs);
  let sum = 0;
  for (const result of data.results) {
    sum += result.billableOperations;
    const members = Object.keys(result).sort();
    if (result.ok) {
      assert.deepEqual(members, ["billableOperations", "from", "ok", "report", "to"]);
      assert.deepEqual([result.report.from, result.report.to], [result.from, result.to]);
      assert.equal(result.report.billableOperations, result.billableOperations);
    } else {
      assert.deepEqual(members, ["billableOperations", "error", "from", "ok", "to"]);
      assert.deepEqual([Object.keys(result.error).sort(), result.billableOperations], [
        ["code", "message"],
        0,
      ]);
      assert.ok(result.error.message.length > 0);
    }
  }
  assert.equal(data.billableOperations, sum);
  return data.results;
}

const codesOf = (results: readonly Data[]) => results.map(({ ok, error }) => ok ? "ok" : error.code);

/** Subscribed users, each with an image and a grant: a merge of one costs 2. */
async function populate(town: Town, users: readonly string[]): Promise<void> {
  await Promise.all(users.map(async (user) => {
    await town.subscribe(user, "plan_pro");
    await town.grant(user, 5);
    await town.track(user, "image.x");
  }));
}

Deno.test("each pair is merged as alias would, in order, and a pair that fails stops no other", async () => {
  const town = await Town.open(service);
  await populate(town, ["a", "b", "c", "d", "e"]);
  await dataOf(town.askAlias("x", "y"));
  const used = await town.operations();
  const results = await batch(town, [
    pair("a", "b"),
    pair("b", "b"),
    pair("b", "a"),
    pair("x", "a"),
    pair("", "a"),
    pair("c", "u".repeat(201)),
    pair(7, "a"),
    pair("b", "c"),
    pair("a", "b"),
    pair("d", "a"),
    pair("x", "y"),
  ]);
  assert.deepEqual(codesOf(results), [
    "ok",
    "alias_cycle",
    "alias_cycle",
    "alias_conflict",
    "invalid_request",
    "invalid_request",
    "invalid_request",
    "ok",
    "ok",
    "ok",
    "ok",
  ]);
  assert.deepEqual([results[8].report.alreadyMerged, results[10].report.alreadyMerged], [true, true]);
  assert.equal(results[8].report.mergeId, results[0].report.mergeId);
  assert.equal(results[7].report.moved.aliasesRepointed, 1);
  assert.equal(await town.operations() - used, 2 + 3 + 2, "the balance of the first moves twice");
  for (const id of ["a", "b", "c", "d"]) {
    assert.equal((await town.customer(id)).canonicalId, "c");
    assert.equal((await town.counts(id)).lg_images, 4);
  }
  assert.equal((await town.customer("e")).canonicalId, "e");
  await town.merge("e", "a");
});

Deno.test("pairs that are no objects, or lack an id, fail alone and show what was sent", async () => {
  const town = await Town.open(service);
  const invalid = [null, 3, "a", [], {}, { from: "a" }, pair("\0", "b"), pair("a", "\ud800")];
  const data = await dataOf(askBatch(town, [...invalid, { from: "a", to: "b", more: 1 }]));
  assert.deepEqual(codesOf(data.results), [...invalid.map(() => "invalid_request"), "ok"]);
  const messages = data.results.map(({ error }: Data) => error?.message);
  assert.match(messages[5], /^to: is required/);
  assert.match(messages[7], /^to: must not contain/);
  for (const result of data.results) {
    assert.deepEqual([Object.hasOwn(result, "from"), Object.hasOwn(result, "to")], [true, true]);
  }
});

Deno.test("a batch has 1 to 500 pairs", async () => {
  const town = await Town.open(service);
  const pairs = Array.from({ length: 501 }, (_, place) => pair(`f${place}`, `t${place % 7}`));
  for (const wrong of [[], pairs, undefined, null, {}, "x"]) {
    assertRefused(await askBatch(town, wrong), 400, "invalid_request");
  }
  assertRefused(await askBatch(town, [pair("a", "b")], { dryRun: "yes" }), 400, "invalid_request");
  assert.equal((await town.customer("f0")).canonicalId, "f0");
  // Of 500 pairs only some are merged: how many may be sent is asked here.
  const most = pairs.slice(0, 500).map((each, place) => place % 20 === 0 ? each : pair("x", "x"));
  const results = await batch(town, most);
  assert.deepEqual(codesOf(results), most.map((_, place) => place % 20 === 0 ? "ok" : "alias_cycle"));
  assert.equal((await town.customer("f480")).canonicalId, "t4");
  await service.restart();
  assert.equal((await town.customer("t4")).aliases.length, 4);
});

for (const mode of ["live", "test"] as const) {
  const [cap, code] = mode === "live"
    ? ["operationCap", "workspace_limit_reached"]
    : ["testOperationCap", "test_quota_exceeded"];

  Deno.test(`in ${mode} mode the cap stops a batch in its middle, and the rest is refused with its code`, async () => {
    // Four images are four operations; each merge is two: the second one ends past the cap.
    const town = await Town.open(service, { [cap]: 4 + 3 }, mode);
    await populate(town, ["a", "b", "c", "d"]);
    const pairs = [
      pair("a", "b"),
      pair("b", "c"),
      pair("", "c"),
      pair("c", "d"),
      pair("a", "d"),
      pair("x", "x"),
    ];
    const dry = await batch(town, [pairs[0] as Pair], { dryRun: true });
    const results = await batch(town, pairs);
    assert.deepEqual(codesOf(results), ["ok", "ok", "invalid_request", code, code, code]);
    assert.deepEqual(results[0].report, {
      ...dry[0].report,
      dryRun: false,
      mergeId: results[0].report.mergeId,
    });
    assert.deepEqual([results[0].report.mode, await town.operations()], [mode, 4 + 2 + 3]);
    assert.deepEqual((await town.customer("d")).aliases, []);
    assert.deepEqual(
      codesOf(await batch(town, pairs)),
      [
        "ok",
        "alias_conflict",
        "invalid_request",
        code,
        code,
        code,
      ].map((each, place) => place === 1 ? "ok" : each),
    );
    // The same pairs as a dry run are stopped by nothing.
    const free = await batch(town, pairs, { dryRun: true });
    assert.deepEqual(codesOf(free), ["ok", "ok", "invalid_request", "ok", "alias_conflict", "alias_cycle"]);
    assert.equal(free[3].billableOperations, 4);
    await service.admin("PATCH", `/workspaces/${town.app.workspaceId}`, { [cap]: null });
    assert.deepEqual(codesOf(await batch(town, pairs)), [
      "ok",
      "ok",
      "invalid_request",
      "ok",
      "ok",
      "alias_cycle",
    ]);
    assert.equal((await town.counts("a")).lg_images, 4);
  });
}

Deno.test("a dry run of a batch changes nothing and reports each pair as if it came alone", async () => {
  const town = await Town.open(service);
  await populate(town, ["a", "b", "c"]);
  const pictures = async () => [await town.picture("a"), await town.picture("b"), await town.operations()];
  const before = await pictures();
  const results = await batch(town, [pair("a", "b"), pair("b", "a"), pair("b", "c")], { dryRun: true });
  assert.deepEqual(codesOf(results), ["ok", "ok", "ok"]);
  for (const { report } of results) {
    assert.deepEqual([report.mergeId, report.dryRun, report.billableOperations], [null, true, 2]);
  }
  assert.deepEqual(await pictures(), before);
});

Deno.test("consent is that of the batch", async () => {
  for (
    const [members, analytics] of [[{}, "skipped_consent_required"], [
      { consentGiven: true },
      "linked",
    ]] as const
  ) {
    const town = await Town.open(service);
    const results = await batch(town, [pair("anon_1", "u1"), pair("u2", "u3")], members);
    assert.deepEqual(results.map(({ report }) => report.analytics), [analytics, "linked"]);
  }
});

Deno.test("batches of the same pairs at once merge each pair once, whatever their order", async () => {
  const town = await Town.open(service);
  const users = Array.from({ length: 12 }, (_, place) => `u${place}`);
  await populate(town, users);
  const used = await town.operations();
  const chain = users.slice(1).map((user, place) => pair(user, users[place]));
  const batches = await Promise.all([
    batch(town, chain),
    batch(town, [...chain].reverse()),
  ]);
  const merges = batches.flat().filter(({ ok, report }) => ok && !report.alreadyMerged);
  assert.equal(merges.length, 11);
  assert.equal(new Set(merges.map(({ report }) => report.mergeId)).size, 11);
  const billed = merges.reduce((sum, { billableOperations }) => sum + billableOperations, 0);
  assert.equal(await town.operations() - used, billed);
  const canonical = (await town.customer("u0")).canonicalId;
  for (const user of users) {
    const { canonicalId, aliases } = await town.customer(user);
    assert.deepEqual([canonicalId, aliases.length], [canonical, 11]);
    assert.equal((await town.counts(user)).lg_images, 12);
  }
});

Deno.test("a repeated batch under its Idempotency-Key answers the first results again", async () => {
  const town = await Town.open(service);
  await populate(town, ["a", "b"]);
  const headers = { "idempotency-key": "batch-1" };
  const first = await askBatch(town, [pair("a", "b"), pair("b", "b")], {}, headers);
  await service.restart();
  const again = await askBatch(town, [pair("a", "b"), pair("b", "b")], {}, headers);
  assert.deepEqual(again.body, first.body);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal(first.body.data.results[0].report.alreadyMerged, false);
  assertRefused(await askBatch(town, [pair("a", "b")], {}, headers), 409, "idempotency_conflict");
});

Deno.test("pairs that the time does not reach are not processed, and may be sent again", async () => {
  const town = await Town.open(service);
  {
    using _limits = changedLimits(MERGE_LIMITS, { batchMs: -1 });
    const late = await batch(town, [pair("late_1", "late"), pair("late_2", "late")]);
    assert.deepEqual(late.map(({ error }: Data) => error.code), ["not_processed", "not_processed"]);
  }
  const again = await batch(town, [pair("late_1", "late"), pair("late_2", "late")]);
  assert.deepEqual(again.map(({ ok }: Data) => ok), [true, true]);
});
