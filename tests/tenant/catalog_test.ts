// The catalog format: what a strict check refuses and with what errors, units that never change, what changes between
// two documents, and that the page and the JSON Schema say what is checked.

import assert from "node:assert/strict";
import { Ajv } from "ajv";
import demo from "../../src/tenant/demo/catalog.json" with { type: "json" };
import type { CatalogDocument } from "../../src/domain/catalog/catalog.ts";
import { catalogFiles } from "../../src/cli/catalog_schema.ts";
import { diffCatalogs } from "../../src/tenant/catalog/changes.ts";
import { checkCatalog } from "../../src/tenant/catalog/check.ts";
import { catalogJsonSchema } from "../../src/tenant/catalog/reference.ts";

const FOLDER = new URL("../../src/tenant/catalog/", import.meta.url);
const RULE = { event: "image.*" };
const GROUP = { id: "lg", label: "Images", unit: "count", quota: 10, matches: [RULE] };
const PLAN = {
  id: "plan",
  name: "Plan",
  rank: 1,
  period: { type: "monthly", anchor: "calendar" },
  limits: [GROUP],
};
const ITEM = { id: "cpi", label: "Images", unit: "count", amount: 5, matches: [RULE] };
const PACK = { id: "cpk", name: "Pack", kind: "per_type", items: [ITEM] };
const BUCKET = { id: "cpk", name: "Pack", kind: "generic", unit: "cents", matches: [RULE], items: [] };
const MODEL = { id: "m", modality: "text", amountMode: "per_token", inputCentsPerMillionTokens: 1 };
const TYPE = { name: "recap", model: "m", prompt: "Hello", outputSchema: { type: "object" } };

/** The faults of a document as "path: message". */
async function faultsOf(document: unknown, inForce: unknown = null): Promise<string[]> {
  const checked = await checkCatalog(document, inForce as CatalogDocument | null);
  return "faults" in checked ? checked.faults.map(({ path, message }) => `${path}: ${message}`) : [];
}

const planWith = (members: object) => ({ plans: [{ ...PLAN, ...members }] });
const groupWith = (members: object) => planWith({ limits: [{ ...GROUP, ...members }] });
const packWith = (members: object) => ({ packs: [{ ...PACK, ...members }] });
const itemWith = (members: object) => packWith({ items: [{ ...ITEM, ...members }] });
const modelWith = (members: object) => ({ models: [{ ...MODEL, ...members }] });
const callsWith = (members: object) => ({
  models: [{ id: "m", modality: "image", amountMode: "per_call", ...members }],
});
const typeWith = (members: object) => ({ models: [MODEL], composeTypes: [{ ...TYPE, ...members }] });

const UNKNOWN: readonly (readonly [object, string])[] = [
  [{ plan: [] }, 'plan: is not a known member; did you mean "plans"?'],
  [
    { settings: { promptLoging: true } },
    'settings.promptLoging: is not a known member; did you mean "promptLogging"?',
  ],
  [{ settings: { rateLimit: { perSecond: 1, burst: 1, perMinute: 5 } } }, "settings.rateLimit.perMinute"],
  [modelWith({ provider: "x" }), "models[0].provider: is not a known member"],
  [modelWith({ tiers: [{ aboveInputTokens: 1, centsPerCall: 1 }] }), "models[0].tiers[0].centsPerCall"],
  [
    { settings: { unpricedModel: "warn" } },
    'settings.unpricedModel: is not a known member; did you mean "unpricedModels"?',
  ],
  // Known in another object: no correction of a word to itself.
  [
    modelWith({ quota: 1 }),
    "models[0].quota: is not a known member here; it belongs to another object of the catalog",
  ],
  [planWith({ limit: [] }), 'plans[0].limit: is not a known member; did you mean "limits"?'],
  [planWith({ version: 3 }), "plans[0].version"],
  [planWith({ period: { ...PLAN.period, length: 3 } }), "plans[0].period.length"],
  [groupWith({ quotas: 3 }), 'plans[0].limits[0].quotas: is not a known member; did you mean "quota"?'],
  [groupWith({ headroom: { mode: "percent", value: 5, min: 1 } }), "plans[0].limits[0].headroom.min"],
  [groupWith({ matches: [{ event: "a", model: "x" }] }), "plans[0].limits[0].matches[0].model"],
  [packWith({ price: 3 }), "packs[0].price"],
  [itemWith({ quota: 3 }), "packs[0].items[0].quota"],
  [typeWith({ tokens: 3 }), "composeTypes[0].tokens"],
  [JSON.parse('{"plans":[],"__proto__":{}}'), "__proto__: is not a known member"],
];

