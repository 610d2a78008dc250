// Hand-computed scenes for credits, taken from the specification: grants, consumption order, what plan and
// balances each pay of a hold, and what its settlement gives back or takes. Lists, the ledger and the
// sandbox cap are in model_ledger_test.ts.

import assert from "node:assert/strict";
import type { LimitGroup, Pack } from "./document.ts";
import { catalogOf, item, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const TOKENS = { unit: "tokens" } as const;
const PACKS = [
  pack("wallet"),
  pack("first", { priority: 5 }),
  pack("talk", TOKENS),
  pack("film", { unit: "seconds", matches: [{ event: "*" }] }),
  pack("large", { kind: "per_type", items: [item("a", 4), item("b", 6, TOKENS)], defaultExpiryDays: 90 }),
  pack("old", { archived: true }),
];

/** A user on a plan of these groups; by default one of 10 counts. */
function scene(limits: LimitGroup[] | null = [limit("lg", 10)], packs: Pack[] = PACKS): Scene {
  const plans = [{ id: "plan_a", limits: limits ?? [] }, { id: "plan_b", limits: [limit("lb", 100)] }];
  const made = new Scene({ ...catalogOf(...plans), packs });
  if (limits) made.data("subscribe", { planId: "plan_a" });
  return made;
}

Deno.test("a pack with items gives a balance for each and ignores the quantity", () => {
  const at = scene();
  const expiresAt = "2026-06-08T12:00:00.000Z";
  for (const quantity of [undefined, null, 7, 0, -1, "many"]) {
    const answer = at.data("grant", { packId: "pACK large", quantity });
    assert.deepEqual(
      answer.balances.map(({ balanceId: _, ...rest }: Record<string, unknown>) => rest),
      [{ packItemId: "a", remaining: 4, expiresAt }, { packItemId: "b", remaining: 6, expiresAt }],
    );
    const [{ balanceId }] = answer.balances;
    assert.deepEqual([answer.balanceId, answer.remaining, answer.expiresAt], [balanceId, 4, expiresAt]);
  }
});

Deno.test("a pack without items needs a quantity above 0, kept to six places", () => {
  const at = scene();
  for (const quantity of [undefined, null, 0, -1, 0.0000004]) {
    const reply = at.ask("grant", { packId: "wallet", quantity });
    assert.deepEqual([reply.status, reply.code], [400, "invalid_quantity"]);
  }
  for (const quantity of ["1", 1e12 + 1]) {
    assert.equal(at.ask("grant", { packId: "wallet", quantity }).code, "invalid_request");
  }
  const answer = at.data("grant", { packId: "wallet", quantity: 0.0000005 });
  assert.deepEqual([answer.balances[0].packItemId, answer.remaining, answer.expiresAt], [
    null,
    0.000001,
    null,
  ]);
});

Deno.test("a known externalRef answers first, with the balances as they are now", () => {
  const at = scene(null);
  const ids = at.grant("large", { externalRef: "r" });
  at.hold({ ...X, count: 3 });
  at.data("revoke", { balanceId: ids[1] });
  const again = {
    packId: "PACK LARGE",
    externalRef: "r",
    quantity: -1,
    expiresAt: "2001-01-01T00:00:00.000Z",
  };
  const { balances } = at.data("grant", again);
  const shown = balances.map((each: Record<string, unknown>) => [each["balanceId"], each["remaining"]]);
  assert.deepEqual(shown, [[ids[0], 1], [ids[1], 0]]);
  assert.equal(at.ask("grant", { ...again, source: "gift" }).code, "invalid_request");
  // Another pack and another user are another grant; without a reference every call is one.
  assert.notEqual(at.grant("wallet", { externalRef: "r", quantity: 1 })[0], ids[0]);
  assert.notEqual(at.grant("large", { externalRef: "r", userId: "v" })[0], ids[0]);
  assert.notEqual(at.grant("large")[0], at.grant("large")[0]);
});

Deno.test("a grant is refused by pack, then quantity, then end", () => {
  const at = scene();
  const past = { expiresAt: "2026-03-10T12:00:00.000Z" };
  assert.equal(at.ask("grant", { packId: "none", ...past }).status, 404);
  assert.equal(at.ask("grant", { packId: "old", ...past }).code, "credit_pack_not_found");
  assert.equal(at.ask("grant", { packId: "wallet", ...past }).code, "invalid_quantity");
  assert.equal(at.ask("grant", { packId: "large", ...past }).code, "invalid_request");
  const soon = at.data("grant", { packId: "large", expiresAt: "2026-03-10T12:00:00.001Z" });
  assert.equal(soon.expiresAt, "2026-03-10T12:00:00.001Z");
  assert.equal(at.data("grant", { packId: "large", expiresAt: null }).expiresAt, null);
});

Deno.test("the plan pays first, then balances: priority, then first to expire, then oldest, then id", () => {
  const at = scene();
  at.grant("wallet", { quantity: 1 });
  at.grant("wallet", { quantity: 2 });
  at.wait(1).grant("wallet", { quantity: 4, expiresAt: "2026-03-12T00:00:00.000Z" });
  at.grant("wallet", { quantity: 8, expiresAt: "2026-03-11T00:00:00.000Z" });
  at.grant("first", { quantity: 16 });
  assert.deepEqual(at.left(), [16, 8, 4, 1, 2]);
  const reservationId = at.hold({ ...X, count: 10 + 16 + 8 + 4 + 0.5 });
  assert.deepEqual(at.counts(), { lg: 10 });
  assert.deepEqual(at.left(), [0, 0, 0, 0.5, 2]);
  const held = at.data("ledger").entries.slice(0, 4).reverse();
  assert.deepEqual(held.map((row: { delta: number }) => row.delta), [-16, -8, -4, -0.5]);
  for (const row of held) assert.deepEqual([row.reservationId, row.eventId], [reservationId, null]);
});

Deno.test("a need that plan and balances do not cover together changes nothing", () => {
  const at = scene();
  at.grant("wallet", { quantity: 5 });
  const answer = at.data("reserve", { ...X, count: 15.000001 });
  assert.deepEqual([answer.allowed, answer.reasons, answer.groups[0].current], [false, ["limit_reached"], 0]);
  assert.deepEqual([at.left(), at.ledger()], [[5], ["grant 5"]]);
  at.hold({ ...X, count: 15 });
  assert.deepEqual([at.left(), at.counts()], [[0], { lg: 10 }]);
});

Deno.test("the reason looks at what credits leave of the need", () => {
  const at = scene([limit("lg", 10, { headroom: { mode: "percent", value: 90 } })]);
  at.hold({ ...X, count: 9 });
  at.grant("wallet", { quantity: 0.5 });
  assert.deepEqual(at.data("reserve", { ...X, count: 1.5 }).reasons, ["reservation_headroom_exceeded"]);
  assert.deepEqual(at.data("reserve", { ...X, count: 1.6 }).reasons, ["limit_reached"]);
  at.hold({ ...X, count: 0.5 });
  assert.deepEqual([at.left(), at.counts()], [[0], { lg: 9 }]);
});

Deno.test("the tightest group of a unit decides, and every group takes the same", () => {
  const at = scene([limit("all", 10), limit("few", 3)]);
  at.grant("wallet", { quantity: 5 });
  at.hold({ ...X, count: 4 });
  assert.deepEqual([at.counts(), at.left()], [{ all: 3, few: 3 }, [4]]);
  at.hold({ ...X, count: 4 });
  assert.deepEqual([at.counts(), at.left()], [{ all: 3, few: 3 }, [0]]);
});

Deno.test("several units: each pays for itself, and one that fails refuses all", () => {
  const at = scene([limit("calls", 1), limit("tokens", 10, TOKENS)]);
  at.hold({ ...X, inputTokens: 8 });
  at.grant("large");
  assert.equal(at.data("reserve", { ...X, inputTokens: 8.1 }).allowed, false);
  assert.deepEqual(at.left(), [4, 6]);
  at.hold({ ...X, inputTokens: 8 });
  assert.deepEqual([at.left(), at.counts()], [[3, 0], { calls: 1, tokens: 10 }]);
});

Deno.test("a need of 0 on a full group passes on any balance of the unit, and takes nothing", () => {
  const at = scene([limit("tokens", 10, TOKENS)]);
  at.hold({ ...X, inputTokens: 10 });
  at.grant("wallet", { quantity: 1 });
  assert.deepEqual(at.data("reserve", X).reasons, ["limit_reached"]);
  at.grant("talk", { quantity: 1 });
  at.hold(X);
  assert.deepEqual([at.left(), at.ledger()], [[1, 1], ["grant 1", "grant 1"]]);
  at.hold({ ...X, inputTokens: 1 });
  assert.deepEqual(at.data("canUse", X).reasons, ["limit_reached"]);
});

Deno.test("without a plan or a group credits pay alone, in the unit of the best balance that covers a need", () => {
  const at = scene(null);
  assert.deepEqual(at.data("reserve", X).reasons, ["no_subscription"]);
  at.grant("first", { quantity: 2 });
  at.grant("film", { quantity: 1.5 });
  at.grant("talk", { quantity: 9 });
  assert.deepEqual(at.data("canUse", X), { allowed: true, matched: true, reasons: [], details: [] });
  const { reservationId, expiresAt, ...rest } = at.data("reserve", { ...X, count: 2 });
  assert.deepEqual(rest, { allowed: true, matched: true });
  assert.deepEqual([expiresAt, at.left()], ["2026-03-10T12:10:00.000Z", [0, 1.5, 9]]);
  // No count is left, so seconds pay; then neither does, and the tokens have no need to pay.
  at.hold({ ...X, quantity: 1.25 });
  assert.deepEqual(at.left(), [0, 0.25, 9]);
  assert.deepEqual(at.data("reserve", X), { allowed: false, matched: false, reasons: ["no_subscription"] });
  at.data("subscribe", { planId: "plan_b" });
  assert.deepEqual(at.data("reserve", { event: "y", inputTokens: 1 }).reasons, ["unmatched_event"]);
  const { eventId, groups } = at.data("commit", { reservationId, extra: { tokens: 3, seconds: 1 } });
  const detail = at.data("event", { eventId });
  assert.deepEqual([detail.matchStatus, detail.matchedGroupIds, detail.uncovered], [
    "matched_credits_only",
    [],
    {},
  ]);
  assert.deepEqual([groups, at.left(), at.model.operationsUsed(at.now)], [[], [0, 0.25, 9], 1]);
});

Deno.test("track spends like reserve, up to the quota, with one row for each balance", () => {
  const at = scene([limit("lg", 10, { headroom: { mode: "multiplier", value: 2 } })]);
  const [balanceId] = at.grant("wallet", { quantity: 3 });
  const { eventId, matchStatus, counters } = at.data("track", { ...X, quantity: 12 });
  assert.deepEqual([matchStatus, counters[0].count, at.left()], ["matched", 10, [1]]);
  const { id: _, ...row } = at.data("ledger").entries[0];
  assert.deepEqual(row, {
    balanceId,
    packId: "wallet",
    delta: -2,
    reason: "event_committed",
    eventId,
    reservationId: null,
    occurredAt: "2026-03-10T12:00:00.000Z",
    notes: null,
  });
  assert.equal(at.ask("track", { ...X, quantity: 1.1 }).code, "limit_reached");
  const alone = { ...X, userId: "v", quantity: 2 };
  assert.equal(at.data("track", alone).matchStatus, "no_subscription");
  at.grant("wallet", { quantity: 3, userId: "v" });
  const { eventId: other, ...answer } = at.data("track", alone);
  assert.deepEqual(answer, {
    matchStatus: "matched_credits_only",
    matchedGroupIds: [],
    counters: [],
    cost: { cents: 0, priced: false, model: null },
  });
  assert.equal(at.data("event", { eventId: other }).matchStatus, "matched_credits_only");
  assert.equal(at.model.operationsUsed(at.now), 2);
});

/** A hold of 10 of the plan, then 2 and 3 of two balances; the second has 1 left, a third is untouched. */
function mixedHold() {
  const at = scene();
  const balances = [2, 4, 7].flatMap((quantity) => at.grant("wallet", { quantity }));
  const reservationId = at.hold({ ...X, count: 15 });
  assert.deepEqual(at.left(), [0, 1, 7]);
  const rows = () => at.ledger().slice(5);
  return { at, reservationId, balances, rows };
}

Deno.test("a commit that is exact writes a row of 0 for each held balance", () => {
  const { at, reservationId, rows } = mixedHold();
  const { eventId } = at.data("commit", { reservationId });
  assert.deepEqual([at.left(), rows()], [[0, 1, 7], ["event_committed 0", "event_committed 0"]]);
  for (const row of at.data("ledger", { limit: 2 }).entries) {
    assert.deepEqual([row.eventId, row.reservationId], [eventId, reservationId]);
  }
});

Deno.test("a commit of less gives back the last taken first, then lowers the counter", () => {
  const some = mixedHold();
  some.at.data("commit", { reservationId: some.reservationId, actual: { count: 11 } });
  assert.deepEqual([some.at.left(), some.at.counts()], [[1, 4, 7], { lg: 10 }]);
  assert.deepEqual(some.rows(), ["event_committed 1", "event_committed 3"]);
  const most = mixedHold();
  most.at.data("commit", { reservationId: most.reservationId, extra: { count: -14 } });
  assert.deepEqual([most.at.left(), most.at.counts()], [[2, 4, 7], { lg: 1 }]);
});

Deno.test("a commit of more takes plan room, then the balances that match now, then passes the quota", () => {
  const { at, reservationId, rows } = mixedHold();
  at.data("commit", { reservationId, extra: { count: 9.5 } });
  assert.deepEqual([at.left(), at.counts()], [[0, 0, 0], { lg: 11.5 }]);
  assert.deepEqual(rows(), ["event_committed 0", "event_committed -1", "event_committed -7"]);
  const roomy = scene();
  roomy.grant("wallet", { quantity: 1 });
  const answer = roomy.data("commit", { reservationId: roomy.hold({ ...X, count: 8 }), extra: { count: 3 } });
  assert.deepEqual([answer.groups[0].overflow, roomy.left(), roomy.counts()], [false, [0], { lg: 10 }]);
});

Deno.test("the plan has no room for an extra once another plan is held", () => {
  const at = scene();
  at.grant("wallet", { quantity: 2 });
  const reservationId = at.hold({ ...X, count: 1 });
  at.data("subscribe", { planId: "plan_b", provider: "p", externalId: "e" });
  // The hold was carried to the paired group of plan_b, which is held; after its end neither is.
  at.data("commit", { reservationId, extra: { count: 1 } });
  assert.deepEqual([at.left(), at.counts()], [[2], { lb: 2 }]);
  const second = at.hold({ ...X, count: 1 });
  at.data("cancel", { provider: "p", externalId: "e" });
  at.data("cancel");
  const { groups } = at.data("commit", { reservationId: second, extra: { count: 3 } });
  assert.deepEqual([groups[0].current, groups[0].overflow, at.left()], [3 + 1, false, [0]]);
});

Deno.test("what a hold without groups cannot take from balances is uncovered", () => {
  const at = scene(null);
  at.grant("wallet", { quantity: 3 });
  const reservationId = at.hold({ ...X, count: 2 });
  const { eventId } = at.data("commit", { reservationId, extra: { count: 5.5, tokens: 2 } });
  assert.deepEqual(at.data("event", { eventId }).uncovered, { count: 4.5 });
  assert.deepEqual([at.left(), at.ledger().at(-1)], [[0], "event_committed -1"]);
});

Deno.test("seconds are corrected on balances of a per_unit row only", () => {
  const at = scene(null);
  at.grant("film", { quantity: 10 });
  const film = at.hold({ event: "video.film", quantity: 4 });
  at.data("commit", { reservationId: film, actual: { seconds: 1 } });
  assert.deepEqual(at.left(), [9]);
  const other = at.hold({ event: "other", quantity: 4 });
  at.data("commit", { reservationId: other, actual: { seconds: 1 } });
  assert.deepEqual(at.left(), [5]);
});

Deno.test("release and lapse give everything back in the order of holding", () => {
  const released = mixedHold();
  released.at.data("release", { reservationId: released.reservationId });
  assert.deepEqual([released.at.left(), released.at.counts()], [[2, 4, 7], { lg: 0 }]);
  assert.deepEqual(released.rows(), ["reservation_released 2", "reservation_released 3"]);
  assert.equal(released.at.data("ledger").entries[0].eventId, null);
  const lapsed = mixedHold();
  lapsed.at.wait(9999);
  assert.deepEqual(lapsed.rows(), ["reservation_expired 2", "reservation_expired 3"]);
  const [row] = lapsed.at.data("ledger").entries;
  assert.deepEqual([row.occurredAt, row.reservationId], ["2026-03-10T12:10:00.000Z", lapsed.reservationId]);
  assert.deepEqual(lapsed.at.left(), [2, 4, 7]);
});

Deno.test("a recharge takes plan room, then what matches now, and writes rows only for what it takes", () => {
  const { at, reservationId, balances } = mixedHold();
  at.wait(601).hold({ ...X, count: 9 });
  at.data("revoke", { balanceId: balances[0] });
  const before = at.ledger().length;
  const answer = at.data("commit", { reservationId, extra: { count: -1 } });
  assert.deepEqual([answer.recharged, answer.groups[0].current, answer.groups[0].overflow], [true, 12, true]);
  assert.deepEqual(at.left(), [0, 0, 0]);
  assert.deepEqual(at.ledger().slice(before), ["event_committed -4", "event_committed -7"]);
  const alone = scene(null);
  alone.grant("wallet", { quantity: 5, expiresAt: "2026-03-10T12:01:00.000Z" });
  const late = alone.hold({ ...X, count: 2, ttlSeconds: 60 });
  const { eventId } = alone.wait(60).data("commit", { reservationId: late });
  assert.deepEqual(alone.data("event", { eventId }).uncovered, { count: 2 });
  assert.deepEqual(alone.left(), [5]);
});

Deno.test("a refund wakes a depleted balance, stays unspendable on an expired one, is lost on a revoked one", () => {
  const at = scene(null);
  at.grant("first", { quantity: 1 });
  const [expiring] = at.grant("wallet", { quantity: 2, expiresAt: "2026-03-10T12:01:00.000Z" });
  const [revoked] = at.grant("wallet", { quantity: 4 });
  const reservationId = at.hold({ ...X, count: 6 });
  const status = () =>
    at.data("credits", { includeExpired: true }).credits.map((each: { status: string }) => each.status);
  assert.deepEqual([at.left(), status()], [[0, 0, 1], ["depleted", "depleted", "active"]]);
  at.data("revoke", { balanceId: revoked, reason: "charged back" });
  at.wait(60);
  assert.deepEqual([at.left(), status()], [[0, 0, 0], ["depleted", "expired", "revoked"]]);
  at.data("release", { reservationId });
  assert.deepEqual([at.left(), status()], [[1, 2, 0], ["active", "expired", "revoked"]]);
  assert.deepEqual(at.ledger({ balanceId: revoked }), [
    "grant 4",
    "reservation_held -3",
    "admin_adjust -1",
    "reservation_released 3",
    "admin_adjust -3",
  ]);
  const [offset, , revoke] = at.data("ledger", { balanceId: revoked }).entries;
  assert.deepEqual([offset.reservationId, offset.notes, revoke.notes], [reservationId, null, "charged back"]);
  assert.deepEqual(at.data("reserve", { ...X, count: 2 }).allowed, false);
  // What expired is revoked before it is expired, and a second revoke is a row of 0.
  assert.deepEqual(at.data("revoke", { balanceId: expiring }), { balanceId: expiring, remaining: 0 });
  at.data("revoke", { balanceId: expiring });
  assert.deepEqual(status(), ["active", "revoked", "revoked"]);
  assert.deepEqual(at.ledger({ balanceId: expiring }).slice(-2), ["admin_adjust -2", "admin_adjust 0"]);
});
