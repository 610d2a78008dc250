// Hand-computed scenes for reserve, commit, release and track, taken straight from the specification:
// each row of the reservation table, the gates, the amounts by unit, and exact decimals.
// Subscriptions and windows are in model_subscriptions_test.ts.

import assert from "node:assert/strict";
import { fromNumber, multiply, toNumber } from "./decimal.ts";
import { catalogOf, limit, Scene } from "./support.ts";

const ONE_PLAN = catalogOf({ id: "plan_a", limits: [limit("lg", 10)] });
const X = { event: "x.make" };

function subscribed(catalog = ONE_PLAN, planId = "plan_a"): Scene {
  const scene = new Scene(catalog);
  scene.data("subscribe", { planId });
  return scene;
}

Deno.test("decimals keep six places exactly and round the rest half up by magnitude", () => {
  assert.equal(fromNumber(0.1), 100_000n);
  assert.equal(fromNumber(1e-7), 0n);
  assert.equal(fromNumber(5e-7), 1n);
  assert.equal(fromNumber(-5e-7), -1n);
  assert.equal(fromNumber(1e12), 1_000_000_000_000_000_000n);
  assert.equal(fromNumber(1.0000015), 1_000_002n);
  assert.equal(multiply(fromNumber(0.333333), fromNumber(1.5)), 500_000n);
  assert.equal(toNumber(-1_500_000n), -1.5);
  assert.equal(toNumber(999_999_999_999_999_999n), 999999999999.999999);
});

Deno.test("0.1 tracked ten times is 1", () => {
  const scene = subscribed();
  for (let i = 0; i < 10; i++) scene.data("track", { ...X, count: 0.1 });
  assert.deepEqual(scene.counts(), { lg: 1 });
});

Deno.test("reserve holds, and answers the counters after the hold", () => {
  const scene = subscribed();
  const answer = scene.data("reserve", { ...X, count: 3 });
  assert.equal(answer.expiresAt, "2026-03-10T12:10:00.000Z");
  assert.deepEqual(answer.groups, [{ groupId: "lg", unit: "count", quota: 10, current: 3 }]);
});

Deno.test("reserve counts one call whatever its quantity", () => {
  const scene = subscribed();
  scene.hold({ ...X, quantity: 7 });
  assert.deepEqual(scene.counts(), { lg: 1 });
});

Deno.test("reserve without a subscription, or without a group, refuses and holds nothing", () => {
  const scene = new Scene(ONE_PLAN);
  assert.deepEqual(scene.data("reserve", X), {
    allowed: false,
    matched: false,
    reasons: ["no_subscription"],
  });
  scene.data("subscribe", { planId: "plan_a" });
  const answer = scene.data("reserve", { event: "y.make" });
  assert.deepEqual(answer, { allowed: false, matched: false, reasons: ["unmatched_event"] });
});

Deno.test("reserve at quota answers limit_reached with the counters as they stand", () => {
  const scene = subscribed();
  scene.hold({ ...X, count: 10 });
  assert.deepEqual(scene.data("reserve", { ...X, count: 1 }), {
    allowed: false,
    matched: true,
    reasons: ["limit_reached"],
    groups: [{ groupId: "lg", unit: "count", quota: 10, current: 10 }],
  });
});

Deno.test("reserve is all or nothing over every matched group", () => {
  const images = limit("all", 10);
  const few = limit("few", 1, { matches: [{ event: "x.make", metadata: { size: "5" } }] });
  const scene = subscribed(catalogOf({ id: "plan_a", limits: [images, few] }));
  scene.hold({ ...X, metadata: { size: 5 } });
  assert.equal(scene.data("reserve", { ...X, metadata: { size: 5 } }).allowed, false);
  assert.deepEqual(scene.counts(), { all: 1, few: 1 });
  scene.hold({ ...X, metadata: { size: "6" } });
  assert.deepEqual(scene.counts(), { all: 2, few: 1 });
});

Deno.test("percent headroom puts the gate at its part of the quota; track goes on to the quota", () => {
  const headroom = { mode: "percent", value: 90 } as const;
  const scene = subscribed(catalogOf({ id: "plan_a", limits: [limit("lg", 10)], headroom }));
  scene.hold({ ...X, count: 9 });
  const answer = scene.data("reserve", X);
  assert.deepEqual(answer.reasons, ["reservation_headroom_exceeded"]);
  assert.deepEqual(answer.groups, [{ groupId: "lg", unit: "count", quota: 10, current: 9, headroomGate: 9 }]);
  assert.deepEqual(scene.data("reserve", { ...X, count: 2 }).reasons, ["limit_reached"]);
  assert.deepEqual(scene.data("canUse", X).reasons, ["reservation_headroom_exceeded"]);
  assert.equal(scene.data("track", X).matchStatus, "matched");
  assert.equal(scene.ask("track", X).code, "limit_reached");
});