for (const [document, expected] of UNKNOWN) {
  Deno.test(`an unknown member is a fault with its path: ${expected}`, async () => {
    const faults = await faultsOf(document);
    assert.equal(faults.length, 1, String(faults));
    assert.ok(faults[0]?.startsWith(expected), faults[0]);
  });
}

const MESSAGES: readonly (readonly [object, readonly string[]])[] = [
  [planWith({ name: undefined, rank: "1" }), [
    "plans[0].name: is required",
    "plans[0].rank: must be a number",
  ]],
  [groupWith({ unit: "bytes", quota: -1, matches: [] }), [
    'plans[0].limits[0].unit: must be one of "count", "tokens", "seconds", "cents", "credits"',
    "plans[0].limits[0].quota: must be at least 0",
    "plans[0].limits[0].matches: must have at least 1 element",
  ]],
  [groupWith({ headroom: {} }), ["plans[0].limits[0].headroom.mode: is required"]],
  [groupWith({ headroom: { mode: "both" } }), [
    'plans[0].limits[0].headroom.mode: must be one of "percent", "multiplier"',
  ]],
  [modelWith({ tiers: [{}, { aboveInputTokens: "1" }], checkedAt: "today", source: "" }), [
    "models[0].tiers[0].aboveInputTokens: is required",
    "models[0].tiers[1].aboveInputTokens: must be a number",
    "models[0].source: must be a text of 1 to 200 characters without control characters",
    "models[0].checkedAt: must be a time in UTC such as 2026-11-22T00:00:00.000Z",
  ]],
  [{ gateway: { models: ["*a"], budgetCents: -1, test: true, upstreams: [{ models: [], upstream: "" }] } }, [
    "gateway.models[0]: must be the name of a model, or a prefix with one * at its end",
    "gateway.budgetCents: must be at least 0",
    "gateway.upstreams[0].models: must have at least 1 element",
    "gateway.upstreams[0].upstream: must be a text of 1 to 200 characters without control characters",
    "gateway.test: is not a known member",
  ]],
  [{ settings: { unpricedModels: "allow" } }, ['settings.unpricedModels: must be one of "warn", "refuse"']],
  [groupWith({ overage: { max: -1 } }), ["plans[0].limits[0].overage.max: must be at least 0"]],
  [groupWith({ overage: {} }), ["plans[0].limits[0].overage.max: is required"]],
  [groupWith({ perMember: { quota: -1 } }), ["plans[0].limits[0].perMember.quota: must be at least 0"]],
  [groupWith({ perMember: 5 }), ["plans[0].limits[0].perMember: must be an object"]],
  [groupWith({ perMember: {} }), ["plans[0].limits[0].perMember.quota: is required"]],
  [groupWith({ alerts: [0, 50, 101] }), [
    "plans[0].limits[0].alerts[0]: must be greater than 0",
    "plans[0].limits[0].alerts[2]: must be at most 100",
  ]],
  [groupWith({ alerts: Array.from({ length: 11 }, (_, place) => place + 1) }), [
    "plans[0].limits[0].alerts: must have at most 10 elements",
  ]],
  [groupWith({ alerts: 80 }), ["plans[0].limits[0].alerts: must be an array"]],
  [groupWith({ alerts: ["speed"] }), ['plans[0].limits[0].alerts[0]: must be a number or "pace"']],
  [itemWith({ lowAt: 0 }), ["packs[0].items[0].lowAt: must be at least 0.000001"]],
  [itemWith({ amount: 0 }), ["packs[0].items[0].amount: must be at least 0.000001"]],
  [itemWith({ amount: 4e-7 }), ["packs[0].items[0].amount: must be at least 0.000001"]],
  [{ plans: {}, settings: { promptLogging: "yes" } }, [
    "settings.promptLogging: must be a boolean",
    "plans: must be an array",
  ]],
  [typeWith({ temperature: 3, outputSchema: undefined }), [
    "composeTypes[0].outputSchema: is required",
    "composeTypes[0].temperature: must be at most 2",
  ]],
];

