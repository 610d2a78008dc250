// The catalog format: the shape and the meaning of every member, as zod schemas. An unknown member is a fault: it is
// nearly always a typing error, and dropping it would drop a limit. Rules between the parts are in check.ts. CATALOG.md and
// catalog.schema.json are generated from the descriptions here.

import { z } from "zod";
import { UNITS } from "../../domain/catalog/plan.ts";
import { FEATURE_LIMITS, type FeatureValue, isFeatureValue } from "../../domain/catalog/feature.ts";
import { REQUEST_LIMITS } from "../../process/limits.ts";
import { hasNoPrototype, isAscending, isShallow, SCHEMA_DEPTH_MAX } from "./forms.ts";
import { include } from "./include_schema.ts";
import { groupPeriod, period } from "./period_schema.ts";
import { amount, label, model, positiveAmount } from "./price_schema.ts";
import { matchRule, rate } from "./rate_schema.ts";
import { gateway, settings } from "./settings_schema.ts";

const unit = z.enum(UNITS);
const archived = z.boolean().optional();

const matches = z.array(matchRule).min(1).meta({
  description: "An event is covered when any of these rules matches it.",
  examples: [[{ event: "image.*" }]],
});

const headroom = z.discriminatedUnion("mode", [
  z.strictObject({
    mode: z.literal("percent").meta({ description: "Reserves stop at a share of the quota." }),
    value: z.number().min(0).max(100).meta({
      description: "The share of the quota that reserves may fill, in percent.",
      examples: [90],
    }),
  }),
  z.strictObject({
    mode: z.literal("multiplier").meta({ description: "Reserves need a multiple of their amount as room." }),
    value: z.number().min(1).max(REQUEST_LIMITS.amountMax).meta({
      description: "A reserve needs room for so many times its amount.",
      examples: [1.5],
    }),
  }),
]).meta({
  id: "CatalogHeadroom",
  title: "Headroom",
  description: "A safety margin below the quota. It applies to reserves and can-use, not to track or commit.",
  examples: [{ mode: "percent", value: 90 }],
});

const limitGroup = z.strictObject({
  id: label.meta({
    description: "Names the group in answers. Unique in its plan; keeps its unit for as long as it exists.",
    examples: ["lg_pro_images"],
  }),
  label: label.meta({ description: "What users read.", examples: ["Images a month"] }),
  unit: unit.meta({
    description:
      "What the group counts. It never changes under an id: give the group a new id for another unit.",
    examples: ["count"],
  }),
  quota: amount.meta({
    description: "How much of the unit a user may use in a period. Six decimal places are exact.",
    examples: [100],
  }),
  matches,
  headroom: headroom.nullish().meta({ description: "Replaces the headroom of the plan.", default: null }),
  alerts: z.array(
    z.union([z.number().positive().max(100), z.literal("pace")], 'must be a number or "pace"'),
  ).max(10).refine(
    (alerts) => isAscending(alerts.filter((alert) => alert !== "pace")),
    "must be ascending, each percent once",
  ).refine(
    (alerts) => alerts.indexOf("pace") === alerts.lastIndexOf("pace"),
    'must have "pace" once',
  ).optional().meta({
    description:
      "Percents of the effective quota. Webhooks receive `usage.threshold_reached` when the usage, holds " +
      'included, reaches one: once per user, percent and window. `"pace"`: they receive `usage.pace_exceeded`, once per user ' +
      "and window, when usage rises, a quarter of the window has passed, and at its pace so far the quota is used up before " +
      "the window ends. Lifetimes, sessions and guards have no pace.",
    default: [],
    examples: [[80, 100, "pace"]],
  }),
  overage: z.strictObject({
    max: amount.nullable().meta({
      description: "The most of a window in the group's unit; null for no limit.",
      examples: [500],
    }),
  }).meta({
    id: "CatalogOverage",
    title: "Overage",
    description: "What a group sells past its quota.",
  }).optional().meta({
    description:
      "What the group sells past its quota, after the plan and credits: what you bill by the messages `usage.overage`. " +
      "Excludes headroom, also that of the plan.",
    examples: [{ max: 500 }],
  }),
  perMember: z.strictObject({
    quota: amount.meta({
      description: "How much of the unit each member may use in a period.",
      examples: [20],
    }),
  }).meta({
    id: "CatalogMemberLimit",
    title: "Member limit",
    description: "The most that one member may use of the group.",
  }).optional().meta({
    description:
      "For users with users below them: the most that each of these may use of the quota in a period.",
    examples: [{ quota: 20 }],
  }),
  period: groupPeriod.optional().meta({
    description: "When the group counts, in place of the plan's period.",
    examples: [{ type: "rolling", seconds: 60 }],
  }),
}).meta({
  id: "CatalogLimitGroup",
  title: "Limit group",
  description: "A quota over the events that its rules match.",
});

