// Shares of members: what they count, what they refuse, and what clears them.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import { ModelShares } from "../../model/shares.ts";
import { groupOf, packOf, planOf } from "../scene.ts";
import { TreeScene } from "../tree_scene.ts";

const shared = (id: string, quota: number, perMember?: number) => ({
  ...groupOf(id, quota),
  ...perMember === undefined ? {} : { perMember: { quota: perMember } },
});

/** Plans of an organisation, each with the same group. */
const plansWith = (perMember?: number) => [
  planOf("org", {}, { limits: [shared("pool", 30, perMember)] }),
  planOf("fresh", {}, { limits: [shared("pool", 30, perMember)], onPlanChange: "reset", rank: 2 }),
  planOf("kept", {}, { limits: [shared("pool", 30, perMember)], rank: 2 }),
  planOf("full", {}, { limits: [shared("pool", 30, perMember)], onPlanChange: "block", rank: 2 }),
  planOf("team", { pool: 20 }),
  planOf("other", { seats: 20 }),
  planOf("zero", {}, { limits: [{ ...shared("pool", 0, 5) }] }),
];

/** An organisation with a team, in which are "u" and "v". */
function organisation(perMember: number | undefined = 5): TreeScene {
  const scene = new TreeScene(plansWith(perMember), [packOf("funds")]);
  scene.subscribe("org", "org");
  scene.subscribe("team", "team");
  scene.put("team", "org");
  scene.put("u", "team");
  scene.put("v", "team");
  return scene;
}

/** What a member did before, its next call, and who refuses it. */
const LIMITS: readonly [what: string, before: (scene: TreeScene) => void, need: number, reason: string][] = [
  ["all of a share", () => {}, 5, ""],
  ["more than a share", () => {}, 6, "member_limit_reached by org"],
  ["a share that a sibling used", (scene) => scene.track("v", 5), 5, ""],
  ["a share with a hold", (scene) => scene.reserve("u", 3), 3, "member_limit_reached by org"],
  ["a need of 0 below the share", (scene) => scene.track("u", 4), 0, ""],
  ["a need of 0 at the share", (scene) => scene.track("u", 5), 0, "member_limit_reached by org"],
  [
    "a lowered share",
    (scene) => {
      scene.track("u", 4);
      scene.put("u", "team", { pool: 3 });
    },
    0,
    "member_limit_reached by team org",
  ],
  ["a raised share", (scene) => scene.put("u", "team", { pool: 7 }), 7, ""],
  ["limits of groups that no plan has", (scene) => scene.put("u", "team", { idle: 0 }), 5, ""],
  [
    "limits that a new parent clears",
    (scene) => {
      scene.put("u", "team", { pool: 0 });
      scene.put("u", "org");
    },
    5,
    "",
  ],
  [
    "limits that the same parent keeps",
    (scene) => {
      scene.put("u", "team", { pool: 0 });
      scene.put("u", "team");
    },
    1,
    "member_limit_reached by team org",
  ],
  [
    "a full account and a full share",
    (scene) => {
      scene.track("u", 5);
      for (const id of ["v", "w"]) scene.put(id, "team");
      for (const id of ["v", "w"]) scene.track(id, 5);
      scene.track("team", 5);
    },
    1,
    "limit_reached member_limit_reached by team org",
  ],
];

for (const [what, before, need, reason] of LIMITS) {
  Deno.test(`${what}: a member's call is ${reason === "" ? "allowed" : "refused"}`, () => {
    const scene = organisation();
    before(scene);
    assert.equal(scene.reason("u", need), reason);
    assert.equal(scene.reserve("u", need).reasons, reason);
  });
}

Deno.test("calls of the account itself have no share", () => {
  const scene = organisation();
  assert.equal(scene.track("org", 20), "matched");
  assert.deepEqual(scene.state("org").shares.size, 0);
});

Deno.test("a share counts what credits pay too, and they do not pay past it", () => {
  const scene = organisation();
  scene.subscribe("org", "zero");
  scene.ask("org", "grant", {
    pack: "funds",
    quantity: 50_000_000n,
    externalRef: null,
    expiresAt: undefined,
    source: "purchase",
    notes: null,
  });
  scene.subscribe("org", "zero");
  scene.put("w", "org");
  const { hold } = scene.reserve("w", 4);
  assert.deepEqual(scene.shares("w"), [[[4, 5]]]);
  assert.equal(scene.reason("w", 2), "member_limit_reached by org");
  scene.commit("w", hold as string, 5);
  assert.deepEqual(scene.shares("w"), [[[5, 5]]]);
});

Deno.test("a hold without a share, and a user without a parent, keep none", () => {
  const scene = new TreeScene(plansWith());
  scene.subscribe("u", "org");
  scene.track("u", 3);
  assert.equal(scene.state("u").shares.size, 0);
  scene.subscribe("a", "other");
  scene.put("u", "a");
  scene.reserve("u", 1);
  assert.equal(scene.state("u").shares.size, 1);
});