Deno.test("multiplier headroom covers at most what is left divided by the value, rounded down", () => {
  const headroom = { mode: "multiplier", value: 3 } as const;
  const scene = subscribed(catalogOf({ id: "plan_a", limits: [limit("lg", 10, { headroom })] }));
  assert.deepEqual(scene.data("reserve", { ...X, count: 3.333334 }).reasons, [
    "reservation_headroom_exceeded",
  ]);
  const answer = scene.data("reserve", { ...X, count: 3.333333 });
  assert.deepEqual(answer.groups, [{
    groupId: "lg",
    unit: "count",
    quota: 10,
    current: 3.333333,
    headroomGate: 10,
  }]);
  assert.equal(scene.data("canUse", { ...X, count: 2.222222 }).allowed, true);
  assert.equal(scene.data("canUse", { ...X, count: 2.222223 }).allowed, false);
});

Deno.test("a need of 0 passes only where every group of the unit is below its gate", () => {
  const scene = subscribed(catalogOf({ id: "plan_a", limits: [limit("lg", 10, { unit: "tokens" })] }));
  assert.equal(scene.data("reserve", X).allowed, true);
  scene.hold({ ...X, inputTokens: 10 });
  assert.deepEqual(scene.data("reserve", X).reasons, ["limit_reached"]);
});

Deno.test("held, commit: the counter stays and the second commit or release is refused", () => {
  const scene = subscribed();
  const reservationId = scene.hold({ ...X, count: 4 });
  const answer = scene.data("commit", { reservationId });
  assert.deepEqual(answer.groups, [{ groupId: "lg", unit: "count", quota: 10, current: 4, overflow: false }]);
  assert.equal(answer.recharged, undefined);
  assert.equal(scene.ask("commit", { reservationId }).code, "reservation_not_pending");
  assert.equal(scene.ask("release", { reservationId }).code, "reservation_not_pending");
  assert.deepEqual(scene.counts(), { lg: 4 });
});

Deno.test("held, release: the counter goes down and a feed row of cost 0 is left", () => {
  const scene = subscribed();
  const reservationId = scene.hold({ ...X, count: 4, inputCostCents: 9 });
  assert.deepEqual(
    scene.data("release", { reservationId, reason: "gave up", errorCode: "E".repeat(101) }),
    {},
  );
  assert.deepEqual(scene.counts(), { lg: 0 });
  assert.equal(scene.ask("commit", { reservationId }).code, "reservation_not_pending");
  const [row] = scene.data("events").events;
  const detail = scene.data("event", { eventId: row.id });
  assert.equal(detail.matchStatus, "released");
  assert.equal(detail.costCents, 0);
  assert.equal(detail.quantity, 4);
  assert.equal(detail.reason, "gave up");
  assert.equal(detail.errorCode.length, 100);
  assert.deepEqual(detail.matchedGroupIds, []);
  assert.equal(scene.model.operationsUsed(scene.now), 0);
});

Deno.test("held, time-out: the hold is refunded when its time comes, not a millisecond before", () => {
  const scene = subscribed();
  const reservationId = scene.hold({ ...X, count: 4, ttlSeconds: 10 });
  scene.now += 9_999;
  assert.deepEqual(scene.counts(), { lg: 4 });
  scene.now += 1;
  assert.deepEqual(scene.counts(), { lg: 0 });
  assert.equal(scene.ask("release", { reservationId }).code, "reservation_not_pending");
});

Deno.test("expired, commit: charged again past the quota, recharged, and only once", () => {
  const scene = subscribed();
  const reservationId = scene.hold({ ...X, count: 4 });
  scene.wait(601).hold({ ...X, count: 8 });
  const answer = scene.data("commit", { reservationId, extra: { count: 1 }, costCents: 2.5 });
  assert.deepEqual(answer, {
    eventId: scene.data("events").events[0].id,
    groups: [{ groupId: "lg", unit: "count", quota: 10, current: 13, overflow: true }],
    recharged: true,
    cost: { cents: 2.5, priced: false, model: null },
  });
  assert.equal(scene.ask("commit", { reservationId }).code, "reservation_not_pending");
  assert.equal(scene.data("usage").counters[0].costCents, 2.5);
});

