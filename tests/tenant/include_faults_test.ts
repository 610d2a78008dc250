// The packs that plans include: which the catalog takes, and what it says of others.

import assert from "node:assert/strict";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";
import { planOf } from "../domain/short_catalog.ts";

async function faultsOf(document: object): Promise<string[]> {
  const checked = await checkCatalog(document, null);
  return "faults" in checked ? checked.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}

const PLAN = planOf("plan", { g: 1 });

const includeWith = (include: object, more: object = {}, amount = 5) => ({
  plans: [{ ...PLAN, includes: [include], ...more }],
  packs: [
    { id: "p", name: "P", kind: "generic", unit: "count", matches: [{ event: "*" }], items: [] },
    {
      id: "i",
      name: "I",
      kind: "generic",
      items: [{ id: "one", label: "One", unit: "count", amount, matches: [{ event: "*" }] }],
    },
  ],
});
const LIFETIME = { type: "lifetime", anchor: "subscription_start" };
const IN_PLAN = "plans[0].includes[0]";

const INCLUDES: readonly (readonly [document: object, faults: readonly string[]])[] = [
  [includeWith({ packId: "p", quantity: 5 }), []],
  [includeWith({ packId: "i", rollover: { max: 5, periods: 12 } }), []],
  [includeWith({ packId: "i", period: LIFETIME }), []],
  [includeWith({ packId: "none" }), [`${IN_PLAN}.packId: must be the id of a pack of the catalog`]],
  [includeWith({ packId: "p" }), [`${IN_PLAN}.quantity: is needed when the pack has no items`]],
  [includeWith({ packId: "p", quantity: 0 }), [`${IN_PLAN}.quantity: must be at least 0.000001`]],
  [includeWith({ packId: "p", quantity: 4e-7 }), [`${IN_PLAN}.quantity: must be at least 0.000001`]],
  [includeWith({ packId: "i", quantity: 2 }), []],
  [includeWith({ packId: "i", quantity: 0.001 }, {}, 0.001), []],
  [
    includeWith({ packId: "i", quantity: 0.0001 }, {}, 0.001),
    [`${IN_PLAN}.quantity: must include at least 0.000001 of each item`],
  ],
  [
    includeWith({ packId: "i" }, { includes: [{ packId: "i" }, { packId: "i" }] }),
    ["plans[0].includes[1].packId: must be unique in its plan"],
  ],
  [
    includeWith({ packId: "i", period: LIFETIME, rollover: { max: 5, periods: 1 } }),
    [`${IN_PLAN}.rollover: must be left out: a lifetime has no end at which to roll over`],
  ],
  [
    includeWith({ packId: "i", period: { type: "session", seconds: 60 } }),
    [
      `${IN_PLAN}.period.type: must be one of "hourly", "daily", "weekly", "monthly", "yearly", "lifetime"`,
      `${IN_PLAN}.period.anchor: is required`,
      `${IN_PLAN}.period.seconds: is not a known member here; it belongs to another object of the catalog`,
    ],
  ],
  [
    includeWith({ packId: "i", rollover: { max: 5, periods: 13 } }),
    [`${IN_PLAN}.rollover.periods: must be at most 12`],
  ],
];

Deno.test("a plan includes packs of the catalog, each with the amount and the period that it needs", async () => {
  for (const [document, expected] of INCLUDES) assert.deepEqual(await faultsOf(document), expected);
});