for (const [document, expected] of MESSAGES) {
  Deno.test(`a fault says what must be there: ${expected.join("; ")}`, async () => {
    assert.deepEqual(await faultsOf(document), expected);
  });
}

const ROW = { modality: "image", amountMode: "per_call", centsPerCall: 1 };

const ALIASES: readonly (readonly [models: object[], expected: readonly string[]])[] = [
  [[{ ...ROW, id: "a", aliases: ["a-*", "b-1", "*"] }, { ...ROW, id: "b", aliases: ["b-*"] }], []],
  [
    [{ ...ROW, id: "a", aliases: ["b"] }, { ...ROW, id: "b" }],
    ['models[0].aliases[0]: repeats the name "b" of models[1].id'],
  ],
  [
    [{ ...ROW, id: "a", aliases: ["c-*", "c-*"] }, { ...ROW, id: "b", aliases: ["c-*"] }],
    [
      'models[0].aliases[1]: repeats the name "c-*" of models[0].aliases[0]',
      'models[1].aliases[0]: repeats the name "c-*" of models[0].aliases[0]',
    ],
  ],
  [
    [{ ...ROW, id: "a", aliases: ["*-mini", 5, ""] }],
    [
      'models[0].aliases[0]: must be a name, or a prefix followed by one final "*"',
      "models[0].aliases[1]: must be a string",
      'models[0].aliases[2]: must be a name, or a prefix followed by one final "*"',
    ],
  ],
  [[{ ...ROW, id: "a", aliases: "b" }], ["models[0].aliases: must be an array"]],
];

for (const [models, expected] of ALIASES) {
  Deno.test(`names of models, each with one price: ${JSON.stringify(models)}`, async () => {
    assert.deepEqual(await faultsOf({ models }), expected);
  });
}

const PRICES: readonly (readonly [object, readonly string[]])[] = [
  [{ ...planWith({ stripePrices: ["price_1"] }), ...packWith({ stripePrices: ["price_2"] }) }, []],
  [
    planWith({ stripePrices: ["price_1", "price_2", "price_1"] }),
    ['plans[0].stripePrices[2]: repeats the price "price_1" of plans[0].stripePrices[0]'],
  ],
  [
    {
      plans: [{ ...PLAN, stripePrices: ["price_1"] }, {
        ...PLAN,
        id: "other",
        name: "Other",
        limits: [],
        stripePrices: ["price_2", "price_1"],
      }],
    },
    ['plans[1].stripePrices[1]: repeats the price "price_1" of plans[0].stripePrices[0]'],
  ],
  [
    { ...planWith({ stripePrices: ["price_1"] }), ...packWith({ stripePrices: ["price_1"] }) },
    ['packs[0].stripePrices[0]: repeats the price "price_1" of plans[0].stripePrices[0]'],
  ],
  [planWith({ stripePrices: "price_1" }), ["plans[0].stripePrices: must be an array"]],
  [packWith({ stripePrices: [7] }), ["packs[0].stripePrices[0]: must be a string"]],
];

Deno.test("a price of Stripe stands once in a catalog, and the fault names both places", async () => {
  for (const [document, expected] of PRICES) assert.deepEqual(await faultsOf(document), expected);
});

const trialWith = (trial: object) => ({
  plans: [{ ...PLAN, trial }, { ...PLAN, id: "other", name: "Other" }],
});
const NO_PLAN_AFTER = "plans[0].trial.thenPlanId: must be the id of another plan of the catalog";

const TRIALS: readonly (readonly [object, readonly string[]])[] = [
  [{ days: 14, thenPlanId: "other" }, []],
  [{ days: 14, thenPlanId: null }, []],
  [{ days: 14 }, []],
  [{ thenPlanId: "other" }, ["plans[0].trial.days: is required"]],
  [{ days: 0 }, ["plans[0].trial.days: must be at least 1"]],
  [{ days: 1.5 }, ["plans[0].trial.days: must be an integer"]],
  [{ days: 14, thenPlanId: "none" }, [NO_PLAN_AFTER]],
  [{ days: 14, thenPlanId: PLAN.id }, [NO_PLAN_AFTER]],
];

