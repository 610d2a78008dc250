// The rules of runs: what counts in which unit, what is left for a call, who refuses it, and that holds give back what they
// took. The model checks the answers of the same calls (`tests/model/runs.ts`).

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import type { Commands } from "../../../src/domain/command.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { PACKS, planOf, Scene, type Size, sizeOf } from "../scene.ts";

type Limit = readonly [unit: Unit, quota: number, event?: string];

const PLANS = [planOf("a", { g: 100 })];

function sceneOf(): Scene {
  const scene = new Scene(PLANS, undefined, PACKS);
  scene.subscribe("a");
  return scene;
}

function open(scene: Scene, limits: readonly Limit[], parentRunId: string | null = null): string {
  return scene.ask("openRun", {
    limits: limits.map(([unit, quota, event = "*"]) => ({ unit, event, quota: amountOf(quota) })),
    name: null,
    ttlMs: 3_600_000,
    parentRunId,
    metadata: null,
  }).run.id;
}

const asked = (size: Size, runId: string | null, event = "x.make"): Commands["reserve"]["input"] => {
  return { event, metadata: null, size: sizeOf(size), ttlMs: null, prompt: null, runId };
};

/** The counts and the held parts of a run. */
function countsOf(scene: Scene, runId: string): number[][] {
  const run = scene.state.runs.get(runId);
  return run?.limits.map(({ count, held }) => [numberOf(count), numberOf(held)]) ?? [];
}

/** A limit, a call, and what the run says of it: its count after a reserve, or "refused". */
const CALLS: readonly (readonly [name: string, limit: Limit, size: Size, expected: number | "refused"])[] = [
  ["counts calls", ["count", 5], { count: 3 }, 3],
  ["has room for exactly its quota", ["count", 5], { count: 5 }, 5],
  ["has no room for more", ["count", 5], { count: 5.000001 }, "refused"],
  [
    "counts tokens, though the plan counts none",
    ["tokens", 1000],
    { inputTokens: 700, maxOutputTokens: 300 },
    1000,
  ],
  ["counts cents that the caller names", ["cents", 50], { inputCostCents: 50 }, 50],
  ["counts seconds", ["seconds", 9], { quantity: 10 }, "refused"],
  ["counts only events that its pattern covers", ["count", 0, "y.*"], { count: 9 }, 0],
  ["passes a need of 0 below its quota", ["tokens", 1], {}, 0],
  ["refuses a need of 0 when it is full", ["tokens", 0], {}, "refused"],
];

for (const [name, limit, size, expected] of CALLS) {
  Deno.test(`a limit of a run ${name}`, () => {
    const scene = sceneOf();
    const runId = open(scene, [limit]);
    const { allowed, reasons, refusedBy, matched } = scene.ask("reserve", asked(size, runId));
    assert.equal(matched, true, "whether an event is matched does not depend on runs");
    if (expected === "refused") {
      assert.deepEqual([allowed, reasons, refusedBy], [false, ["run_limit_reached"], [runId]]);
      assert.equal(scene.state.reservations.get("none"), undefined);
      assert.deepEqual(countsOf(scene, runId), [[0, 0]]);
    } else assert.deepEqual([allowed, countsOf(scene, runId)], [true, [[expected, expected]]]);
  });
}

Deno.test("a call that credits pay counts whole in its run", () => {
  const scene = new Scene(PLANS, undefined, PACKS);
  scene.grant("first", 50);
  const runId = open(scene, [["count", 9]]);
  assert.equal(scene.ask("reserve", asked({ count: 7 }, runId)).allowed, true);
  assert.deepEqual(countsOf(scene, runId), [[7, 7]]);
});

Deno.test("an event that does not count for plan or credits does not count in its run", () => {
  const scene = sceneOf();
  const runId = open(scene, [["count", 9]]);
  const { matchStatus } = scene.ask("track", { ...asked({ count: 1 }, runId, "z"), costCents: null });
  assert.equal(matchStatus, "unmatched");
  assert.deepEqual(countsOf(scene, runId), [[0, 0]]);
});

Deno.test("reasons of the plan and of runs are listed once, in one order", () => {
  const scene = sceneOf();
  const outer = open(scene, [["count", 5]]);
  const inner = open(scene, [["count", 5]], outer);
  const { reasons, refusedBy } = scene.ask("reserve", asked({ count: 101 }, inner));
  assert.deepEqual(reasons, ["limit_reached", "run_limit_reached"]);
  assert.deepEqual(refusedBy, ["u", inner, outer]);
});

const amount = fc.integer({ min: 1, max: 40 });
const calls = fc.array(fc.tuple(amount, fc.constantFrom("release", "lapse", "keep", "commit")), {
  maxLength: 8,
});

Deno.test("a release or a lapse gives back to every run and counter what the reserve took", () => {
  fc.assert(fc.property(calls, amount, (list, count) => {
    const scene = sceneOf();
    const outer = open(scene, [["count", 60], ["tokens", 99]]);
    const inner = open(scene, [["count", 50, "x.*"]], outer);
    for (const [size, end] of list) {
      const { hold } = scene.ask("reserve", asked({ count: size }, inner));
      if (hold !== null && end === "commit") scene.commit(hold.reservationId);
    }
    const before = [countsOf(scene, inner), countsOf(scene, outer), scene.canUse(1).groups];
    for (const end of ["release", "lapse"]) {
      const { hold } = scene.ask("reserve", { ...asked({ count }, inner), ttlMs: 10_000 });
      if (hold === null) continue;
      if (end === "release") scene.release(hold.reservationId);
      else scene.wait(10);
      scene.ask("credits", { event: null });
      assert.deepEqual([countsOf(scene, inner), countsOf(scene, outer), scene.canUse(1).groups], before);
    }
  }));
});

Deno.test("can-use and explain say what reserve does, and a run never allows more", () => {
  fc.assert(fc.property(calls, amount, fc.integer({ min: 0, max: 120 }), (list, count, quota) => {
    const scene = sceneOf();
    const runId = open(scene, [["count", quota]]);
    for (const [size] of list) scene.ask("reserve", asked({ count: size }, runId));
    const { event, metadata, size } = asked({ count }, runId);
    const check = { event, metadata, size, runId };
    const can = scene.ask("canUse", check);
    const why = scene.ask("explain", check);
    const without = scene.ask("canUse", { ...check, runId: null });
    const done = scene.ask("reserve", asked({ count }, runId));
    for (const answer of [can, why]) {
      assert.deepEqual(
        [answer.allowed, answer.reasons, answer.refusedBy],
        [done.allowed, done.reasons, done.refusedBy],
      );
    }
    if (!without.allowed) assert.equal(done.allowed, false);
    const [[counted = 0] = []] = countsOf(scene, runId);
    assert.ok(counted <= quota, "no reserve takes a run past its quota");
  }));
});
