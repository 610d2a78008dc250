// What can be read of credits beside the ledger: the list with its filters and keys, usage, the user's view and
// can-use; and that a catalog cannot lose a pack that users hold.

import assert from "node:assert/strict";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import {
  applyCatalog,
  catalogWithPack,
  type Credit,
  CREDIT_CATALOG,
  Customer,
  newCustomer,
} from "./credits_support.ts";

const service = serviceOfFile();

const idsOf = (rows: Credit[]) => rows.map(({ balanceId }) => balanceId);

Deno.test("the list shows active and depleted balances, and with includeExpired expired and revoked ones", async () => {
  const u = await newCustomer(service, { mode: "test", planId: null });
  const soon = new Date(Date.parse((await u.get("/test-clock")).now) + 1000).toISOString();
  const expired = await u.fund("cpk_count", 3, { expiresAt: soon });
  const spentAndExpired = await u.fund("cpk_first", 1, { expiresAt: soon });
  await u.post("/track", { event: "image.x" });
  await u.pass(1);
  const depleted = await u.fund("cpk_first", 2);
  await u.post("/track", { event: "image.x", count: 2 });
  const revoked = await u.fund("cpk_count", 4);
  const active = await u.fund("cpk_wallet", 5);
  await u.post("/credits/revoke", { balanceId: revoked });
  for (const query of [{}, { includeExpired: false }]) {
    const rows = await u.credits(query);
    assert.deepEqual(rows.map(({ balanceId, status }) => [balanceId, status]), [
      [depleted, "depleted"],
      [active, "active"],
    ]);
  }
  const all = (await u.credits({ includeExpired: true })).map((
    { balanceId, status, remaining },
  ) => [balanceId, status, remaining]);
  assert.deepEqual(all, [
    [spentAndExpired, "expired", 0],
    [depleted, "depleted", 0],
    [expired, "expired", 3],
    [revoked, "revoked", 0],
    [active, "active", 5],
  ]);
  await u.post("/credits/revoke", { balanceId: expired });
  assert.equal(await u.statusOf(expired), "revoked", "revoked before expired");
  for (const includeExpired of ["yes", "1", "TRUE", "", "null"]) {
    assertRefused(await u.ask("GET", "/credits", { includeExpired }), 400, "invalid_request", includeExpired);
  }
  await u.audit();
});

Deno.test("the event filter looks at names alone, and a rule covers a glob that its pattern contains", async () => {
  const u = await newCustomer(service);
  const [images, video] = (await u.grant("cpk_bundle")).balances.map((row: Credit) => row.balanceId);
  const topup = (await u.grant("cpk_topup")).balanceId;
  const count = await u.fund("cpk_count", 1);
  const wallet = await u.fund("cpk_wallet", 1);
  const cases: [event: string, ids: string[]][] = [
    ["image.render", [images, topup, count, wallet]],
    ["image.x", [topup, count, wallet]],
    ["image.*", [topup, count, wallet]],
    ["image.re*", [topup, count, wallet]],
    ["image*", [wallet]],
    ["agent.*", [count, wallet]],
    ["video.veo", [video, wallet]],
    ["video.veo*", [wallet]],
    ["IMAGE.x", [wallet]],
    ["*", [wallet]],
  ];
  for (const [event, ids] of cases) {
    assert.deepEqual(idsOf(await u.credits({ event })), ids, event);
    assert.deepEqual(idsOf((await u.get("/usage", { event })).credits), ids, event);
  }
  for (const event of ["", "a*b", "**", "a\n", "x".repeat(201)]) {
    assertRefused(await u.ask("GET", "/credits", { event }), 400, "invalid_request", event);
  }
});

