// The fold: what was recorded of a user, decided anew. Under the same catalog it counts what was counted.

import assert from "node:assert/strict";
import { compileCatalog, type PlanDocument } from "../../src/domain/catalog/catalog.ts";
import { Fold } from "../../src/domain/fold.ts";
import { numberOf } from "../../src/domain/values/amount.ts";
import { groupOf, planOf, Scene } from "./scene.ts";

const SESSION = { ...groupOf("g", 10), period: { type: "session" as const, seconds: 3600 } };

function plansOf(quota: number): PlanDocument[] {
  return [
    planOf("a", { g: quota }),
    planOf("b", { g: 2 * quota }, { rank: 2 }),
    planOf("anew", { g: quota }, { rank: 3, onPlanChange: "reset" }),
    planOf("full", { g: quota }, { rank: 4, onPlanChange: "block" }),
    planOf("session", {}, { rank: 5, limits: [SESSION] }),
    planOf("selling", {}, { rank: 6, limits: [{ ...groupOf("g", 3), overage: { max: 4 } }] }),
  ];
}

/** Folds what a scene recorded under a catalog: the counters, and the groups that refuse each event. */
function foldOf(scene: Scene, from: number, plans = plansOf(10)) {
  const { user, subscriptions, balances } = scene.state;
  const history = scene.changes.flatMap((each) => each.table === "subscription_events" ? [each.row] : []);
  const granted = [...balances.values()].map((row) => ({ ...row, remaining: row.initial }));
  const known = { user, subscriptions: [...subscriptions.values()], history, balances: granted };
  const fold = new Fold(compileCatalog({ plans }, 1), [known], from);
  const refused = scene.changes.flatMap((each) => {
    if (each.table !== "events") return [];
    const { userKey, type, metadata, createdAt, work, matchStatus } = each.row;
    const isReleased = matchStatus === "released";
    const folded = fold.take({ userKey, type, metadata, createdAt, work, isReleased });
    return folded?.isRefused === true ? [folded.groupIds] : [];
  });
  return { counters: countsOf(fold.counters()), refused };
}

interface Counted {
  readonly groupId: string;
  readonly windowStart: number;
  readonly count: bigint;
}

function countsOf(counters: Iterable<Counted>) {
  return [...counters].filter(({ count }) => count > 0n)
    .map(({ groupId, windowStart, count }) => [groupId, windowStart, numberOf(count)])
    .toSorted((one, other) => JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);
}

const START = "2026-03-10T12:00:00.000Z";

// deno-fmt-ignore: a row a case
const SAME: readonly [string, (scene: Scene) => void][] = [
  ["tracks up to a limit", (scene) => { scene.subscribe("a"); for (const count of [4, 5, 3, 1, 1]) scene.track(count); }],
  ["a commit past the quota", (scene) => { scene.subscribe("a"); scene.track(8); scene.commit(scene.hold(2), { actual: { count: 7 } }); scene.track(1); }],
  ["a commit of less than was held", (scene) => { scene.subscribe("a"); scene.commit(scene.hold(9), { actual: { count: 2 } }); scene.track(8); }],
  ["a commit in the window of its reserve", (scene) => { scene.subscribe("a"); const id = scene.at("2026-03-31T23:59:00.000Z").hold(4); scene.at("2026-04-01T00:01:00.000Z").commit(id); scene.track(1); }],
  ["a release", (scene) => { scene.subscribe("a"); scene.release(scene.hold(9)); scene.wait(1).track(3); }],
  ["a session that a released reservation began", (scene) => { scene.subscribe("session"); scene.release(scene.hold(1)); scene.wait(60).track(3); }],
  ["usage that a plan change carries", (scene) => { scene.subscribe("a"); scene.track(7); scene.wait(1).subscribe("b"); scene.wait(1).track(9); }],
  ["usage that a plan change resets", (scene) => { scene.subscribe("a"); scene.track(7); scene.wait(1).subscribe("anew"); scene.wait(1).track(9); }],
  ["a plan that blocks what is left", (scene) => { scene.subscribe("a"); scene.track(7); scene.wait(1).subscribe("full"); scene.wait(1).track(1); }],
  ["a plan that ends", (scene) => { scene.subscribe("a"); scene.pay("b", "x", { endsAt: scene.now + 60_000 }); scene.wait(1).track(15); scene.wait(120).track(1); }],
  ["a subscription that comes back", (scene) => { scene.subscribe("a"); scene.track(5); scene.wait(1).cancel(); scene.wait(1).subscribe("a"); scene.wait(1).track(4); }],
  ["credits that pay what the plan lacks", (scene) => { scene.subscribe("a"); scene.wait(1).fund("wallet", 5); scene.wait(1).track(8); scene.track(4); scene.track(4); }],
  ["overage up to its most", (scene) => { scene.subscribe("selling"); for (const count of [2, 3, 4, 2]) scene.track(count); }],
];

for (const [what, act] of SAME) {
  Deno.test(`fold: ${what} counts as it did`, () => {
    const scene = new Scene(plansOf(10), START);
    act(scene);
    const { counters } = foldOf(scene, Date.parse(START));
    assert.deepEqual(counters, countsOf(scene.state.counters.values()));
  });
}

// deno-fmt-ignore: a row a case
const OTHER: readonly [string, (scene: Scene) => void, number, number][] = [
  ["tracks past a smaller quota", (scene) => [2, 2, 2].forEach((count) => scene.track(count)), 4, 1],
  ["what was blocked passes under a larger one", (scene) => { scene.track(9); scene.track(9); }, 20, 0],
  ["a commit whose reserve would have passed", (scene) => { scene.track(2); scene.commit(scene.hold(2), { actual: { count: 6 } }); }, 5, 0],
  ["a commit whose reserve would not have passed", (scene) => { scene.track(4); scene.commit(scene.hold(2), { actual: { count: 6 } }); }, 5, 1],
  ["a released reservation is no call", (scene) => { scene.track(4); scene.release(scene.hold(5)); }, 5, 0],
];

for (const [what, act, quota, expected] of OTHER) {
  Deno.test(`fold under another catalog: ${what}`, () => {
    const scene = new Scene(plansOf(10), START);
    scene.subscribe("a");
    act(scene);
    const { refused } = foldOf(scene, Date.parse(START), plansOf(quota));
    assert.deepEqual(refused, Array.from({ length: expected }, () => ["g"]));
  });
}

Deno.test("a fold that begins later has the plan of then, without the usage before", () => {
  const scene = new Scene(plansOf(10), START);
  scene.subscribe("a");
  scene.track(9);
  const from = scene.wait(60).now;
  scene.changes.splice(0, scene.changes.length, ...scene.changes.filter(({ table }) => table !== "events"));
  scene.wait(60).track(1);
  scene.wait(60).subscribe("b");
  scene.wait(60).track(5);
  const { counters } = foldOf(scene, from);
  assert.deepEqual(counters.map(([, , count]) => count), [1, 6]);
});
