// Laws of what plans include, as properties over any sequence of commands and waits: to look later is to look at each
// begin of a window, and no walk of changes gives out more in a window than the largest amount of a plan in it.

import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { numberOf } from "../../../src/domain/values/amount.ts";
import type { CreditBalance } from "../../../src/domain/state/credit.ts";
import type { PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import { packOf, planOf, Scene } from "../scene.ts";

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const item = (id: string, amount: number, event = "x.*") => {
  return { id, label: id, unit: "count", amount, matches: [{ event }] } as const;
};
const PACKS = [
  packOf("a"),
  packOf("b"),
  packOf("set", { unit: undefined, matches: undefined, items: [item("one", 7), item("two", 5, "y.*")] }),
];
const monthly = { type: "monthly", anchor: "calendar" } as const;
const hourly = { type: "hourly", anchor: "calendar" } as const;
const daily = { type: "daily", anchor: "subscription_start" } as const;

const PLANS: readonly PlanDocument[] = [
  planOf("free", { g: 0 }, { rank: 0 }),
  planOf("a", { g: 2 }, {
    period: daily,
    includes: [{ packId: "a", quantity: 10, rollover: { max: 14, periods: 2 } }],
  }),
  planOf("b", { g: 0 }, {
    rank: 2,
    trial: { days: 3, thenPlanId: "a" },
    includes: [
      { packId: "b", quantity: 8, period: hourly, rollover: { max: 20, periods: 3 } },
      { packId: "set", period: monthly, rollover: { max: 9, periods: 1 } },
    ],
  }),
  planOf("c", { g: 0 }, {
    rank: 2,
    period: { ...daily, type: "weekly" },
    includes: [{ packId: "a", quantity: 30 }, { packId: "set", rollover: { max: 4, periods: 2 } }],
    onPlanChange: "reset",
  }),
  planOf("plus", {}, {
    addon: true,
    period: daily,
    includes: [{ packId: "a", quantity: 6, rollover: { max: 8, periods: 1 } }],
  }),
];

type Step =
  | { readonly do: "reserve" | "track"; readonly count: number; readonly event: string; readonly ttl: number }
  | { readonly do: "commit" | "release"; readonly pick: number; readonly count: number }
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "read" }
  | {
    readonly do: "subscribe";
    readonly plan: string;
    readonly row: string;
    readonly seats: number;
    readonly trial: boolean;
    readonly endsIn: number;
  }
  | { readonly do: "cancel"; readonly row: string; readonly inSeconds: number }
  | { readonly do: "schedule"; readonly plan: string; readonly inSeconds: number }
  | { readonly do: "mirror"; readonly trialS: number }
  | { readonly do: "late"; readonly days: number };

const seconds = fc.oneof(
  fc.constantFrom(0, 1, HOUR_S / 2, HOUR_S, 5 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S, 40 * DAY_S),
  fc.integer({ min: 1, max: 20 * HOUR_S }),
);
const PLAN_IDS = ["free", "a", "b", "c"] as const;
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait"), seconds }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom("reserve", "track"),
      count: fc.integer({ min: 1, max: 12 }),
      event: fc.constantFrom("x.a", "y.a"),
      ttl: seconds,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("commit", "release"), pick: fc.nat(9), count: fc.nat(15) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("read") }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("subscribe"),
      plan: fc.constantFrom(...PLAN_IDS, "plus"),
      row: fc.constantFrom("", "r1", "r2"),
      seats: fc.integer({ min: 1, max: 3 }),
      trial: fc.boolean(),
      endsIn: fc.oneof(fc.constant(0), seconds),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("cancel"),
      row: fc.constantFrom("", "r1", "r2"),
      inSeconds: seconds,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("schedule"),
      plan: fc.constantFrom(...PLAN_IDS),
      inSeconds: seconds,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("mirror"), trialS: seconds }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("late"), days: fc.integer({ min: 1, max: 40 }) }) },
);

/** A user with its open holds. */
class Walker {
  readonly scene: Scene;
  readonly #holds: string[] = [];

  constructor(plans: readonly PlanDocument[], beside?: Scene) {
    const more = beside === undefined ? {} : { beside, key: 8, id: "alias" };
    this.scene = new Scene(plans, "2026-03-10T12:34:00.000Z", PACKS, {
      isCompared: false,
      listensTo: ["*"],
      ...more,
    });
  }

