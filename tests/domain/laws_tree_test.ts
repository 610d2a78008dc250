// Laws of calls over a path as properties over any sequence of commands of several members, whose places change: no level
// over its limit, all or nothing, one answer of all calls, and more restriction never allows.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { decide } from "../../src/domain/decide.ts";
import type { Counter } from "../../src/domain/state/counter.ts";
import { numberOf } from "../../src/domain/values/amount.ts";
import { countedIds } from "./decide_system.ts";
import { groupOf, PACKS, planOf, Scene, sizeOf } from "./scene.ts";

const USERS = ["u", "v", "team", "crew", "org"] as const;
const PLANS = [
  planOf("p3", { g: 3 }),
  planOf("p7", { g: 7, h: 6 }),
  planOf("zero", { g: 0 }),
  planOf("gated", { g: 8 }, { headroom: { mode: "percent", value: 50 } }),
  planOf("daily", { g: 5 }, { period: { type: "daily", anchor: "calendar" } }),
  planOf("other", {}, { limits: [groupOf("y", 4, "count", "y.*")] }),
];

type Step =
  | {
    readonly do: "reserve" | "track";
    readonly user: number;
    readonly amount: number;
    readonly event: string;
  }
  | { readonly do: "commit" | "release"; readonly pick: number }
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "move"; readonly user: number; readonly parent: number | null };

const place = fc.nat(USERS.length - 1);
const amount = fc.constantFrom(0.5, 1, 2, 2.999999, 3, 5);
const event = fc.constantFrom("x.make", "x.make", "y.make", "z");
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom("reserve", "track"), user: place, amount, event }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("commit", "release"), pick: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("wait"), seconds: fc.constantFrom(1, 9, 10, 86_400) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("move"), user: place, parent: fc.option(place, { freq: 4 }) }),
  },
);
/** The plan of each user at first; null for none. */
const start = fc.tuple(
  ...USERS.map(() => fc.option(fc.constantFrom(...PLANS.map(({ id }) => id)), { freq: 4 })),
);
/** Packs of each user at first. */
const funds = fc.tuple(...USERS.map(() => fc.constantFrom(0, 0, 2)));

class Tree {
  readonly scenes: readonly Scene[];
  readonly holds: [scene: Scene, id: string][] = [];

  constructor(plans: readonly (string | null)[], packs: readonly number[]) {
    const [id] = USERS;
    const first = new Scene(PLANS, "2026-03-10T12:00:00.000Z", PACKS, { id, key: 1, isCompared: false });
    const others = USERS.slice(1).map((id, place) =>
      new Scene([], "", [], { beside: first, id, key: place + 2 })
    );
    this.scenes = [first, ...others];
    for (const [place, plan] of plans.entries()) if (plan !== null) this.at(place).subscribe(plan);
    for (const [place, quantity] of packs.entries()) {
      if (quantity > 0) this.at(place).grant("count", quantity);
    }
    for (const [user, parent] of [[0, 2], [1, 2], [2, 4], [3, 4]] as const) this.move(user, parent);
  }

  at(place: number): Scene {
    return this.scenes[place] as Scene;
  }

  move(user: number, parent: number | null): void {
    this.at(user).under(parent === null ? null : this.at(parent));
  }

  /** Carries a step out; whether it is a call that was allowed. */
  take(each: Step): boolean {
    switch (each.do) {
      case "reserve": {
        const scene = this.at(each.user);
        const id = scene.reserve(each.amount, { event: each.event, ttlMs: 10_000 });
        if (id !== null) this.holds.push([scene, id]);
        return id !== null;
      }
      case "track":
        return this.at(each.user).track(each.amount, { event: each.event }).startsWith("matched");
      case "commit":
      case "release": {
        const hold = this.holds[each.pick % Math.max(this.holds.length, 1)];
        if (hold === undefined) return false;
        const [scene, reservationId] = hold;
        // What lapsed is charged again past any limit, so no late commits here.
        if (each.do === "release") scene.release(reservationId);
        else if (scene.state.lapsesAt(reservationId, scene.now) || scene.state.isOpen(reservationId)) {
          const row = scene.state.reservations.get(reservationId);
          if (row !== undefined && row.expiresAt > scene.now) scene.commit(reservationId);
        }
        return false;
      }
      case "wait":
        for (const scene of this.scenes) scene.wait(each.seconds);
        return false;
      case "move":
        this.move(each.user, each.parent);
        return false;
    }
  }

  settle(): void {
    for (const scene of this.scenes) scene.do("settle", {});
  }

  /** What every level counts and has left, with the times of the windows. */
  books(): unknown {
    return this.scenes.map(({ state }) => [
      [...state.counters.values()].filter(isUsed).map(({ key, count, costCents }) => [key, count, costCents])
        .sort(),
      [...state.balances.values()].map(({ id, remaining, held }) => [id, remaining, held]),
    ]);
  }
}

function isUsed({ count, costCents }: Counter): boolean {
  return count > 0n || costCents > 0n;
}

