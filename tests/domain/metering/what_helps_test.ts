// What would help after a refusal: plans with room for the call, and packs that cover it.

import assert from "node:assert/strict";
import { compileCatalog, type PackDocument, type PlanDocument } from "../../../src/domain/catalog/catalog.ts";
import type { Unit } from "../../../src/domain/catalog/plan.ts";
import { type CallForHelp, whatHelps } from "../../../src/domain/metering/what_helps.ts";
import { amountOf } from "../../../src/domain/values/amount.ts";
import { groupOf, packOf, planOf } from "../short_catalog.ts";

interface Case {
  readonly name: string;
  readonly plans?: readonly PlanDocument[];
  readonly packs?: readonly PackDocument[];
  readonly call?: Partial<CallForHelp>;
  readonly helps: readonly string[];
}

/** The user's plan: 10 of "x.*", all used. */
const FREE = planOf("free", { g: 10 });
const matching = (id: string, model: string) =>
  planOf(id, {}, { limits: [{ ...groupOf("g", 50), matches: [{ event: "x.*", metadata: { model } }] }] });

const CASES: readonly Case[] = [
  {
    name: "a plan with room after carried usage, lowest rank first",
    plans: [planOf("large", { g: 90 }, { rank: 9 }), planOf("same", { g: 10 }), planOf("one", { g: 11 })],
    helps: ["one", "large"],
  },
  {
    name: "a plan that resets has its whole quota",
    plans: [planOf("p", { g: 1 }, { onPlanChange: "reset" })],
    helps: ["p"],
  },
  {
    name: "a plan that blocks starts full",
    plans: [planOf("p", { g: 90 }, { onPlanChange: "block" })],
    helps: [],
  },
  {
    name: "no archived plan and no add-on",
    plans: [planOf("old", { g: 90 }, { archived: true }), planOf("add", { g: 90 }, { addon: true })],
    helps: [],
  },
  { name: "every covering group needs room", plans: [planOf("p", { g: 90, other: 0 })], helps: [] },
  {
    name: "seats multiply a quota",
    plans: [planOf("p", { g: 6 }, { perSeat: true })],
    call: { seats: 2 },
    helps: ["p"],
  },
  {
    name: "what is sold past the quota is room",
    plans: [planOf("p", {}, { limits: [{ ...groupOf("g", 10), overage: { max: null } }] })],
    helps: ["p"],
  },
  {
    name: "a plan that does not cover the event does not help",
    plans: [planOf("p", {}, { limits: [groupOf("g", 90, "count", "y")] })],
    helps: [],
  },
  {
    name: "known metadata count, unknown ones do not",
    plans: [matching("p", "a")],
    call: { metadata: { text: "", members: { model: "b" } } },
    helps: [],
  },
  { name: "a rule for other metadata may cover an unknown call", plans: [matching("p", "a")], helps: ["p"] },
  {
    name: "packs of the unit that lacks, which cover the event",
    packs: [
      packOf("fits"),
      packOf("tokens", { unit: "tokens" }),
      packOf("elsewhere", { matches: [{ event: "y" }] }),
      packOf("old", { archived: true }),
    ],
    helps: ["fits"],
  },
  {
    name: "credits do not help against a rate, another plan may",
    plans: [planOf("p", { g: 90 })],
    packs: [packOf("fits")],
    call: { reasons: ["rate_limit_reached"] },
    helps: ["p"],
  },
  {
    name: "neither helps against a cap of the workspace",
    plans: [planOf("p", { g: 90 })],
    packs: [packOf("fits")],
    call: { reasons: ["limit_reached", "workspace_limit_reached"] },
    helps: [],
  },
  {
    name: "without a plan every plan that covers the call starts at 0",
    plans: [planOf("p", { g: 1 })],
    call: { planId: null, reasons: ["no_subscription"] },
    helps: ["free", "p"],
  },
];

for (const { name, plans = [], packs = [], call = {}, helps } of CASES) {
  Deno.test(`what helps: ${name}`, () => {
    const found = whatHelps(compileCatalog({ plans: [FREE, ...plans], packs }, 1), {
      event: "x.y",
      metadata: undefined,
      reasons: ["limit_reached"],
      needs: new Map<Unit, bigint>([["count", amountOf(1)]]),
      lacking: new Set<Unit>(["count"]),
      planId: "free",
      seats: 1,
      counts: new Map([["g", amountOf(10)]]),
      ...call,
    });
    assert.deepEqual([...found.plans, ...found.packs].map(({ id }) => id), helps);
  });
}
