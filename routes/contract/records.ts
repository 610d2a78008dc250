// Schemas of records that several answers contain. They are strict, so that the tests find any member that the API
// reference lacks.

import { z } from "zod";
import { UNITS } from "../../src/domain/catalog/plan.ts";
import { PERIOD_TYPES } from "../../src/domain/values/period.ts";
import { SHOWN_AS } from "./fields.ts";

/** A time in answers: ISO 8601 in UTC, with milliseconds. */
export const time = z.iso.datetime({ precision: 3 }).register(SHOWN_AS, {
  type: "string",
  format: "date-time",
  description: "ISO 8601 in UTC, with milliseconds",
});

/** The answer of a call without data. */
export const nothing = z.strictObject({});

/** Why a call is not allowed. */
export const REASONS = [
  "limit_reached",
  "reservation_headroom_exceeded",
  "unmatched_event",
  "no_subscription",
  "unpriced_model",
  "member_limit_reached",
  "run_limit_reached",
  "rate_limit_reached",
  "concurrency_limit_reached",
] as const;

export const reasons = z.array(z.enum(REASONS));

/** The users and runs that refuse a call. */
export const refusedBy = z.array(z.string()).optional().describe(
  "Of a refused call with a runId, or of a user with a parent: the ids of the users that refuse, in the order of " +
    "the path, then those of runs, innermost first",
);

/** The users above, each with the members that the answer has of its own user. */
export function levelsOf<Shape extends z.ZodRawShape>(members: Shape) {
  return z.array(z.strictObject({ userId: z.string(), ...members })).optional()
    .describe("Present if the user has a parent: the users above, nearest first");
}

/** The unit of a limit group or a balance. */
export const unit = z.enum(UNITS).meta({ id: "Unit" });

/** A limit of a run. */
export const runLimit = z.strictObject({
  limitId: z.string(),
  unit,
  event: z.string().describe("The pattern of the events that count"),
  quota: z.number(),
  count: z.number().describe("Used and held"),
  held: z.number().describe("The part of count that open reservations hold"),
}).meta({ id: "RunLimit" });

/** The runs of a call. */
export const runs = z.array(z.strictObject({ runId: z.string(), limits: z.array(runLimit) })).optional()
  .describe("With a runId: the run and those around it, innermost first, after the call");

const rule = z.strictObject({
  event: z.string().describe('An event type, a prefix with a final "*", or "*"'),
  metadata: z.record(z.string(), z.string()).optional()
    .describe("Values that the call's metadata must have"),
}).meta({ id: "MatchRule", description: "Which events a limit group or a credit balance covers." });

/** The running window of a plan or a limit group. */
export const period = z.strictObject({
  start: time,
  end: time.nullable().describe("null for a lifetime period"),
})
  .meta({ id: "Period" });

/** When a refused call may be tried again. */
export const retryAfterMs = z.number().nullable().optional().describe(
  "Present where rates and concurrency limits alone refuse: how long until the same call passes them, unless " +
    "another call or a settlement comes first; null where it never does",
);

/** What a counter has whose group counts by a period of its own. */
const ownWindow = {
  period: period.nullable().optional().describe(
    "Present where the group has a period of its own: its running window; null where none runs, and for a guard",
  ),
  window: z.strictObject({
    type: z.enum(["rolling", "concurrent"]),
    seconds: z.number().optional().describe("Of a rate"),
  }).optional().describe(
    "Present for a guard: a rate or a concurrency limit. count is what counts now",
  ),
};

/** What a counter has whose group sells past its quota. */
export const overage = z.number().optional().describe(
  "Present where the group has overage: the part of the count that was sold past the quota. It uses up none of the quota",
);

/** Limits set for one user, by group id. */
export const limitsByGroup = z.record(z.string(), z.strictObject({ quota: z.number() }));

/** A user's own caps on overage, by group id. */
export const spendCaps = z.record(z.string(), z.strictObject({ max: z.number() }));