Deno.test("usage and the user's view show the credits of the list", async () => {
  const u = await newCustomer(service, { mode: "test" });
  const soon = new Date(Date.parse((await u.get("/test-clock")).now) + 1000).toISOString();
  await u.fund("cpk_wallet", 5);
  await u.fund("cpk_count", 4, { expiresAt: soon });
  const gone = await u.fund("cpk_first", 4);
  await u.hold("image.x", { count: 12 });
  await u.post("/credits/revoke", { balanceId: gone });
  await u.pass(1);
  const credits = await u.credits();
  assert.equal(credits.length, 1);
  const user = await dataOf(u.app.call("GET", "/users/u", undefined, { key: u.key }));
  const token = endUserToken(u.app.identitySecret, { userId: "u", exp: service.clock.now() / 1000 + 60 });
  const options = { key: u.app.publicTest, headers: { "x-end-user-token": token } };
  const own = await dataOf(u.app.call("GET", "/usage/me", undefined, options));
  for (const shown of [(await u.get("/usage")).credits, user.credits, own.credits]) {
    assert.deepEqual(shown, credits);
  }
});

Deno.test("can-use shows for every group what credits of its unit could add, by pack in consumption order", async () => {
  const u = await newCustomer(service);
  await u.fund("cpk_count", 3);
  await u.fund("cpk_count", 4);
  await u.fund("cpk_wallet", 5);
  await u.fund("cpk_first", 1);
  await u.fund("cpk_tokens", 7);
  const before = await u.picture();
  const image = await u.post("/can-use", { event: "image.x", count: 23 });
  assert.deepEqual(image, {
    allowed: true,
    matched: true,
    reasons: [],
    details: [{
      groupId: "lg_images",
      current: 0,
      quota: 10,
      resetsAt: image.details[0].resetsAt,
      creditAvailable: 13,
      creditPacks: [
        { packId: "cpk_first", packName: "Pack first", available: 1 },
        { packId: "cpk_count", packName: "Pack count", available: 7 },
        { packId: "cpk_wallet", packName: "Wallet", available: 5 },
      ],
    }],
  });
  const more = await u.post("/can-use", { event: "image.x", count: 23.000001 });
  assert.deepEqual(more, { ...image, allowed: false, reasons: ["limit_reached"] });
  const chat = await u.post("/can-use", { event: "chat.x", inputTokens: 107, inputCostCents: 51 });
  assert.deepEqual([chat.allowed, chat.reasons], [false, ["limit_reached"]]);
  const offers = chat.details.map((
    row: { creditAvailable: number; creditPacks: unknown[] },
  ) => [row.creditAvailable, row.creditPacks]);
  assert.deepEqual(offers, [[7, [{ packId: "cpk_tokens", packName: "Pack tokens", available: 7 }]], [0, []]]);
  const other = await u.post("/can-use", { event: "other.x", count: 5 });
  assert.deepEqual(other, { allowed: true, matched: true, reasons: [], details: [] });
  const beyond = await u.post("/can-use", { event: "other.x", count: 6 });
  assert.deepEqual(beyond, { allowed: false, matched: false, reasons: ["unmatched_event"], details: [] });
  assert.deepEqual(await u.picture(), before);
});

Deno.test("a public key lists the credits of its token's user and of nobody else", async () => {
  const u = await newCustomer(service);
  const balanceId = await u.fund("cpk_wallet", 5);
  await new Customer(u.app, "v").fund("cpk_wallet", 6);
  const inTest = new Customer(u.app, "u", u.app.secretTest);
  await inTest.fund("cpk_wallet", 7);
  const exp = service.clock.now() / 1000 + 60;
  const ask = (userId: string, token: string | null, key = u.app.publicLive) => {
    const headers: Record<string, string> = token === null ? {} : { "x-end-user-token": token };
    return u.app.call("GET", `/credits?userId=${userId}&includeExpired=true`, undefined, { key, headers });
  };
  const token = endUserToken(u.app.identitySecret, { userId: "u", exp });
  const { credits } = await dataOf(ask("u", token));
  assert.deepEqual(idsOf(credits), [balanceId]);
  assert.deepEqual((await dataOf(ask("u", token, u.app.publicTest))).credits[0].remaining, 7);
  const refused = [
    ask("u", null),
    ask("v", token),
    ask("U", token),
    ask("u", endUserToken(u.app.identitySecret, { userId: "v", exp })),
    ask("u", endUserToken("another secret of this length", { userId: "u", exp })),
    ask("u", endUserToken(u.app.identitySecret, { userId: "u", exp: exp - 120 })),
    ask("u", null, u.app.publicTest),
  ];
  for (const answer of await Promise.all(refused)) assertRefused(answer, 403, "forbidden");
  assertRefused(await u.app.call("GET", "/credits"), 400, "invalid_request");
  assertRefused(await u.ask("GET", "/credits", { userId: "" }), 400, "invalid_request");
  assert.deepEqual(await new Customer(u.app, "stranger").credits(), []);
});

