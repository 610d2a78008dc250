// Alerts: which turn fires which percent. Each fires once in a window, also where the quota changes in between.

import assert from "node:assert/strict";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { groupOf, planOf, Scene } from "../scene.ts";

/** A plan of one group of 10 that alerts at 50, 80 and 100 percent. */
function alertingPlan(
  id: string,
  more: Partial<PlanDocument> & { quota?: number; alerts?: (number | "pace")[] } = {},
) {
  const { quota = 10, alerts = [50, 80, 100], ...plan } = more;
  return planOf(id, {}, { limits: [{ ...groupOf("g", quota), alerts }], ...plan });
}

const PLANS = [
  alertingPlan("a"),
  alertingPlan("wide", { quota: 20, rank: 2 }),
  alertingPlan("small", { quota: 4, rank: 3 }),
  alertingPlan("anew", { onPlanChange: "reset", rank: 4 }),
  alertingPlan("full", { onPlanChange: "block", rank: 5 }),
  alertingPlan("none", { quota: 0, rank: 6 }),
  alertingPlan("fine", { quota: 3, alerts: [33.3, 66.7] }),
];

function sceneOn(plan: string): Scene {
  const scene = new Scene(PLANS, "2026-03-10T12:00:00.000Z", [], { listensTo: ["usage.*"] });
  scene.subscribe(plan);
  return scene;
}

/** The percents in messages from a place on, in order. */
function firedOf(scene: Scene, since = 0): number[] {
  return scene.messages.slice(since).map(({ body }) => JSON.parse(body).data.thresholdPercent);
}

// deno-fmt-ignore: a row a case
const STEPS: readonly [string, (scene: Scene) => void, number[]][] = [
  ["below every threshold", (scene) => scene.hold(4), []],
  ["a hold reaches one exactly", (scene) => scene.hold(5), [50]],
  ["a hold passes several at once, ascending", (scene) => scene.hold(10), [50, 80, 100]],
  ["each threshold by its own turn", (scene) => [5, 3, 2].map((count) => scene.hold(count)), [50, 80, 100]],
  ["a release and a second hold fire nothing again", (scene) => { scene.release(scene.hold(6)); scene.hold(6); }, [50]],
  ["a lapsed hold fires nothing again", (scene) => { scene.hold(6, { ttlMs: 10_000 }); scene.wait(60).hold(6); }, [50]],
  ["a recharge after the lapse fires what the hold did not", (scene) => { const id = scene.hold(6, { ttlMs: 10_000 }); scene.wait(60); scene.commit(id, { actual: { count: 9 } }); }, [50, 80]],
  ["a commit beyond the hold", (scene) => scene.commit(scene.hold(4), { actual: { count: 12 } }), [50, 80, 100]],
  ["a track", (scene) => scene.track(8), [50, 80]],
  ["a refused reserve", (scene) => scene.reserve(11), []],
  ["a new window starts afresh", (scene) => { scene.hold(5); scene.at("2026-04-01T00:00:00.000Z").hold(5); }, [50, 50]],
  ["a commit of the window before, while its plan is in force", (scene) => { const id = scene.at("2026-03-31T23:59:00.000Z").hold(4); scene.at("2026-04-01T00:01:00.000Z"); scene.commit(id, { actual: { count: 8 } }); }, [50, 80]],
  ["custom limits that lower the quota", (scene) => { scene.hold(4); scene.subscribe("a", { customLimits: { g: 5_000_000n } }); }, [50, 80]],
  ["custom limits that raise it, and usage up to there", (scene) => { scene.hold(5); scene.subscribe("a", { customLimits: { g: 20_000_000n } }); scene.hold(5); scene.hold(6); }, [50, 50, 80]],
  ["custom limits that raise it to where the count still is", (scene) => { scene.hold(10); scene.subscribe("a", { customLimits: { g: 20_000_000n } }); scene.hold(6); }, [50, 80, 100, 80]],
  ["a release after the quota was raised arms nothing that was reached under it", (scene) => { scene.release([scene.hold(4), scene.hold(6)][1]!); scene.subscribe("a", { customLimits: { g: 7_000_000n } }); scene.hold(3); }, [50, 80, 100]],
  ["a quota that is raised and lowered again", (scene) => { scene.hold(9); for (const quota of [20, 9]) scene.subscribe("a", { customLimits: { g: BigInt(quota) * 1_000_000n } }); }, [50, 80, 50, 80, 100]],
  ["a carried plan with a smaller quota", (scene) => { scene.hold(4); scene.subscribe("small"); }, [50, 80, 100]],
  ["marks are carried along where the larger quota has them too", (scene) => { scene.hold(10); scene.subscribe("wide"); scene.hold(5); scene.hold(1); }, [50, 80, 100, 80]],
  ["below them they fire again under a larger quota", (scene) => { scene.hold(8); scene.subscribe("wide"); scene.hold(8); }, [50, 80, 50, 80]],
  ["and on the way back nothing fires twice", (scene) => { scene.hold(10); scene.subscribe("wide"); scene.hold(1); scene.subscribe("a"); }, [50, 80, 100]],
  ["a block on the way silences nothing", (scene) => { scene.hold(3); scene.subscribe("full"); scene.subscribe("wide"); scene.hold(10); }, [50]],
  ["a reset starts afresh", (scene) => { scene.hold(5); scene.subscribe("anew"); scene.hold(5); }, [50, 50]],
  ["and once more when the plan is entered again", (scene) => { scene.subscribe("anew"); scene.hold(5); scene.subscribe("a"); scene.subscribe("anew"); scene.hold(5); }, [50, 50]],
  ["a block is no usage", (scene) => scene.subscribe("full"), []],
  ["a quota of 0", (scene) => scene.subscribe("none"), []],
  ["fractions of a percent", (scene) => { scene.subscribe("fine"); scene.hold(1); scene.hold(1); }, [33.3]],
];

