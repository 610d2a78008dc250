// A change of plan that is asked for ahead: when it is made, what drops it, and what is refused.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import type { Commands } from "../../../src/domain/command.ts";
import { planOf, Scene } from "../scene.ts";

const PLANS = [
  planOf("low", { g: 10 }),
  planOf("top", { g: 30 }, { rank: 3 }),
  planOf("old", { g: 5 }, { archived: true }),
  planOf("ever", { g: 5 }, { period: { type: "lifetime", anchor: "subscription_start" } }),
];
const HOUR_MS = 3_600_000;
const NONE = { provider: null, externalId: null };

type Change = NonNullable<Commands["schedule"]["input"]["change"]>;

const sceneOf = () => new Scene(PLANS, undefined, [], { listensTo: ["*"] });
const ask = (scene: Scene, change: Change | null, ids: object = {}) =>
  scene.code("schedule", { ...NONE, ...ids, change });
const inHours = (scene: Scene, hours: number, plan = "top"): Change => ({
  plan,
  at: scene.now + hours * HOUR_MS,
});
const rowOf = (scene: Scene) => [...scene.state.subscriptions.values()][0];

Deno.test("the change is made at its own time, with its usage, and written with its reason", () => {
  const scene = sceneOf();
  scene.subscribe("low", { customLimits: { g: 7_000_000n }, quantity: 2 });
  scene.track(3);
  const at = scene.now + HOUR_MS;
  assert.equal(ask(scene, inHours(scene, 1)), "ok");
  assert.deepEqual(rowOf(scene)?.scheduled, { at, planId: "top" });
  assert.equal(scene.state.user.dueAt, at);
  scene.wait(3599).ask("settle", {});
  assert.equal(rowOf(scene)?.planId, "low");
  const from = scene.changes.length;
  scene.wait(7200).ask("usage", { event: null });
  const { planId, scheduled, customLimits, quantity } = rowOf(scene) ?? {};
  assert.deepEqual([planId, scheduled, customLimits, quantity], ["top", null, {}, 2]);
  assert.deepEqual(scene.counts(), { g: 3 });
  const [written] = scene.changes.slice(from).flatMap((each) =>
    each.table === "subscription_events" ? [each.row] : []
  );
  const { type, previousPlanId, reason } = written ?? {};
  assert.deepEqual([type, previousPlanId, reason, written?.at], ["plan_changed", "low", "scheduled", at]);
  assert.equal(scene.messages.at(-1)?.type, "subscription.plan_changed");
});

// deno-fmt-ignore: a row a case
const DROPS: readonly (readonly [name: string, act: (scene: Scene) => void, isDropped: boolean])[] = [
  ["nothing", () => {}, false],
  ["the same call as before", (scene) => scene.subscribe("low"), false],
  ["another plan", (scene) => scene.subscribe("ever"), true],
  ["an end", (scene) => scene.subscribe("low", { endsAt: scene.now + 9 * HOUR_MS }), true],
  ["seats", (scene) => scene.subscribe("low", { quantity: 2 }), true],
  ["the seats that it has", (scene) => scene.subscribe("low", { quantity: 1 }), false],
  ["custom limits", (scene) => scene.subscribe("low", { customLimits: { g: 1n } }), true],
  ["no custom limits, as before", (scene) => scene.subscribe("low", { customLimits: null }), false],
  ["a cycle", (scene) => scene.subscribe("low", { cycleStart: 0 }), true],
  ["an end at once", (scene) => scene.cancel(), true],
  ["an end to come", (scene) => scene.cancel({ endsAt: scene.now + 9 * HOUR_MS }), true],
  ["another subscription", (scene) => scene.pay("low", "a"), false],
  ["a call that drops it", (scene) => ask(scene, null), true],
];

for (const [name, act, isDropped] of DROPS) {
  Deno.test(`what drops a scheduled change: ${name}`, () => {
    const scene = sceneOf();
    scene.subscribe("low");
    ask(scene, inHours(scene, 2));
    act(scene.wait(60));
    assert.equal(rowOf(scene)?.scheduled === null, isDropped);
    const from = scene.history().length;
    scene.wait(7200).ask("settle", {});
    assert.equal(scene.history(from).includes("plan_changed"), !isDropped);
  });
}

