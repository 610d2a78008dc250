// Credits over HTTP: shapes and bounds of a grant, what survives a restart, references and the sandbox cap under
// parallel calls, and the one event that credits pay alone. The rules are in tests/domain/credits.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { applyCatalog, catalogWithPack, Customer, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();
const DAY_MS = 24 * 3_600_000;

const inDays = (days: number) => new Date(service.clock.now() + days * DAY_MS).toISOString();

const isNewBalance = (id: string) => /^crb_[0-9a-z]{1,11}_[0-9a-z]{20}$/.test(id);

Deno.test("a pack with items issues one balance for each, and the answer copies the first", async () => {
  const u = await newCustomer(service);
  const data = await u.grant("cpk_bundle");
  const [images, video] = data.balances;
  assert.ok(isNewBalance(images.balanceId) && isNewBalance(video.balanceId));
  assert.notEqual(images.balanceId, video.balanceId);
  const expiresAt = inDays(90);
  assert.deepEqual(data, {
    balances: [
      { balanceId: images.balanceId, packItemId: "cpi_bundle_images", remaining: 10, expiresAt },
      { balanceId: video.balanceId, packItemId: "cpi_bundle_video", remaining: 5, expiresAt },
    ],
    balanceId: images.balanceId,
    remaining: 10,
    expiresAt,
  });
  const common = {
    packId: "cpk_bundle",
    packName: "Creator Bundle",
    kind: "per_type",
    grantedAt: inDays(0),
    expiresAt,
    status: "active",
    priority: 150,
  };
  const flux = [{ event: "image.render", metadata: { model: "flux" } }];
  assert.deepEqual(await u.credits(), [
    {
      ...common,
      balanceId: images.balanceId,
      packItemId: "cpi_bundle_images",
      unit: "count",
      remaining: 10,
      initial: 10,
      matches: flux,
    },
    {
      ...common,
      balanceId: video.balanceId,
      packItemId: "cpi_bundle_video",
      unit: "seconds",
      remaining: 5,
      initial: 5,
      matches: [{ event: "video.veo" }],
    },
  ]);
});

Deno.test("a pack without items needs a quantity above 0", async () => {
  const u = await newCustomer(service);
  for (const quantity of [undefined, null, 0, -0, -1, -1e12, 1e-9, -1e-9]) {
    const answer = await u.ask("POST", "/credits/grant", { packId: "cpk_wallet", quantity });
    assertRefused(answer, 400, "invalid_quantity", String(quantity));
  }
  for (const quantity of ["5", "NaN", "", "Infinity", true, [5], { value: 5 }, 1.1e12, 1e300]) {
    const answer = await u.ask("POST", "/credits/grant", { packId: "cpk_wallet", quantity });
    assert.equal(answer.status, 400, JSON.stringify(quantity));
    assert.match(answer.body.error.code, /^invalid_(quantity|request)$/);
  }
  for (const text of ["1e400", "NaN", "Infinity"]) {
    const body = `{"userId":"u","packId":"cpk_wallet","quantity":${text}}`;
    const { status, body: { error } } = await u.app.call("POST", "/credits/grant", body);
    assert.equal(status, 400, text);
    assert.match(error.code, /^invalid_(quantity|request)$/);
  }
  assert.deepEqual(await u.credits({ includeExpired: true }), []);
  assert.deepEqual(await u.ledger(), []);
});

Deno.test("an expiry is the given one, or evergreen for null, or that of the pack counted from the grant", async () => {
  const u = await newCustomer(service);
  const expiryOf = async (packId: string, members: object) => (await u.grant(packId, members)).expiresAt;
  assert.equal(await expiryOf("cpk_bundle", {}), inDays(90));
  assert.equal(await expiryOf("cpk_bundle", { expiresAt: null }), null);
  assert.equal(await expiryOf("cpk_bundle", { expiresAt: inDays(1) }), inDays(1));
  assert.equal(await expiryOf("cpk_topup", {}), null);
  assert.equal(await expiryOf("cpk_topup", { expiresAt: inDays(400) }), inDays(400));
  assert.equal(await expiryOf("cpk_topup", { expiresAt: "2100-01-01" }), "2100-01-01T00:00:00.000Z");
  assert.equal(
    await expiryOf("cpk_topup", { expiresAt: "2100-01-01T02:00:00+02:00" }),
    "2100-01-01T00:00:00.000Z",
  );
  const next = new Date(service.clock.now() + 1).toISOString();
  assert.equal(await expiryOf("cpk_topup", { expiresAt: next }), next, "the next millisecond is no past");
});

