// What a plan change under `carry` does to counters and open holds: nothing is fresh after a round trip, and an open
// hold corrects every counter that contains it. Each row is a story of one user, with counts by plan at its end.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { numberOf } from "../../../src/domain/values/amount.ts";
import { type Counter, shownCount } from "../../../src/domain/state/counter.ts";
import { eventsIn, groupOf, PACKS, planOf, Scene } from "../scene.ts";

/** One group of the same id in each, so that all pair; the plan of a day shows what a window that rolled over does. */
const PLANS = [
  planOf("free", { g: 100 }),
  planOf("pro", { g: 100 }, { rank: 2 }),
  planOf("day", { g: 100 }, { rank: 3, period: { type: "daily", anchor: "calendar" } }),
  planOf("fresh", { g: 100 }, { onPlanChange: "reset" }),
  planOf("full", { g: 100 }, { onPlanChange: "block" }),
  planOf("ever", { g: 100 }, { period: { type: "lifetime", anchor: "subscription_start" } }),
  planOf("once", { g: 100 }, { period: { type: "lifetime", anchor: "calendar" } }),
];

type Plan = "free" | "pro" | "day" | "fresh" | "full" | "ever" | "once";

type Step =
  | { readonly enter: Plan }
  | { readonly use: number; readonly cost?: number }
  | { readonly hold: number }
  | { readonly commit: number; readonly as?: number }
  | { readonly release: number }
  | { readonly wait: number };

const HOLD_SECONDS = 600;
const DAY_SECONDS = 86_400;

/** A user that takes such steps. Holds are named by their place. */
class Story {
  readonly scene: Scene;
  readonly holds: string[] = [];

  constructor(isCompared = true) {
    this.scene = new Scene(PLANS, undefined, [], { isCompared });
  }

  take(step: Step): void {
    const { scene } = this;
    const refOf = (place: number) => this.holds[place % Math.max(this.holds.length, 1)] ?? "rsv_none";
    if ("enter" in step) scene.subscribe(step.enter);
    else if ("use" in step) scene.track(step.use, { costCents: step.cost ?? 0 });
    else if ("hold" in step) {
      const id = scene.reserve(step.hold, { ttlMs: HOLD_SECONDS * 1000 });
      if (id !== null) this.holds.push(id);
    } else if ("commit" in step) {
      scene.commitCode(refOf(step.commit), step.as === undefined ? {} : { actual: { count: step.as } });
    } else if ("release" in step) scene.release(refOf(step.release));
    else scene.wait(step.wait).ask("settle", {});
  }

  /** The counts that are not 0, by plan; of several windows of a plan the latest. */
  counts(member: "count" | "costCents" = "count"): Partial<Record<string, number>> {
    const rows = [...this.scene.state.counters.values()].sort((a, b) => a.windowStart - b.windowStart);
    const valueOf = (row: Counter) => numberOf(member === "count" ? shownCount(row) : row.costCents);
    const counts = Object.fromEntries(rows.map((row) => [row.planId, valueOf(row)]));
    return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0));
  }
}