Deno.test("an unknown reservation is not found", () => {
  const scene = subscribed();
  assert.equal(scene.ask("commit", { reservationId: "rsv_none" }).status, 404);
  assert.equal(scene.ask("release", { reservationId: "rsv_none" }).code, "not_found");
});

Deno.test("a commit past the quota succeeds with overflow, and the next reserve is refused", () => {
  const scene = subscribed();
  const reservationId = scene.hold({ ...X, count: 9 });
  assert.equal(scene.data("commit", { reservationId, extra: { count: 2 } }).groups[0].overflow, true);
  assert.deepEqual(scene.data("reserve", { ...X, count: 0.000001 }).reasons, ["limit_reached"]);
});

Deno.test("negative extra and a smaller actual lower the counter, never below 0", () => {
  const scene = subscribed();
  const first = scene.hold({ ...X, count: 5 });
  assert.equal(scene.data("commit", { reservationId: first, extra: { count: -9 } }).groups[0].current, 0);
  const second = scene.hold({ ...X, count: 5 });
  assert.equal(
    scene.data("commit", { reservationId: second, actual: { count: 1.5 } }).groups[0].current,
    1.5,
  );
});

Deno.test("a correction of a unit that the reservation has no group for changes no counter", () => {
  const scene = subscribed();
  const reservationId = scene.hold(X);
  scene.data("commit", { reservationId, extra: { tokens: 50, seconds: 3, cents: 4 } });
  const [counter] = scene.data("usage").counters;
  assert.equal(counter.count, 1);
  assert.equal(counter.costCents, 4);
});

const PRICED = catalogOf({
  id: "plan_a",
  limits: [
    limit("seconds", 100, { unit: "seconds", matches: [{ event: "*" }] }),
    limit("cents", 1000, { unit: "cents", matches: [{ event: "*" }] }),
  ],
});

Deno.test("cents are derived from the model row: per token, per call and per second", () => {
  const scene = subscribed(PRICED);
  const cents = (input: Record<string, unknown>) => {
    const before = scene.counts()["cents"]!;
    scene.hold(input);
    return toNumber(fromNumber(scene.counts()["cents"]!) - fromNumber(before));
  };
  assert.equal(cents({ event: "talk", metadata: { model: "chat" }, inputTokens: 1_000_000 }), 15);
  assert.equal(cents({ event: "talk.chat", inputTokens: 0.05 }), 0.000001);
  assert.equal(cents({ event: "talk.chat", inputTokens: 0.03 }), 0);
  assert.equal(cents({ event: "image.paint", quantity: 3 }), 5);
  assert.equal(cents({ event: "video.film", quantity: 2.5 }), 100);
  assert.equal(cents({ event: "video.film", quantity: 2.5, inputCostCents: 1 }), 1);
  assert.equal(cents({ event: "nothing", inputTokens: 7 }), 0);
});

Deno.test("costCents reaches the cents counter for per_unit rows only", () => {
  const scene = subscribed(PRICED);
  const film = scene.hold({ event: "video.film", quantity: 3 });
  scene.data("commit", { reservationId: film, costCents: 90, actual: { seconds: 2 } });
  assert.deepEqual(scene.counts(), { seconds: 2, cents: 90 });
  const image = scene.hold({ event: "image.paint", quantity: 3 });
  scene.data("commit", { reservationId: image, costCents: 90, actual: { seconds: 50 } });
  assert.deepEqual(scene.counts(), { seconds: 5, cents: 95 });
  const [second, first] = scene.data("events").events;
  assert.deepEqual([first.quantity, first.costCents], [2, 90]);
  assert.deepEqual([second.quantity, second.costCents], [3, 90]);
});

Deno.test("corrected seconds without a cost leave the cents at the reserved duration", () => {
  const scene = subscribed(PRICED);
  const reservationId = scene.hold({ event: "video.film", quantity: 3 });
  scene.data("commit", { reservationId, actual: { seconds: 10 } });
  assert.deepEqual(scene.counts(), { seconds: 10, cents: 120 });
});