Deno.test("an expiry that is past, present or no time is refused", async () => {
  const u = await newCustomer(service, { mode: "test" });
  await u.pass(3600);
  const { now } = await u.get("/test-clock");
  const times = [
    now,
    new Date(Date.parse(now) - 1).toISOString(),
    inDays(0),
    "2020-01-01",
    "soon",
    "",
    1e13,
    true,
    {},
  ];
  for (const expiresAt of times) {
    for (const packId of ["cpk_topup", "cpk_wallet"]) {
      const answer = await u.ask("POST", "/credits/grant", { packId, quantity: 1, expiresAt });
      assertRefused(answer, 400, "invalid_request", JSON.stringify(expiresAt));
    }
  }
  assert.deepEqual(await u.credits({ includeExpired: true }), []);
  const due = new Date(Date.parse(now) + 90 * DAY_MS).toISOString();
  assert.equal((await u.grant("cpk_bundle")).expiresAt, due, "the default counts from the test clock");
});

Deno.test("sources, notes and refs have their bounds, and ids are needed", async () => {
  const u = await newCustomer(service);
  const long = "é".repeat(199) + "😀";
  for (const source of ["purchase", "grant", "refund", "manual", null, undefined]) {
    await u.grant("cpk_topup", { source, notes: "x".repeat(500), externalRef: `${source}` });
  }
  await u.grant("cpk_topup", { externalRef: long, notes: "" });
  await u.grant("cpk_topup", { externalRef: null, notes: null });
  assert.equal((await u.credits()).length, 8);
  const bad: object[] = [
    { externalRef: "" },
    { externalRef: `${long}x` },
    { externalRef: 5 },
    { externalRef: "a\u0000" },
    { source: "gift" },
    { source: "" },
    { source: 1 },
    { notes: "x".repeat(501) },
    { notes: 5 },
    { notes: "\ud800" },
    { userId: "" },
    { userId: "x".repeat(201) },
    { userId: null },
    { packId: null },
    { packId: 5 },
    { packId: ["cpk_topup"] },
  ];
  for (const members of bad) {
    const answer = await u.ask("POST", "/credits/grant", { packId: "cpk_topup", ...members });
    assertRefused(answer, 400, "invalid_request", JSON.stringify(members));
  }
  assert.equal((await u.credits()).length, 8);
});

Deno.test("what is granted in one mode, or app, or to one user, is not seen in another", async () => {
  const u = await newCustomer(service);
  const inTest = new Customer(u.app, "u", u.app.secretTest);
  const other = await newCustomer(service);
  const members = { externalRef: "r", quantity: 5 };
  const id = await u.fund("cpk_wallet", 5, members);
  for (const stranger of [inTest, other, new Customer(u.app, "U")]) {
    assert.deepEqual(await stranger.credits({ includeExpired: true }), []);
    assert.deepEqual(await stranger.ledger(), []);
    assert.notEqual((await stranger.grant("cpk_wallet", members)).balanceId, id);
    assert.equal((await stranger.credits()).length, 1);
  }
  assertRefused(
    await inTest.ask("POST", "/credits/revoke", { balanceId: id }),
    404,
    "credit_balance_not_found",
  );
  assertRefused(
    await other.ask("POST", "/credits/revoke", { balanceId: id }),
    404,
    "credit_balance_not_found",
  );
  assert.deepEqual(await u.remaining(id), [5]);
});

Deno.test("an idempotency key makes one grant of a repeated call, and keeps a refusal", async () => {
  const u = await newCustomer(service);
  const call = (key: string, body: object) =>
    u.app.call("POST", "/credits/grant", { userId: "u", ...body }, { headers: { "idempotency-key": key } });
  const first = await dataOf(call("a", { packId: "cpk_topup" }));
  assertRefused(await call("b", { packId: "cpk_later" }), 404, "credit_pack_not_found");
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", { id: "cpk_later" }));
  for (const isRestarted of [false, true]) {
    if (isRestarted) await service.restart();
    assert.deepEqual(await dataOf(call("a", { packId: "cpk_topup" })), first);
    assertRefused(await call("b", { packId: "cpk_later" }), 404, "credit_pack_not_found");
  }
  assert.equal((await u.credits()).length, 1);
  assertRefused(await call("c", { packId: "cpk_count", quantity: 0 }), 400, "invalid_quantity");
  await dataOf(call("c", { packId: "cpk_count", quantity: 5 }));
});