/** What the organisation enters, and what u has of 2 used before and 1 held. */
const PLAN_CHANGES: readonly [plan: string, left: number][] = [["fresh", 0], ["kept", 3], ["full", 3]];

for (const [plan, left] of PLAN_CHANGES) {
  Deno.test(`entering the plan "${plan}" leaves ${left} of a share, and its old holds settle so`, () => {
    const scene = organisation();
    scene.track("u", 2);
    const { hold } = scene.reserve("u", 1);
    scene.subscribe("org", plan);
    assert.deepEqual(scene.shares("u"), [[[3, null]], [[left, 5]]]);
    scene.put("u", "team", { pool: 9 });
    // Under a block nothing more is counted.
    const more = scene.track("u", 1) === "matched" ? 1 : 0;
    assert.deepEqual(scene.shares("u"), [[[3 + more, 9]], [[left + more, 9]]]);
    scene.commit("u", hold as string, 2);
    const settled = left === 0 ? more : left + more + 1;
    assert.deepEqual(scene.shares("u"), [[[4 + more, 9]], [[settled, 9]]]);
    // Back by carry within the window: what was cleared stays cleared.
    scene.subscribe("org", "org");
    assert.deepEqual(scene.shares("u")[1], [[settled, 9]]);
  });
}

Deno.test("shares of accounts and of members that become one are added, without what a reset cleared", () => {
  const scene = organisation();
  scene.subscribe("second", "org");
  for (const id of ["w", "x"]) scene.put(id, "second");
  scene.track("w", 2);
  scene.subscribe("second", "fresh");
  scene.track("w", 1);
  const { hold } = scene.reserve("x", 1);
  scene.track("u", 3);
  scene.merge("second", "org");
  assert.deepEqual(scene.shares("w"), [[[1, 5]]]);
  scene.merge("w", "x");
  assert.deepEqual(scene.shares("x"), [[[2, 5]]]);
  scene.commit("x", hold as string, 2);
  scene.track("x", 1);
  assert.deepEqual([scene.shares("x"), scene.shares("u")[1]], [[[[4, 5]]], [[3, 5]]]);
  assert.equal(scene.reason("x", 2), "member_limit_reached by org");
});

Deno.test("a reset holds in a longer window with the same start, also after a later reset", () => {
  const limits = [shared("pool", 30, 5)];
  const period = { type: "daily", anchor: "calendar" } as const;
  const scene = new TreeScene([
    planOf("month", {}, { limits }),
    planOf("day", {}, { limits, period, onPlanChange: "reset" }),
  ]);
  scene.now = Date.UTC(2026, 3, 1, 12);
  scene.subscribe("org", "month");
  scene.put("u", "org");
  scene.track("u", 4);
  scene.subscribe("org", "day");
  scene.track("u", 1);
  scene.now += 2 * 24 * 3_600_000;
  for (const plan of ["month", "day", "month"]) scene.subscribe("org", plan);
  assert.deepEqual(scene.shares("u"), [[[1, 5]]]);
  assert.deepEqual([scene.track("u", 4), scene.track("u", 1)], ["matched", "member_limit_reached"]);
});

// Random commands.

type Step =
  | { readonly kind: "reserve" | "track"; readonly user: string; readonly count: number }
  | { readonly kind: "commit" | "release"; readonly hold: number; readonly count: number }
  | { readonly kind: "wait"; readonly seconds: number }
  | { readonly kind: "enter"; readonly plan: string }
  | { readonly kind: "limit"; readonly user: string; readonly quota: number }
  | { readonly kind: "settle"; readonly user: string };

const user = fc.constantFrom("u", "v", "team");
const count = fc.integer({ min: 0, max: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom("reserve", "track"), user, count }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("commit", "release"), hold: fc.nat(30), count }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait"), seconds: fc.integer({ min: 5, max: 60 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("enter"),
      plan: fc.constantFrom("org", "fresh", "fresh", "kept"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("limit"), user, quota: fc.integer({ min: 0, max: 8 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("settle"), user: fc.constantFrom("u", "v", "org") }),
  },
) as fc.Arbitrary<Step>;

const MARCH = Date.UTC(2026, 2, 1);
const TTL_MS = 60_000;
const PARTS: Readonly<Record<string, readonly string[]>> = {
  u: ["team", "org"],
  v: ["team", "org"],
  team: ["org"],
};
const partsOf = (id: string) =>
  (PARTS[id] as readonly string[]).map((account) => ({
    account,
    group: "pool",
    unit: "count" as const,
    window: MARCH,
  }));

/** Runs steps against the domain and the model of shares. */
class Run {
  readonly scene = organisation();
  readonly model = new ModelShares();
  readonly #holds: { readonly id: string; readonly user: string; readonly lapsesAt: number }[] = [];
  readonly #settled = new Set<string>();
  #plan = "org";
  #events = 0;
  readonly answers: string[] = [];

