// Laws of decisions as properties over any sequence of commands: never over quota, nothing lost, nothing written by
// a read, and applying what was decided is all that happens.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { amountOf, numberOf } from "../../src/domain/values/amount.ts";
import { decide } from "../../src/domain/decide.ts";
import type { Counter } from "../../src/domain/state/counter.ts";
import { countedIds } from "./decide_system.ts";
import { groupOf, planOf, Scene, sizeOf } from "./scene.ts";

const EVENTS = ["x.make", "x.other", "y"] as const;

type Step =
  | { readonly do: "reserve" | "track"; readonly amount: number; readonly event: typeof EVENTS[number] }
  | { readonly do: "commit"; readonly pick: number; readonly final: number | null }
  | { readonly do: "release"; readonly pick: number }
  | { readonly do: "wait"; readonly seconds: number };

const amount = fc.oneof(
  fc.integer({ min: 1, max: 60 }).map((tenths) => tenths / 10),
  fc.constantFrom(0.000001, 2.999999, 3, 3.000001, 7),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom("reserve", "track"), amount, event: fc.constantFrom(...EVENTS) }),
  fc.record({ do: fc.constant("commit"), pick: fc.nat(20), final: fc.option(amount) }),
  fc.record({ do: fc.constant("release"), pick: fc.nat(20) }),
  fc.record({ do: fc.constant("wait"), seconds: fc.constantFrom(0, 1, 9, 10, 600, 86_400) }),
);

const ALERTS = [20, 50, 99.9, 100];

const PLANS = [
  planOf("plan_a", { wide: 7, narrow: 3 }, {
    limits: [{ ...groupOf("wide", 7), alerts: ALERTS }, { ...groupOf("narrow", 3), alerts: ALERTS }],
  }),
  planOf("plan_p", { wide: 7, narrow: 3 }, { headroom: { mode: "percent", value: 70 } }),
  planOf("plan_m", { wide: 7, narrow: 3 }, {
    headroom: { mode: "multiplier", value: 1.5 },
    period: { type: "daily", anchor: "calendar" },
    limits: [{ ...groupOf("wide", 7), alerts: ALERTS }, groupOf("narrow", 3)],
  }),
];

/** Runs steps; a commit's final amount may go past quota only where the property allows it. */
function run(
  planId: string,
  steps: readonly Step[],
  after: (scene: Scene, step: Step, wasAllowed: boolean) => void,
) {
  const scene = new Scene(PLANS, "2026-03-10T12:00:00.000Z", [], {
    listensTo: ["usage.*"],
    isCompared: false,
  });
  scene.subscribe(planId);
  const holds: string[] = [];
  for (const each of steps) {
    let wasAllowed = false;
    const size = "amount" in each ? sizeOf({ count: each.amount }) : sizeOf();
    switch (each.do) {
      case "reserve": {
        const input = { event: each.event, metadata: null, size, ttlMs: 10_000 };
        const { hold } = scene.ask("reserve", input);
        if (hold !== null) holds.push(hold.reservationId);
        wasAllowed = hold !== null;
        break;
      }
      case "track":
        wasAllowed =
          scene.code("track", { event: each.event, metadata: null, size, costCents: null }) === "ok";
        break;
      case "commit": {
        const actual = each.final === null ? {} : { count: amountOf(each.final) };
        const reservationId = holds[each.pick % Math.max(holds.length, 1)] ?? "rsv_none";
        scene.do("commit", { reservationId, extra: {}, actual, costCents: null });
        break;
      }
      case "release": {
        const reservationId = holds[each.pick % Math.max(holds.length, 1)] ?? "rsv_none";
        scene.do("release", { reservationId, reason: null, errorCode: null });
        break;
      }
      case "wait":
        scene.wait(each.seconds);
    }
    after(scene, each, wasAllowed);
  }
}

const anyPlan = fc.constantFrom(...PLANS.map(({ id }) => id));

