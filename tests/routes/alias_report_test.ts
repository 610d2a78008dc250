// Aliases: the report of a merge with every count in it, dry runs, what is refused in which order, and chains.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { EMPTY_REPORT, movedOf, Town } from "./alias_support.ts";

const service = serviceOfFile();

Deno.test("ids that nobody has seen merge for nothing, and then are one user", async () => {
  const town = await Town.open(service);
  assert.deepEqual(await town.customer("a"), {
    canonicalId: "a",
    aliases: [],
    duplicateActiveSubscriptions: null,
  });
  const { mergeId, ...report } = await town.merge("a", "b");
  assert.match(mergeId, /^mrg_[0-9a-z_]+$/);
  assert.deepEqual(report, { ...EMPTY_REPORT, from: "a", to: "b" });
  const expected = { canonicalId: "b", aliases: ["a"], duplicateActiveSubscriptions: null };
  assert.deepEqual([await town.customer("a"), await town.customer("b")], [expected, expected]);
  await town.subscribe("a", "plan_pro");
  await town.track("a", "image.x");
  assert.equal((await town.counts("b")).lg_images, 1);
  await service.restart();
  assert.deepEqual(await town.customer("a"), expected);
  assert.equal((await town.counts("a")).lg_images, 1);
});

for (const isRestarted of [false, true]) {
  const where = isRestarted ? "that nobody has in memory" : "in memory";

  Deno.test(`every count of a report is true, of users ${where}`, async () => {
    const town = await Town.open(service);
    await town.subscribe("a", "plan_pro");
    await town.subscribe("b", "plan_pro");
    // Subscription rows: an active one, one that ended; events of them: created, created, canceled.
    await town.pay("a", "plan_free", "one");
    await dataOf(town.ask("DELETE", "/subscriptions?userId=a&provider=stripe&externalId=one"));
    // Balances: one active, one revoked; ledger: grant, grant, admin_adjust.
    await town.grant("a", 5);
    const revoked = await town.grant("a", 7, { packId: "cpk_other" });
    await dataOf(town.ask("POST", "/credits/revoke", { balanceId: revoked }));
    // Events: three tracked, one blocked, one of nothing; a commit and a release write one each.
    await town.track("a", "image.x", { count: 3 });
    await town.track("a", "image.x");
    await town.track("a", "chat.x", { inputTokens: 10 });
    await town.track("a", "nothing.x");
    const [committed, released, lapsed] = [
      await town.hold("a", "image.x"),
      await town.hold("a", "image.x"),
      await town.hold("a", "image.x", { ttlSeconds: 10 }),
    ];
    await town.post("/commit", { reservationId: committed });
    await town.post("/release", { reservationId: released });
    await town.pass(11);
    await town.counts("a");
    await town.hold("a", "only.x", { count: 2 });
    await town.track("b", "image.x", { count: 4 });
    // The event of nothing was paid by credits: one ledger row more.
    if (isRestarted) await service.restart();

    const report = await town.merge("a", "b");
    assert.deepEqual(movedOf(report), {
      events: 6,
      counters: 3,
      reservations: 4,
      subscriptions: 2,
      subscriptionEvents: 3,
      creditBalances: 2,
      creditLedger: 4,
    });
    assert.equal(report.historyPending, false);
    assert.equal(report.billableOperations, 1 + 2);
    assert.deepEqual(report.conflicts.counters, { summed: 1, carried: [], unpaired: [] });
    assert.deepEqual(await town.counts("b"), { lg_images: 9, lg_chat: 10, lg_only: 2 });
    assert.equal((await town.feed("b")).length, 7);
    await town.post("/commit", { reservationId: lapsed });
    assert.equal(
      (await town.counts("a")).lg_images,
      10,
      "a late commit of the alias is charged to the one user",
    );
    for (const reservationId of [committed, released, lapsed]) {
      assertRefused(await town.ask("POST", "/commit", { reservationId }), 409, "reservation_not_pending");
    }
  });

  Deno.test(`holds and ends that are due are settled by the merge and counted as settled, ${where}`, async () => {
    const town = await Town.open(service);
    await town.subscribe("a", "plan_pro", { endsAt: new Date(service.clock.now() + 5_000).toISOString() });
    await town.grant("a", 5);
    const paid = await town.hold("a", "nothing.x", { ttlSeconds: 10 });
    await town.hold("a", "image.x", { ttlSeconds: 10, count: 2 });
    await town.pass(11);
    if (isRestarted) await service.restart();
    const dry = await dataOf(town.askAlias("a", "b", { dryRun: true }));
    const report = await dataOf(town.askAlias("a", "b"));
    assert.deepEqual(dry, { ...report, mergeId: null, dryRun: true });
    // The grant, the hold and what its lapse gave back; created and ended; nothing was active, no counter is used.
    assert.deepEqual(movedOf(report), {
      reservations: 2,
      subscriptions: 1,
      subscriptionEvents: 2,
      creditBalances: 1,
      creditLedger: 3,
    });
    assert.equal(report.billableOperations, 1);
    assert.equal((await town.credits("b"))[0].remaining, 5);
    assert.equal((await town.post("/commit", { reservationId: paid })).recharged, true);
    assert.equal((await town.credits("a"))[0].remaining, 4);
  });
}