/** Builds any tree and carries any steps out. */
function forAny(numRuns: number, check: (tree: Tree, steps: readonly Step[]) => void): void {
  fc.assert(
    fc.property(start, funds, fc.array(step, { maxLength: 30 }), (plans, packs, steps) => {
      check(new Tree(plans, packs), steps);
    }),
    { numRuns },
  );
}

Deno.test("no allowed reserve or track leaves a group of any level above its limit", () => {
  const quotas = new Map(
    PLANS.flatMap(({ id, limits }) => limits.map((group) => [`${id} ${group.id}`, group.quota])),
  );
  forAny(150, (tree, steps) => {
    for (const each of steps) {
      tree.take(each);
      for (const { state } of tree.scenes) {
        for (const { planId, groupId, count } of state.counters.values()) {
          assert.ok(
            numberOf(count) <= (quotas.get(`${planId} ${groupId}`) ?? 0),
            `${groupId} at ${state.user.id}`,
          );
        }
      }
    }
  });
});

Deno.test("a refused reserve changes nothing at any level, and a blocked track counts nothing", () => {
  forAny(150, (tree, steps) => {
    for (const each of steps) {
      tree.settle();
      const before = tree.books();
      if (!tree.take(each) && (each.do === "reserve" || each.do === "track")) {
        assert.deepEqual(tree.books(), before);
      }
    }
  });
});

Deno.test("a reserve that is released, or lapses, restores every level", () => {
  forAny(100, (tree, steps) => {
    for (const each of steps.filter(({ do: what }) => what !== "wait")) {
      if (each.do !== "reserve") tree.take(each);
      else {
        const before = tree.books();
        if (!tree.take(each)) continue;
        const [scene, id] = tree.holds.pop() as [Scene, string];
        if (each.amount !== 2) scene.release(id);
        else {
          for (const other of tree.scenes) other.wait(10);
          tree.settle();
          // Other holds lapsed too.
          if (tree.holds.length > 0) return;
        }
        assert.deepEqual(tree.books(), before);
      }
    }
  });
});

/** The states above a user, nearest first. */
function above(tree: Tree, { state }: Scene) {
  const states = tree.scenes.map((scene) => scene.state);
  const levels = [];
  for (let key = state.user.parentKey; key !== null;) {
    const level = states.find(({ user }) => user.key === key);
    assert.ok(level !== undefined);
    levels.push(level);
    key = level.user.parentKey;
  }
  return levels;
}

function contextOf({ now, catalog }: Scene) {
  return { now, catalog, ids: countedIds(99), balancesLeft: null, outbox: null };
}

Deno.test("can-use, explain and reserve say the same for every path and clock, whether or not holds were swept", () => {
  forAny(80, (tree, steps) => {
    for (const each of steps) {
      tree.take(each);
      if (each.do !== "wait" && each.do !== "move") continue;
      for (const [place, scene] of tree.scenes.entries()) {
        const call = { event: "x.make", metadata: null, size: sizeOf({ count: 1 + place }) };
        const ask = () =>
          (["canUse", "explain", "reserve"] as const).map((name) => {
            const input = { ...call, ttlMs: null, prompt: null };
            const { result } = decide(scene.state, name, input, contextOf(scene), above(tree, scene));
            assert.ok(result.ok);
            const { allowed, matched, reasons, refusedBy } = result.answer;
            return { allowed, matched, reasons, refusedBy };
          });
        const [can, why, held] = ask();
        assert.deepEqual([why, held], [can, can]);
        // Who was swept makes no difference.
        tree.at((place + 2) % USERS.length).do("settle", {});
        assert.deepEqual(ask(), [can, can, can]);
      }
    }
  });
});

Deno.test("a smaller quota and credits that are taken away turn no refusal into a yes", () => {
  const restriction = fc.record({ user: place, quota: fc.constantFrom(0, 1, 2.5), caller: place, amount });
  fc.assert(
    fc.property(start, funds, fc.array(step, { maxLength: 15 }), fc.array(restriction, { maxLength: 5 }), (
      plans,
      packs,
      steps,
      restrictions,
    ) => {
      const tree = new Tree(plans, packs);
      for (const each of steps) tree.take(each);
      for (const { user, quota, caller, amount } of restrictions) {
        const before = USERS.map((_, place) => tree.at(place).canUse(amount).allowed);
        const scene = tree.at(user);
        const [active] = [...scene.state.subscriptions.values()].filter(({ ended }) => !ended);
        const [balance] = [...scene.state.balances.values()].filter(({ remaining }) => remaining > 0n);
        const group = PLANS.find(({ id }) => id === active?.planId)?.limits[0];
        if (caller % 2 === 0 && balance !== undefined) scene.revoke(balance.id);
        else if (active !== undefined && group !== undefined) {
          const known = active.customLimits[group.id];
          const least = Math.min(quota, group.quota, known === undefined ? Infinity : numberOf(known));
          scene.subscribe(active.planId, { customLimits: { [group.id]: BigInt(least * 1e6) } });
        }
        const after = USERS.map((_, place) => tree.at(place).canUse(amount).allowed);
        assert.deepEqual(after.filter((isAllowed, place) => isAllowed && !before[place]), []);
      }
    }),
    { numRuns: 150 },
  );
});