Deno.test("fifty parallel grants under one ref issue one set of balances", async () => {
  const u = await newCustomer(service);
  const calls = Array.from(
    { length: 50 },
    (_, index) =>
      u.grant(index % 2 === 0 ? "cpk_bundle" : "CREATOR BUNDLE", { externalRef: "order-1", quantity: index }),
  );
  const answers = await Promise.all(calls);
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
  assert.equal((await u.credits()).length, 2);
  assert.equal((await u.ledger()).length, 2);
  await u.audit();
});

Deno.test("a known ref answers across a restart, before and after the rows are in the tables", async () => {
  const u = await newCustomer(service);
  const first = await u.grant("cpk_bundle", { externalRef: "order-1" });
  await service.restart();
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  await service.serving().term.flush();
  await service.restart();
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "order-1" }), first);
  const parallel = Array.from({ length: 20 }, () => u.grant("cpk_bundle", { externalRef: "order-1" }));
  for (const answer of await Promise.all(parallel)) assert.deepEqual(answer, first);
  assert.equal((await u.credits()).length, 2);
});

/** Restarts the service when everything is in the tables. */
async function restartDrained(): Promise<void> {
  await service.serving().term.flush();
  await service.restart();
}

Deno.test("after a restart a ref answers with all balances of the grant, also when one was revoked", async () => {
  const u = await newCustomer(service);
  const members = { externalRef: "order-1" };
  const [images, video] = (await u.grant("cpk_bundle", members)).balances;
  await u.post("/credits/revoke", { balanceId: images.balanceId });
  const expected = [{ ...images, remaining: 0 }, video];
  assert.deepEqual((await u.grant("cpk_bundle", members)).balances, expected);
  for (const _ of [1, 2]) {
    await restartDrained();
    const data = await u.grant("cpk_bundle", members);
    assert.deepEqual(data.balances, expected);
    assert.deepEqual([data.balanceId, data.remaining], [images.balanceId, 0]);
  }
});

Deno.test("after a restart a ref issues nothing again where another pack has live balances of the same ref", async () => {
  const u = await newCustomer(service);
  const expiresAt = new Date(service.clock.now() + 1000).toISOString();
  const grants: [packId: string, members: object][] = [
    ["cpk_wallet", { externalRef: "r", quantity: 5 }],
    ["cpk_first", { externalRef: "r", quantity: 5, expiresAt }],
    ["cpk_count", { externalRef: "r", quantity: 5 }],
  ];
  const ids: string[] = [];
  for (const [packId, members] of grants) ids.push((await u.grant(packId, members)).balanceId);
  await u.post("/credits/revoke", { balanceId: ids[0] });
  service.clock.advance(1000);
  await restartDrained();
  const again: string[] = [];
  for (const [packId, members] of grants) again.push((await u.grant(packId, members)).balanceId);
  assert.deepEqual(again, ids);
  assert.equal((await u.credits({ includeExpired: true })).length, 3);
});

