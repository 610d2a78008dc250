// Trials: when one begins, what ends it and how, and that each user has that of each plan once.

import assert from "node:assert/strict";
import { planOf, Scene, subscription } from "../scene.ts";

const PLANS = [
  planOf("free", { g: 3 }, { rank: 0 }),
  planOf("pro", { g: 10 }, { trial: { days: 2, thenPlanId: "free" } }),
  planOf("max", { g: 30 }, { rank: 3, trial: { days: 1 } }),
];
const DAY_S = 86_400;
const DAY_MS = DAY_S * 1000;

const sceneOf = () => new Scene(PLANS, undefined, [], { listensTo: ["*"] });
const rowOf = (scene: Scene) => [...scene.state.subscriptions.values()][0];
const onTrial = (scene: Scene) => void scene.subscribe("pro", { trial: true });
const lastOf = (scene: Scene) =>
  scene.changes.flatMap((each) => each.table === "subscription_events" ? [each.row] : []).at(-1);

Deno.test("a trial ends at its own time in the plan after it, which keeps usage, seats and end", () => {
  const scene = sceneOf();
  const endsAt = scene.now + 9 * DAY_MS;
  const trialEndsAt = scene.now + 2 * DAY_MS;
  scene.subscribe("pro", { trial: true, quantity: 2, endsAt, customLimits: { g: 5_000_000n } });
  assert.deepEqual(rowOf(scene)?.trial, { endsAt: trialEndsAt, thenPlanId: "free" });
  scene.track(4);
  scene.wait(2 * DAY_S - 1).ask("settle", {});
  assert.equal(rowOf(scene)?.planId, "pro");
  scene.wait(9).ask("settle", {});
  const row = rowOf(scene);
  assert.ok(row !== undefined);
  const { planId, trial, trials, quantity, customLimits } = row;
  assert.deepEqual([planId, trial, trials, quantity, customLimits, row.endsAt], [
    "free",
    null,
    ["pro"],
    2,
    {},
    endsAt,
  ]);
  assert.deepEqual(scene.counts(), { g: 4 });
  const { type, previousPlanId, reason, at } = lastOf(scene) ?? {};
  assert.deepEqual([type, previousPlanId, reason, at], ["plan_changed", "pro", "trial_ended", trialEndsAt]);
});

Deno.test("a trial without a plan after it ends the row, and a paid one is promoted", () => {
  const scene = sceneOf();
  scene.pay("free", "a");
  const at = scene.now + DAY_MS;
  scene.subscribe("max", { trial: true });
  const from = scene.history().length;
  scene.wait(2 * DAY_S).ask("settle", {});
  assert.deepEqual(scene.history(from), ["ended", "promoted"]);
  const ended = [...scene.state.subscriptions.values()].find(({ planId }) => planId === "max");
  assert.deepEqual([ended?.ended, ended?.endsAt, ended?.trial], [true, at, null]);
});

/** What a call with a trial answers after others, and the days that its trial has left; null for none. */
// deno-fmt-ignore: a row a case
const CALLS: readonly (readonly [name: string, given: (scene: Scene) => void, more: { plan?: string; trial?: boolean }, code: string, days: number | null])[] = [
  ["a first one", () => {}, { trial: true }, "ok", 2],
  ["none asked for", () => {}, {}, "ok", null],
  ["a plan without one", () => {}, { plan: "free", trial: true }, "invalid_request", null],
  ["the same call while it runs", (scene) => { onTrial(scene); scene.wait(DAY_S); }, { trial: true }, "ok", 1],
  ["a call that does not say", (scene) => { onTrial(scene); scene.wait(DAY_S); }, {}, "ok", 1],
  ["paid", onTrial, { trial: false }, "ok", null],
  ["again once it is paid", (scene) => { onTrial(scene); scene.subscribe("pro", { trial: false }); }, { trial: true }, "trial_used", null],
  ["again once it is over", (scene) => { onTrial(scene); scene.wait(3 * DAY_S); }, { trial: true }, "trial_used", null],
  ["back without one", (scene) => { onTrial(scene); scene.wait(3 * DAY_S); }, {}, "ok", null],
  ["a plan that the user has", (scene) => void scene.subscribe("pro"), { trial: true }, "trial_used", null],
  ["a plan that the user has in another row", (scene) => void scene.pay("pro", "a"), { trial: true }, "trial_used", null],
  ["a plan that the user had", (scene) => { scene.subscribe("pro"); scene.cancel(); }, { trial: true }, "ok", 2],
  ["a trial that was canceled", (scene) => { onTrial(scene); scene.cancel(); }, { trial: true }, "trial_used", null],
  ["a canceled one that comes back", (scene) => { onTrial(scene); scene.cancel(); }, {}, "ok", null],
  ["one that would end, while it runs", (scene) => { onTrial(scene); scene.cancel({ endsAt: scene.now + 9 * DAY_MS }); }, { trial: true }, "ok", 2],
  ["another plan", onTrial, { plan: "max" }, "ok", null],
  ["another plan on trial", onTrial, { plan: "max", trial: true }, "ok", 1],
  ["back from another plan", (scene) => { onTrial(scene); scene.subscribe("max"); }, { plan: "pro", trial: true }, "trial_used", null],
];

for (const [name, given, { plan = "pro", ...more }, code, days] of CALLS) {
  Deno.test(`a trial: ${name}`, () => {
    const scene = sceneOf();
    given(scene);
    assert.equal(scene.code("subscribe", subscription(plan, more)), code);
    const left = rowOf(scene)?.trial?.endsAt ?? null;
    if (code === "ok") assert.equal(left === null ? null : (left - scene.now) / DAY_MS, days);
  });
}

Deno.test("after a merge the trials of both users are used", () => {
  const from = new Scene(PLANS);
  const to = new Scene(PLANS, undefined, [], { beside: from, key: 8, id: "v" });
  onTrial(from);
  to.subscribe("max", { trial: true });
  from.mergeInto(to);
  const code = (plan: string) =>
    to.code("subscribe", subscription(plan, { provider: "stripe", externalId: "a", trial: true }));
  assert.deepEqual(["pro", "max"].map(code), ["trial_used", "trial_used"]);
});

Deno.test("at one moment a trial ends before a scheduled change is made, which it drops", () => {
  const scene = sceneOf();
  onTrial(scene);
  const at = scene.now + 2 * DAY_MS;
  scene.ask("schedule", { provider: null, externalId: null, change: { plan: "max", at } });
  scene.wait(3 * DAY_S).ask("settle", {});
  assert.deepEqual([rowOf(scene)?.planId, rowOf(scene)?.scheduled], ["free", null]);
});

Deno.test("a scheduled change ends a trial that would go on", () => {
  const scene = sceneOf();
  onTrial(scene);
  const at = scene.now + DAY_MS;
  scene.ask("schedule", { provider: null, externalId: null, change: { plan: "max", at } });
  const from = scene.history().length;
  scene.wait(3 * DAY_S).ask("settle", {});
  assert.deepEqual([rowOf(scene)?.planId, rowOf(scene)?.trial], ["max", null]);
  assert.deepEqual(scene.history(from), ["plan_changed"]);
});