Deno.test("the trial of a plan leads to no add-on, that of an add-on to one or nowhere", async () => {
  const path = "plans[0].trial.thenPlanId";
  for (
    const [addon, message] of [[false, "must not be an add-on"], [true, "must be an add-on, as the plan is"]]
  ) {
    const { plans: [plan, other] } = trialWith({ days: 14, thenPlanId: "other" });
    const faults = (otherAddon: unknown) =>
      faultsOf({ plans: [{ ...plan, addon }, { ...other, addon: otherAddon }] });
    assert.deepEqual([await faults(addon), await faults(!addon)], [[], [`${path}: ${message}`]]);
  }
});

Deno.test("a trial is some days long, and another plan of the catalog follows it or none", async () => {
  for (const [trial, expected] of TRIALS) assert.deepEqual(await faultsOf(trialWith(trial)), expected);
});

Deno.test("what a catalog was read with can be put back, and is no part of the document", async () => {
  const envelope = { $schema: "./catalog.schema.json", version: 3, expectedVersion: 3 };
  assert.deepEqual(await checkCatalog({ ...envelope, ...demo }, null), { catalog: demo });
  assert.deepEqual(await checkCatalog({ ...envelope, $schema: 5, version: "x" }, null), { catalog: {} });
});

Deno.test("metadata of a rule and an output schema are open", async () => {
  const rule = { event: "a", metadata: { anything: "x", version: "1" } };
  const outputSchema = { type: "object", properties: { quotas: { type: "number" } }, "x-note": 1 };
  assert.deepEqual(await faultsOf({ ...groupWith({ matches: [rule] }), ...typeWith({ outputSchema }) }), []);
});

const PRICE_FAULTS: readonly (readonly [object, readonly string[]])[] = [
  [
    modelWith({ tiers: [1, 5, 1, 5].map((aboveInputTokens) => ({ aboveInputTokens })) }),
    [2, 3].map((tier) => `models[0].tiers[${tier}].aboveInputTokens: must be unique in its model`),
  ],
  [callsWith({ centsPerCall: 1, centsPerImage: 1 }), [
    "models[0].centsPerImage: excludes centsPerCall: remove one of them",
  ]],
  [callsWith({}), ["models[0].centsPerCall: is needed when amountMode is per_call"]],
  [callsWith({ centsPerImage: 4 }), []],
  [modelWith({ inputCentsPerMillionTokens: undefined, outputCentsPerMillionTokens: 5 }), [
    "models[0].inputCentsPerMillionTokens: is needed when amountMode is per_token",
  ]],
  [modelWith({ amountMode: "per_unit" }), [
    "models[0].centsPerSecond: is needed when amountMode is per_unit",
  ]],
  [modelWith({ tiers: [{ aboveInputTokens: 0 }], source: "litellm", checkedAt: "2026-11-22T00:00:00Z" }), []],
];

for (const [document, expected] of PRICE_FAULTS) {
  Deno.test(`prices must fit their model: ${JSON.stringify(document)}`, async () => {
    assert.deepEqual(await faultsOf(document), expected);
  });
}

/** Faults of numbers that are compared with others, which the JSON Schema cannot say. */
const THRESHOLD_FAULTS: readonly (readonly [object, readonly string[]])[] = [
  [groupWith({ alerts: [80, 80] }), ["plans[0].limits[0].alerts: must be ascending, each percent once"]],
  [groupWith({ alerts: [90, 80] }), ["plans[0].limits[0].alerts: must be ascending, each percent once"]],
  [groupWith({ alerts: [0.5, 1, 50, 100] }), []],
  [groupWith({ alerts: [50, "pace", 100] }), []],
  [groupWith({ alerts: ["pace", 50, "pace"] }), ['plans[0].limits[0].alerts: must have "pace" once']],
  [groupWith({ alerts: [80, "pace"], period: { type: "session", seconds: 3600 } }), [
    'plans[0].limits[0].alerts[1]: must not be "pace" when the period is a session: only windows of a fixed length have a pace',
  ]],
  [groupWith({ alerts: ["pace"], period: { type: "lifetime", anchor: "calendar" } }), [
    'plans[0].limits[0].alerts[0]: must not be "pace" when the period is a lifetime: only windows of a fixed length have a pace',
  ]],
  [groupWith({ perMember: { quota: 0 } }), []],
  [groupWith({ overage: { max: 0 } }), []],
  [groupWith({ overage: { max: null } }), []],
  [groupWith({ overage: { max: 5 }, headroom: { mode: "percent", value: 90 } }), [
    "plans[0].limits[0].overage: must be left out together with headroom",
  ]],
  [groupWith({ overage: { max: 5 }, period: { type: "rolling", seconds: 60 } }), [
    "plans[0].limits[0].overage: must be left out: rates and concurrency limits only refuse",
  ]],
  [groupWith({ alerts: [] }), []],
  [itemWith({ lowAt: 5 }), ["packs[0].items[0].lowAt: must be less than the amount"]],
  [itemWith({ lowAt: 4.999999 }), []],
  [packWith({ lowAt: 1 }), ["packs[0].lowAt: must be on each item when the pack has items"]],
  [{ packs: [{ ...BUCKET, lowAt: 1e6 }] }, []],
];