Deno.test("the sandbox cap counts every balance ever issued in the app's test mode, all of a grant or none", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 4 } });
  const v = new Customer(u.app, "v", u.key);
  const isFull = async (customer: Customer, packId: string) => {
    const answer = await customer.ask("POST", "/credits/grant", { packId, quantity: 1, externalRef: "new" });
    assertRefused(answer, 429, "test_quota_exceeded", packId);
  };
  const first = await u.grant("cpk_bundle", { externalRef: "known" });
  const balanceId = await v.fund("cpk_wallet", 1);
  await isFull(u, "cpk_bundle");
  await isFull(v, "cpk_bundle");
  assert.equal((await u.credits()).length, 2, "no half of a grant");
  assert.equal((await u.ledger()).length, 2);
  await v.post("/credits/revoke", { balanceId });
  await isFull(v, "cpk_bundle");
  await service.restart();
  await isFull(v, "cpk_bundle");
  await v.grant("cpk_topup");
  await isFull(u, "cpk_topup");
  await isFull(u, "cpk_wallet");
  const keyed = () =>
    u.app.call("POST", "/credits/grant", { userId: "w", packId: "cpk_topup" }, {
      key: u.key,
      headers: { "idempotency-key": "k" },
    });
  assertRefused(await keyed(), 429, "test_quota_exceeded");
  assert.deepEqual(await u.grant("cpk_bundle", { externalRef: "known" }), first, "a known ref is no grant");
  assertRefused(await u.ask("POST", "/credits/grant", { packId: "cpk_no" }), 404, "credit_pack_not_found");
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: 6 });
  await u.grant("cpk_bundle", { externalRef: "new" });
  await isFull(v, "cpk_topup");
  assertRefused(await keyed(), 429, "test_quota_exceeded");
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: null });
  await u.grant("cpk_bundle");
  await dataOf(keyed());
  await service.admin("PATCH", `/workspaces/${u.app.workspaceId}`, { testCreditBalanceCap: 0 });
  await isFull(v, "cpk_topup");
});

Deno.test("live mode knows no cap of balances, and does not count toward that of test mode", async () => {
  const u = await newCustomer(service, { workspace: { testCreditBalanceCap: 1 } });
  for (let call = 0; call < 3; call++) await u.grant("cpk_bundle");
  const inTest = new Customer(u.app, "u", u.app.secretTest);
  await inTest.grant("cpk_topup");
  assertRefused(
    await inTest.ask("POST", "/credits/grant", { packId: "cpk_topup" }),
    429,
    "test_quota_exceeded",
  );
  await u.grant("cpk_bundle");
  assert.equal((await u.credits()).length, 8);
});

Deno.test("of parallel grants to many users exactly as many pass as the sandbox cap has left", async () => {
  const u = await newCustomer(service, { mode: "test", workspace: { testCreditBalanceCap: 15 } });
  const customers = Array.from({ length: 10 }, (_, index) => new Customer(u.app, `v${index}`, u.key));
  const answers = await Promise.all(
    customers.flatMap((customer) =>
      [0, 1, 2].map(() =>
        customer.ask("POST", "/credits/grant", {
          packId: "cpk_bundle",
        })
      )
    ),
  );
  const [passed, refused] = [200, 429].map((code) => answers.filter(({ status }) => status === code).length);
  assert.deepEqual([passed, refused], [7, 23]);
  await u.grant("cpk_topup");
  const lists = await Promise.all(customers.map((customer) => customer.credits()));
  assert.equal(lists.flat().length, 14);
});

/** A refused reserve; answers its reason. */
async function refusalOf(u: Customer, event: string, members: object = {}): Promise<string> {
  const { allowed, reservationId, reasons } = await u.post("/reserve", { event, ...members });
  assert.deepEqual([allowed, reservationId, reasons.length], [false, undefined, 1]);
  return reasons[0];
}

Deno.test("credits pay without a plan, and the event is matched by credits alone", async () => {
  const u = await newCustomer(service, { planId: null });
  const id = (await u.grant("cpk_topup")).balanceId;
  const reserved = await u.post("/reserve", { event: "image.x", count: 3 });
  assert.deepEqual(Object.keys(reserved), ["allowed", "matched", "reservationId", "expiresAt"]);
  assert.deepEqual([reserved.allowed, reserved.matched], [true, true]);
  assert.deepEqual(await u.remaining(id), [47]);
  const done = await u.commit(reserved.reservationId);
  assert.deepEqual([done.groups, done.recharged], [[], false]);
  const tracked = await u.post("/track", { event: "image.y", count: 7 });
  assert.deepEqual(tracked, {
    eventId: tracked.eventId,
    matchStatus: "matched_credits_only",
    matchedGroupIds: [],
    counters: [],
    cost: { cents: 0, priced: false, model: null },
  });
  for (const eventId of [done.eventId, tracked.eventId]) {
    const { matchStatus, matchedGroupIds, uncovered } = await u.event(eventId);
    assert.deepEqual([matchStatus, matchedGroupIds, uncovered], ["matched_credits_only", [], {}]);
  }
  const { events } = await u.get("/events");
  assert.deepEqual(events.map((row: { matchStatus: string }) => row.matchStatus), [
    "matched_credits_only",
    "matched_credits_only",
  ]);
  assert.deepEqual(await u.remaining(id), [40]);
  const { body } = await service.admin("GET", "/workspaces");
  const row = body.data.find((each: { workspaceId: string }) => each.workspaceId === u.app.workspaceId);
  assert.equal(row.operationsUsed, 2, "both events count as operations");
  assert.equal(await refusalOf(u, "image.x", { count: 41 }), "no_subscription");
  const beyond = await u.post("/track", { event: "image.x", count: 41 });
  assert.deepEqual([beyond.matchStatus, beyond.counters], ["no_subscription", []]);
  assert.deepEqual(await u.remaining(id), [40]);
});