Deno.test("a public key may not grant, revoke or read the ledger, with a token or without", async () => {
  const u = await newCustomer(service);
  const balanceId = await u.fund("cpk_wallet", 5);
  const exp = service.clock.now() / 1000 + 60;
  const token = endUserToken(u.app.identitySecret, { userId: "u", exp });
  for (const key of [u.app.publicLive, u.app.publicTest]) {
    for (const headers of [{}, { "x-end-user-token": token }]) {
      const call = (method: string, path: string, body?: unknown) =>
        u.app.call(method, path, body, { key, headers });
      for (const body of [{ userId: "u", packId: "cpk_topup" }, {}, "{"]) {
        assertRefused(await call("POST", "/credits/grant", body), 403, "forbidden");
      }
      for (const body of [{ balanceId }, {}]) {
        assertRefused(await call("POST", "/credits/revoke", body), 403, "forbidden");
      }
      for (const query of ["?userId=u", ""]) {
        assertRefused(await call("GET", `/credits/history${query}`), 403, "requires_secret_key");
      }
    }
  }
  assert.deepEqual(await u.remaining(balanceId), [5]);
  for (const path of ["/credits/grant", "/credits/revoke"]) {
    assertRefused(await u.app.call("GET", path), 405, "method_not_allowed");
  }
  for (const path of ["/credits", "/credits/history"]) {
    assertRefused(await u.app.call("POST", path, {}), 405, "method_not_allowed");
  }
});

Deno.test("a pack with live balances cannot leave the catalog, but can be archived", async () => {
  const u = await newCustomer(service);
  const inTest = new Customer(u.app, "v", u.app.secretTest);
  const ids = [await u.fund("cpk_count", 5), await inTest.fund("cpk_count", 5)] as const;
  const put = (document: object, query = "") =>
    service.admin("PUT", `/apps/${u.app.appId}/catalog${query}`, document);
  const without = catalogWithPack("cpk_count", null);
  const isInUse = async () => {
    for (const document of [without, { ...CREDIT_CATALOG, packs: [] }, {}]) {
      const { status, body } = await put({ plans: CREDIT_CATALOG.plans, ...document });
      assert.deepEqual([status, body.error?.code], [409, "catalog_in_use"]);
    }
    await u.hold("image.x");
    assert.equal((await dataOf(put(CREDIT_CATALOG))).changes.length, 0, "nothing was applied");
  };
  await isInUse();
  await applyCatalog(service, u.app, catalogWithPack("cpk_count", { archived: true }));
  await applyCatalog(service, u.app, CREDIT_CATALOG);
  await service.restart();
  await isInUse();
  await u.post("/credits/revoke", { balanceId: ids[0] });
  await isInUse();
  await inTest.post("/credits/revoke", { balanceId: ids[1] });
  await applyCatalog(service, u.app, without);
  const [row] = await u.credits({ includeExpired: true }) as unknown as Record<string, unknown>[];
  assert.deepEqual([row?.balanceId, row?.packName, row?.status], [ids[0], "Pack count", "revoked"]);
});