  step(each: Step): void {
    const { scene, model } = this;
    switch (each.kind) {
      case "reserve": {
        const { hold, reasons } = scene.reserve(each.user, each.count, TTL_MS);
        this.answers.push(reasons);
        if (hold === null) return;
        const lapsesAt = scene.now + TTL_MS;
        this.#holds.push({ id: hold, user: each.user, lapsesAt });
        model.take(hold, each.user, partsOf(each.user), () => amountOf(each.count), lapsesAt);
        return;
      }
      case "track": {
        const code = scene.track(each.user, each.count);
        this.answers.push(code);
        if (code === "matched") {
          model.take(`${this.#events++}`, each.user, partsOf(each.user), () => amountOf(each.count));
        }
        return;
      }
      case "commit":
      case "release": {
        const hold = this.#holds[each.hold % Math.max(this.#holds.length, 1)];
        if (hold === undefined || this.#settled.has(hold.id)) return;
        const isLapsed = hold.lapsesAt <= scene.now;
        if (each.kind === "release" && isLapsed) {
          assert.equal(scene.release(hold.user, hold.id), "reservation_not_pending");
          return;
        }
        this.#settled.add(hold.id);
        if (each.kind === "commit") scene.commit(hold.user, hold.id, each.count);
        else scene.release(hold.user, hold.id);
        model.settle(hold.id, () => each.kind === "commit" ? amountOf(each.count) : 0n);
        return;
      }
      case "wait":
        scene.now += each.seconds * 1000;
        return;
      case "enter":
        if (each.plan === "fresh" && this.#plan !== "fresh") {
          model.reset({ account: "org", group: "pool", window: MARCH });
        }
        this.#plan = each.plan;
        scene.subscribe("org", each.plan);
        return;
      case "limit":
        scene.put(each.user, each.user === "team" ? "org" : "team", { pool: each.quota });
        return;
      case "settle":
        scene.ask(each.user, "settle", {});
    }
  }

  /** The shares of every member, by the domain and by the model. */
  check(): void {
    for (const [id, accounts] of Object.entries(PARTS)) {
      const found = this.scene.shares(id).map(([group]) => group?.[0]);
      const expected = accounts.map((account) =>
        numberOf(
          this.model.count([id], [account], { group: "pool", unit: "count", window: MARCH }, this.scene.now),
        )
      );
      assert.deepEqual(found, expected, `shares of ${id}`);
    }
  }
}

Deno.test("every share is what the member's holds and events took, whatever comes between", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const run = new Run();
      for (const each of steps) {
        run.step(each);
        run.check();
      }
    }),
    { numRuns: 150 },
  );
});

Deno.test("an allowed reserve or track leaves no share above its limit", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const run = new Run();
      for (const each of steps) {
        const before = run.answers.length;
        run.step(each);
        const [answer] = run.answers.slice(before);
        if (!("user" in each) || (answer !== "" && answer !== "matched") || each.kind === "settle") continue;
        for (const [group] of run.scene.shares(each.user)) {
          const [used, quota] = group as readonly [number, number | null];
          assert.ok(quota === null || used <= quota, `${each.user} has ${used} of ${quota}`);
        }
      }
    }),
    { numRuns: 150 },
  );
});

Deno.test("a share added or lowered turns no refusal into a yes", () => {
  const catalogs = [undefined, 8, 5, 3, 0].map((quota) =>
    compileCatalog({ plans: plansWith(quota), packs: [packOf("funds")] }, 1)
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), user, count, (steps, id, need) => {
      const run = new Run();
      for (const each of steps) run.step(each);
      const reasons = catalogs.map((catalog) => run.scene.reasonUnder(catalog, id, need));
      const firstNo = reasons.findIndex((reason) => reason !== "");
      if (firstNo >= 0) {
        assert.ok(reasons.slice(firstNo).every((reason) => reason !== ""), reasons.join(", "));
      }
    }),
    { numRuns: 150 },
  );
});

Deno.test("lazy equals eager: settling what is due at any moment changes no answer and no share", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const [lazy, eager] = [new Run(), new Run()];
      for (const each of steps) {
        if (each.kind !== "settle") lazy.step(each);
        eager.step(each);
        for (const id of ["v", "org", "u", "team"]) eager.scene.ask(id, "settle", {});
      }
      assert.deepEqual(lazy.answers, eager.answers);
      assert.deepEqual(lazy.scene.shares("u"), eager.scene.shares("u"));
    }),
    { numRuns: 100 },
  );
});

Deno.test("reserve then release or lapse restores every share", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), user, count, fc.boolean(), (steps, id, need, lapses) => {
      const run = new Run();
      for (const each of steps) run.step(each);
      run.scene.now += TTL_MS;
      const before = run.scene.shares(id);
      const { hold } = run.scene.reserve(id, need, TTL_MS);
      if (hold === null) return;
      if (lapses) run.scene.now += TTL_MS;
      else run.scene.release(id, hold);
      assert.deepEqual(run.scene.shares(id), before);
    }),
    { numRuns: 100 },
  );
});