Deno.test("two hundred parallel reserves spend what there is and not one unit more, also after a restart", async () => {
  const u = await newCustomer(service);
  for (let index = 0; index < 10; index++) await u.fund(index % 2 === 0 ? "cpk_count" : "cpk_first", 10);
  const ask = () => u.ask("POST", "/reserve", { event: "image.x", count: 3 });
  const answers = await Promise.all(Array.from({ length: 200 }, ask));
  const held = answers.filter(({ body }) => body.data.allowed).map(({ body }) => body.data.reservationId);
  assert.equal(held.length, 36, "110 units in threes");
  for (const { body: { data } } of answers) {
    if (!data.allowed) assert.deepEqual(data.reasons, ["limit_reached"]);
  }
  const left = async () => (await u.credits()).reduce((sum, { remaining }) => sum + remaining, 0);
  assert.equal(await left(), 2);
  await u.audit();
  await service.restart();
  assert.equal(await left(), 2);
  assert.equal(await refusalOf(u, "image.x", { count: 3 }), "limit_reached");
  await Promise.all(held.map((id, index) => index % 2 === 0 ? u.commit(id) : u.release(id)));
  assert.equal(await left() + 10 - (await u.counts("lg_images"))[0]!, 110 - 18 * 3);
  await u.audit();
});

Deno.test("after a restart refunds find balances that ended, and corrections those that match", async () => {
  const u = await newCustomer(service, { mode: "test" });
  await u.post("/track", { event: "image.render", count: 10 });
  const { now } = await u.get("/test-clock");
  const expiresAt = new Date(Date.parse(now) + 60_000).toISOString();
  const expired = await u.fund("cpk_first", 3, { expiresAt });
  const [images] = (await u.grant("cpk_bundle")).balances;
  const revoked = await u.fund("cpk_count", 4);
  const metadata = { model: "flux" };
  const holds: string[] = [];
  for (const count of [1, 1, 1, 2, 2, 8, 1, 1]) {
    holds.push(await u.hold("image.render", { count, metadata, ttlSeconds: count === 8 ? 600 : 900 }));
  }
  // 3 of the first, 10 of the second and 4 of the third are held now.
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [0, 0, 0]);
  await u.post("/credits/revoke", { balanceId: revoked });
  await u.pass(60);
  const restart = async () => {
    await service.serving().term.flush();
    await service.restart();
  };
  await restart();
  await u.release(holds[0]!);
  await u.release(holds[6]!);
  await restart();
  await u.commit(holds[1]!, { actual: { count: 0.5 } });
  await u.commit(holds[7]!, { actual: { count: 0.5 } });
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [1.5, 0, 0]);
  assert.deepEqual([await u.statusOf(expired), await u.statusOf(revoked)], ["expired", "revoked"]);
  await u.release(holds[3]!);
  await restart();
  await u.commit(holds[4]!, { extra: { count: 1.5 } });
  assert.deepEqual(await u.remaining(images.balanceId), [0.5], "by the metadata of the hold");
  await restart();
  await u.pass(540);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [1.5, 6.5, 0]);
  await u.pass(300);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [2.5, 6.5, 0]);
  await restart();
  const late = await u.commit(holds[2]!);
  assert.equal(late.recharged, true);
  assert.deepEqual(await u.remaining(expired, images.balanceId, revoked), [2.5, 5.5, 0]);
  await u.audit();
});