const TEXT = { type: "string", maxLength: FEATURE_LIMITS.textLengthMax };

const featureValues = z.unknown().refine(hasNoPrototype, 'must not have the member "__proto__"').pipe(
  z.record(
    z.string(),
    z.custom<FeatureValue>(
      isFeatureValue,
      `must be a boolean, a number, a string of at most ${FEATURE_LIMITS.textLengthMax} characters or an array of ` +
        `at most ${FEATURE_LIMITS.listMax} such strings`,
    ),
  ),
).refine(
  (values) => Object.keys(values).length <= FEATURE_LIMITS.keysMax,
  `must have at most ${FEATURE_LIMITS.keysMax} keys`,
).meta({
  type: "object",
  maxProperties: FEATURE_LIMITS.keysMax,
  propertyNames: { minLength: 1, maxLength: REQUEST_LIMITS.eventLengthMax, pattern: "^[^*]+$" },
  additionalProperties: {
    anyOf: [
      { type: "boolean" },
      { type: "number" },
      TEXT,
      { type: "array", maxItems: FEATURE_LIMITS.listMax, items: TEXT },
    ],
  },
});

const stripePrices = z.array(label).max(100).optional();

const trial = z.strictObject({
  days: z.int().min(1).max(3650).meta({
    description: "How long the trial is, in days of 24 hours.",
    examples: [14],
  }),
  thenPlanId: label.nullish().meta({
    description: "The id of the plan after the trial; null: the subscription ends with it.",
    default: null,
    examples: ["plan_free"],
  }),
}).meta({
  id: "CatalogTrial",
  title: "Trial",
  description: "What a subscription with `trial: true` begins with, once for each user and plan.",
});

const plan = z.strictObject({
  id: label.meta({ description: "Names the plan. Unique.", examples: ["plan_pro"] }),
  name: label.meta({ description: "What users read. Unique without regard to case.", examples: ["Pro"] }),
  rank: z.number().meta({
    description: "Of a user's active subscriptions the one on the plan with the highest rank counts.",
    examples: [10],
  }),
  period: period.meta({
    description: "How often the counters start again at 0.",
    examples: [{ type: "monthly", anchor: "calendar" }],
  }),
  onPlanChange: z.enum(["carry", "reset", "block"]).optional().meta({
    description:
      "What the counters start with when a user switches to this plan from another one: the usage so far " +
      "(`carry`), 0 (`reset`), or the full quota until the next window (`block`).",
    default: "carry",
    examples: ["reset"],
  }),
  archived: archived.meta({
    description: "Hides the plan and refuses new subscriptions; existing ones keep it.",
    default: false,
    examples: [true],
  }),
  headroom: headroom.nullish().meta({
    description: "For every group without one of its own.",
    default: null,
  }),
  stripePrices: stripePrices.meta({
    description: "Ids of the prices in Stripe that sell the plan. Each is listed once in the catalog.",
    default: [],
    examples: [["price_1PgafmB7WZ01zgkW"]],
  }),
  perSeat: z.boolean().optional().meta({
    description:
      "Whether the quantity of the item in Stripe is the number of seats, by which the quotas are multiplied.",
    default: false,
    examples: [true],
  }),
  addon: z.boolean().optional().meta({
    description:
      "Whether the plan is an add-on: its quotas are added to the groups of the same id and unit of " +
      "the user's plan. Its rank, period, headroom, overage, alerts and `onPlanChange` have no effect.",
    default: false,
    examples: [true],
  }),
  trial: trial.optional().meta({
    description: "The trial of the plan. Without it, the plan has none.",
    examples: [{ days: 14, thenPlanId: "plan_free" }],
  }),
  limits: z.array(limitGroup).meta({
    description: "The plan's limit groups, in the order in which they are shown.",
  }),
  includes: z.array(include).optional().meta({
    description: "Packs whose credits come with the plan, anew in each window.",
    default: [],
    examples: [[{ packId: "cpk_image_topup", quantity: 500 }]],
  }),
  features: featureValues.optional().meta({
    description:
      "What the plan grants beside its limits: values by key. A value is a boolean, a number, a string or a list of " +
      "strings, and a key has one of these types in the whole catalog. A key is like an event name, without `*`.",
    examples: [{ sso: true, seats: 5, models: ["gpt-4o-mini"] }],
  }),
}).meta({ id: "CatalogPlan", title: "Plan", description: "What a subscription entitles to." });