Deno.test("what the other side has is in no count of the report", async () => {
  const town = await Town.open(service);
  await town.subscribe("b", "plan_pro");
  await town.track("b", "image.x", { count: 3 });
  await town.grant("b", 5);
  await town.hold("b", "image.x");
  const { mergeId: _, ...report } = await town.merge("a", "b");
  assert.deepEqual(report, { ...EMPTY_REPORT, from: "a", to: "b" });
  assert.equal((await town.counts("a")).lg_images, 4);
});

Deno.test("open holds of both sides are committed and released by their ids under the one user", async () => {
  for (const isRestarted of [false, true]) {
    const town = await Town.open(service);
    await town.subscribe("a", "plan_pro");
    await town.subscribe("b", "plan_pro");
    const ofA = [
      await town.hold("a", "image.x", { count: 2 }),
      await town.hold("a", "image.x", { count: 3 }),
    ];
    await town.hold("a", "image.x", { count: 11 });
    const ofB = [
      await town.hold("b", "image.x", { count: 5 }),
      await town.hold("b", "image.x", { count: 7 }),
    ];
    const report = await town.merge("a", "b");
    assert.deepEqual([report.moved.reservations, report.conflicts.counters.summed], [3, 1]);
    assert.equal((await town.counts("b")).lg_images, 28);
    if (isRestarted) await service.restart();
    const { groups } = await town.post("/commit", { reservationId: ofA[0], extra: { count: 1 } });
    assert.deepEqual([groups[0].current, groups[0].overflow], [29, false]);
    await town.post("/release", { reservationId: ofA[1] });
    await town.post("/commit", { reservationId: ofB[0] });
    await town.post("/release", { reservationId: ofB[1] });
    assert.deepEqual([(await town.counts("a")).lg_images, (await town.counts("b")).lg_images], [19, 19]);
    await town.pass(601);
    assert.equal((await town.counts("a")).lg_images, 8, "a hold of the alias lapses like any other");
  }
});

Deno.test("an alias of an alias is one hop: chains are re-pointed, and reports keep the ids as they were sent", async () => {
  const town = await Town.open(service);
  for (const user of ["a", "b", "c"]) await town.subscribe(user, "plan_pro");
  await town.track("a", "image.x");
  const first = await town.merge("a", "b");
  const late = await town.merge("x", "a");
  assert.deepEqual([late.from, late.to, (await town.customer("x")).canonicalId], ["x", "a", "b"]);
  const second = await town.merge("b", "c");
  assert.equal(second.moved.aliasesRepointed, 2);
  assert.equal(second.moved.events, 1, "rows of an alias are rows of its user");
  for (const id of ["a", "b", "c", "x"]) {
    const { canonicalId, aliases } = await town.customer(id);
    assert.deepEqual([canonicalId, [...aliases].sort()], ["c", ["a", "b", "x"]]);
    assert.equal((await town.counts(id)).lg_images, 1);
  }
  await service.restart();
  for (const to of ["b", "c", "x"]) {
    const again = await dataOf(town.askAlias("a", to));
    assert.deepEqual(again, {
      ...first,
      to,
      alreadyMerged: true,
      billableOperations: 0,
      analytics: "already_linked",
    });
  }
  const dry = await dataOf(town.askAlias("b", "x", { dryRun: true }));
  assert.deepEqual(dry, {
    ...second,
    to: "x",
    mergeId: null,
    dryRun: true,
    alreadyMerged: true,
    billableOperations: 0,
    analytics: "already_linked",
  });
  assertRefused(await town.askAlias("c", "a"), 409, "alias_cycle");
  assertRefused(await town.askAlias("a", "d"), 409, "alias_conflict");
});