  take(step: Step): void {
    const { scene } = this;
    switch (step.do) {
      case "wait":
        scene.wait(step.seconds);
        break;
      case "read":
        scene.ask("usage", { event: null });
        break;
      case "reserve": {
        const id = scene.reserve(step.count, { event: step.event, ttlMs: 1000 * Math.max(1, step.ttl) });
        if (id !== null) this.#holds.push(id);
        break;
      }
      case "track":
        scene.track(step.count, { event: step.event });
        break;
      case "commit":
      case "release": {
        const id = this.#holds[step.pick % Math.max(1, this.#holds.length)];
        if (id === undefined) break;
        if (step.do === "release") scene.release(id);
        else scene.commitCode(id, { actual: { count: step.count } });
        break;
      }
      case "subscribe": {
        const ids = idsOf(step.row);
        if (step.plan === "plus" && ids.provider === null) break;
        const endsAt = step.endsIn === 0 ? null : scene.now + step.endsIn * 1000;
        const more = { ...ids, quantity: step.seats, endsAt };
        const input = { ...more, ...step.trial && step.plan === "b" ? { trial: true } : {} };
        try {
          scene.subscribe(step.plan, input);
        } catch {
          scene.subscribe(step.plan, more);
        }
        break;
      }
      case "cancel":
        scene.cancel({
          ...idsOf(step.row),
          endsAt: step.inSeconds === 0 ? null : scene.now + step.inSeconds * 1000,
        });
        break;
      case "schedule":
        scene.code("schedule", {
          ...idsOf(""),
          change: { plan: step.plan, at: scene.now + 1000 + step.inSeconds * 1000 },
        });
        break;
      case "mirror": {
        const trial = step.trialS === 0 ? {} : { trialEndsAt: scene.now + step.trialS * 1000 };
        const state = { planId: "c", startsAt: null, endsAt: null, quantity: undefined, ...trial };
        scene.do("mirror", { provider: "stripe", externalId: "m", state });
        break;
      }
      case "late": {
        const endsAt = scene.now - step.days * DAY_S * 500;
        const state = {
          planId: "b",
          startsAt: scene.now - step.days * DAY_S * 1000,
          endsAt,
          quantity: undefined,
        };
        scene.do("mirror", { provider: "stripe", externalId: `late-${step.days}`, state });
      }
    }
  }

  /** Looks at each begin of a window, and at each end of a rollover, up to a moment. */
  lookUntil(at: number): void {
    const { scene } = this;
    for (;;) {
      let next = Infinity;
      for (const { included, expiresAt } of scene.state.balances.values()) {
        if (included !== null && expiresAt !== null && expiresAt > scene.now) {
          next = Math.min(next, expiresAt);
        }
      }
      if (next > at) break;
      scene.now = next;
      scene.ask("settle", {});
    }
  }
}

function idsOf(row: string) {
  return row === "" ? { provider: null, externalId: null } : { provider: "stripe", externalId: row };
}

/** What is live, with its ledger, without ids: "name terms: entries". */
function live({ scene }: Walker): string[] {
  const { balances } = scene.ask("credits", { event: null });
  const ledger = Map.groupBy(
    scene.changes.flatMap((each) => each.table === "credit_ledger" ? [each.row] : []),
    ({ balanceId }) => balanceId,
  );
  return balances.map(({ row }) => {
    const entries = (ledger.get(row.id) ?? []).map(({ delta, reason, at }) =>
      `${numberOf(delta)} ${reason} ${at}`
    );
    return `${termsOf(row)}: ${entries.join(", ")}`;
  });
}

function termsOf(
  { ownRef, origin, remaining, initial, held, overage, grantedAt, expiresAt }: CreditBalance,
): string {
  const amounts = [remaining, initial, held, overage].map(numberOf).join("/");
  return `${ownRef?.replaceAll(/sub_\w+/g, "row")} ${origin} ${amounts} ${grantedAt} ${expiresAt}`;
}

