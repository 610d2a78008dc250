// Usage of users, and the plans on offer.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { endUserId, eventPattern } from "./fields.ts";
import {
  balance,
  counter,
  duplicates,
  limitsByGroup,
  member,
  overage,
  period,
  plan,
  spendCaps,
  subscription,
  time,
  unit,
  userFeatures,
} from "./records.ts";

const usageMembers = {
  userId: z.string(),
  period: period.nullable().describe("null without a plan"),
  counters: z.array(counter),
  credits: z.array(balance),
  features: userFeatures,
};

/** A counter of a user above. End users see neither its rules nor its cost and overage, but its period. */
const levelCounter = z.strictObject({
  groupId: z.string(),
  event: z.string().optional(),
  label: z.string(),
  unit,
  quota: z.number(),
  count: z.number(),
  remaining: z.number(),
  overage,
  overageMax: counter.shape.overageMax,
  costCents: z.number().optional(),
  filters: z.record(z.string(), z.array(z.string())).optional(),
  period: period.nullable().optional(),
  window: counter.shape.window,
  member,
}).meta({ id: "LevelCounter" });

/** `GET /v1/usage`: the counters of the primary plan. */
export const getUsage = defineCall({
  id: "getUsage",
  method: "GET",
  path: "/v1/usage",
  access: "end_user",
  takesUserKey: true,
  input: z.object({
    userId: endUserId.optional(),
    event: eventPattern.optional(),
    levels: z.enum(["true", "false"]).optional().describe("Whether to add the users above"),
  }),
  tag: "Usage",
  summary: "Get a user's usage",
  description:
    "The counters of the running window: of every limit group of the user's plan, or of those that " +
    "cover event. With a public key, userId may be left out: it is the user of the token.",
  answer: z.strictObject({
    ...usageMembers,
    levels: z.array(z.strictObject({
      userId: z.string().optional().describe("Only with a secret key"),
      period: period.nullable().optional().describe("Only with a secret key"),
      counters: z.array(levelCounter),
    })).optional().describe("With levels: the users above, nearest first; less with a public key"),
    duplicateActiveSubscriptions: duplicates.nullable().optional().describe("Only with a secret key"),
  }),
  errors: [],
});

/** `GET /v1/usage/me`: the counters of the token's user, never with duplicates. */
export const getMyUsage = defineCall({
  id: "getMyUsage",
  method: "GET",
  path: "/v1/usage/me",
  access: "token",
  input: z.object({ event: eventPattern.optional() }),
  tag: "Usage",
  summary: "Get the usage of the token's user",
  description: "Like getUsage, for the user of X-End-User-Token.",
  answer: z.strictObject(usageMembers),
  errors: [],
});

/** `GET /v1/users/{userId}`: everything about a user; unknown users answer with empty values. */
export const getUser = defineCall({
  id: "getUser",
  method: "GET",
  path: "/v1/users/:userId",
  access: "secret",
  input: z.object({ userId: endUserId }),
  tag: "Usage",
  summary: "Get a user",
  description:
    "Subscription with its history, counters, credits and aliases. An unknown user has empty values.",
  answer: z.strictObject({
    userId: z.string().describe("The canonical id"),
    aliases: z.array(z.string()),
    subscription: subscription.nullable(),
    addOns: z.array(subscription).optional().describe(
      "Present if the catalog has add-ons: those in force",
    ),
    history: z.array(z.strictObject({
      id: z.string(),
      type: z.enum(["created", "plan_changed", "canceled", "reactivated", "ended", "merged", "promoted"]),
      subscriptionId: z.string(),
      planId: z.string(),
      previousPlanId: z.string().nullable(),
      reason: z.string().nullable(),
      at: time,
    })).describe("Newest first, at most 50"),
    period: period.nullable().describe("null without a plan"),
    counters: z.array(counter),
    credits: z.array(balance),
    features: userFeatures,
    duplicateActiveSubscriptions: duplicates.nullable(),
    parentId: z.string().nullable().optional()
      .describe("Present, like path, if the user has a parent or children"),
    path: z.array(z.string()).optional().describe("The user, its parent, and so on"),
    memberLimits: limitsByGroup.optional().describe(
      "Present if limits are set for the user under its parent",
    ),
    spendCaps: spendCaps.optional().describe("Present if the user has caps of its own on overage"),
  }),
  errors: [],
});

/** A row of the rate card. */
const shownRate = z.strictObject({
  event: z.string(),
  metadata: z.record(z.string(), z.string()).optional(),
  perCall: z.number().optional(),
  perImage: z.number().optional(),
  perMillionInputTokens: z.number().optional(),
  perMillionCachedInputTokens: z.number().optional(),
  perMillionOutputTokens: z.number().optional(),
  perSecond: z.number().optional(),
  perCent: z.number().optional(),
  minimum: z.number().optional(),
}).meta({ id: "Rate" });

/** `GET /v1/rates`: what calls cost in credits. */
export const listRates = defineCall({
  id: "listRates",
  method: "GET",
  path: "/v1/rates",
  access: "any",
  input: z.object({}),
  tag: "Usage",
  summary: "List what calls cost in credits",
  description:
    "The rate card as the catalog has it, for a price page: the first row that covers an event is its rate, and " +
    "the sum of its parts is what the call costs.",
  answer: z.strictObject({ rates: z.array(shownRate) }),
  errors: [],
});

/** `GET /v1/plans`: the plans on offer, oldest first. */
export const listPlans = defineCall({
  id: "listPlans",
  method: "GET",
  path: "/v1/plans",
  access: "any",
  input: z.object({}),
  tag: "Usage",
  summary: "List the plans on offer",
  description: "Oldest first. Live and test mode share them.",
  answer: z.array(plan),
  errors: [],
});
