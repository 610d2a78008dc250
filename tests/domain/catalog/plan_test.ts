// Gates under headroom, and how the groups of two plans pair.

import assert from "node:assert/strict";
import { amountOf, numberOf } from "../../../src/domain/values/amount.ts";
import {
  compileCatalog,
  findPlan,
  type LimitGroupDocument,
  type PlanDocument,
} from "../../../src/domain/catalog/catalog.ts";
import { gateOf, leftUnderGate, pairGroups, type Plan } from "../../../src/domain/catalog/plan.ts";
import type { Plan as ModelPlan } from "../../model/document.ts";
import { pairGroups as pairsOfModel } from "../../model/rules.ts";

function group(id: string, more: Partial<LimitGroupDocument> = {}): LimitGroupDocument {
  return { id, label: id, unit: "count", quota: 10, matches: [{ event: `${id}.*` }], ...more };
}

function plan(limits: readonly LimitGroupDocument[], more: Partial<PlanDocument> = {}): Plan {
  const document = {
    id: "p",
    name: "P",
    rank: 1,
    period: { type: "daily", anchor: "calendar" },
    limits,
    ...more,
  };
  return compileCatalog({ plans: [document as PlanDocument] }, 1).plans.get("p") as Plan;
}

Deno.test("percent headroom lowers the gate, multiplier headroom divides what is left; counts are whole", () => {
  const rows: [
    mode: "percent" | "multiplier" | null,
    value: number,
    quota: number,
    current: number,
    gate: number,
    room: number,
    roomOfCount?: number,
  ][] = [
    [null, 0, 10, 4, 10, 6],
    ["percent", 90, 10, 4, 9, 5],
    ["percent", 90, 10, 9.5, 9, 0],
    ["percent", 100, 10, 4, 10, 6],
    ["percent", 33.333333, 1, 0, 0.333333, 0.333333, 0],
    ["percent", 50, 0.000001, 0, 0.000001, 0.000001, 0],
    ["percent", 90, 15, 13, 13.5, 0.5, 0],
    ["percent", 90, 15, 12.5, 13.5, 1],
    ["multiplier", 2, 10, 4, 10, 3],
    ["multiplier", 3, 10, 0, 10, 3.333333, 3],
    [null, 0, 2.5, 1, 2.5, 1.5],
    ["multiplier", 1, 10, 11, 10, 0],
    ["percent", 90, 0, 0, 0, 0],
  ];
  for (const [mode, value, quota, current, gate, room, roomOfCount = room] of rows) {
    const headroom = mode === null ? null : { mode, value };
    for (const [unit, left] of [["tokens", room], ["count", roomOfCount]] as const) {
      const [limit] = plan([group("a", { headroom, unit })]).groups;
      assert.ok(limit);
      const what = `${mode} ${value} of ${quota} ${unit} at ${current}`;
      assert.equal(numberOf(gateOf(limit, amountOf(quota))), gate, what);
      assert.equal(numberOf(leftUnderGate(limit, amountOf(quota), amountOf(current))), left, what);
    }
  }
});

Deno.test("a group's own headroom replaces that of its plan", () => {
  const own = { mode: "multiplier", value: 2 } as const;
  const ofPlan = { mode: "percent", value: 50 } as const;
  const { groups } = plan([group("a"), group("b", { headroom: own })], { headroom: ofPlan });
  assert.deepEqual(groups.map(({ headroom }) => headroom?.mode), ["percent", "multiplier"]);
});

Deno.test("groups pair by id, else by unit and rules, else by unit and first pattern, each old one once", () => {
  const rules = [{ event: "b.*" }, { event: "c", metadata: { x: "1", y: "2" } }];
  const turned = [{ event: "c", metadata: { y: "2", x: "1" } }, { event: "b.*" }, { event: "b.*" }];
  type Groups = LimitGroupDocument[];
  // deno-fmt-ignore: a row a pairing
  const rows: [name: string, entered: Groups, old: Groups, pairs: Record<string, string>][] = [
    ["the same id of another unit", [group("a")], [group("a", { unit: "tokens" })], {}],
    ["the same id of another unit, and the same rules of its own", [group("a")], [group("a", { unit: "tokens" }), group("b", { matches: [{ event: "a.*" }] })], { a: "b" }],
    ["the same rules in another order", [group("a", { matches: rules })], [group("b", { matches: turned })], { a: "b" }],
    ["the same rules of another unit", [group("a", { matches: rules })], [group("b", { matches: turned, unit: "cents" })], {}],
    ["the same first pattern", [group("a", { matches: rules })], [group("b", { matches: [{ event: "b.*" }] })], { a: "b" }],
    ["a later pattern is not enough", [group("a", { matches: rules })], [group("b", { matches: [{ event: "c" }] })], {}],
    ["an id before rules", [group("a", { matches: rules }), group("b", { matches: rules })], [group("b", { matches: rules })], { b: "b" }],
    ["rules before a first pattern", [group("a", { matches: rules })], [group("x", { matches: [{ event: "b.*" }] }), group("y", { matches: turned })], { a: "y" }],
    ["an old group feeds one new group", [group("a", { matches: rules }), group("b", { matches: rules })], [group("x", { matches: rules })], { a: "x" }],
    ["two and two pair in order", [group("a", { matches: rules }), group("b", { matches: rules })], [group("x", { matches: rules }), group("y", { matches: rules })], { a: "x", b: "y" }],
    ["nothing alike", [group("a")], [group("b")], {}],
  ];
  for (const [name, entered, old, pairs] of rows) {
    const found = [...pairGroups(plan(entered), plan(old))].map(([to, from]) => [to, from.id]);
    assert.deepEqual(Object.fromEntries(found), pairs, name);
    const ofModel = pairsOfModel({ limits: old } as ModelPlan, { limits: entered } as ModelPlan);
    assert.deepEqual(Object.fromEntries(ofModel.map(({ from, to }) => [to.id, from.id])), pairs, name);
  }
});

Deno.test("a plan is found by its id first, else by name without regard to case", () => {
  const plans = [["plan_a", "Pro"], ["plan_b", "PLAN_A"], ["plan_c", "Änd"]].map(([id, name]) =>
    ({ ...plan([]), trial: undefined, id, name, limits: [] }) as unknown as PlanDocument
  );
  const catalog = compileCatalog({ plans }, 1);
  const found = (text: string) => findPlan(catalog, text)?.id ?? null;
  assert.deepEqual(["plan_a", "PLAN_A", "pro", "PRO", "a\u0308nd", "unknown", "PLAN_B"].map(found), [
    "plan_a",
    "plan_b",
    "plan_a",
    "plan_a",
    "plan_c",
    null,
    null,
  ]);
});