/** A counter of a limit group in the running window. */
export const counter = z.strictObject({
  groupId: z.string(),
  event: z.string().describe("The pattern of the first rule of the group"),
  label: z.string(),
  unit,
  quota: z.number(),
  count: z.number().describe("Used and held"),
  remaining: z.number().min(0),
  costCents: z.number().describe("The cost of the counted events, without open holds"),
  filters: z.record(z.string(), z.array(z.string()))
    .describe("The distinct metadata values in the rules of the group"),
  overage,
  overageMax: z.number().nullable().optional().describe(
    "Present where the group has overage: the most in force, of the catalog or the user's own cap; null for no limit",
  ),
  ...ownWindow,
}).meta({ id: "Counter" });

/** The share of a limit group of a user above that the call's or the usage's own user has. */
export const member = z.strictObject({
  count: z.number().describe("What the user used and holds of the group"),
  quota: z.number().nullable().describe("The most that it may use; null for no limit"),
}).meta({ id: "MemberShare", description: "The user's own share of a limit group of a user above." })
  .optional().describe("Absent for a guard: it has no shares");

/** A counter of a user above, with the share of the call's user. */
export const sharedCounter = z.strictObject({ ...counter.shape, member }).meta({ id: "SharedCounter" });

/** A credit balance. */
export const balance = z.strictObject({
  balanceId: z.string(),
  packId: z.string(),
  packName: z.string(),
  packItemId: z.string().nullable().describe("null for a pack without items"),
  kind: z.enum(["per_type", "generic"]),
  unit,
  remaining: z.number(),
  initial: z.number(),
  grantedAt: time,
  expiresAt: time.nullable().describe("null: never"),
  status: z.enum(["active", "expired", "depleted", "revoked"]),
  matches: z.array(rule),
  priority: z.number().describe("Balances with a higher priority are used first"),
  origin: z.enum(["plan", "rollover", "topup"]).nullable().optional().describe(
    "Present where the catalog has plans that include packs, or packs with a price. plan: included in the plan for its " +
      "running window; rollover: left of an earlier window; topup: bought by itself; null: any other grant",
  ),
}).meta({ id: "CreditBalance" });

const featureValue = z.union([z.boolean(), z.number(), z.string(), z.array(z.string())])
  .meta({ id: "FeatureValue" });

/** A feature in force. */
export const feature = z.strictObject({
  value: featureValue,
  from: z.enum(["custom", "plan", "addon", "default"])
    .describe("custom: the customFeatures of a subscription; default: the catalog's featureDefaults"),
  of: z.string().nullable()
    .describe("The canonical id of the user whose subscription gives it; null for a default"),
}).meta({ id: "Feature" });

/** Features in force by key. */
export const features = z.record(z.string(), feature);

/** Features in answers about a user. */
export const userFeatures = features.optional().describe(
  "Present if the catalog has features: those in force, by key",
);

/** A subscription. */
export const subscription = z.strictObject({
  subscriptionId: z.string(),
  userId: z.string(),
  planId: z.string(),
  startedAt: time,
  endsAt: time.nullable(),
  cycleAnchorAt: time.nullable(),
  provider: z.string().nullable(),
  externalId: z.string().nullable(),
  customLimits: limitsByGroup.nullable()
    .describe("Quotas that replace those of the plan, by group id; null if there are none"),
  quantity: z.number().optional().describe("Seats; absent for 1"),
  trialEndsAt: time.nullable().optional()
    .describe("null where no trial runs; present if any plan of the app has a trial"),
  scheduled: z.strictObject({ at: time, planId: z.string() }).nullable().optional()
    .describe("The change of plan that was asked for ahead; absent or null for none"),
  customFeatures: z.record(z.string(), featureValue).nullable().optional()
    .describe(
      "Present if the catalog has features: those that replace the plan's, by key; null if there are none",
    ),
}).meta({ id: "Subscription" });

/** A subscription as reports show it. */
export const subRef = z.strictObject({
  subscriptionId: z.string(),
  planId: z.string(),
  planName: z.string(),
  provider: z.string().nullable(),
  externalId: z.string().nullable(),
  startedAt: time,
  endsAt: time.nullable(),
}).meta({ id: "SubscriptionReference" });

/** Several active subscriptions of one user. */
export const duplicates = z.strictObject({
  primary: subRef.describe("The subscription that grants the plan"),
  duplicates: z.array(subRef),
}).meta({ id: "DuplicateActiveSubscriptions" });

