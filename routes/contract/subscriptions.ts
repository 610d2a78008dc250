// Subscriptions: which user is on which plan.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { cutAt, endUserId, featureValues, moment, nameOf, quotasByGroup } from "./fields.ts";
import { subscription, time } from "./records.ts";
import { REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const rowIds = {
  provider: nameOf(REQUEST_LIMITS.idLengthMax).nullish().describe("Your payment provider, such as stripe"),
  externalId: nameOf(REQUEST_LIMITS.idLengthMax).nullish()
    .describe("The id of the subscription at the provider"),
};

/** Refuses provider without externalId and the reverse; the fault names the missing member. */
function checkRowIds(
  input: { readonly provider?: string | null | undefined; readonly externalId?: string | null | undefined },
  context: z.RefinementCtx,
): void {
  if ((input.provider == null) === (input.externalId == null)) return;
  const [missing, given] = input.provider == null ? ["provider", "externalId"] : ["externalId", "provider"];
  context.addIssue({ code: "custom", path: [missing], message: `is required together with ${given}` });
}

/** `POST /v1/subscriptions`: write the subscription of (user, provider, externalId), or the default one. */
export const upsertSubscription = defineCall({
  id: "upsertSubscription",
  method: "POST",
  path: "/v1/subscriptions",
  access: "secret",
  input: z.object({
    userId: endUserId,
    planId: nameOf(REQUEST_LIMITS.idLengthMax).describe("The id or the name of the plan"),
    ...rowIds,
    customLimits: quotasByGroup(REQUEST_LIMITS.customLimitsMax).nullish()
      .describe(
        "Quotas by group id, instead of those of the plan. Left out: unchanged; null: those of the plan",
      ),
    customFeatures: featureValues.nullish()
      .describe(
        "Features by key, instead of those of the plan. Left out: unchanged; null: those of the plan",
      ),
    startsAt: moment.nullish().describe("Not in the future; counts only at creation"),
    endsAt: moment.nullish().describe("In the future. Left out: no end"),
    cycleStart: moment.nullish()
      .describe("The start of the windows. Left out: unchanged; null: the anchor of the plan"),
  }).superRefine(checkRowIds),
  tag: "Subscriptions",
  summary: "Create or change a subscription",
  description:
    "Writes the subscription of (userId, provider, externalId), or the user's default subscription " +
    "without these two. planId is the id or the name of a plan. startsAt counts only at creation; " +
    "leaving endsAt out clears it; customLimits replaces quotas by group id, customFeatures features by key; cycleStart null returns to " +
    "the plan's anchor.",
  answer: subscription,
  errors: ["not_found"],
});

/** `DELETE /v1/subscriptions`: end a subscription now or later. */
export const cancelSubscription = defineCall({
  id: "cancelSubscription",
  method: "DELETE",
  path: "/v1/subscriptions",
  access: "secret",
  input: z.object({
    userId: endUserId,
    ...rowIds,
    endsAt: moment.nullish().describe("Default: now"),
    reason: cutAt(REASON_LENGTH_MAX).nullish(),
  }).superRefine(checkRowIds),
  tag: "Subscriptions",
  summary: "Cancel a subscription now or later",
  description:
    "Send the members in the query, as shown, or as a JSON body. Without provider and externalId, " +
    "cancels the default subscription, else the only active one.",
  answer: z.strictObject({
    subscriptionId: z.string(),
    userId: z.string(),
    planId: z.string(),
    endsAt: time,
  }),
  errors: ["not_found", "already_canceled"],
});
