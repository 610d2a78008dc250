// A group that one catalog takes out and a later one puts back under the same id as another kind, or with other seconds.
// It limits from then on as a new group would. All windows begin at one time here, where counters of two kinds could meet.

import assert from "node:assert/strict";
import {
  type CatalogDocument,
  compileCatalog,
  type GroupPeriodDocument,
} from "../../../src/domain/catalog/catalog.ts";
import { groupOf, planOf, Scene } from "../scene.ts";

const QUOTA = 3;
const SECONDS = 3_600;
const KINDS: Readonly<Record<string, GroupPeriodDocument>> = {
  hourly: { type: "hourly", anchor: "calendar" },
  lifetime: { type: "lifetime", anchor: "calendar" },
  "a session of two hours": { type: "session", seconds: 2 * SECONDS },
  "a session of a minute": { type: "session", seconds: 60 },
  "an hour's rate": { type: "rolling", seconds: SECONDS },
  "a minute's rate": { type: "rolling", seconds: 60 },
  "at once": { type: "concurrent" },
};

const plansOf = (...periods: readonly GroupPeriodDocument[]): CatalogDocument => ({
  plans: [planOf("p", {}, {
    limits: [groupOf("all", 1e6), ...periods.map((period) => ({ ...groupOf("g", QUOTA), period }))],
  })],
});

function sceneOf(period: GroupPeriodDocument, beside?: Scene): Scene {
  const { plans = [] } = plansOf(period);
  const more = beside === undefined ? {} : { beside, key: 8, id: "v" };
  const scene = new Scene(plans, "2026-03-10T12:00:00.000Z", [], { isCompared: false, ...more });
  scene.subscribe("p");
  return scene;
}

/** Takes the group out and puts it back. */
function putBack(scene: Scene, period: GroupPeriodDocument): void {
  for (const document of [plansOf(), plansOf(period)]) {
    scene.catalog = compileCatalog(document, scene.catalog.version + 1);
    scene.ask("settle", {});
  }
}

/** How many more calls the group allows now; they stay in flight. */
function room(scene: Scene): number {
  let calls = 0;
  while (calls <= QUOTA && scene.reserve(1, { ttlMs: 1e9 }) !== null) calls += 1;
  return calls;
}

/** Groups of one type go on; a calendar window has what was counted since its start. Nothing else is left. */
function goesOn({ type: from }: GroupPeriodDocument, { type: to }: GroupPeriodDocument): boolean {
  if (from === "concurrent" || to === "concurrent") return false;
  return from === to || to === "hourly" || to === "lifetime";
}

for (const [before, from] of Object.entries(KINDS)) {
  for (const [after, to] of Object.entries(KINDS)) {
    if (before === after) continue;
    Deno.test(`from ${before} to ${after}: what is put back limits from then on`, () => {
      for (const waited of [0, 1, 900]) {
        const scene = sceneOf(from);
        scene.track(1);
        const held = scene.hold(1, { ttlMs: 1e9 });
        putBack(scene, to);
        scene.now += waited;
        const [first, second] = goesOn(from, to) ? [1, 1] : [QUOTA, 0];
        assert.equal(room(scene), first, `after ${waited} ms`);
        scene.release(held);
        assert.equal(room(scene), second, "what was held before leaves no more room than it took");
        if (to.type === "rolling") {
          scene.now += (scene.canUse(1).retryAfterMs ?? NaN) - 1;
          assert.equal(room(scene), 0, "a moment before");
          scene.now += 1;
          assert.ok(room(scene) > 0, "when a slot has left");
        }
        if (to.seconds !== 60) continue;
        assert.equal(room(scene.wait(62)), QUOTA, "it lasts as long as the group says");
        putBack(scene, from);
        assert.ok(room(scene) <= QUOTA);
      }
    });
  }
}

Deno.test("a calendar window takes over the counter of a slot that began with it", () => {
  for (const call of ["track", "hold"] as const) {
    const scene = sceneOf({ type: "rolling", seconds: 60 });
    scene.track(1);
    putBack(scene, { type: "hourly", anchor: "calendar" });
    scene[call](1);
    const [counter, ...more] = scene.state.counters.values().filter(({ groupId }) => groupId === "g");
    assert.deepEqual([counter?.kind, more], [undefined, []], "sweeps remove slots");
  }
});

Deno.test("a merge adds what a group counts to what the other user had when it was of another kind", () => {
  for (const [before, from] of Object.entries(KINDS)) {
    for (const [after, to] of Object.entries(KINDS)) {
      if (to.type === "concurrent") continue;
      const other = sceneOf(from);
      const scene = sceneOf(from, other);
      other.track(1);
      for (const each of [scene, other]) putBack(each, to);
      scene.track(2);
      scene.mergeInto(other);
      assert.ok(room(other) <= 1, `from ${before} to ${after}`);
    }
  }
});

Deno.test("a merge leaves a session aside that ran before the group was put back as another kind", () => {
  const { hourly = null, "a session of two hours": session = null } = KINDS;
  assert.ok(hourly !== null && session !== null);
  const to = sceneOf(session);
  const from = sceneOf(session, to);
  for (const scene of [from, to]) {
    scene.now += 1;
    scene.track(1);
    putBack(scene, hourly);
    scene.track(1);
  }
  from.mergeInto(to);
  assert.deepEqual([to.counts().g, room(to)], [2, 1]);
});
