// Add-ons: what they add to the quotas of a user's plan, and what they never are.

import assert from "node:assert/strict";
import { groupOf, planOf, Scene, subscription } from "../scene.ts";

const PLANS = [
  planOf("pro", { g: 10 }, { onPlanChange: "block", limits: [{ ...groupOf("g", 10), alerts: [100] }] }),
  planOf("free", { g: 3, h: 1 }, { rank: 0 }),
  planOf("more", { g: 5, other: 9 }, { rank: 99, addon: true, trial: { days: 1 } }),
  planOf("tokens", {}, { addon: true, limits: [groupOf("g", 100, "tokens")] }),
];
const DAY_MS = 86_400_000;

const sceneOf = () => new Scene(PLANS, undefined, [], { listensTo: ["usage.*"] });
const quotaIn = (scene: Scene) => Number(scene.explain(1).groups[0]?.quota) / 1e6;
const addOn = (externalId: string, more: object = {}) => ({ provider: "stripe", externalId, ...more });

Deno.test("active add-ons add their quotas, each for its seats, to the groups of the same id and unit", () => {
  const scene = sceneOf();
  scene.subscribe("pro", { quantity: 2 });
  assert.equal(quotaIn(scene), 20);
  scene.subscribe("more", addOn("a"));
  scene.subscribe("more", addOn("b", { quantity: 3 }));
  scene.subscribe("tokens", addOn("c"));
  assert.equal(quotaIn(scene), 40);
  scene.subscribe("pro", { customLimits: { g: 1_000_000n } });
  assert.equal(quotaIn(scene), 21, "a custom limit replaces the plan's part alone");
  const { parts } = scene.explain(1).groups[0] ?? {};
  assert.deepEqual([parts?.own, parts?.quantity, parts?.addOns.map(({ quota }) => quota)], [
    1_000_000n,
    2,
    [5_000_000n, 15_000_000n],
  ]);
  scene.subscribe("more", addOn("b", { customLimits: { g: 1_000_000n } }));
  assert.equal(quotaIn(scene), 7);
  scene.cancel(addOn("a"));
  assert.equal(quotaIn(scene), 2);
});

Deno.test("what an add-on adds can be held, and is gone at its end, whatever is used by then", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.subscribe("more", addOn("a", { endsAt: scene.now + DAY_MS }));
  scene.track(15);
  assert.equal(scene.reason(1), "limit_reached");
  scene.wait(DAY_MS / 1000);
  assert.equal(quotaIn(scene), 10);
  assert.equal(scene.reason(1), "limit_reached");
});

Deno.test("an alert goes by the quota in force: it fires as an add-on ends", () => {
  const scene = sceneOf();
  scene.subscribe("pro");
  scene.subscribe("more", addOn("a", { endsAt: scene.now + DAY_MS }));
  scene.track(12);
  assert.equal(scene.messages.length, 0);
  scene.wait(DAY_MS / 1000).ask("settle", {});
  assert.deepEqual(scene.messages.map(({ type }) => type), ["usage.threshold_reached"]);
});

Deno.test("a block fills to the quota in force", () => {
  const scene = sceneOf();
  scene.subscribe("free");
  scene.subscribe("more", addOn("a"));
  scene.track(1);
  scene.subscribe("pro");
  assert.deepEqual(scene.counts(), { g: 15 });
});

Deno.test("an add-on is never primary, a duplicate or promoted, and without a plan it does nothing", () => {
  const scene = sceneOf();
  scene.subscribe("more", addOn("a"));
  assert.equal(scene.reason(1), "no_subscription");
  assert.equal(scene.state.user.entitlement, null);
  scene.subscribe("free");
  assert.equal(quotaIn(scene), 8);
  assert.equal(scene.ask("usage", { event: null }).duplicates, null);
  const from = scene.history().length;
  scene.cancel();
  assert.deepEqual(scene.history(from), ["canceled"]);
  assert.equal(scene.reason(1), "no_subscription");
  assert.equal(scene.cancel(), "already_canceled", "nor does a call without ids mean it");
});

Deno.test("a cancel without ids means an add-on only where nothing else is in force", () => {
  const scene = sceneOf();
  scene.subscribe("more", addOn("a"));
  scene.subscribe("more", addOn("b"));
  assert.equal(scene.cancel(), "invalid_request");
  scene.subscribe("free", addOn("c"));
  assert.deepEqual([scene.cancel(), scene.cancel()], ["ok", "invalid_request"]);
  scene.cancel(addOn("a"));
  assert.deepEqual([scene.cancel(), scene.cancel()], ["ok", "already_canceled"]);
});

Deno.test("an add-on needs the ids of a provider, also as a change ahead", () => {
  const scene = sceneOf();
  const input = subscription("more");
  assert.equal(scene.code("subscribe", input), "invalid_request");
  scene.subscribe("free");
  const change = { plan: "more", at: scene.now + 1 };
  assert.equal(scene.code("schedule", { provider: null, externalId: null, change }), "invalid_request");
});

Deno.test("the trial of an add-on ends it", () => {
  const scene = sceneOf();
  scene.subscribe("free");
  scene.subscribe("more", addOn("a", { trial: true }));
  assert.equal(quotaIn(scene), 8);
  scene.wait(DAY_MS / 1000);
  assert.equal(quotaIn(scene), 3);
});

Deno.test("a merge keeps the add-ons of both users", () => {
  const from = new Scene(PLANS);
  const to = new Scene(PLANS, undefined, [], { beside: from, key: 8, id: "v" });
  from.subscribe("more", addOn("a"));
  to.subscribe("more", addOn("b"));
  to.subscribe("free");
  const { conflicts } = from.mergeInto(to);
  assert.deepEqual([conflicts.endedSubscriptions, conflicts.subscriptions], [[], null]);
  assert.equal(quotaIn(to), 13);
});

Deno.test("an add-on gives the features that the plan lacks", () => {
  const plans = [
    planOf("pro", { g: 1 }, { features: { seats: 5 } }),
    planOf("more", {}, { addon: true, features: { seats: 9, sso: true } }),
  ];
  const scene = new Scene(plans);
  scene.subscribe("pro");
  scene.subscribe("more", addOn("a"));
  const { features } = scene.ask("features", { key: null });
  assert.deepEqual(Object.entries(features).map(([key, { value, from }]) => [key, value, from]), [
    ["seats", 5, "plan"],
    ["sso", true, "addon"],
  ]);
});
