// Granting credit packs: which pack a text names, what balances a grant issues and until when, and that a known
// externalRef issues nothing again, whatever happened in between.

import assert from "node:assert/strict";
import { assertRefused, dataOf, serviceOfFile } from "./support.ts";
import { applyCatalog, catalogWithPack, Customer, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();
const DAY_MS = 24 * 3_600_000;

const inDays = (days: number) => new Date(service.clock.now() + days * DAY_MS).toISOString();

function isNewBalance(id: string): boolean {
  return /^crb_[0-9a-z]{1,11}_[0-9a-z]{20}$/.test(id);
}

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

Deno.test("a pack is named by its exact id, or by its name in any case", async () => {
  const u = await newCustomer(service);
  for (const packId of ["cpk_topup", "Image Top-Up", "image top-up", "IMAGE TOP-UP"]) {
    assert.equal((await u.grant(packId)).balances[0].packItemId, "cpi_images", packId);
  }
  for (const packId of ["CPK_TOPUP", "cpk_topup ", "Image", "plan_pro", "cpi_images", "*"]) {
    const answer = await u.ask("POST", "/credits/grant", { packId });
    assertRefused(answer, 404, "credit_pack_not_found", packId);
  }
  assert.equal((await u.credits()).length, 4);
});

Deno.test("an id wins over another pack's name", async () => {
  const u = await newCustomer(service);
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", { name: "cpk_topup" }));
  assert.equal((await u.grant("cpk_topup")).remaining, 50);
  assert.equal((await u.grant("CPK_TOPUP", { quantity: 7 })).remaining, 7);
});

Deno.test("a pack without items issues the quantity as one balance of no item", async () => {
  const u = await newCustomer(service);
  const data = await u.grant("wallet", { quantity: 2.5 });
  assert.deepEqual(data.balances.map((row: object) => ({ ...row, balanceId: "" })), [
    { balanceId: "", packItemId: null, remaining: 2.5, expiresAt: inDays(365) },
  ]);
  const [row] = await u.credits() as unknown as Record<string, unknown>[];
  assert.deepEqual(
    [row?.packItemId, row?.kind, row?.priority, row?.unit, row?.initial, row?.matches],
    [null, "generic", 0, "count", 2.5, [{ event: "*" }]],
  );
  assert.equal((await u.grant("cpk_tokens", { quantity: 1.2345675 })).remaining, 1.234568);
  assert.equal((await u.grant("cpk_tokens", { quantity: 1e12 })).remaining, 1e12);
  const priorities = (await u.credits()).map((row) => (row as unknown as { priority: number }).priority);
  assert.deepEqual(priorities, [100, 100, 0], "the defaults by kind");
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

Deno.test("a pack with items ignores a quantity, whatever it is", async () => {
  const u = await newCustomer(service);
  for (const quantity of [1, 7, 0, -1, 1e300, "NaN", "", null, true, [], {}]) {
    assert.equal((await u.grant("cpk_topup", { quantity })).remaining, 50, JSON.stringify(quantity));
  }
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

Deno.test("archived and unknown packs are not granted, and an archived one's balances stay good", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_wallet", 5);
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", { archived: true }));
  for (const packId of ["cpk_wallet", "Wallet", "wallet", "cpk_unknown", "__proto__", "constructor"]) {
    for (const quantity of [5, undefined]) {
      const answer = await u.ask("POST", "/credits/grant", { packId, quantity });
      assertRefused(answer, 404, "credit_pack_not_found", packId);
    }
  }
  await u.hold("other.thing", { count: 2 });
  assert.deepEqual(await u.remaining(id), [3]);
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", {}));
  await u.fund("cpk_wallet", 5);
});

Deno.test("a balance keeps the terms of its grant, under the pack's present name", async () => {
  const u = await newCustomer(service);
  await u.fund("cpk_wallet", 5);
  const [before] = await u.credits();
  const changed = {
    name: "Purse",
    kind: "per_type",
    matches: [{ event: "chat.*" }],
    priority: 7,
    defaultExpiryDays: 1,
  };
  await applyCatalog(service, u.app, catalogWithPack("cpk_wallet", changed));
  const renamed = { ...before, packName: "Purse" };
  assert.deepEqual(await u.credits(), [renamed]);
  await service.restart();
  assert.deepEqual(await u.credits(), [renamed]);
  await u.grant("purse", { quantity: 9 });
  const rows = await u.credits() as unknown as Record<string, unknown>[];
  assert.deepEqual(rows.map(({ unit, priority, kind }) => [unit, priority, kind]), [
    ["count", 7, "per_type"],
    ["count", 0, "generic"],
  ]);
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
