// The ledger: what its rows show, that they add up to what is left whatever happened, and that paging is by place
// and not by number.

import assert from "node:assert/strict";
import { Random } from "../model/random.ts";
import { assertRefused, serviceOfFile } from "./support.ts";
import { Customer, type Entry, newCustomer } from "./credits_support.ts";

const service = serviceOfFile();

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

Deno.test("a revoke takes what is left, and a second one writes a row of 0 with its own reason", async () => {
  const u = await newCustomer(service, { planId: null });
  const id = await u.fund("cpk_wallet", 5);
  await u.post("/track", { event: "x", count: 2 });
  const other = await u.fund("cpk_wallet", 1);
  assert.deepEqual(await u.post("/credits/revoke", { balanceId: id }), { balanceId: id, remaining: 0 });
  const again = await u.post("/credits/revoke", { balanceId: id, reason: "again" });
  assert.deepEqual(again, { balanceId: id, remaining: 0 });
  const rows = (await u.ledger({ balanceId: id })).map(({ delta, reason, notes }) => [delta, reason, notes]);
  assert.deepEqual(rows, [
    [0, "admin_adjust", "again"],
    [-3, "admin_adjust", null],
    [-2, "event_committed", null],
    [5, "grant", null],
  ]);
  assert.deepEqual([...await u.remaining(id, other), await u.statusOf(id)], [0, 1, "revoked"]);
  await u.post("/credits/revoke", { balanceId: other, reason: "" });
  assert.equal((await u.post("/reserve", { event: "x" })).allowed, false);
  await service.restart();
  assert.deepEqual(await u.post("/credits/revoke", { balanceId: id }), { balanceId: id, remaining: 0 });
  assert.equal((await u.ledger({ balanceId: id })).length, 5);
  await u.audit();
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

Deno.test("limits are whole numbers from 1 to 500, 50 by default, and a cursor is one that was given", async () => {
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
  const other = await u.fund("cpk_first", 1);
  const grow = async (calls: number) => {
    for (let call = 0; call < calls; call++) {
      await u.release(await u.hold("x", { count: 2 }));
      if (call % 3 === 0) service.clock.advance(1);
    }
  };
  await grow(6);
  for (const query of [{}, { balanceId: id }, { balanceId: other }]) {
    for (let limit = 1; limit <= 15; limit++) {
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

/** What the ids of a row must be, by its reason. */
function assertForm({ reason, delta, eventId, reservationId }: Entry) {
  const refs = [eventId !== null, reservationId !== null];
  const note = `${reason} ${delta} ${eventId} ${reservationId}`;
  switch (reason) {
    case "grant":
      assert.ok(delta > 0, note);
      return assert.deepEqual(refs, [false, false], note);
    case "reservation_held":
      assert.ok(delta < 0, note);
      return assert.deepEqual(refs, [false, true], note);
    case "reservation_released":
    case "reservation_expired":
      assert.ok(delta > 0, note);
      return assert.deepEqual(refs, [false, true], note);
    case "event_committed":
      return assert.equal(eventId !== null, true, note);
    default:
      assert.equal(reason, "admin_adjust");
      return assert.ok(delta <= 0, note);
  }
}

const PACKS = ["cpk_first", "cpk_count", "cpk_wallet", "cpk_tokens", "cpk_cents", "cpk_bundle"];
const STEPS = 250;

for (const seed of [1, 2, 3]) {
  Deno.test(`after a busy run every balance is the sum of its ledger (seed ${seed})`, async () => {
    const u = await newCustomer(service, { mode: "test" });
    const random = new Random(seed);
    const holds: string[] = [];
    const ended = { released: [] as string[], committed: new Map<string, string>() };
    const amount = () => random.pick([0.1, 0.5, 1, 2, 3.7, 12]);
    const grant = async () => {
      const { now } = await u.get("/test-clock");
      const expiresAt = random.chance(0.4)
        ? new Date(Date.parse(now) + random.whole(1, 900_000)).toISOString()
        : undefined;
      await u.grant(random.pick(PACKS), { quantity: amount() * 4, expiresAt });
    };
    const call = () => ({
      event: random.pick(["image.x", "image.render", "chat.x", "video.veo", "other"]),
      count: amount(),
      quantity: amount(),
      metadata: { model: "flux" },
      ...(random.chance(0.5) ? { inputTokens: amount() * 10, inputCostCents: amount() } : {}),
    });
    const steps = {
      grant,
      reserve: async () => {
        const { reservationId } = await u.post("/reserve", { ...call(), ttlSeconds: random.whole(10, 900) });
        if (reservationId !== undefined) holds.push(reservationId);
      },
      track: async () => void await u.ask("POST", "/track", call()),
      commit: async () => {
        const [reservationId] = holds.splice(random.whole(0, holds.length - 1), 1);
        if (reservationId === undefined) return;
        const some = { count: amount(), tokens: amount() * 9, seconds: amount() };
        const members = random.pick([{}, { actual: some }, { extra: some }, { extra: { count: -amount() } }]);
        ended.committed.set(reservationId, (await u.commit(reservationId, members)).eventId);
      },
      release: async () => {
        const [reservationId] = holds.splice(random.whole(0, holds.length - 1), 1);
        if (reservationId === undefined) return;
        const { status } = await u.ask("POST", "/release", { reservationId });
        if (status === 200) ended.released.push(reservationId);
      },
      revoke: async () => {
        const rows = await u.credits({ includeExpired: true });
        if (rows.length > 0) {
          await u.post("/credits/revoke", { balanceId: random.pick(rows).balanceId, reason: "r" });
        }
      },
      pass: () => u.pass(random.whole(1, 200)),
    };
    const weights = { grant: 5, reserve: 14, track: 5, commit: 6, release: 3, revoke: 1, pass: 3 };
    for (let step = 0; step < STEPS; step++) {
      if (step === STEPS / 2) await service.restart();
      await steps[random.weighted(weights)]();
    }
    await u.pass(1000);
    await u.audit();
    const ledger = await u.ledger();
    ledger.forEach(assertForm);
    assert.deepEqual(new Set(ledger.map(({ reason }) => reason)), ALL_REASONS);
    for (const [reservationId, eventId] of ended.committed) {
      for (const row of ledger.filter((row) => row.eventId === eventId)) {
        assert.equal(row.reservationId, reservationId);
      }
    }
    // Of what a hold took, nothing stays taken when it is given back.
    for (const reservationId of ended.released) {
      const rows = ledger.filter((row) => row.reservationId === reservationId);
      const moved = rows.filter(({ reason }) => reason !== "admin_adjust");
      assert.equal(Math.round(moved.reduce((sum, { delta }) => sum + delta * 1e6, 0)), 0);
    }
    await service.restart();
    await u.audit();
    assert.deepEqual(await u.ledger(), ledger);
  });
}

const ALL_REASONS = new Set([
  "event_committed",
  "reservation_held",
  "reservation_released",
  "reservation_expired",
  "grant",
  "admin_adjust",
]);
