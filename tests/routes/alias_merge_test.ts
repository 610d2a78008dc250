// Aliases over HTTP: the report with every count in it, dry runs, what is refused in which order, chains, and what shows of
// subscriptions and credits afterwards, also after a restart. What a merge does is in tests/domain/merging.

import assert from "node:assert/strict";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import { EMPTY_REPORT, movedOf, Town } from "./alias_support.ts";

const service = serviceOfFile();

Deno.test("unknown ids merge without a charge, and then are one user", async () => {
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

Deno.test("the aliases of a user have one order, before and after a restart", async () => {
  const town = await Town.open(service);
  for (const id of ["a", "b", "c"]) await town.subscribe(id, "plan_pro");
  await town.merge("b", "c");
  await town.merge("a", "c");
  const before = await town.customer("c");
  await service.restart();
  assert.deepEqual(await town.customer("c"), before);
});

for (const isRestarted of [false, true]) {
  const where = isRestarted ? "that is not in memory" : "in memory";

  Deno.test(`every count of a report is true, of users ${where}`, async () => {
    const town = await Town.open(service);
    await town.subscribe("a", "plan_pro");
    await town.subscribe("b", "plan_pro");
    // Subscription rows: an active one and an ended one; events of them: created, created, canceled.
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

Deno.test("an alias of an alias is one hop: chains are re-pointed, and reports keep the ids that were sent", async () => {
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
    assert.equal((await dataOf(town.askAlias(from, to, members))).analytics, analytics, from);
    assert.equal((await town.customer(from)).canonicalId, to);
  }
});

// deno-lint-ignore no-explicit-any -- tests look at whatever came back
type Data = any;

Deno.test("duplicates show in customers.get, usage with a secret key and users, and nowhere else", async () => {
  const town = await Town.open(service);
  const { app } = town;
  await town.grant("a", 5);
  const first = await town.pay("a", "plan_pro", "x", { endsAt: "2031-01-01T00:00:00Z" });
  const second = await town.pay("b", "plan_team", "y");
  const report = await town.merge("a", "b");
  const ref = (subscriptionId: string, name: string, externalId: string, endsAt: string | null) => {
    const startedAt = new Date(service.clock.now()).toISOString();
    return {
      subscriptionId,
      planId: name,
      planName: name,
      provider: "stripe",
      externalId,
      startedAt,
      endsAt,
    };
  };
  const expected = {
    primary: ref(second, "plan_team", "y", null),
    duplicates: [ref(first, "plan_pro", "x", "2031-01-01T00:00:00.000Z")],
  };
  assert.deepEqual(report.conflicts.subscriptions, expected);
  const exp = Math.floor(service.clock.now() / 1000) + 60;
  for (const id of ["a", "b"]) {
    for (const path of [`/customers/${id}`, `/usage?userId=${id}`, `/users/${id}`]) {
      assert.deepEqual((await town.get(path)).duplicateActiveSubscriptions, expected, path);
    }
    const token = { "x-end-user-token": endUserToken(app.identitySecret, { userId: id, exp }) };
    const shown = [
      ...await Promise.all(
        ["/usage", `/usage?userId=${id}`, "/usage/me", `/credits?userId=${id}`].map((path) =>
          dataOf(app.call("GET", path, undefined, { key: app.publicLive, headers: token }))
        ),
      ),
      await dataOf(app.call("GET", "/usage/me", undefined, { headers: token })),
      await town.get(`/credits?userId=${id}`),
      await town.get(`/credits/history?userId=${id}`),
      await town.get(`/events?userId=${id}`),
      await town.post("/can-use", { userId: id, event: "image.x" }),
      await town.track(id, "image.x"),
    ];
    for (const data of shown) {
      assert.ok(!/duplicate/i.test(JSON.stringify(data)), JSON.stringify(data));
    }
  }
});

for (const cause of ["a sweep after its end", "a start after its end"]) {
  Deno.test(`a duplicate is promoted by ${cause}, written and billed once`, async () => {
    const town = await Town.open(service);
    const endsAt = new Date(service.clock.now() + 60_000).toISOString();
    await town.pay("a", "plan_team", "x", { endsAt });
    const second = await town.pay("b", "plan_pro", "y");
    await town.track("a", "image.x", { count: 3 });
    await town.merge("a", "b");
    const before = await town.operations();
    await town.pass(61);
    if (cause.startsWith("a sweep")) await service.admin("POST", "/sweep");
    if (cause.startsWith("a start")) await service.restart();
    await Promise.all(["a", "b", "a", "b"].map((id) => town.counts(id)));
    assert.equal((await service.admin("POST", "/sweep")).status, 200);
    await service.restart();
    const user = await town.get("/users/a");
    const promoted = user.history.filter(({ type }: Data) => type === "promoted");
    assert.deepEqual(promoted.map(({ subscriptionId }: Data) => subscriptionId), [second]);
    assert.equal(await town.operations() - before, 1);
    assert.deepEqual([user.subscription.subscriptionId, user.duplicateActiveSubscriptions], [second, null]);
    assert.equal(user.counters[0].count, 3, "the usage goes with the promotion");
  });
}

Deno.test("rows that moved are changed and canceled by either id", async () => {
  const town = await Town.open(service);
  const ofA = await town.pay("a", "plan_pro", "x");
  const ofB = await town.pay("b", "plan_pro", "y");
  await town.merge("a", "b");
  const changed = await town.subscribe("b", "plan_team", { provider: "stripe", externalId: "x" });
  assert.deepEqual([changed.subscriptionId, changed.userId], [ofA, "b"]);
  assertRefused(await town.ask("DELETE", "/subscriptions?userId=a"), 400, "invalid_request");
  const path = "/subscriptions?userId=a&provider=stripe&externalId=y";
  const canceled = await dataOf(town.ask("DELETE", path));
  assert.deepEqual([canceled.subscriptionId, canceled.userId], [ofB, "b"]);
  assertRefused(await town.ask("DELETE", path), 409, "already_canceled");
  assert.equal((await town.customer("a")).duplicateActiveSubscriptions, null);
});

const EVENT = "free.x";
const REF = { externalRef: "order-1" };

async function balanceOf(town: Town, userId: string, id: string): Promise<Data> {
  const row = (await town.credits(userId)).find(({ balanceId }) => balanceId === id);
  return [row?.remaining, row?.status];
}

/** The rows that the last merge wrote, oldest first. */
async function mergeRows(town: Town, userId: string): Promise<[string, number, string][]> {
  const rows = (await town.ledger(userId)).filter(({ reason }) => reason.startsWith("merge"));
  for (const row of rows) {
    assert.deepEqual([row.eventId, row.reservationId, row.notes], [null, null, null]);
    assert.equal(row.occurredAt, new Date(service.clock.now()).toISOString());
  }
  return rows.reverse().map(({ balanceId, delta, reason }) => [balanceId, delta, reason]);
}

for (const isRestarted of [false, true]) {
  Deno.test(`two copies of one grant become one balance with the use of both${isRestarted ? ", from the tables" : ""}`, async () => {
    const town = await Town.open(service);
    const [ofA, ofB] = [await town.grant("a", 10, REF), await town.grant("b", 10, REF)];
    await town.track("a", EVENT, { count: 3 });
    await town.track("b", EVENT, { count: 4 });
    if (isRestarted) await service.restart();
    const report = await town.merge("a", "b");
    assert.deepEqual(report.conflicts.credits, [
      { externalRef: "order-1", survivorId: ofB, droppedId: ofA, remaining: 3, overage: 0 },
    ]);
    assert.deepEqual([report.billableOperations, report.moved.creditBalances], [2, 1]);
    assert.deepEqual(await mergeRows(town, "a"), [[ofB, -3, "merge_dedupe"], [ofA, -7, "merge_dedupe"]]);
    assert.deepEqual(await balanceOf(town, "a", ofB), [3, "active"]);
    assert.deepEqual(await balanceOf(town, "a", ofA), [0, "revoked"]);
    if (isRestarted) await service.restart();
    for (const user of ["a", "b"]) {
      const again = await town.post("/credits/grant", {
        userId: user,
        packId: "cpk_credits",
        quantity: 10,
        ...REF,
      });
      assert.deepEqual([again.balanceId, again.remaining, again.balances.length], [ofB, 3, 1]);
    }
    const blocked = await town.post("/reserve", { userId: "a", event: EVENT, count: 4 });
    assert.equal(blocked.allowed, false, "credits are not fresh after a merge");
  });
}

Deno.test("in test mode the cap on issued balances does not stop a merge, and a merge issues none", async () => {
  const town = await Town.open(service, { testCreditBalanceCap: 3 }, "test");
  await town.grant("a", 1, REF);
  await town.grant("a", 1);
  await town.grant("b", 1, REF);
  const report = await town.merge("a", "b");
  assert.equal(report.moved.creditBalances, 2);
  const grant = await town.ask("POST", "/credits/grant", { userId: "a", packId: "cpk_credits", quantity: 1 });
  assertRefused(grant, 429, "test_quota_exceeded");
  await service.admin("PATCH", `/workspaces/${town.app.workspaceId}`, { testCreditBalanceCap: 4 });
  await town.grant("a", 1);
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
