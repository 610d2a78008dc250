// More open holds than a turn may rewrite: calls that would move them are refused until fewer are open. What falls due
// goes on without them, and gives nothing fresh.

import assert from "node:assert/strict";
import { DUE_LIMITS } from "../../../src/domain/metering/due.ts";
import { merge } from "../../../src/domain/merging/merge.ts";
import { REWRITE_LIMITS } from "../../../src/domain/state/open_holds.ts";
import { changedLimits, limitsOfFile } from "../../support/limits.ts";
import { NO_HISTORY } from "../../../src/domain/merging/merge_report.ts";
import { countedIds } from "../decide_system.ts";
import { groupOf, packOf, planOf, Scene, subscription } from "../scene.ts";

limitsOfFile(REWRITE_LIMITS, { holdsMax: 2 });

const HOUR_S = 3600;

const PLANS = [
  planOf("low", { g: 10 }),
  planOf("top", { g: 12 }, { rank: 2 }),
  planOf("fresh", { g: 10 }, { rank: 2, onPlanChange: "reset" }),
  planOf("paid", { g: 0 }, { includes: [{ packId: "a", quantity: 10 }] }),
  planOf("more", { g: 0 }, { rank: 2, includes: [{ packId: "a", quantity: 12 }] }),
];

/** A user of a plan with three open holds of two. The model moves any number. */
function withHolds(plan: string, plans = PLANS): { scene: Scene; holds: readonly string[] } {
  const scene = new Scene(plans, undefined, [packOf("a")], { isCompared: false });
  scene.subscribe(plan);
  return { scene, holds: [1, 2, 3].map(() => scene.hold(2, { ttlMs: 3 * HOUR_S * 1000 })) };
}

function schedule(scene: Scene, plan: string): void {
  const at = scene.now + HOUR_S * 1000;
  scene.ask("schedule", { provider: null, externalId: null, change: { plan, at } });
}

for (const [from, to] of [["low", "top"], ["paid", "more"]] as const) {
  Deno.test(`a call that would move too many holds from ${from} is refused, and works with fewer`, () => {
    const { scene, holds } = withHolds(from);
    const { result, changes } = scene.do("subscribe", subscription(to));
    assert.deepEqual([result.ok, changes.length], [false, 0]);
    assert.equal(result.ok ? "" : result.refusal.code, "unavailable");
    scene.release(holds[0] as string);
    scene.subscribe(to);
    scene.release(holds[1] as string);
    // Of 12: one hold of 2.
    assert.equal(scene.reserve(11), null);
    assert.notEqual(scene.reserve(10), null);
  });

  Deno.test(`a change from ${from} that falls due leaves too many holds, which stay used`, () => {
    const { scene, holds } = withHolds(from);
    schedule(scene, to);
    scene.wait(HOUR_S);
    assert.equal(scene.reserve(7), null);
    for (const id of holds) assert.equal(scene.release(id), "ok");
    assert.equal(scene.reserve(7), null);
    scene.hold(6);
    assert.equal(scene.code("subscribe", subscription(from)), "ok");
    // The plan left has them back, and what was used since counts in it.
    assert.equal(scene.reserve(1), null);
  });
}

Deno.test("holds at a concurrency limit follow however many they are", () => {
  const limits = [groupOf("g", 100), { ...groupOf("open", 7), period: { type: "concurrent" as const } }];
  const plans = [planOf("low", {}, { limits }), planOf("top", {}, { rank: 2, limits })];
  const { scene, holds } = withHolds("low", plans);
  schedule(scene, "top");
  scene.wait(HOUR_S);
  assert.equal(scene.reserve(2), null);
  scene.release(holds[0] as string);
  assert.notEqual(scene.reserve(3), null);
});

Deno.test("a counter with too many open holds is not set anew", () => {
  const { scene, holds } = withHolds("fresh");
  schedule(scene, "top");
  scene.wait(HOUR_S).ask("settle", {});
  assert.equal(scene.code("subscribe", subscription("fresh")), "unavailable");
  schedule(scene, "fresh");
  scene.wait(HOUR_S);
  scene.track(4);
  assert.equal(scene.reserve(1), null);
  for (const id of holds) scene.release(id);
  assert.notEqual(scene.reserve(6), null);
  assert.equal(scene.reserve(1), null);
});

Deno.test("a merge is refused where too many holds would move, on either side", () => {
  const codeOf = (from: Scene, to: Scene) => {
    const input = {
      isDryRun: false,
      mode: "live",
      history: NO_HISTORY,
      analytics: "linked",
      tree: null,
    } as const;
    const context = {
      now: to.now,
      catalog: to.catalog,
      ids: countedIds(1),
      balancesLeft: null,
      outbox: null,
    };
    const { result } = merge(from.state, to.state, input, context);
    return result.ok ? "ok" : result.refusal.code;
  };
  const { scene: many } = withHolds("low");
  const other = (plan: string) => {
    const scene = new Scene(PLANS, undefined, [], { isCompared: false, key: 8, id: "v", beside: many });
    scene.subscribe(plan);
    return scene;
  };
  assert.equal(codeOf(many, other("low")), "unavailable");
  assert.equal(codeOf(other("top"), many), "unavailable");
  // None of them moves.
  assert.equal(codeOf(other("low"), many), "ok");
});

Deno.test("balances that expire together are settled by several turns, and none can be spent meanwhile", () => {
  using _limits = changedLimits(DUE_LIMITS, { balancesMax: 2 });
  const scene = new Scene(PLANS, undefined, [packOf("a")], {
    isCompared: false,
    listensTo: ["credits.expired"],
  });
  scene.subscribe("low");
  for (let each = 0; each < 5; each++) scene.fund("a", 1, { expiresAt: scene.now + 1000 });
  scene.wait(1);
  const expired: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    assert.equal(scene.reserve(11), null);
    expired.push(scene.messages.length);
  }
  assert.deepEqual([...expired, scene.state.user.dueAt], [2, 4, 5, 5, null]);
});