const packItem = z.strictObject({
  id: label.meta({
    description: "Names the item. Unique over all packs; keeps its unit for as long as it exists.",
    examples: ["cpi_topup_images"],
  }),
  label: label.meta({ description: "What users read.", examples: ["50 images"] }),
  unit: unit.meta({
    description:
      "What the balance counts. It never changes under an id: give the item a new id for another unit.",
    examples: ["count"],
  }),
  amount: positiveAmount.meta({
    description: "How much of the unit a grant adds. More than 0.",
    examples: [50],
  }),
  lowAt: positiveAmount.optional().meta({
    description:
      "Webhooks receive `credits.low`, once per balance, when no more than this is left. Less than the amount.",
    examples: [5],
  }),
  matches,
}).meta({
  id: "CatalogPackItem",
  title: "Pack item",
  description: "A part of a pack; each grant makes a balance of it.",
});

const pack = z.strictObject({
  id: label.meta({ description: "Names the pack. Unique.", examples: ["cpk_image_topup"] }),
  name: label.meta({
    description: "What users read. Unique without regard to case.",
    examples: ["Image Top-Up"],
  }),
  kind: z.enum(["per_type", "generic"]).meta({
    description: "Whether the credits are for certain events or for any. It sets the default priority.",
    examples: ["per_type"],
  }),
  priority: z.number().optional().meta({
    description:
      "Balances with a higher number are spent first. Default: 100 for `per_type`, 0 for `generic`.",
    examples: [50],
  }),
  defaultExpiryDays: z.number().positive().nullish().meta({
    description: "Days from grant to expiry where the grant names none; null: they never expire.",
    default: null,
    examples: [90],
  }),
  archived: archived.meta({
    description: "Refuses new grants; existing balances stay valid.",
    default: false,
    examples: [true],
  }),
  unit: unit.optional().meta({
    description: "What the one balance of a pack without items counts. Needed there, and never changes.",
    examples: ["cents"],
  }),
  matches: matches.optional().meta({
    description: "What the one balance of a pack without items pays for. Needed there.",
    examples: [[{ event: "*" }]],
  }),
  lowAt: positiveAmount.optional().meta({
    description:
      "For a pack without items: webhooks receive `credits.low`, once per balance, when no more than this is left.",
    examples: [5],
  }),
  stripePrices: stripePrices.meta({
    description: "Ids of the prices in Stripe that sell the pack. Each is listed once in the catalog.",
    default: [],
    examples: [["price_1NxQ7cB7WZ01zgkWd0Ckz4Vn"]],
  }),
  price: z.strictObject({
    amount: z.int().positive().max(99_999_999).meta({
      description: "In the smallest unit of the currency, as Stripe has it.",
      examples: [500],
    }),
    currency: z.string().regex(/^[a-z]{3}$/, "must be three lower-case letters").meta({
      description: "An ISO code in lower case.",
      examples: ["eur"],
    }),
  }).optional().meta({
    id: "CatalogPackPrice",
    title: "Pack price",
    description: "What a top-up pays for the pack, or for a unit of a pack without items.",
    examples: [{ amount: 500, currency: "eur" }],
  }),
  items: z.array(packItem).meta({
    description: "The parts of the pack. Empty: each grant names its quantity and makes one balance.",
  }),
}).meta({ id: "CatalogPack", title: "Pack", description: "Credits that can be granted beside a plan." });

const planPrice = z.strictObject({
  amount: z.int().min(0).max(99_999_999).meta({
    description: "What a seat costs a period of the plan, in the smallest unit of the currency.",
    examples: [2000],
  }),
  currency: z.string().regex(/^[a-z]{3}$/, "must be three lower-case letters").meta({
    description: "An ISO code in lower case.",
    examples: ["usd"],
  }),
}).meta({ id: "CatalogPlanPrice", title: "Plan price", description: "What a plan costs its user." });

