// Windows of groups in the model alone: calendars of their own, sessions, rates and concurrency.

import assert from "node:assert/strict";
import type { GroupPeriod, LimitGroup, Plan } from "./document.ts";
import { catalogOf, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const RATE: GroupPeriod = { type: "rolling", seconds: 60 };
const FLIGHT: GroupPeriod = { type: "concurrent" };
const SESSION: GroupPeriod = { type: "session", seconds: 300 };

/** A user on a plan of these groups, with a wallet of its own; other plans beside. */
function subscribed(
  limits: LimitGroup[],
  ...others: (Partial<Plan> & { id: string; limits: LimitGroup[] })[]
): Scene {
  const catalog = { ...catalogOf({ id: "plan_a", limits }, ...others), packs: [pack("wallet")] };
  const scene = new Scene(catalog);
  scene.data("subscribe", { planId: "plan_a" });
  return scene;
}

function counter(at: Scene, groupId: string) {
  const { counters } = at.data("usage");
  return counters.find((each: { groupId: string }) => each.groupId === groupId);
}

Deno.test("a group counts by its own calendar, beside the plan's", () => {
  const at = subscribed([
    limit("month", 10),
    limit("hour", 2, { period: { type: "hourly", anchor: "calendar" } }),
    limit("year", 9, { period: { type: "yearly", anchor: "subscription_start" } }),
  ]);
  at.data("track", { ...X, quantity: 2 });
  assert.equal(at.ask("track", X).code, "limit_reached");
  at.wait(3600).data("track", X);
  assert.deepEqual(at.counts(), { month: 3, hour: 1, year: 3 });
  assert.deepEqual(counter(at, "hour").period, {
    start: "2026-03-10T13:00:00.000Z",
    end: "2026-03-10T14:00:00.000Z",
  });
  assert.equal(counter(at, "year").period.end, "2027-03-10T12:00:00.000Z");
  assert.equal("period" in counter(at, "month"), false);
});

Deno.test("a session begins with the first allowed call, also where credits pay, and ends so much later", () => {
  const at = subscribed([limit("s", 1, { period: SESSION })]);
  assert.equal(counter(at, "s").period, null);
  assert.equal(at.data("canUse", X).details[0].resetsAt, null);
  assert.equal(at.data("reserve", { ...X, count: 2 }).allowed, false);
  assert.equal(counter(at, "s").period, null);
  const start = at.now;
  at.data("release", { reservationId: at.hold(X) });
  const period = { start: new Date(start).toISOString(), end: new Date(start + 300_000).toISOString() };
  assert.deepEqual([counter(at, "s").period, counter(at, "s").count], [period, 0]);
  at.wait(299.999).data("track", X);
  assert.equal(at.ask("track", X).code, "limit_reached");
  at.wait(0.001);
  assert.deepEqual([counter(at, "s").period, counter(at, "s").count], [null, 0]);
  at.grant("wallet", { quantity: 5 });
  at.data("track", { ...X, quantity: 3 });
  assert.equal(counter(at, "s").count, 1);
});

Deno.test("a rate counts what its last seconds had, at most one slot too strictly", () => {
  const at = subscribed([limit("all", 100), limit("rate", 3, { period: RATE })]);
  at.data("track", { ...X, quantity: 2 });
  at.wait(30).data("track", X);
  const refused = at.data("reserve", X);
  assert.deepEqual([refused.reasons, refused.retryAfterMs], [["rate_limit_reached"], 31_000]);
  assert.deepEqual(at.counts(), { all: 3, rate: 3 });
  const tracked = at.ask("track", X);
  assert.deepEqual([tracked.code, tracked.details?.["retryAfterMs"]], ["rate_limit_reached", 31_000]);
  assert.equal(at.wait(30.999).data("canUse", X).allowed, false);
  assert.equal(at.wait(0.001).data("canUse", X).allowed, true);
  assert.equal(at.data("reserve", { ...X, count: 4 }).retryAfterMs, null);
  assert.deepEqual(counter(at, "rate").window, { type: "rolling", seconds: 60 });
});

Deno.test("a settlement corrects the slot of its hold while that counts, and nothing after", () => {
  const at = subscribed([limit("all", 100), limit("rate", 9, { period: RATE })]);
  const [first, second, third] = [1, 1, 1].map((count) => at.hold({ ...X, count, ttlSeconds: 3600 }));
  const groupsOf = (reservationId: string | undefined, more = {}) =>
    at.data("commit", { reservationId, ...more }).groups.find(({ groupId }: { groupId: string }) =>
      groupId === "rate"
    );
  assert.equal(groupsOf(first, { actual: { count: 9 } }).overflow, true);
  at.data("release", { reservationId: second });
  assert.equal(at.counts()["rate"], 10);
  at.wait(61).data("track", X);
  assert.deepEqual(groupsOf(third, { actual: { count: 20 } }), {
    groupId: "rate",
    unit: "count",
    quota: 9,
    current: 1,
    overflow: false,
  });
});

Deno.test("concurrency is what open holds have: settled and lapsed ones leave, tracking is not looked at", () => {
  const at = subscribed([limit("all", 100), limit("flight", 2, { period: FLIGHT })]);
  const first = at.hold({ ...X, ttlSeconds: 60 });
  at.wait(10).hold({ ...X, ttlSeconds: 60 });
  const refused = at.data("reserve", X);
  assert.deepEqual([refused.reasons, refused.retryAfterMs], [["concurrency_limit_reached"], 50_000]);
  assert.equal(at.data("track", { ...X, quantity: 5 }).matchStatus, "matched");
  const { groups } = at.data("commit", { reservationId: first });
  assert.deepEqual(groups.map((each: { current: number }) => each.current), [7, 1]);
  assert.equal(at.counts()["flight"], 1);
  assert.equal(at.wait(60).counts()["flight"], 0);
  assert.deepEqual(counter(at, "flight").window, { type: "concurrent" });
});

Deno.test("a guard never decides whether a call is matched, and credits never pay for it", () => {
  const at = subscribed([
    limit("rate", 1, { period: RATE }),
    limit("other", 1, { matches: [{ event: "y" }] }),
  ]);
  const unmatched = at.data("reserve", { ...X, count: 5 });
  assert.deepEqual([unmatched.matched, unmatched.reasons], [false, ["unmatched_event"]]);
  at.grant("wallet", { quantity: 10 });
  assert.equal(at.data("track", X).matchStatus, "matched_credits_only");
  assert.equal(at.ask("track", X).code, "rate_limit_reached");
  assert.deepEqual(at.left(), [9]);
});

Deno.test("where a quota refuses too, both reasons come and no time to try again", () => {
  const at = subscribed([limit("all", 1), limit("rate", 1, { period: RATE })]);
  at.data("track", X);
  const refused = at.data("reserve", X);
  assert.deepEqual(refused.reasons, ["limit_reached", "rate_limit_reached"]);
  assert.equal("retryAfterMs" in refused, false);
  assert.equal(at.ask("track", X).code, "limit_reached");
});

Deno.test("no plan change gives a fresh rate, and open holds go on counting", () => {
  for (const onPlanChange of ["carry", "reset", "block"] as const) {
    const guards = [limit("rate", 5, { period: RATE }), limit("flight", 5, { period: FLIGHT })];
    const at = subscribed([limit("all", 100), ...guards], {
      id: "plan_b",
      onPlanChange,
      limits: [limit("else", 100), ...guards],
    });
    const reservationId = at.hold({ ...X, count: 2 });
    at.data("subscribe", { planId: "plan_b" });
    const { rate, flight } = at.counts();
    assert.deepEqual([rate, flight], [2, 2], onPlanChange);
    at.data("release", { reservationId });
    assert.deepEqual([at.counts()["rate"], at.counts()["flight"]], [0, 0], onPlanChange);
  }
});

Deno.test("a running session goes along under carry, ends by reset and is filled by block", () => {
  for (const [onPlanChange, count] of [["carry", 3], ["reset", 0], ["block", 0]] as const) {
    const at = subscribed([limit("s", 9, { period: SESSION })], {
      id: "plan_b",
      onPlanChange,
      limits: [limit("s", 9, { period: SESSION })],
    });
    at.data("track", { ...X, quantity: 3 });
    const { period } = counter(at, "s");
    at.wait(10).data("subscribe", { planId: "plan_b" });
    const now = counter(at, "s");
    assert.deepEqual([now.count, now.period], [count, count > 0 ? period : null], onPlanChange);
    if (onPlanChange !== "block") continue;
    at.data("track", X);
    at.data("subscribe", { planId: "plan_a" });
    at.data("subscribe", { planId: "plan_b" });
    assert.equal(counter(at, "s").count, 9);
  }
});

Deno.test("a merge adds rates slot by slot, and the counts of two sessions in that of the primary's side", () => {
  const limits = [limit("s", 20, { period: SESSION }), limit("rate", 20, { period: RATE })];
  const at = subscribed(limits);
  at.data("track", { ...X, quantity: 2 });
  const { period } = counter(at, "s");
  at.wait(5).data("subscribe", { userId: "v", planId: "plan_a" });
  at.data("track", { ...X, userId: "v", quantity: 3 });
  at.data("subscribe", { planId: "plan_a", provider: "stripe", externalId: "1" });
  at.data("alias", { from: "v", to: "u" });
  assert.deepEqual(at.counts(), { s: 5, rate: 5 });
  assert.deepEqual(counter(at, "s").period, period);
});

Deno.test("an account's guard counts all that is below it, also without a quota group of its own", () => {
  const at = subscribed([limit("all", 100)], { id: "plan_b", limits: [limit("rate", 2, { period: RATE })] });
  at.data("subscribe", { userId: "account", planId: "plan_b" });
  for (const userId of ["u", "v"]) {
    at.data("subscribe", { userId, planId: "plan_a" });
    at.data("parent", { userId, parentId: "account" });
    at.data("track", { ...X, userId });
  }
  const refused = at.data("reserve", X);
  assert.deepEqual([refused.reasons, refused.refusedBy], [["rate_limit_reached"], ["account"]]);
  assert.equal(refused.levels[0].groups[0].current, 2);
});