Deno.test("what contradicts an alias is refused, in a dry run and at the cap too, and changes nothing", async () => {
  const town = await Town.open(service, { operationCap: 1 });
  await town.subscribe("b", "plan_pro");
  await town.merge("a", "b");
  await town.track("b", "image.x");
  const before = await town.picture("a");
  for (const members of [{}, { dryRun: true }]) {
    assertRefused(await town.askAlias("b", "b", members), 409, "alias_cycle");
    assertRefused(await town.askAlias("b", "a", members), 409, "alias_cycle");
    assertRefused(await town.askAlias("a", "c", members), 409, "alias_conflict");
    assertRefused(await town.askAlias("", "", members), 400, "invalid_request");
  }
  assertRefused(await town.askAlias("c", "a"), 429, "workspace_limit_reached");
  assert.equal(
    (await dataOf(town.askAlias("a", "b"))).alreadyMerged,
    true,
    "a repeated call works at the cap",
  );
  assert.deepEqual(await town.picture("a"), before);
  assert.equal((await town.customer("c")).canonicalId, "c");
});

for (const mode of ["live", "test"] as const) {
  Deno.test(`in ${mode} mode a dry run is never stopped by the cap, and a merge may end past it`, async () => {
    const cap = mode === "live" ? "operationCap" : "testOperationCap";
    const code = mode === "live" ? "workspace_limit_reached" : "test_quota_exceeded";
    const town = await Town.open(service, { [cap]: 2 }, mode);
    await town.subscribe("a", "plan_pro");
    for (let made = 0; made < 3; made++) await town.grant("a", 1);
    await town.track("a", "image.x");
    const report = await town.merge("a", "b");
    assert.deepEqual([report.mode, report.billableOperations, await town.operations()], [mode, 4, 5]);
    await town.subscribe("c", "plan_pro");
    assertRefused(await town.askAlias("c", "b"), 429, code);
    const dry = await town.dryRun("c", "b");
    assert.equal(dry.billableOperations, 1);
    const patched = await service.admin("PATCH", `/workspaces/${town.app.workspaceId}`, { [cap]: 6 });
    assert.equal(patched.status, 200);
    assert.deepEqual(await town.merge("c", "b"), {
      ...dry,
      mergeId: (await dataOf(town.askAlias("c", "b"))).mergeId,
      dryRun: false,
    });
  });
}

Deno.test("only links of anonymous ids need consent, and the merge is made without", async () => {
  const town = await Town.open(service);
  const cases: [string, string, object, string][] = [
    ["anon_1", "u1", {}, "skipped_consent_required"],
    ["u2", "anon_2", { consentGiven: false }, "skipped_consent_required"],
    ["anon_3", "u3", { consentGiven: null }, "skipped_consent_required"],
    ["anon_4", "u4", { consentGiven: true }, "linked"],
    ["u5", "u6", {}, "linked"],
    ["Anon_7", "u7", { consentGiven: false }, "linked"],
  ];
  for (const [from, to, members, analytics] of cases) {
    assert.equal((await town.merge(from, to, members)).analytics, analytics, from);
    assert.equal((await town.customer(from)).canonicalId, to);
  }
});

Deno.test("quota is not fresh after a merge: what both used stands against it", async () => {
  const town = await Town.open(service);
  for (const user of ["a", "b"]) {
    await town.subscribe(user, "plan_free");
    await town.track(user, "image.x", { count: 6 });
  }
  await town.merge("a", "b");
  assert.equal((await town.counts("a")).lg_images, 12);
  const { allowed, reasons, groups } = await town.post("/reserve", { userId: "a", event: "image.x" });
  assert.deepEqual([allowed, reasons, groups[0].current], [false, ["limit_reached"], 12]);
  assert.deepEqual(
    await town.post("/subscriptions", { userId: "a", planId: "plan_free" }).then((row) => row.userId),
    "b",
  );
  assert.equal((await town.counts("b")).lg_images, 12);
});