Deno.test("no sequence of reserve, track, commit, release and time takes a counter over quota by asking", () => {
  fc.assert(
    fc.property(anyPlan, fc.array(step, { maxLength: 60 }), (planId, steps) => {
      run(planId, steps, (scene, asked, wasAllowed) => {
        if (!wasAllowed || !("event" in asked) || asked.event === "y") return;
        const { wide, narrow } = scene.counts();
        assert.ok((wide as number) <= 7 && (narrow as number) <= 3, `${wide} ${narrow}`);
      });
    }),
    { numRuns: 400 },
  );
});

Deno.test("without corrections no counter passes its quota at all, and settled work adds up exactly", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      // Long holds and no time: no commit comes late, and none is corrected.
      const plain = steps.filter((each) => each.do !== "wait").map((each) =>
        each.do === "commit" ? { ...each, final: null } : each
      );
      run("plan_a", plain, (scene) => {
        const { wide, narrow } = scene.counts();
        assert.ok((wide as number) <= 7 && (narrow as number) <= 3);
        assert.equal(wide, narrow);
      });
    }),
    { numRuns: 200 },
  );
});

Deno.test("a read decides no change unless something was due", () => {
  fc.assert(
    fc.property(anyPlan, fc.array(step, { maxLength: 30 }), (planId, steps) => {
      run(planId, steps, (scene) => {
        scene.do("settle", {});
        for (const name of ["usage", "user", "settle", "canUse", "explain"] as const) {
          const input = { event: "x.make", metadata: null, size: sizeOf() };
          const context = {
            now: scene.now,
            catalog: scene.catalog,
            ids: countedIds(1),
            balancesLeft: null,
            outbox: null,
          };
          assert.deepEqual(decide(scene.state, name, input, context).changes, [], name);
        }
      });
    }),
    { numRuns: 100 },
  );
});

Deno.test("in each window exactly the thresholds that the count reached have fired, once and ascending", () => {
  fc.assert(
    fc.property(anyPlan, fc.array(step, { maxLength: 60 }), (planId, steps) => {
      const peaks = new Map<string, Counter>();
      const messages: { groupId: string; thresholdPercent: number; period: { start: string } }[] = [];
      run(planId, steps, (scene) => {
        for (const counter of scene.state.counters.values()) {
          const peak = peaks.get(counter.key);
          if (peak === undefined || counter.count > peak.count) peaks.set(counter.key, counter);
        }
        for (const { body } of scene.messages.slice(messages.length)) messages.push(JSON.parse(body).data);
      });
      const groups = PLANS.find(({ id }) => id === planId)?.limits ?? [];
      for (const { groupId, windowStart, count } of peaks.values()) {
        const { quota = 0, alerts = [] } = groups.find(({ id }) => id === groupId) ?? {};
        const reached = alerts.filter((percent) => numberOf(count) * 100 >= quota * Number(percent));
        const start = new Date(windowStart).toISOString();
        const fired = messages.filter((each) => each.groupId === groupId && each.period.start === start);
        assert.deepEqual(fired.map(({ thresholdPercent }) => thresholdPercent), reached);
      }
    }),
    { numRuns: 200 },
  );
});

Deno.test("can-use says what reserve then does", () => {
  fc.assert(
    fc.property(anyPlan, fc.array(step, { maxLength: 40 }), amount, (planId, steps, count) => {
      run(planId, steps, (scene) => {
        const call = { event: "x.make", metadata: null, size: sizeOf({ count }) };
        const context = {
          now: scene.now,
          catalog: scene.catalog,
          ids: countedIds(1),
          balancesLeft: null,
          outbox: null,
        };
        const asked = decide(scene.state, "canUse", call, context).result;
        const tried = decide(scene.state, "reserve", { ...call, ttlMs: null }, context).result;
        assert.ok(asked.ok && tried.ok);
        assert.equal(asked.answer.allowed, tried.answer.hold !== null);
        assert.deepEqual(asked.answer.reasons, tried.answer.reasons);
      });
    }),
    { numRuns: 100 },
  );
});