// deno-fmt-ignore: a row a story
const STORIES: readonly (readonly [name: string, steps: readonly Step[], counts: Record<string, number>])[] = [
  ["the counter left behind keeps its count", [{ enter: "free" }, { use: 5 }, { enter: "pro" }, { use: 2 }], { free: 5, pro: 7 }],
  ["a return finds the larger", [{ enter: "free" }, { use: 5 }, { enter: "pro" }, { use: 2 }, { enter: "free" }], { free: 7, pro: 7 }],
  ["a return finds its own count, though the other plan's window has rolled over", [{ enter: "free" }, { use: 5 }, { enter: "day" }, { wait: DAY_SECONDS }, { use: 1 }, { enter: "free" }], { free: 5, day: 1 }],
  ["a plan left for a plan that starts at 0 is found again unchanged", [{ enter: "day" }, { use: 5 }, { enter: "fresh" }, { enter: "day" }, { use: 1 }], { day: 6 }],
  ["a released hold corrects the counter it left and the one it followed to", [{ enter: "free" }, { use: 1 }, { hold: 4 }, { enter: "pro" }, { release: 0 }], { free: 1, pro: 1 }],
  ["so does a hold that lapses", [{ enter: "free" }, { use: 1 }, { hold: 4 }, { enter: "pro" }, { wait: HOLD_SECONDS }], { free: 1, pro: 1 }],
  ["so does a commit of less, and of more", [{ enter: "free" }, { hold: 4 }, { hold: 4 }, { enter: "pro" }, { commit: 0, as: 1 }, { commit: 1, as: 6 }], { free: 7, pro: 7 }],
  ["a late commit charges again what the lapse gave back, in each of them", [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { wait: HOLD_SECONDS }, { commit: 0, as: 3 }], { free: 3, pro: 3 }],
  ["a late commit after the return charges the plan in force too", [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { wait: HOLD_SECONDS }, { enter: "free" }, { use: 1 }, { commit: 0 }], { free: 5, pro: 4 }],
  ["a late commit charges nothing of a plan that was entered after the lapse", [{ enter: "free" }, { hold: 4 }, { wait: HOLD_SECONDS }, { enter: "pro" }, { commit: 0, as: 8 }], { free: 8 }],
  ["a hold that came back is a hold there again, and corrects the other one", [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { use: 1 }, { enter: "free" }, { release: 0 }], { free: 1, pro: 1 }],
  ["a hold over three plans corrects all three, each once", [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { enter: "day" }, { enter: "free" }, { enter: "pro" }, { release: 0 }], {}],
  ["a counter that was lowered past what the hold took stays at 0", [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { commit: 0, as: 0 }, { enter: "free" }], {}],
  ["a hold does not lower a counter that was reset after it had left", [{ enter: "fresh" }, { hold: 4 }, { enter: "pro" }, { enter: "fresh" }, { use: 3 }, { release: 0 }], { fresh: 3 }],
  ["nor one that it was on all the time", [{ enter: "fresh" }, { hold: 4 }, { enter: "full" }, { enter: "fresh" }, { use: 3 }, { release: 0 }], { full: 100, fresh: 3 }],
  ["also where it lapses", [{ enter: "fresh" }, { hold: 4 }, { enter: "full" }, { enter: "fresh" }, { use: 3 }, { wait: HOLD_SECONDS }], { full: 100, fresh: 3 }],
  ["a commit counts what is more than was held before the reset, and never less than nothing", [{ enter: "fresh" }, { hold: 4 }, { hold: 4 }, { enter: "full" }, { enter: "fresh" }, { use: 3 }, { commit: 0, as: 1 }, { commit: 1, as: 6 }], { full: 100, fresh: 5 }],
  ["also once it has followed to another plan", [{ enter: "fresh" }, { hold: 4 }, { enter: "full" }, { enter: "fresh" }, { use: 3 }, { enter: "pro" }, { release: 0 }], { full: 100, fresh: 3, pro: 3 }],
  ["a group that was filled stays full, also where a hold gives back", [{ enter: "full" }, { hold: 4 }, { enter: "pro" }, { enter: "full" }, { release: 0 }], { full: 100 }],
  ["also where it was taken there", [{ enter: "full" }, { hold: 4 }, { enter: "fresh" }, { enter: "full" }, { release: 0 }], { full: 100 }],
  ["what filled a group is not usage, and not carried on", [{ enter: "pro" }, { use: 3 }, { enter: "full" }, { enter: "pro" }], { pro: 3, full: 100 }],
  ["nor on the way over several plans", [{ enter: "pro" }, { use: 3 }, { enter: "full" }, { enter: "free" }, { enter: "full" }, { enter: "pro" }], { pro: 3, full: 100 }],
  ["usage under the block's plan is carried on, without what filled it", [{ enter: "full" }, { use: 2 }, { enter: "fresh" }, { enter: "full" }, { enter: "pro" }, { use: 1 }], { full: 100, pro: 3 }],
  ["a late commit leaves a counter alone that was reset after its hold", [{ enter: "fresh" }, { hold: 4 }, { enter: "pro" }, { wait: HOLD_SECONDS }, { enter: "fresh" }, { commit: 0 }], { pro: 4 }],
  ["also where the hold was on that counter to the end", [{ enter: "fresh" }, { hold: 4 }, { wait: HOLD_SECONDS }, { enter: "pro" }, { enter: "fresh" }, { use: 1 }, { commit: 0 }], { fresh: 1 }],
  ["a late commit of a hold from after the reset counts", [{ enter: "pro" }, { enter: "fresh" }, { hold: 4 }, { wait: HOLD_SECONDS }, { commit: 0 }], { fresh: 4 }],
  ["from a lifetime only open holds are carried", [{ enter: "ever" }, { use: 5 }, { hold: 4 }, { enter: "pro" }], { ever: 9, pro: 4 }],
  ["which give back what they took", [{ enter: "ever" }, { use: 5 }, { hold: 4 }, { enter: "pro" }, { release: 0 }], { ever: 5 }],
  ["and come beside what was used there before", [{ enter: "pro" }, { use: 5 }, { enter: "ever" }, { hold: 4 }, { enter: "pro" }], { ever: 9, pro: 9 }],
  ["once, also where they had left it", [{ enter: "pro" }, { use: 5 }, { hold: 4 }, { enter: "ever" }, { use: 1 }, { enter: "pro" }, { release: 0 }], { ever: 6, pro: 5 }],
  ["to a lifetime usage is carried", [{ enter: "pro" }, { use: 5 }, { enter: "ever" }, { use: 1 }], { ever: 6, pro: 5 }],
  ["and to another lifetime too", [{ enter: "ever" }, { use: 5 }, { enter: "once" }], { ever: 5, once: 5 }],
  ["under reset a hold follows nothing and settles where it was taken", [{ enter: "free" }, { hold: 4 }, { enter: "fresh" }, { use: 2 }, { release: 0 }], { fresh: 2 }],
];