for (const [what, act, fired] of STEPS) {
  Deno.test(`alerts: ${what}`, () => {
    const scene = sceneOn("a");
    act(scene);
    assert.deepEqual(firedOf(scene), fired);
  });
}

const PACED = [
  alertingPlan("a", { alerts: ["pace"] }),
  alertingPlan("wide", { quota: 30, rank: 2, alerts: ["pace"] }),
  alertingPlan("both", { rank: 3, alerts: ["pace", 30] }),
  alertingPlan("anew", { onPlanChange: "reset", rank: 4, alerts: ["pace"] }),
  alertingPlan("full", { onPlanChange: "block", rank: 5, alerts: ["pace"] }),
];

/** Of the 31 days of March, 7.75 are a quarter. */
function march(day: number): string {
  return new Date(Date.UTC(2026, 2, 1) + day * 86_400_000).toISOString();
}

// deno-fmt-ignore: a row a case, with the projected days of the messages, in days since 1 March
const PACES: readonly [string, (scene: Scene) => void, number[]][] = [
  ["before a quarter has passed", (scene) => scene.at(march(7.74)).hold(9), []],
  ["at exactly a quarter", (scene) => scene.at(march(7.75)).hold(4), [19.375]],
  ["a pace that ends with the window", (scene) => scene.at(march(15.5)).hold(5), []],
  ["a pace that ends right before it", (scene) => scene.at(march(15.4)).hold(5), [30.8]],
  ["a day that is no whole number of milliseconds, rounded down", (scene) => scene.at(march(9.5)).hold(7), [1172571428 / 86_400_000]],
  ["a count at its quota", (scene) => scene.at(march(15)).hold(10), []],
  ["right below it", (scene) => scene.at(march(15)).track(9.999999), [15.000002]],
  ["past it", (scene) => scene.at(march(15)).commit(scene.hold(4), { actual: { count: 12 } }), []],
  ["a rise below the pace, then one above it", (scene) => { scene.at(march(20)).hold(6); scene.hold(1); }, [28.571428]],
  ["once a window", (scene) => { scene.at(march(15)).hold(6); scene.hold(1); scene.at(march(45)).hold(6); }, [25, 31 + 14 * 10 / 6]],
  ["nothing without a rise", (scene) => { scene.at(march(1)).track(6); scene.at(march(15)).ask("settle", {}); scene.reserve(5); }, []],
  ["a lapsed hold arms nothing", (scene) => { scene.at(march(15)).hold(6, { ttlMs: 10_000 }); scene.wait(60).hold(6); }, [25]],
  ["a commit into a window that is over", (scene) => { const id = scene.at(march(30.999)).hold(4); scene.at(march(31.001)).commit(id, { actual: { count: 9 } }); }, []],
  ["a raised quota that the pace still uses up arms nothing", (scene) => { scene.at(march(15)).hold(8); scene.subscribe("a", { customLimits: { g: 12_000_000n } }); scene.hold(1); }, [18.75]],
  ["a raised quota that lasts arms it", (scene) => { scene.at(march(15)).hold(6); scene.subscribe("a", { customLimits: { g: 20_000_000n } }); scene.hold(4); }, [25, 30]],
  ["a lowered quota without a rise", (scene) => { scene.at(march(15)).hold(4); scene.subscribe("a", { customLimits: { g: 6_000_000n } }); }, []],
  ["a mark that is carried", (scene) => { scene.at(march(15)).hold(6); scene.subscribe("both"); scene.hold(1); }, [25]],
  ["a carried count under a larger quota", (scene) => { scene.at(march(15)).hold(9); scene.subscribe("wide"); scene.hold(6); }, [150 / 9, 30]],
  ["a carried count is a rise", (scene) => { scene.subscribe("wide"); scene.at(march(15)).hold(7); scene.subscribe("a"); }, [21.428571]],
  ["a reset starts afresh", (scene) => { scene.at(march(15)).hold(6); scene.subscribe("anew"); scene.hold(6); }, [25, 25]],
  ["a block is no usage", (scene) => { scene.at(march(15)).hold(6); scene.subscribe("full"); }, [25]],
];