Deno.test("another request replaces the change, and the end of the period is fixed when it is asked for", () => {
  const scene = sceneOf();
  scene.subscribe("low");
  ask(scene, inHours(scene, 1, "ever"));
  ask(scene, { plan: "TOP", at: "period_end" });
  const end = Date.UTC(2026, 3, 1);
  assert.deepEqual(rowOf(scene)?.scheduled, { at: end, planId: "top" });
  scene.wait((end - scene.now) / 1000).ask("settle", {});
  assert.equal(rowOf(scene)?.planId, "top");
});

// deno-fmt-ignore: a row a case
const REFUSED: readonly (readonly [name: string, given: (scene: Scene) => void, change: (scene: Scene) => Change | null, code: string])[] = [
  ["no such row", () => {}, (scene) => inHours(scene, 1), "not_found"],
  ["only a row of a provider", (scene) => scene.pay("low", "a"), (scene) => inHours(scene, 1), "not_found"],
  ["a row that has ended", (scene) => { scene.subscribe("low"); scene.cancel(); }, (scene) => inHours(scene, 1), "not_found"],
  ["an unknown plan", (scene) => scene.subscribe("low"), (scene) => inHours(scene, 1, "none"), "not_found"],
  ["an archived plan", (scene) => scene.subscribe("low"), (scene) => inHours(scene, 1, "old"), "not_found"],
  ["the plan that it has", (scene) => scene.subscribe("low"), (scene) => inHours(scene, 1, "low"), "invalid_request"],
  ["the present moment", (scene) => scene.subscribe("low"), (scene) => inHours(scene, 0), "invalid_request"],
  ["the end of a lifetime", (scene) => scene.subscribe("ever"), () => ({ plan: "low", at: "period_end" }), "invalid_request"],
  ["to drop where nothing is", () => {}, () => null, "not_found"],
  ["to drop no change", (scene) => scene.subscribe("low"), () => null, "not_found"],
  ["to drop of one of several rows", (scene) => { scene.pay("low", "a"); scene.pay("low", "b"); }, () => null, "invalid_request"],
];

for (const [name, given, change, code] of REFUSED) {
  Deno.test(`a scheduled change is refused: ${name}`, () => {
    const scene = sceneOf();
    given(scene);
    assert.equal(ask(scene, change(scene)), code);
  });
}

Deno.test("to drop means the only active row where there is no default one", () => {
  const scene = sceneOf();
  scene.pay("low", "a");
  ask(scene, inHours(scene, 1), { provider: "stripe", externalId: "a" });
  assert.equal(ask(scene, null), "ok");
  assert.equal(rowOf(scene)?.scheduled, null);
});

Deno.test("where a row ends as the change is made, the change comes first, and the end decides who is primary", () => {
  const scene = sceneOf();
  const at = scene.now + HOUR_MS;
  const primary = { provider: "stripe", externalId: "a" };
  scene.subscribe("low", { ...primary, endsAt: at });
  scene.pay("ever", "b", { startsAt: scene.now - 1 });
  for (const externalId of ["a", "b"]) ask(scene, { plan: "top", at }, { ...primary, externalId });
  const from = scene.history().length;
  scene.wait(3600).ask("settle", {});
  assert.deepEqual(scene.history(from), ["plan_changed", "plan_changed", "ended", "promoted"]);
  assert.equal(scene.state.user.entitlement?.planId, "top");
});

Deno.test("a plan that the catalog has lost is not changed to", () => {
  const scene = sceneOf();
  scene.subscribe("low");
  ask(scene, inHours(scene, 1));
  scene.catalog = compileCatalog({ plans: PLANS.filter(({ id }) => id !== "top") }, 2);
  scene.wait(3600).ask("settle", {});
  assert.deepEqual([rowOf(scene)?.planId, rowOf(scene)?.scheduled], ["low", null]);
});