for (const [name, steps, counts] of STORIES) {
  Deno.test(`carry: ${name}`, () => {
    const story = new Story();
    for (const step of steps) story.take(step);
    assert.deepEqual(story.counts(), counts);
  });
}

Deno.test("carry: the counter left behind keeps its cost, and a return finds the larger", () => {
  const story = new Story();
  for (const step of [{ enter: "free" }, { use: 1, cost: 5 }, { enter: "pro" }] as const) story.take(step);
  assert.deepEqual(story.counts("costCents"), { free: 5, pro: 5 });
  for (const step of [{ use: 1, cost: 2 }, { enter: "free" }] as const) story.take(step);
  assert.deepEqual(story.counts("costCents"), { free: 7, pro: 7 });
});

Deno.test("carry: an event names the counter it was counted on, and none that its hold had left", () => {
  const story = new Story();
  for (const step of [{ enter: "free" }, { hold: 4 }, { enter: "pro" }, { commit: 0 }] as const) {
    story.take(step);
  }
  const events = story.scene.changes.flatMap((each) => each.table === "events" ? [each.row] : []);
  assert.deepEqual(events.map(({ lines }) => lines.map((line) => [line.planId, "left" in line])), [
    [["pro", false]],
  ]);
});

Deno.test("carry: a late commit on a counter that was reset charges credits, and the event took nothing of it", () => {
  const scene = new Scene(PLANS, undefined, PACKS);
  scene.subscribe("fresh");
  scene.track(98);
  const balance = scene.fund("count", 10);
  const hold = scene.hold(4);
  scene.wait(HOLD_SECONDS).subscribe("pro");
  scene.subscribe("fresh", { customLimits: { g: 1_000_000n } });
  const { groups, recharged, overflow, cost } = scene.commit(hold, { costCents: 7 });
  assert.deepEqual([groups, recharged, overflow, cost[0]], [{ g: 0 }, true, [], 7]);
  assert.deepEqual([scene.left(balance), scene.costs()], [[7], { g: 0 }]);
  assert.deepEqual(scene.event().lines.map(({ taken }) => taken), [0n]);
});

Deno.test("carry: a commit takes the room of the groups that went along, whatever the others have", () => {
  for (const [plan, left, groups] of [["wide", 10, { g: 5, h: 5 }], ["other", 6, { g: 1, h: 1 }]] as const) {
    const other = { ...planOf("other", {}, { rank: 3 }), limits: [groupOf("x", 100, "tokens", "y")] };
    const scene = new Scene(
      [planOf("two", { g: 10, h: 10 }), planOf("wide", { g: 1000 }, { rank: 2 }), other],
      undefined,
      PACKS,
    );
    scene.subscribe("two");
    const hold = scene.hold(1);
    const balance = scene.fund("count", 10);
    scene.subscribe(plan);
    assert.deepEqual(scene.commit(hold, { actual: { count: 5 } }).groups, groups, plan);
    assert.deepEqual(scene.left(balance), [left], plan);
  }
});

