// The model's rules of money, with figures that were worked out by hand.

import assert from "node:assert/strict";
import type { CatalogDocument, Input } from "./document.ts";
import { catalogOf, limit, pack, Scene } from "./support.ts";

const X = { event: "x.make" };
const HOURS = { type: "hourly", anchor: "calendar" } as const;

function subscribed(document: CatalogDocument, at = "2026-03-10T12:00:00.000Z"): Scene {
  const scene = new Scene(document, at);
  scene.data("subscribe", { planId: "plan_a" });
  scene.model.listen([{ webhookId: "hook", events: ["usage.*"] }]);
  return scene;
}

/** Type, amount and total of the expected messages. */
function told(scene: Scene): unknown[] {
  return scene.model.waiting("hook", "u", scene.now).map(({ type, amount, total, overage }) =>
    [type, amount ?? overage, total].filter((each) => each !== undefined).join(" ")
  );
}

function counter(scene: Scene, groupId = "lg"): Record<string, unknown> {
  const { counters } = scene.data("usage");
  const { count, overage, remaining } = counters.find((each: Input) => each["groupId"] === groupId);
  return { count, overage, remaining };
}

Deno.test("a call costs the sum of its parts, rounded once, and at least the minimum", () => {
  const scene = subscribed({
    ...catalogOf({
      id: "plan_a",
      limits: [limit("lg", 100, { unit: "credits", matches: [{ event: "*" }] })],
    }),
    rates: [
      { event: "x.cent", perCent: 2, minimum: 1 },
      {
        event: "x.*",
        perMillionInputTokens: 100000,
        perMillionCachedInputTokens: 10000,
        perMillionOutputTokens: 300000,
        perCall: 0.5,
        minimum: 1,
      },
    ],
  });
  const rated = (input: Input) => scene.data("canUse", input).credits;
  assert.deepEqual(rated({ event: "x.y", inputTokens: 10, maxOutputTokens: 5 }), { total: 3, rated: true });
  assert.deepEqual(rated({ event: "x.y" }), { total: 1, rated: true });
  assert.deepEqual(rated({ event: "y" }), { total: 0, rated: false });
  assert.deepEqual(rated({ event: "x.cent" }), { total: 0, rated: false });
  assert.deepEqual(rated({ event: "x.cent", inputCostCents: 3 }), { total: 6, rated: true });
  const usage = { inputTokens: 10, cachedInputTokens: 5, outputTokens: 1, calls: 2 };
  // 5 x 0.1 + 5 x 0.01 + 0.3 + 2 x 0.5
  assert.equal(scene.data("track", { event: "x.y", usage }).credits.total, 1.85);
  const hold = scene.hold({ event: "x.cent", inputCostCents: 3 });
  assert.equal(scene.data("commit", { reservationId: hold, extra: { cents: 1 } }).credits.total, 8);
  const other = scene.hold({ event: "x.y", count: 4 });
  assert.equal(scene.data("commit", { reservationId: other, actual: { count: 40 } }).credits.total, 2);
  const { credits, warnings } = scene.data("track", { event: "y" });
  assert.deepEqual([credits.total, warnings], [0, ["unrated_event"]]);
});

Deno.test("plan, credits and overage are taken in this order and given back in reverse", () => {
  const scene = subscribed({
    ...catalogOf({ id: "plan_a", limits: [limit("lg", 10, { overage: { max: 6 } })] }),
    packs: [pack("wallet")],
  });
  scene.grant("wallet", { quantity: 2 });
  const hold = scene.hold({ ...X, count: 15 });
  assert.deepEqual(counter(scene), { count: 13, overage: 3, remaining: 0 });
  assert.deepEqual(scene.left(), [0]);
  assert.equal(scene.data("reserve", { ...X, count: 4 }).allowed, false);
  scene.data("commit", { reservationId: hold, actual: { count: 11 } });
  assert.deepEqual(counter(scene), { count: 10, overage: 0, remaining: 0 });
  assert.deepEqual(scene.left(), [1]);
  const other = scene.hold({ ...X, count: 3 });
  assert.deepEqual(counter(scene), { count: 12, overage: 2, remaining: 0 });
  const [group] = scene.data("commit", { reservationId: other, actual: { count: 12 } }).groups;
  assert.deepEqual([group.current, group.overage, group.overflow], [21, 6, true]);
});

