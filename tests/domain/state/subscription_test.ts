// Subscription rows: when one is active, which is primary, and what it gives.

import assert from "node:assert/strict";
import { compileCatalog } from "../../../src/domain/catalog/catalog.ts";
import type { Plan } from "../../../src/domain/catalog/plan.ts";
import {
  activeRows,
  anchorOf,
  isActive,
  isPaid,
  ownQuotaOf,
  primaryOf,
  type Subscription,
} from "../../../src/domain/state/subscription.ts";
import { SharedValues } from "../../../src/domain/state/shared_values.ts";
import { planOf } from "../scene.ts";

const CATALOG = compileCatalog({ plans: [planOf("low", { g: 1 }), planOf("top", { g: 9 }, { rank: 2 })] }, 1);

function rowOf(id: string, more: Partial<Subscription> = {}): Subscription {
  const empty = {
    provider: null,
    externalId: null,
    endsAt: null,
    ended: false,
    cycleAnchorAt: null,
    customLimits: {},
    quantity: 1,
    scheduled: null,
    trial: null,
    trials: [],
    firstHeld: {},
    providerTrialEndsAt: null,
    trialCredits: {},
    customFeatures: {},
  };
  return { id, userKey: 7, planId: "low", startedAt: 5, ...empty, ...more };
}

Deno.test("a row is active until its end, and not once its end is settled", () => {
  const rows: [Partial<Subscription>, boolean][] = [
    [{}, true],
    [{ endsAt: 101 }, true],
    [{ endsAt: 100 }, false],
    [{ endsAt: 101, ended: true }, false],
  ];
  for (const [more, active] of rows) {
    assert.equal(isActive(rowOf("a", more), 100), active, JSON.stringify(more));
  }
  assert.deepEqual([isPaid(rowOf("a")), isPaid(rowOf("a", { provider: "p" }))], [false, true]);
});

Deno.test("the primary is the best active row by rank, then the latest start, then the latest id", () => {
  const cases: [name: string, rows: Subscription[], order: string][] = [
    ["none", [], ""],
    ["none that is active", [rowOf("a", { ended: true }), rowOf("b", { endsAt: 100 })], ""],
    ["rank before start", [rowOf("a", { startedAt: 9 }), rowOf("b", { planId: "top" })], "ba"],
    ["the later start", [rowOf("a"), rowOf("b", { startedAt: 6 })], "ba"],
    ["the later id at one start", [rowOf("b"), rowOf("a")], "ba"],
    ["a plan that is gone comes last", [rowOf("a", { planId: "gone", startedAt: 9 }), rowOf("b")], "ba"],
    [
      "two plans that are gone",
      [rowOf("a", { planId: "x" }), rowOf("b", { planId: "y", startedAt: 9 })],
      "ba",
    ],
  ];
  for (const [name, rows, order] of cases) {
    for (const each of [rows, rows.toReversed()]) {
      assert.equal(activeRows(each, CATALOG, 100).map(({ id }) => id).join(""), order, name);
      assert.equal(primaryOf(each, CATALOG, 100)?.id ?? "", order.slice(0, 1), name);
    }
  }
});

Deno.test("a custom limit replaces the plan's quota, 0 too; windows are stepped from the cycle's anchor, else the start", () => {
  const plan = CATALOG.plans.get("top") as Plan;
  const [group] = plan.groups;
  assert.ok(group !== undefined);
  assert.equal(ownQuotaOf(rowOf("a"), group), 9_000_000n);
  assert.equal(ownQuotaOf(rowOf("a", { customLimits: { g: 0n } }), group), 0n);
  assert.equal(ownQuotaOf(rowOf("a", { quantity: 3 }), group), 27_000_000n);
  assert.equal(
    ownQuotaOf(rowOf("a", { quantity: 3, customLimits: { g: 5n } }), group),
    5n,
    "seats multiply the plan's",
  );
  assert.deepEqual([anchorOf(rowOf("a")), anchorOf(rowOf("a", { cycleAnchorAt: 3 }))], [5, 3]);
  const daily: Plan = { ...plan, period: { type: "daily", anchor: "subscription_start" } };
  const row = rowOf("a", { cycleAnchorAt: 3 });
  const shared = new SharedValues();
  const day = 86_400_000;
  for (const at of [3, day + 2, day + 3, 3]) {
    const start = 3 + Math.floor((at - 3) / day) * day;
    assert.deepEqual(
      shared.windowOf(row, daily.period, at),
      { start, end: start + day },
      "asked twice, and in any order",
    );
  }
});