for (const [what, act, days] of PACES) {
  Deno.test(`pace: ${what}`, () => {
    const scene = new Scene(PACED, march(0), [], { listensTo: ["usage.pace_exceeded"] });
    scene.subscribe("a");
    act(scene);
    const projected = scene.messages.map(({ body }) => Date.parse(JSON.parse(body).data.projectedAt));
    const rounded = days.map((day) => Math.floor(Date.parse(march(day)) / 1000));
    assert.deepEqual(projected.map((at) => Math.floor(at / 1000)), rounded);
  });
}

Deno.test("a message of a pace follows those of thresholds, and says when the quota is used up", () => {
  const scene = new Scene(PACED, march(10), [], { listensTo: ["usage.*"] });
  scene.subscribe("both");
  scene.hold(7);
  const [reached, paced] = scene.messages.map(({ body }) => JSON.parse(body));
  assert.equal(reached.data.thresholdPercent, 30);
  assert.deepEqual(paced, {
    type: "usage.pace_exceeded",
    timestamp: march(10),
    data: {
      appId: "app_1",
      mode: "live",
      userId: "u",
      groupId: "g",
      label: "g",
      unit: "count",
      projectedAt: "2026-03-15T06:51:25.714Z",
      quota: 10,
      current: 7,
      period: { start: "2026-03-01T00:00:00.000Z", end: "2026-04-01T00:00:00.000Z" },
    },
  });
  assert.deepEqual([...scene.state.counters.values()].map(({ alerted }) => alerted), [[30, 0]]);
});

Deno.test("a threshold that the catalog moved below the count fires when the count next rises, and not before", () => {
  const scene = sceneOn("a");
  const first = scene.hold(3);
  scene.hold(1);
  scene.reprice([alertingPlan("a", { quota: 5 })], {});
  scene.ask("settle", {});
  scene.release(first);
  assert.deepEqual(firedOf(scene), []);
  scene.hold(2);
  assert.deepEqual(firedOf(scene), [50]);
});

Deno.test("a quota that the catalog raised arms what the count is below of", () => {
  for (const [quota, fired] of [[20, [50, 80]], [16, [50, 80]], [11, []]] as const) {
    const scene = sceneOn("a");
    scene.hold(9);
    const since = scene.messages.length;
    scene.reprice([alertingPlan("a", { quota })], {});
    scene.hold(quota * 0.8 - 9 > 0 ? quota * 0.8 - 9 : 1);
    assert.deepEqual(firedOf(scene, since), quota === 16 ? [80] : fired, `${quota}`);
  }
});

Deno.test("it makes no difference whether a sweep settled a lapsed hold before", () => {
  const run = (hasSweep: boolean) => {
    const scene = sceneOn("a");
    scene.hold(3);
    scene.hold(1, { ttlMs: 10_000 });
    scene.reprice([alertingPlan("a", { quota: 8 })], {});
    scene.wait(60);
    if (hasSweep) scene.ask("settle", {});
    scene.hold(1);
    return firedOf(scene);
  };
  assert.deepEqual(run(false), [50]);
  assert.deepEqual(run(true), [50]);
});

Deno.test("the end of a subscription fires what the next plan reaches, at the time of the end", () => {
  const scene = sceneOn("a");
  scene.pay("wide", "x", { endsAt: scene.now + 60_000 });
  scene.hold(9, { ttlMs: 600_000 });
  assert.deepEqual(firedOf(scene), []);
  scene.wait(120).ask("settle", {});
  assert.deepEqual(firedOf(scene), [50, 80]);
  assert.equal(JSON.parse(scene.messages[0]?.body ?? "").timestamp, "2026-03-10T12:01:00.000Z");
});

Deno.test("a merge fires what both users reach together, and nothing that either had fired", () => {
  const one = sceneOn("a");
  const other = new Scene(PLANS, "", [], { key: 8, id: "v", beside: one, listensTo: ["usage.*"] });
  other.subscribe("a");
  one.hold(5);
  other.hold(4);
  one.mergeInto(other);
  assert.deepEqual(firedOf(one), [50]);
  assert.deepEqual(firedOf(other), [80]);
  other.hold(1);
  assert.deepEqual(firedOf(other), [80, 100]);
});

Deno.test("a message of a threshold has the quota and the counter", () => {
  const scene = sceneOn("a");
  scene.hold(6);
  assert.deepEqual(JSON.parse(scene.messages[0]?.body ?? "").data, {
    appId: "app_1",
    mode: "live",
    userId: "u",
    groupId: "g",
    label: "g",
    unit: "count",
    thresholdPercent: 50,
    quota: 10,
    current: 6,
    period: { start: "2026-03-01T00:00:00.000Z", end: "2026-04-01T00:00:00.000Z" },
  });
});

Deno.test("thresholds fire also without a webhook", () => {
  const scene = new Scene(PLANS, "2026-03-10T12:00:00.000Z");
  scene.subscribe("a");
  scene.hold(5);
  assert.deepEqual([...scene.state.counters.values()].map(({ alerted }) => alerted), [[50]]);
  assert.deepEqual(scene.messages, []);
});
