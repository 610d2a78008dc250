// What can be read of credits: the list with its filters and keys, usage, can-use, and the ledger with its paging; and
// that a catalog cannot lose a pack that users hold.

import assert from "node:assert/strict";
import { assertRefused, dataOf, endUserToken, serviceOfFile } from "./support.ts";
import {
  applyCatalog,
  catalogWithPack,
  type Credit,
  CREDIT_CATALOG,
  Customer,
  type Entry,
  newCustomer,
} from "./credits_support.ts";

const service = serviceOfFile();

const idsOf = (rows: Credit[]) => rows.map(({ balanceId }) => balanceId);

Deno.test("the list takes an event or glob and includeExpired, and nothing that is neither", async () => {
  const u = await newCustomer(service, { mode: "test", planId: null });
  const soon = new Date(Date.parse((await u.get("/test-clock")).now) + 1000).toISOString();
  const expired = await u.fund("cpk_count", 3, { expiresAt: soon });
  await u.pass(1);
  const revoked = await u.fund("cpk_count", 4);
  const active = await u.fund("cpk_wallet", 5);
  await u.post("/credits/revoke", { balanceId: revoked });
  for (const query of [{}, { includeExpired: false }, { event: "chat.*" }]) {
    assert.deepEqual(idsOf(await u.credits(query)), [active], JSON.stringify(query));
  }
  assert.deepEqual(idsOf(await u.credits({ includeExpired: true, event: "image.x" })), [
    expired,
    revoked,
    active,
  ]);
  assert.deepEqual(idsOf((await u.get("/usage", { event: "chat.x" })).credits), [active]);
  for (const includeExpired of ["yes", "1", "TRUE", "", "null"]) {
    assertRefused(await u.ask("GET", "/credits", { includeExpired }), 400, "invalid_request", includeExpired);
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

Deno.test("a public key lists only the credits of its token's user", async () => {
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

Deno.test("a row shows exact members, a grant's notes and a revoke's reason", async () => {
  const u = await newCustomer(service);
  const id = await u.fund("cpk_wallet", 5, { notes: "thanks", source: "manual" });
  service.clock.advance(1000);
  const answer = await u.post("/credits/revoke", { balanceId: id, reason: "x".repeat(500) });
  assert.deepEqual(answer, { balanceId: id, remaining: 0 });
  const entries = await u.ledger();
  const at = service.clock.now();
  const common = { balanceId: id, packId: "cpk_wallet", eventId: null, reservationId: null };
  assert.deepEqual(entries, [
    {
      ...common,
      id: entries[0]?.id,
      delta: -5,
      reason: "admin_adjust",
      occurredAt: new Date(at).toISOString(),
      notes: "x".repeat(500),
    },
    {
      ...common,
      id: entries[1]?.id,
      delta: 5,
      reason: "grant",
      occurredAt: new Date(at - 1000).toISOString(),
      notes: "thanks",
    },
  ]);
  for (const { id } of entries) assert.match(id, /^cle_[0-9a-z]+$/);
});

Deno.test("unknown balances and bad members are refused, by revoke and by the ledger", async () => {
  const u = await newCustomer(service);
  const v = new Customer(u.app, "v");
  const id = await u.fund("cpk_wallet", 5);
  const foreign = await v.fund("cpk_wallet", 5);
  const inTest = await new Customer(u.app, "u", u.app.secretTest).fund("cpk_wallet", 5);
  const reservationId = await u.hold("image.x");
  const wrong = reservationId.replace("rsv_", "crb_");
  const unknown = [
    inTest,
    wrong,
    reservationId,
    `${id}0`,
    id.toUpperCase(),
    "crb_1",
    "crb_",
    "x",
    "cpk_wallet",
  ];
  for (const balanceId of unknown) {
    const answer = await u.ask("POST", "/credits/revoke", { balanceId });
    assertRefused(answer, 404, "credit_balance_not_found", balanceId);
  }
  for (const balanceId of [...unknown, foreign]) {
    const answer = await u.ask("GET", "/credits/history", { balanceId });
    assertRefused(answer, 404, "credit_balance_not_found", balanceId);
  }
  const stranger = new Customer(u.app, "stranger");
  assertRefused(
    await stranger.ask("GET", "/credits/history", { balanceId: id }),
    404,
    "credit_balance_not_found",
  );
  assert.deepEqual(await stranger.ledger(), []);
  const bodies = [
    {},
    { balanceId: "" },
    { balanceId: null },
    { balanceId: 5 },
    { balanceId: [id] },
    {
      balanceId: id,
      reason: "x".repeat(501),
    },
    { balanceId: id, reason: 5 },
    { balanceId: `${id}\u0000` },
  ];
  for (const body of bodies) {
    const answer = await u.app.call("POST", "/credits/revoke", body);
    assertRefused(answer, 400, "invalid_request", JSON.stringify(body));
  }
  assert.deepEqual((await u.ledger()).length, 1);
  assert.deepEqual(await u.remaining(id), [5]);
});

Deno.test("limits are integers from 1 to 500, 50 by default, and a cursor must come from a previous page", async () => {
  const u = await newCustomer(service);
  for (let call = 0; call < 60; call++) await u.fund("cpk_wallet", 1);
  const first = await u.get("/credits/history");
  assert.equal(first.entries.length, 50);
  const rest = await u.get("/credits/history", { cursor: first.nextCursor });
  assert.deepEqual([rest.entries.length, rest.nextCursor], [10, null]);
  assert.equal((await u.get("/credits/history", { limit: 500 })).entries.length, 60);
  for (const limit of ["0", "-1", "501", "1.5", "", "x", "1e3", "NaN", "Infinity"]) {
    assertRefused(await u.ask("GET", "/credits/history", { limit }), 400, "invalid_request", limit);
  }
  const cursor: string = first.nextCursor;
  const bad = ["", "x", "null", "0", "%00", "x".repeat(5000), `${cursor}=`, cursor.slice(1), btoa("[]")];
  bad.push(btoa("null"), btoa('["a","b"]'), btoa('{"at":1}'), btoa("1:2"), btoa("9e99:cle_x"));
  for (const text of bad) {
    const answer = await u.ask("GET", "/credits/history", { cursor: text });
    assertRefused(answer, 400, "invalid_request", text);
  }
  assertRefused(await u.app.call("GET", "/credits/history"), 400, "invalid_request");
});

Deno.test("paging with any limit neither repeats nor skips a row, also while new ones arrive", async () => {
  const u = await newCustomer(service, { planId: null });
  const id = await u.fund("cpk_wallet", 1000);
  await u.fund("cpk_first", 1);
  const grow = async (calls: number) => {
    for (let call = 0; call < calls; call++) {
      await u.release(await u.hold("x", { count: 2 }));
      if (call % 3 === 0) service.clock.advance(1);
    }
  };
  await grow(6);
  for (const query of [{}, { balanceId: id }]) {
    for (const limit of [1, 4, 15]) {
      const expected = await u.ledger(query);
      const seen: Entry[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: { entries: Entry[]; nextCursor: string | null } = await u.get("/credits/history", {
          ...query,
          limit,
          ...(cursor === null ? {} : { cursor }),
        });
        assert.ok(page.entries.length <= limit);
        assert.ok(
          page.nextCursor === null || page.entries.length === limit,
          "a full page comes before another",
        );
        seen.push(...page.entries);
        cursor = page.nextCursor;
        pages++;
        assert.ok(pages <= expected.length, "the pages end");
        if (pages <= 2) await grow(1);
      } while (cursor !== null);
      assert.deepEqual(seen, expected, `limit ${limit}`);
    }
  }
  const rows = await u.ledger();
  const places = rows.map((row) => `${row.occurredAt} ${row.id}`);
  assert.deepEqual(places, [...places].sort().reverse(), "newest first, ties by id");
  assert.equal(new Set(rows.map((row) => row.id)).size, rows.length);
});

Deno.test("reading the ledger settles what is due first", async () => {
  const u = await newCustomer(service, { planId: null });
  await u.fund("cpk_wallet", 5);
  const reservationId = await u.hold("x", { count: 2, ttlSeconds: 10 });
  const lapse = new Date(service.clock.now() + 10_000).toISOString();
  service.clock.advance(60_000);
  const [newest] = (await u.get("/credits/history", { limit: 1 })).entries;
  assert.deepEqual(
    [newest.reason, newest.delta, newest.reservationId, newest.occurredAt],
    ["reservation_expired", 2, reservationId, lapse],
  );
});
