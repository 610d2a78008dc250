// Laws of guards and sessions as properties, over any sequence of calls of two users below an account: a guard only refuses,
// says when it will not, and counts nothing that it refused. When due work is done makes no difference.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import type { LimitGroupDocument } from "../../src/domain/catalog/catalog.ts";
import { type Catalog, compileCatalog } from "../../src/domain/catalog/catalog.ts";
import type { UserState } from "../../src/domain/state/user.ts";
import { groupOf, packOf, planOf, type Scene } from "./scene.ts";
import { TreeScene } from "./tree_scene.ts";

const USERS = ["u", "v", "org"] as const;
type Name = (typeof USERS)[number];

type Step =
  | { readonly do: "reserve"; readonly user: Name; readonly need: number; readonly ttlMs: number }
  | { readonly do: "track"; readonly user: Name; readonly need: number }
  | { readonly do: "commit"; readonly pick: number; readonly count: number }
  | { readonly do: "release"; readonly pick: number }
  | { readonly do: "change"; readonly user: Name; readonly plan: "slow" | "quick" }
  | { readonly do: "grant"; readonly user: Name }
  | { readonly do: "wait"; readonly ms: number };

const user = fc.constantFrom(...USERS);
const need = fc.constantFrom(0, 0.5, 1, 1, 2, 3, 5);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("reserve"),
      user,
      need: fc.constantFrom(0.5, 1, 1, 2, 3, 5),
      ttlMs: fc.constantFrom(10_000, 10_001, 10_100, 15_000, 60_000, 200_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("track"), user, need }) },
  fc.record({ do: fc.constant("commit"), pick: fc.nat(9), count: fc.constantFrom(0, 1, 2, 4) }),
  fc.record({ do: fc.constant("release"), pick: fc.nat(9) }),
  fc.record({ do: fc.constant("change"), user, plan: fc.constantFrom("slow", "quick") }),
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("wait"),
      ms: fc.constantFrom(1, 166, 167, 500, 2_000, 5_000, 9_999, 10_000, 10_167, 30_000, 61_000),
    }),
  },
);
const grant: fc.Arbitrary<Step> = fc.record({ do: fc.constant("grant"), user });

function withPeriod(
  id: string,
  quota: number,
  period: LimitGroupDocument["period"],
): LimitGroupDocument {
  return { ...groupOf(id, quota), period };
}

/** The quota groups of a plan, then its guards. */
function limitsOf(size: number): readonly [LimitGroupDocument[], LimitGroupDocument[]] {
  return [
    [groupOf("all", 10 * size), withPeriod("session", 5 * size, { type: "session", seconds: 60 })],
    [
      withPeriod("rate", 5 * size, { type: "rolling", seconds: 10 }),
      withPeriod("minute", 9 * size, { type: "rolling", seconds: 60 }),
      withPeriod("open", 4 * size, { type: "concurrent" }),
    ],
  ];
}

const PACKS = [packOf("funds")];

/** The plans of users, the second under `reset`, and that of the account; with guards and without. */
const [GUARDED, BARE] = [true, false].map((hasGuards) =>
  ([["slow", 1, "carry"], ["quick", 1.5, "reset"], ["org", 2, "carry"]] as const).map(
    ([id, size, onPlanChange], place) => {
      const [quotas, guards] = limitsOf(size);
      const limits = hasGuards ? [...quotas, ...guards] : quotas;
      return planOf(id, {}, { limits, onPlanChange, rank: place + 1 });
    },
  )
);
const WITHOUT: Catalog = compileCatalog({ plans: BARE ?? [], packs: PACKS }, 1);

/** Users in a tree who do steps. */
class Users extends TreeScene {
  readonly #holds: { readonly user: Name; readonly id: string }[] = [];

  constructor() {
    super(GUARDED ?? [], PACKS);
    for (const name of USERS) this.subscribe(name, name === "org" ? "org" : "slow");
    for (const name of ["u", "v"]) this.put(name, "org");
  }

  /** Does a step; what it answered. */
  step(each: Step): unknown {
    switch (each.do) {
      case "reserve": {
        const { hold, reasons } = this.reserve(each.user, each.need, each.ttlMs);
        if (hold !== null) this.#holds.push({ user: each.user, id: hold });
        return reasons;
      }
      case "track":
        return this.track(each.user, each.need);
      case "commit":
      case "release": {
        const hold = this.#holds[each.pick % Math.max(this.#holds.length, 1)];
        if (hold === undefined) return null;
        const scene = this.scene(hold.user);
        return each.do === "release"
          ? scene.release(hold.id)
          : scene.commitCode(hold.id, { actual: { count: each.count } });
      }
      case "change":
        return each.user === "org" ? null : this.scene(each.user).subscribe(each.plan);
      case "grant":
        return this.scene(each.user).fund("funds", 3);
      case "wait":
        this.now += each.ms;
        return null;
    }
  }
}

function after(steps: readonly Step[]): Users {
  const users = new Users();
  for (const each of steps) users.step(each);
  return users;
}

