// Aliases in batches: every pair stands for itself, the cap stops a batch in its middle, and batches that race merge each
// pair once.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { MERGE_LIMITS } from "../../src/process/limits.ts";
import { Town } from "./alias_support.ts";

const service = serviceOfFile();

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
  const data = await dataOf(
    askBatch(town, [null, 3, "a", [], {}, { from: "a" }, { from: "a", to: "b", more: 1 }]),
  );
  assert.deepEqual(
    codesOf(data.results),
    [...Array.from({ length: 6 }, () => "invalid_request"), "ok"],
  );
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
  const results = await batch(town, pairs.slice(0, 500));
  assert.deepEqual(codesOf(results), Array.from({ length: 500 }, () => "ok"));
  assert.equal((await town.customer("t3")).aliases.length, 71);
  assert.equal((await town.customer("f499")).canonicalId, "t2");
  await service.restart();
  assert.equal((await town.customer("t3")).aliases.length, 71);
});

for (const mode of ["live", "test"] as const) {
  const [cap, code] = mode === "live"
    ? ["operationCap", "workspace_limit_reached"]
    : ["testOperationCap", "test_quota_exceeded"];

  Deno.test(`in ${mode} mode the cap stops a batch in its middle, and the rest is told so`, async () => {
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
  const limits = MERGE_LIMITS as { batchMs: number };
  const { batchMs } = limits;
  limits.batchMs = -1;
  try {
    const late = await batch(town, [pair("late_1", "late"), pair("late_2", "late")]);
    assert.deepEqual(late.map(({ error }: Data) => error.code), ["not_processed", "not_processed"]);
  } finally {
    limits.batchMs = batchMs;
  }
  const again = await batch(town, [pair("late_1", "late"), pair("late_2", "late")]);
  assert.deepEqual(again.map(({ ok }: Data) => ok), [true, true]);
});
