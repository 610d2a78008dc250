// Subscriptions: which user is on which plan.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { cutAt, endUserId, featureValues, moment, nameOf, quotasByGroup, SHOWN_AS } from "./fields.ts";
import { subscription, time } from "./records.ts";
import { REWRITE_LIMITS } from "../../src/domain/state/open_holds.ts";
import { SEATS_MAX } from "../../src/domain/state/subscription.ts";
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

/** When to make a change that is asked for ahead. */
const momentOfChange = z.union([moment, z.literal("period_end")], {
  error: 'must be a time in ISO 8601, or "period_end"',
}).register(SHOWN_AS, {
  anyOf: [
    { type: "string", format: "date-time" },
    { type: "string", format: "date" },
    { type: "string", const: "period_end" },
  ],
});

/** The members that go with a change that is asked for ahead. */
const WITH_AT: ReadonlySet<string> = new Set(["userId", "planId", "provider", "externalId", "at"]);

/** The members for which null is a change. */
const NULL_CHANGES: ReadonlySet<string> = new Set(["customLimits", "cycleStart"]);

/** Refuses any other change beside `at`. */
function checkAlone(input: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  if (input.at == null) return;
  for (const [name, value] of Object.entries(input)) {
    const isLeftOut = value === undefined || (value === null && !NULL_CHANGES.has(name));
    if (WITH_AT.has(name) || isLeftOut) continue;
    context.addIssue({ code: "custom", path: [name], message: "must be left out together with at" });
  }
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
    quantity: z.int().min(1).max(SEATS_MAX).nullish()
      .describe("Seats: the quotas of the plan are multiplied by it. Left out: unchanged; at first 1"),
    trial: z.boolean().nullish()
      .describe("true begins the trial of the plan, false ends it and keeps the plan. Left out: unchanged"),
    at: momentOfChange.nullish()
      .describe("When to change to the plan, as a later time or period_end. Left out: now"),
  }).superRefine(checkRowIds).superRefine(checkAlone),
  tag: "Subscriptions",
  summary: "Create or change a subscription",
  description:
    "Writes the subscription of (userId, provider, externalId), or the user's default subscription " +
    "without these two. planId is the id or the name of a plan. startsAt counts only at creation; " +
    "leaving endsAt out clears it; customLimits replaces quotas by group id, customFeatures features by " +
    "key; cycleStart null returns to the plan's anchor. With at, an active subscription changes to the plan " +
    "at that time; nothing else may be changed in the same call, and a second one replaces it. A user may " +
    "have the trial of each plan once. A change that would move more than " +
    `${REWRITE_LIMITS.holdsMax} open holds is refused with unavailable: retry it when they are settled or have lapsed.`,
  answer: subscription,
  errors: ["not_found", "trial_used"],
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

/** `DELETE /v1/subscriptions/scheduled`: drop the change that was asked for ahead. */
export const unscheduleSubscription = defineCall({
  id: "unscheduleSubscription",
  method: "DELETE",
  path: "/v1/subscriptions/scheduled",
  access: "secret",
  input: z.object({ userId: endUserId, ...rowIds }).superRefine(checkRowIds),
  tag: "Subscriptions",
  summary: "Drop a scheduled change of plan",
  description:
    "Send the members in the query, as shown, or as a JSON body. Without provider and externalId, means " +
    "the default subscription, else the only active one.",
  answer: subscription,
  errors: ["not_found"],
});