Deno.test("a customer's cap refuses from now on, and a plan change leaves overage where it was sold", () => {
  const scene = subscribed(catalogOf(
    { id: "plan_a", limits: [limit("lg", 5, { overage: { max: null } })] },
    { id: "plan_b", limits: [limit("lg", 8)] },
  ));
  scene.data("track", { ...X, quantity: 9 });
  assert.equal(scene.data("spendCap", { groupId: "lg", max: 3 }).max, 3);
  assert.equal(scene.ask("track", X).status, 429);
  scene.data("subscribe", { planId: "plan_b" });
  assert.equal(counter(scene)["count"], 5);
  scene.data("track", { ...X, quantity: 2 });
  scene.data("subscribe", { planId: "plan_a" });
  assert.deepEqual(counter(scene), { count: 11, overage: 4, remaining: 0 });
});

Deno.test("overage has one message, after its hour or at the end of its window, with the total of the window", () => {
  const window = { type: "session", seconds: 5400 } as const;
  const scene = subscribed(
    catalogOf({ id: "plan_a", limits: [limit("lg", 1, { overage: { max: 4 }, period: window })] }),
    "2026-03-10T12:40:00.000Z",
  );
  scene.data("track", { ...X, quantity: 2 });
  const hold = scene.hold({ ...X, ttlSeconds: 86400, count: 3 });
  assert.deepEqual(told(scene), ["usage.overage_started 1", "usage.cap_reached 4"]);
  scene.at("2026-03-10T13:59:00.000Z");
  assert.deepEqual(told(scene).slice(2), ["usage.overage 1 1"]);
  scene.at("2026-03-10T14:20:00.000Z").data("commit", { reservationId: hold });
  scene.at("2026-03-10T15:00:00.000Z");
  assert.deepEqual(told(scene).slice(3), ["usage.overage 3 4"]);
  const rows = scene.data("overage").overage.map((
    { amount, total }: Record<string, number>,
  ) => [amount, total]);
  assert.deepEqual(rows, [[1, 1], [3, 4]]);
});

Deno.test("a plan's pack is there in each window, its use is carried, and what is left rolls over within the most", () => {
  const includes = (quantity: number) => [{ packId: "coins", quantity, rollover: { max: 6, periods: 2 } }];
  const none = [limit("lg", 0)];
  const scene = subscribed({
    ...catalogOf(
      { id: "plan_a", limits: none, period: HOURS, includes: includes(5) },
      { id: "plan_b", limits: none, period: HOURS, includes: includes(8) },
    ),
    packs: [pack("coins")],
  });
  const left = () =>
    scene.data("credits").credits.map((each: Input) => [each["origin"], each["remaining"]].join(" "));
  scene.data("track", { ...X, quantity: 1 });
  scene.data("subscribe", { planId: "plan_b" });
  assert.deepEqual(left(), ["plan 7"]);
  scene.data("track", { ...X, quantity: 6 });
  scene.data("subscribe", { planId: "plan_a" });
  assert.deepEqual(left(), ["plan 0"]);
  scene.at("2026-03-10T13:00:00.000Z");
  assert.deepEqual(left(), ["plan 5"]);
  const hold = scene.hold({ ...X, count: 2, ttlSeconds: 86400 });
  scene.at("2026-03-10T14:00:00.000Z");
  assert.deepEqual(left(), ["plan 5", "rollover 3"]);
  scene.data("release", { reservationId: hold });
  assert.deepEqual(left(), ["plan 5", "rollover 5"]);
  scene.at("2026-03-10T15:00:00.000Z");
  assert.deepEqual(left(), ["rollover 5", "plan 5", "rollover 1"]);
  scene.at("2026-03-10T20:00:00.000Z");
  assert.deepEqual(left(), ["rollover 1", "plan 5", "rollover 5"]);
});