for (const [document, expected] of THRESHOLD_FAULTS) {
  Deno.test(`thresholds are ascending, and below what they are of: ${JSON.stringify(document)}`, async () => {
    assert.deepEqual(await faultsOf(document), expected);
  });
}

const BAD_VALUE =
  "must be a boolean, a number, a string of at most 1000 characters or an array of at most 100 such strings";
const BAD_KEY = 'must have a key of 1 to 200 characters without "*", U+FFFD or control characters';
const manyKeys = Object.fromEntries(Array.from({ length: 201 }, (_, place) => [`k${place}`, true]));

const FEATURE_FAULTS: readonly (readonly [object, readonly string[]])[] = [
  [{ featureDefaults: { a: 1, b: "", c: [] }, ...planWith({ features: { a: 2, "d.e": true } }) }, []],
  [planWith({ features: [] }), ["plans[0].features: must be an object"]],
  [planWith({ features: { a: null } }), [`plans[0].features.a: ${BAD_VALUE}`]],
  [{ featureDefaults: { a: [1] } }, [`featureDefaults.a: ${BAD_VALUE}`]],
  [{ featureDefaults: { a: "x".repeat(1001) } }, [`featureDefaults.a: ${BAD_VALUE}`]],
  [{ featureDefaults: { "a*": true } }, [`featureDefaults.a*: ${BAD_KEY}`]],
  [{ featureDefaults: { "": true } }, [`featureDefaults.: ${BAD_KEY}`]],
  [{ featureDefaults: { ["x".repeat(201)]: true } }, [`featureDefaults.${"x".repeat(201)}: ${BAD_KEY}`]],
  [planWith({ features: manyKeys }), ["plans[0].features: must have at most 200 keys"]],
  [
    planWith({ features: JSON.parse('{"__proto__":true}') }),
    ['plans[0].features: must not have the member "__proto__"'],
  ],
  [
    { featureDefaults: { a: 1 }, ...planWith({ features: { a: "1" } }) },
    ["plans[0].features.a: must be of the same type as featureDefaults.a: number"],
  ],
  [
    {
      plans: [
        { ...PLAN, features: { toString: [] } },
        { ...PLAN, id: "q", name: "Q", features: { toString: "" } },
      ],
    },
    ["plans[1].features.toString: must be of the same type as plans[0].features.toString: array"],
  ],
];

for (const [document, expected] of FEATURE_FAULTS) {
  Deno.test(`features have keys, values and one type each: ${JSON.stringify(document).slice(0, 200)}`, async () => {
    assert.deepEqual(await faultsOf(document), expected);
  });
}

const UNIT_CHANGES: readonly (readonly [string, object, object, string | null])[] = [
  ["a limit group's", groupWith({}), groupWith({ unit: "tokens" }), "plans[0].limits[0].unit"],
  ["a limit group's with a new id", groupWith({}), groupWith({ id: "lg_2", unit: "tokens" }), null],
  [
    "a limit group's in another plan",
    groupWith({}),
    planWith({ id: "p2", limits: [{ ...GROUP, unit: "cents" }] }),
    null,
  ],
  ["a pack item's", itemWith({}), itemWith({ unit: "cents" }), "packs[0].items[0].unit"],
  ["a pack item's in another pack", itemWith({}), {
    packs: [{ ...PACK, id: "cpk_2", items: [{ ...ITEM, unit: "cents" }] }],
  }, "packs[0].items[0].unit"],
  ["a generic pack's", { packs: [BUCKET] }, { packs: [{ ...BUCKET, unit: "count" }] }, "packs[0].unit"],
  ["a pack's that gets items", { packs: [BUCKET] }, packWith({}), null],
];