const composeType = z.strictObject({
  name: z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "must be in kebab-case").max(100).meta({
    description: "What a compose call names. In kebab-case, up to 100 characters, unique.",
    examples: ["usage-recap"],
  }),
  model: label.meta({ description: "The id of a `per_token` model.", examples: ["gpt-4o-mini"] }),
  prompt: z.string().min(1).max(32_768).meta({
    description:
      "The template. `{name}` is filled from `vars` or a data source; write `{{` and `}}` for braces.",
    examples: ["Recap the month for {name}. Their usage: {user_usage}."],
  }),
  dataSources: z.array(
    z.enum(["user_usage", "user_events", "user_attributes", "subscription", "credits"]),
  ).optional().meta({
    description: "Data of the user that the prompt may name: counters, the last 50 events, attributes, " +
      "subscription, active credits.",
    default: [],
    examples: [["user_usage"]],
  }),
  outputSchema: z.record(z.string(), z.unknown()).refine(
    isShallow,
    `must not be nested deeper than ${SCHEMA_DEPTH_MAX} levels`,
  ).meta({
    description:
      "The JSON Schema of the answer, an object. Open: what JSON Schema allows is allowed, up to 100 " +
      "levels and 1,000 objects.",
    examples: [{ type: "object", properties: { headline: { type: "string" } } }],
  }),
  maxOutputTokens: z.int().positive().optional().meta({
    description: "Tokens that an answer may have. Default: what the model server allows.",
    examples: [500],
  }),
  temperature: z.number().min(0).max(2).optional().meta({
    description: "How freely the model answers, from 0 to 2. Default: that of the model server.",
    examples: [0.7],
  }),
}).meta({
  id: "CatalogComposeType",
  title: "Compose type",
  description: "A prompt, its data, a model and the answer's form.",
});

/** A whole catalog document. */
export const catalogSchema = z.strictObject({
  settings: settings.optional().meta({ description: "What holds for the whole app.", default: {} }),
  gateway: gateway.optional().meta({
    description: "What keys of the app may do at `/openai/v1` and `/anthropic/v1`.",
    examples: [{ models: ["gpt-4o-mini"], budgetCents: 50_000 }],
  }),
  models: z.array(model).optional().meta({ description: "Price rows of models.", default: [] }),
  rates: z.array(rate).optional().meta({
    description:
      "The rate card: what a call costs in credits, for limit groups and packs with the unit `credits`. The " +
      "first row that covers an event is its rate.",
    default: [],
  }),
  plans: z.array(plan).optional().meta({ description: "What subscriptions entitle to.", default: [] }),
  planPrices: z.record(z.string(), planPrice).optional().meta({
    description:
      "What plans cost their users, by the id of the plan. Margins of the console are computed with it; " +
      "nothing is charged by it, and no user reads it.",
    default: {},
    examples: [{ plan_pro: { amount: 2000, currency: "usd" } }],
  }),
  featureDefaults: featureValues.optional().meta({
    description: "Features of every user whose own plan, and those of the users above, lack the key.",
    examples: [{ sso: false, seats: 1 }],
  }),
  packs: z.array(pack).optional().meta({ description: "Credits that can be granted.", default: [] }),
  composeTypes: z.array(composeType).optional().meta({
    description: "Prompts that compose runs.",
    default: [],
  }),
});

/** Members of a file or request beside the document: they say something about it and are no part of it. */
export const envelopeMembers = {
  $schema: z.unknown().optional().meta({
    type: "string",
    description: "Where this format's JSON Schema is, for editors. Ignored.",
    examples: ["./catalog.schema.json"],
  }),
  version: z.unknown().optional().meta({
    type: "integer",
    description: "The version that a catalog was read as. Ignored, so that what was read can be put back.",
    examples: [3],
  }),
  testOnly: z.unknown().optional().meta({
    type: "boolean",
    description: "Whether a catalog was read as that of test mode alone. Ignored, like version.",
    examples: [true],
  }),
  expectedVersion: z.unknown().optional().meta({
    type: "integer",
    description:
      "The version that must be in force for this catalog to be applied; else 409 `catalog_in_use`.",
    examples: [3],
  }),
};

/** A catalog document whose parts have the right shape. */
export type CatalogInput = z.infer<typeof catalogSchema>;