Deno.test("to look later is to look at each begin of a window", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 40 }), (steps) => {
      const [lazy, eager] = [new Walker(PLANS), new Walker(PLANS)];
      for (const each of steps) {
        if (each.do === "wait") eager.lookUntil(eager.scene.now + each.seconds * 1000);
        lazy.take(each);
        if (each.do === "wait") eager.scene.now = lazy.scene.now;
        else eager.take(each);
        if (each.do === "read") assert.deepEqual(live(lazy), live(eager));
      }
      assert.deepEqual(live(lazy), live(eager));
      // What was looked at does not happen again.
      const from = lazy.scene.changes.length;
      lazy.scene.ask("settle", {});
      assert.equal(lazy.scene.changes.length, from);
    }),
    { numRuns: 150 },
  );
});

const AMOUNTS: Readonly<Record<string, number>> = { free: 0, small: 10, large: 25, twin: 15 };
const MONTHLY: readonly PlanDocument[] = [
  planOf("free", { g: 0 }, { rank: 0 }),
  planOf("small", { g: 0 }, {
    includes: [{ packId: "a", quantity: 10 }],
    trial: { days: 9, thenPlanId: "free" },
  }),
  planOf("large", { g: 0 }, { rank: 2, onPlanChange: "reset", includes: [{ packId: "a", quantity: 25 }] }),
  planOf("twin", { g: 0 }, { rank: 2, onPlanChange: "block", includes: [{ packId: "b", quantity: 15 }] }),
];

type Move =
  | { readonly do: "use" | "merge" }
  | { readonly do: "wait"; readonly hours: number }
  | {
    readonly do: "subscribe";
    readonly plan: string;
    readonly row: string;
    readonly seats: number;
    readonly trial: boolean;
  }
  | { readonly do: "cancel"; readonly row: string };

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("use") }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("wait"), hours: fc.constantFrom(0, 1, 30, 300, 800) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("subscribe"),
      plan: fc.constantFrom("free", "small", "large", "twin"),
      row: fc.constantFrom("", "r1", "r2"),
      seats: fc.integer({ min: 1, max: 2 }),
      trial: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cancel"), row: fc.constantFrom("", "r1", "r2") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("merge") }) },
);

Deno.test("no walk of changes and merges gives out more in a window than the largest amount of a plan in it", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(move, fc.boolean()), { minLength: 3, maxLength: 40 }), (moves) => {
      const into = new Walker(MONTHLY).scene;
      const alias = new Walker([], into).scene;
      let hasAlias = true;
      /** By month: what was used, and the largest amount of each of the two users. */
      const used = new Map<string, number>();
      const largest = new Map<string, number>();
      for (const [each, ofAlias] of moves) {
        const scene = ofAlias && hasAlias ? alias : into;
        const month = new Date(into.now).toISOString().slice(0, 7);
        switch (each.do) {
          case "use":
            while (scene.track(1) === "matched_credits_only" || scene.event().credits.length > 0) {
              const before = scene.changes.length;
              used.set(month, (used.get(month) ?? 0) + 1);
              if (scene.reason(1) !== "ok" || scene.changes.length < before) break;
            }
            break;
          case "wait":
            for (const one of [into, alias]) one.wait(each.hours * HOUR_S);
            break;
          case "subscribe": {
            const more = { ...idsOf(each.row), quantity: each.seats };
            try {
              scene.subscribe(
                each.plan,
                each.trial && each.plan === "small" ? { ...more, trial: true } : more,
              );
            } catch {
              scene.subscribe(each.plan, more);
            }
            break;
          }
          case "cancel":
            scene.cancel(idsOf(each.row));
            break;
          case "merge":
            if (hasAlias) alias.mergeInto(into);
            hasAlias = false;
        }
        const now = new Date(into.now).toISOString().slice(0, 7);
        for (const one of hasAlias ? [into, alias] : [into]) {
          const rows = [...one.state.subscriptions.values()].filter(({ ended }) => !ended);
          const amount = Math.max(
            0,
            ...rows.map(({ planId, quantity }) => (AMOUNTS[planId] ?? 0) * quantity),
          );
          const key = `${now} ${one.state.user.id}`;
          largest.set(key, Math.max(largest.get(key) ?? 0, amount));
        }
      }
      for (const [month, count] of used) {
        const most = (largest.get(`${month} u`) ?? 0) + (largest.get(`${month} alias`) ?? 0);
        assert.ok(count <= most, `${count} were given out in ${month}, where at most ${most} were included`);
      }
    }),
    { numRuns: 150 },
  );
});