for (const [what, before, after, path] of UNIT_CHANGES) {
  Deno.test(`a unit under the same id never changes, others may: ${what}`, async () => {
    const faults = await faultsOf(after, before);
    assert.equal(faults.length, path === null ? 0 : 1, String(faults));
    if (path !== null) {
      assert.match(faults[0] as string, /^.+: is "\w+" in the catalog in force .* a new id$/);
    }
    if (path !== null) assert.ok(faults[0]?.startsWith(`${path}:`), faults[0]);
  });
}

const CHANGES: readonly (readonly [object, object, readonly string[]])[] = [
  [{}, { settings: {}, plans: [PLAN] }, ["settings settings added", "plans plans added"]],
  [{ settings: { promptLogging: true } }, { settings: {} }, ["settings.promptLogging settings removed"]],
  [groupWith({}), groupWith({ quota: 5 }), ["plans[0].limits[0].quota lg changed"]],
  [planWith({}), planWith({ rank: 5 }), ["plans[0].rank plan changed"]],
  [planWith({}), planWith({ limits: [] }), ["plans[0].limits[0] lg removed"]],
  [planWith({}), { plans: [PLAN, { ...PLAN, id: "b" }] }, ["plans[1] b added"]],
  [itemWith({}), itemWith({ amount: 6 }), ["packs[0].items[0].amount cpi changed"]],
  [typeWith({}), typeWith({ prompt: "Bye" }), ["composeTypes[0].prompt recap changed"]],
  [
    typeWith({ outputSchema: { anyOf: [{ id: "x", type: "object" }] } }),
    typeWith({ outputSchema: { anyOf: [{ id: "x", type: "array" }] } }),
    ["composeTypes[0].outputSchema.anyOf[0].type recap changed"],
  ],
];

for (const [before, after, expected] of CHANGES) {
  Deno.test(`a change names its place and the innermost id: ${expected.join("; ")}`, () => {
    const changes = diffCatalogs(before, after);
    assert.deepEqual(changes.map(({ path, id, change }) => `${path} ${id} ${change}`), expected);
  });
}

Deno.test("the page and the JSON Schema of the format are those that `deno task catalog:schema` writes", async () => {
  for (const [name, text] of await catalogFiles()) {
    assert.equal(
      await Deno.readTextFile(new URL(name, FOLDER)),
      text,
      `run deno task catalog:schema: ${name}`,
    );
  }
});

Deno.test("every member on the page has a meaning, a default and an example", async () => {
  const rows = (await Deno.readTextFile(new URL("CATALOG.md", FOLDER))).split("\n")
    .filter((line) => line.startsWith("| `"));
  assert.ok(rows.length > 50);
  for (const row of rows) {
    const cells = row.split(/(?<!\\) \| /).map((cell) => cell.replaceAll(/^\| | \|$/g, "").trim());
    assert.equal(cells.length, 5, row);
    assert.ok(cells.every((cell) => cell !== ""), row);
  }
});

Deno.test("the JSON Schema takes the demo catalog and the page's example, and refuses what the check refuses", async () => {
  const matches = new Ajv({ strict: false, formats: { "date-time": true } }).compile(catalogJsonSchema());
  const page = await Deno.readTextFile(new URL("CATALOG.md", FOLDER));
  const [, example = ""] = page.match(/```json\n([^]*?)```/) ?? [];
  for (const document of [demo, JSON.parse(example), { $schema: "x", version: 1, expectedVersion: 1 }]) {
    assert.ok(matches(document), JSON.stringify(matches.errors));
    assert.deepEqual(await faultsOf(document), []);
  }
  for (const [document, expected] of [...UNKNOWN, ...MESSAGES]) {
    assert.equal(matches(document), false, String(expected));
  }
});