const steps = fc.array(step, { maxLength: 25 });
const stepsWithCredits = fc.array(fc.oneof({ weight: 12, arbitrary: step }, grant), { maxLength: 25 });

/** Calls to look at: by whom, and of what size. */
const CALLS = USERS.flatMap((name) => [0, 1, 2, 3].map((count) => [name, count] as const));

/** Calls under a catalog without guards. */
function bare<T>(scene: Scene, ask: () => T): T {
  const { catalog } = scene;
  scene.catalog = WITHOUT;
  const answer = ask();
  scene.catalog = catalog;
  return answer;
}

Deno.test("a guard turns no refusal into a yes, and changes no other reason", () => {
  fc.assert(
    fc.property(stepsWithCredits, user, need, (before, name, count) => {
      const users = after(before);
      const scene = users.scene(name);
      const guarded = scene.canUse(count);
      const plain = bare(scene, () => scene.canUse(count));
      if (!plain.allowed) assert.equal(guarded.allowed, false);
      assert.equal(guarded.matched, plain.matched);
      assert.deepEqual(guarded.reasons.filter((reason) => !isOfGuard(reason)), plain.reasons);
    }),
    { numRuns: 300 },
  );
});

function isOfGuard(reason: string): boolean {
  return reason === "rate_limit_reached" || reason === "concurrency_limit_reached";
}

Deno.test("a call that guards refuse fails until retryAfterMs, and passes then", () => {
  let told = 0;
  fc.assert(
    fc.property(steps, fc.shuffledSubarray([...CALLS], { minLength: CALLS.length }), (before, calls) => {
      const users = after(before);
      const found = calls.find(([name, count]) => {
        return users.scene(name).canUse(count).retryAfterMs !== undefined;
      });
      if (found === undefined) return;
      const [name, count] = found;
      const scene = users.scene(name);
      const { retryAfterMs } = scene.canUse(count);
      assert.ok(retryAfterMs !== undefined);
      told += 1;
      const { now } = users;
      const allowedAt = (at: number) => {
        users.now = at;
        return scene.canUse(count).allowed;
      };
      if (retryAfterMs === null) return assert.equal(allowedAt(now + 10_000_000), false, "never");
      assert.ok(retryAfterMs > 0);
      assert.equal(allowedAt(now + retryAfterMs - 1), false, "a moment before");
      assert.equal(allowedAt(now + retryAfterMs), true, "then");
    }),
    { numRuns: 600 },
  );
  assert.ok(told > 30, `only ${told} calls were refused by guards alone`);
});

Deno.test("a refused call leaves every slot, session and hold unchanged", () => {
  const call = fc.constantFrom("reserve", "track", "canUse", "explain");
  fc.assert(
    fc.property(stepsWithCredits, user, need, call, (before, name, count, kind) => {
      const users = after(before);
      const scene = users.scene(name);
      for (const each of USERS) users.scene(each).ask("settle", {});
      const kept = USERS.map((each) => shown(users.state(each)));
      if (scene.canUse(count).allowed) return;
      if (kind === "track") scene.track(count);
      else if (kind === "reserve") assert.equal(scene.reserve(count), null);
      else scene[kind](count);
      // A concurrency limit does not look at a track.
      if (kind === "track" && scene.event().matchStatus !== "blocked") return;
      assert.deepEqual(USERS.map((each) => shown(users.state(each))), kept);
    }),
    { numRuns: 300 },
  );
});

/** Counters and holds of a user. */
function shown({ counters, reservations, inFlight }: UserState) {
  return [[...counters.values()], [...reservations.values()], [...inFlight?.holds ?? []]];
}

Deno.test("when lapsed holds are given back changes no answer", () => {
  const settled = fc.array(fc.tuple(step, fc.subarray([...USERS])), { maxLength: 30 });
  fc.assert(
    fc.property(settled, (both) => {
      const [lazy, eager] = [new Users(), new Users()];
      for (const [each, names] of both) {
        // The eager one looks in the middle of a wait as well.
        const parts = each.do === "wait" ? [each.ms / 2, each.ms - each.ms / 2] : [];
        for (const ms of parts) {
          eager.now += Math.trunc(ms);
          for (const name of names) eager.scene(name).ask("settle", {});
        }
        if (each.do === "wait") lazy.now = eager.now;
        else assert.deepEqual(eager.step(each), lazy.step(each), each.do);
        for (const name of names) eager.scene(name).ask("settle", {});
      }
      for (const name of USERS) assert.deepEqual(shownUse(eager.scene(name)), shownUse(lazy.scene(name)));
    }),
    { numRuns: 200 },
  );
});

/** Usage and what can-use says of a call. */
function shownUse(scene: Scene) {
  const counters = scene.ask("usage", { event: null }).counters.map(({ group, counter, window }) => [
    group.id,
    counter.count,
    window,
  ]);
  const { allowed, reasons, retryAfterMs } = scene.canUse(3);
  return { counters, allowed, reasons, retryAfterMs };
}