Deno.test("track counts a quantity where reserve counts calls, and tokens fall back to it", () => {
  const tokens = limit("tokens", 100, { unit: "tokens" });
  const scene = subscribed(catalogOf({ id: "plan_a", limits: [limit("calls", 10), tokens] }));
  const answer = scene.data("track", { ...X, quantity: 4, costCents: 3 });
  assert.deepEqual(answer.matchedGroupIds, ["calls", "tokens"]);
  assert.deepEqual(scene.counts(), { calls: 4, tokens: 4 });
  assert.equal(answer.counters[0].costCents, 3);
  assert.equal(answer.counters[0].remaining, 6);
  scene.data("track", { ...X, inputTokens: 2, count: 1 });
  assert.deepEqual(scene.counts(), { calls: 5, tokens: 6 });
});

Deno.test("a blocked track records an event and counts nothing", () => {
  const scene = subscribed();
  const reply = scene.ask("track", { ...X, quantity: 11 });
  assert.equal(reply.status, 429);
  assert.equal(reply.code, "limit_reached");
  const detail = scene.data("event", { eventId: reply.details?.["eventId"] });
  assert.equal(detail.matchStatus, "blocked");
  assert.deepEqual(scene.counts(), { lg: 0 });
});

Deno.test("track of an unmatched event and of a user without subscription is recorded and answers 200", () => {
  const scene = new Scene(ONE_PLAN);
  assert.equal(scene.data("track", X).matchStatus, "no_subscription");
  scene.data("subscribe", { planId: "plan_a" });
  assert.deepEqual(scene.data("track", { event: "y" }).counters, []);
  const statuses = scene.data("events").events.map((row: { matchStatus: string }) => row.matchStatus);
  assert.deepEqual(statuses, ["unmatched", "no_subscription"]);
});

Deno.test("at the operation cap track and reserve are refused, commit and release work", () => {
  const scene = new Scene(ONE_PLAN, "2026-03-31T23:00:00.000Z", { operationCap: 1 });
  scene.data("subscribe", { planId: "plan_a" });
  const [first, second] = [scene.hold(X), scene.hold(X)];
  scene.data("commit", { reservationId: first });
  assert.equal(scene.ask("reserve", X).code, "workspace_limit_reached");
  assert.equal(scene.ask("track", X).status, 429);
  assert.equal(scene.data("canUse", X).allowed, true);
  scene.data("commit", { reservationId: second });
  assert.equal(scene.model.operationsUsed(scene.now), 2);
  scene.at("2026-04-01T00:00:00.000Z").hold(X);
  const test = new Scene(ONE_PLAN, undefined, { operationCap: 0, mode: "test" });
  assert.equal(test.ask("track", X).code, "test_quota_exceeded");
});

Deno.test("extra and actual of one unit, and costCents with cents, are invalid", () => {
  const scene = subscribed();
  const reservationId = scene.hold(X);
  for (
    const wrong of [
      { extra: { count: 1 }, actual: { count: 1 } },
      { extra: { outputTokens: 1 }, actual: { tokens: 1 } },
      { extra: { tokens: 1, outputTokens: 1 } },
      { costCents: 1, extra: { outputCostCents: 1 } },
      { costCents: 1, actual: { cents: 1 } },
    ]
  ) assert.equal(scene.ask("commit", { reservationId, ...wrong }).code, "invalid_request");
  assert.equal(scene.ask("commit", { reservationId, extra: { count: null }, costCents: null }).status, 200);
});

Deno.test("can-use shows each matched group with the end of its window", () => {
  const scene = subscribed();
  assert.deepEqual(scene.data("canUse", { ...X, count: 11 }), {
    allowed: false,
    matched: true,
    reasons: ["limit_reached"],
    details: [{
      groupId: "lg",
      current: 0,
      quota: 10,
      resetsAt: "2026-04-01T00:00:00.000Z",
      creditAvailable: 0,
      creditPacks: [],
    }],
  });
});

Deno.test("the feed shows newest first, filters, and pages", () => {
  const scene = subscribed();
  for (const event of ["x.a", "x.b", "x.a"]) scene.data("track", { event });
  const types = (input: Record<string, unknown>) =>
    scene.data("events", input).events.map((row: { eventType: string }) => row.eventType);
  assert.deepEqual(types({}), ["x.a", "x.b", "x.a"]);
  assert.deepEqual(types({ limit: 1, offset: 1 }), ["x.b"]);
  assert.deepEqual(types({ eventType: "x.a", userId: "u" }), ["x.a", "x.a"]);
  assert.deepEqual(types({ userId: "U" }), []);
  assert.equal(scene.ask("event", { eventId: "evt_none" }).code, "not_found");
});