Deno.test("carry: what filled a group stays full in its window, limits raised since give room from there on", () => {
  const scene = new Story().scene;
  scene.subscribe("pro");
  scene.track(3);
  scene.subscribe("full");
  assert.deepEqual([scene.counts(), scene.reason(1), scene.explain(1).groups[0]?.fit?.room], [
    { g: 100 },
    "limit_reached",
    0n,
  ]);
  scene.subscribe("full", { customLimits: { g: 105_000_000n } });
  assert.deepEqual([scene.reserve(6), scene.counts()], [null, { g: 100 }]);
  const hold = scene.hold(5);
  assert.deepEqual([scene.counts(), scene.reason(1)], [{ g: 105 }, "limit_reached"]);
  scene.release(hold);
  scene.track(2);
  assert.deepEqual(scene.counts(), { g: 102 });
  scene.subscribe("pro");
  assert.deepEqual(scene.counts(), { g: 3 });
});

Deno.test("carry: a new cycle of a plan starts its window at 0, and the old window keeps its count", () => {
  const scene = new Scene([
    planOf("a", { g: 10 }, { period: { type: "monthly", anchor: "subscription_start" } }),
    planOf("b", { g: 10 }),
  ]);
  scene.subscribe("a");
  scene.reserve(4);
  const starts = () => scene.ask("usage", { event: null }).period?.start;
  const first = scene.now;
  scene.wait(60).subscribe("a", { cycleStart: scene.now });
  assert.deepEqual(scene.counts(), { g: 0 });
  assert.deepEqual([...scene.state.counters.values()].map(({ count }) => numberOf(count)), [4]);
  scene.subscribe("a", { cycleStart: Date.parse("2026-05-02T00:00Z") });
  scene.subscribe("a");
  assert.equal(starts(), Date.parse("2026-03-02T00:00Z"), "stepped back from the new anchor, which is kept");
  scene.subscribe("a", { cycleStart: null });
  assert.equal(starts(), first, "from its start again");
});

const size = fc.integer({ min: 1, max: 9 });
const place = fc.nat(9);

/** Steps over some plans. */
function stepsOver(...plans: readonly Plan[]): fc.Arbitrary<Step[]> {
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ enter: fc.constantFrom(...plans) }),
    fc.record({ use: size }),
    fc.record({ hold: size }),
    fc.record({ commit: place, as: fc.nat(9) }),
    fc.record({ release: place }),
    fc.record({ wait: fc.constantFrom(1, HOLD_SECONDS, DAY_SECONDS) }),
  );
  return fc.array(step, { maxLength: 40 });
}

const APRIL = Date.parse("2026-04-01T00:00Z");

Deno.test("carry: whichever of two plans is in force shows all that was used on both in the month", () => {
  fc.assert(
    fc.property(stepsOver("free", "pro"), (steps) => {
      const story = new Story(false);
      const { scene } = story;
      story.take({ enter: "free" });
      for (const each of steps) {
        story.take(each);
        if (scene.now >= APRIL) return;
        const late = scene.changes.some(({ table, row }) =>
          table === "reservations" && row.status === "expired"
        );
        const used = eventsIn(scene.changes).flatMap(({ lines }) => lines)
          .reduce((sum, { taken }) => sum + numberOf(taken), 0);
        const { g = 0 } = scene.counts();
        // A late commit is charged where the hold was, not on a plan that was entered while it had lapsed.
        if (!late) assert.ok(g >= used, `${g} shown, ${used} used`);
      }
    }),
    { numRuns: 500 },
  );
});

Deno.test("carry: a user who enters a plan finds at least what its window had", () => {
  fc.assert(
    fc.property(stepsOver("free", "pro", "day"), (steps) => {
      const story = new Story(false);
      const { scene } = story;
      story.take({ enter: "free" });
      for (const each of steps) {
        const before = new Map(scene.state.counters);
        story.take(each);
        if (!("enter" in each)) continue;
        for (const { key, count } of scene.state.counters.values()) {
          assert.ok(count >= (before.get(key)?.count ?? 0n), `${key} fell by entering ${each.enter}`);
        }
      }
    }),
    { numRuns: 500 },
  );
});