/** How an event was counted. */
export const matchStatus = z.enum([
  "matched",
  "matched_credits_only",
  "unmatched",
  "blocked",
  "no_subscription",
  "released",
]).meta({ id: "MatchStatus" });

const listedEvent = {
  id: z.string(),
  endUserId: z.string(),
  eventType: z.string(),
  quantity: z.number(),
  costCents: z.number(),
  costCredits: z.number().optional().describe("Absent for an event without a rate"),
  matchStatus,
  createdAt: time,
  hasLog: z.boolean(),
  promptPreview: z.string().nullable().describe("The first 200 characters of the prompt"),
  runId: z.string().optional().describe("The run of the call; absent for none"),
};

/** An event as the feed lists it. */
export const event = z.strictObject(listedEvent).meta({ id: "Event" });

const ofLevel = z.string().optional().describe("The user above that was charged; absent for the event's own");

/** Amounts of limit groups and of credit balances. */
export const amounts = z.array(z.union([
  z.strictObject({ groupId: z.string(), unit, amount: z.number(), userId: ofLevel })
    .meta({ id: "GroupAmount" }),
  z.strictObject({ balanceId: z.string(), unit, amount: z.number(), userId: ofLevel })
    .meta({ id: "BalanceAmount" }),
]));

/** What neither plan nor credits could cover, by unit. */
export const uncovered = z.strictObject({
  count: z.number(),
  tokens: z.number(),
  seconds: z.number(),
  cents: z.number(),
  credits: z.number(),
}).partial();

/** An event with its details. */
export const eventDetail = z.strictObject({
  ...listedEvent,
  metadata: z.record(z.string(), z.unknown()).nullable(),
  matchedGroupIds: z.array(z.string()),
  amounts: amounts.describe("Charged amounts: of limit groups, and of the credit balances that paid"),
  prompt: z.string().nullable(),
  response: z.string().nullable(),
  errorCode: z.string().nullable(),
  reservationId: z.string().nullable(),
  reason: z.string().nullable(),
  uncovered: uncovered.describe(
    "By unit, the amount that neither plan nor credits could cover; usually empty",
  ),
}).meta({ id: "EventDetail" });

const calendarPeriod = z.strictObject({
  type: z.enum(PERIOD_TYPES),
  anchor: z.enum(["subscription_start", "calendar"]),
});

/** A plan on offer. */
export const plan = z.strictObject({
  id: z.string(),
  name: z.string(),
  period: calendarPeriod,
  addon: z.boolean().optional().describe("true for an add-on, which adds to another plan; else absent"),
  trial: z.strictObject({ days: z.number() }).optional().describe("Absent for a plan without a trial"),
  limits: z.array(z.strictObject({
    id: z.string(),
    label: z.string(),
    unit,
    quota: z.number(),
    event: z.string().describe("The pattern of the first rule"),
    matches: z.array(rule),
    overage: z.strictObject({ max: z.number().nullable() }).optional()
      .describe("What it sells past its quota, null for no limit; absent for nothing"),
    perMember: z.strictObject({ quota: z.number() }).optional()
      .describe("The most that each user below may use of it; absent for no such limit"),
    period: z.strictObject({
      type: z.enum([...PERIOD_TYPES, "session", "rolling", "concurrent"]),
      anchor: z.enum(["subscription_start", "calendar"]).optional(),
      seconds: z.number().optional(),
    }).optional().describe("When the group counts; absent for the period of the plan"),
  })),
  includes: z.array(z.strictObject({
    packId: z.string(),
    quantity: z.number().optional().describe(
      "How many packs, or the amount of a pack without items; absent for one pack",
    ),
    period: calendarPeriod.optional().describe(
      "How often the credits come; absent for the period of the plan",
    ),
    rollover: z.strictObject({ max: z.number(), periods: z.number() }).optional()
      .describe("How much of what is left at the end of a window goes on, for how many windows more"),
  })).optional().describe("Packs whose credits come with the plan in each window; absent for none"),
  features: z.record(z.string(), featureValue).optional().describe(
    "By key; absent for a plan without features",
  ),
}).meta({ id: "Plan" });
