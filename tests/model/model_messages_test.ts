// Hand-computed scenes of messages and alerts, taken from the specification: what is told, once, in which order, and
// when an alert fires. "v" is the user that becomes an alias of "u".

import assert from "node:assert/strict";
import type { CatalogDocument, Plan } from "./document.ts";
import { catalogOf, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const DAILY: Plan["period"] = { type: "daily", anchor: "calendar" };

/** Plans by rank, each with one group of x that alerts at 50 and 100 percent. */
const CATALOG: CatalogDocument = {
  ...catalogOf(
    { id: "low", period: DAILY, limits: [limit("g", 10, { alerts: [50, 100] })] },
    { id: "small", limits: [limit("g", 4, { alerts: [50, 100] })] },
    { id: "anew", period: DAILY, onPlanChange: "reset", limits: [limit("g", 10, { alerts: [50, 100] })] },
    { id: "full", onPlanChange: "block", limits: [limit("g", 10, { alerts: [50, 100] })] },
    { id: "none", limits: [limit("g", 0, { alerts: [50] })] },
  ),
  packs: [pack("ten", { lowAt: 3 })],
};

function scene(planId: string | null = "low"): Scene {
  const at = new Scene(CATALOG);
  at.model.listen([{ webhookId: "hook", events: ["*"] }]);
  if (planId) at.data("subscribe", { planId });
  return at;
}

const ALERTS: [string, (at: Scene) => void, number[]][] = [
  ["a hold counts, and passes several at once", (at) => at.hold({ ...X, count: 10 }), [50, 100]],
  ["a release fires nothing, and the next hold nothing again", (at) => {
    at.data("release", { reservationId: at.hold({ ...X, count: 6 }) });
    at.hold({ ...X, count: 6 });
  }, [50]],
  ["a recharge after the lapse fires what the hold did not", (at) => {
    const reservationId = at.hold({ ...X, count: 6, ttlSeconds: 10 });
    at.wait(60).data("commit", { reservationId, actual: { count: 11 } });
  }, [50, 100]],
  ["a new window starts afresh", (at) => {
    at.hold({ ...X, count: 6 });
    at.wait(86_400).hold({ ...X, count: 6 });
  }, [50, 50]],
  ["a late commit fires in its own window", (at) => {
    const reservationId = at.hold({ ...X, count: 3, ttlSeconds: 86_400 });
    at.at("2026-03-11T01:00:00.000Z").data("commit", { reservationId, actual: { count: 5 } });
  }, [50]],
  ["custom limits that lower the quota", (at) => {
    at.hold({ ...X, count: 4 });
    at.data("subscribe", { planId: "low", customLimits: { g: { quota: 4 } } });
  }, [50, 100]],
  ["a smaller plan that is carried into", (at) => {
    at.hold({ ...X, count: 2 });
    at.data("subscribe", { planId: "small" });
  }, [50]],
  ["marks are carried along", (at) => {
    at.hold({ ...X, count: 6 });
    at.data("subscribe", { planId: "small" });
  }, [50, 100]],
  ["a reset starts afresh", (at) => {
    at.hold({ ...X, count: 6 });
    at.data("subscribe", { planId: "anew" });
    at.hold({ ...X, count: 6 });
  }, [50, 50]],
  ["a block fires", (at) => at.data("subscribe", { planId: "full" }), [50, 100]],
  ["a quota of 0 does not", (at) => at.data("subscribe", { planId: "none" }), []],
  ["a threshold that the catalog moved fires as the count next rises", (at) => {
    const reservationId = at.hold({ ...X, count: 2 });
    at.hold({ ...X, count: 1 });
    const [plan, ...plans] = structuredClone(CATALOG.plans);
    plan!.limits[0]!.quota = 4;
    at.model.apply({ ...CATALOG, plans: [plan!, ...plans] });
    at.data("release", { reservationId });
    at.data("usage");
    assert.deepEqual(at.told("u", "thresholdPercent").slice(1), []);
    at.hold({ ...X, count: 1 });
  }, [50]],
  ["a merge fires what both come to together", (at) => {
    at.data("subscribe", { userId: "v", planId: "low" });
    at.hold({ ...X, count: 4 });
    at.hold({ ...X, userId: "v", count: 1 });
    at.data("alias", { from: "v", to: "u" });
  }, [50]],
  ["and nothing that either fired before", (at) => {
    at.data("subscribe", { userId: "v", planId: "low" });
    at.hold({ ...X, count: 4 });
    at.hold({ ...X, userId: "v", count: 5 });
    at.data("alias", { from: "v", to: "u" });
  }, []],
];

for (const [what, act, fired] of ALERTS) {
  Deno.test(`alerts: ${what}`, () => {
    const at = scene();
    act(at);
    const thresholds = at.told("u", "thresholdPercent").filter((each) => each.startsWith("usage."));
    assert.deepEqual(thresholds, fired.map((percent) => `usage.threshold_reached ${percent}`));
  });
}

const EXPIRES = { expiresAt: "2026-03-10T12:01:00.000Z" };

const CREDITS: [string, (at: Scene) => void, string[]][] = [
  ["a grant at or below lowAt sends no low", (at) => at.grant("ten", { quantity: 3 }), ["granted 3"]],
  ["a jump over both", (at) => {
    at.grant("ten", { quantity: 10 });
    at.hold({ ...X, count: 10 });
  }, ["granted 10", "low 0", "depleted 0"]],
  ["a refund arms nothing again", (at) => {
    at.grant("ten", { quantity: 10 });
    at.data("release", { reservationId: at.hold({ ...X, count: 10 }) });
    at.hold({ ...X, count: 9 });
  }, ["granted 10", "low 0", "depleted 0"]],
  ["a revoke, twice", (at) => {
    const [balanceId] = at.grant("ten", { quantity: 10 });
    at.data("revoke", { balanceId });
    at.data("revoke", { balanceId });
  }, ["granted 10", "revoked 0"]],
  ["expiry with something left", (at) => {
    at.grant("ten", { quantity: 10, ...EXPIRES });
    at.hold({ ...X, count: 2 });
    at.wait(3600);
  }, ["granted 10", "expired 8"]],
  ["expiry with nothing left, and what comes back later", (at) => {
    at.grant("ten", { quantity: 10, ...EXPIRES });
    const reservationId = at.hold({ ...X, count: 10 });
    at.wait(120).data("release", { reservationId });
    at.wait(3600);
  }, ["granted 10", "low 0", "depleted 0"]],
];

for (const [what, act, told] of CREDITS) {
  Deno.test(`messages of credits: ${what}`, () => {
    const at = scene(null);
    act(at);
    const messages = at.told("u", "remaining").filter((each) => each.startsWith("credits."));
    assert.deepEqual(messages, told.map((each) => `credits.${each}`));
  });
}

Deno.test("what fell due before a merge is told of the alias, then the merge, then what it brought", () => {
  const at = scene();
  at.data("subscribe", { userId: "v", planId: "small" });
  at.hold({ ...X, userId: "v", ttlSeconds: 10 });
  at.wait(60).data("alias", { from: "v", to: "u" });
  assert.deepEqual(at.told("v", "timestamp"), [
    "subscription.created 2026-03-10T12:00:00.000Z",
    "reservation.expired 2026-03-10T12:00:10.000Z",
  ]);
  assert.deepEqual(at.told("u", "planId"), [
    "subscription.created low",
    "user.merged",
    "subscription.merged small",
    "subscription.ended low",
  ]);
});

Deno.test("two copies of a grant share what was told of what is left, and each expires for itself", () => {
  const at = scene(null);
  at.grant("ten", { userId: "v", quantity: 10, externalRef: "order", ...EXPIRES });
  at.hold({ ...X, userId: "v", count: 8, ttlSeconds: 86_400 });
  at.grant("ten", { quantity: 20, externalRef: "order", expiresAt: "2026-03-10T13:00:00.000Z" });
  at.wait(120).data("alias", { from: "v", to: "u" });
  at.hold({ ...X, count: 10 });
  at.wait(7200);
  assert.deepEqual(at.told("v", "remaining"), ["credits.granted 10", "credits.low 2", "credits.expired 2"]);
  assert.deepEqual(at.told("u", "remaining"), [
    "credits.granted 20",
    "user.merged",
    "reservation.expired",
    "credits.expired 12",
  ]);
});

Deno.test("a dry run tells nothing, and what nobody wanted is not told later", () => {
  const at = scene();
  at.model.listen([{ webhookId: "hook", events: ["user.merged", "reservation.*"] }]);
  at.hold({ ...X, count: 6 });
  at.model.listen([{ webhookId: "hook", events: ["*"] }]);
  at.hold({ ...X, count: 1 });
  at.data("alias", { from: "v", to: "u", dryRun: true });
  assert.deepEqual(at.told(), ["subscription.created"]);
});
