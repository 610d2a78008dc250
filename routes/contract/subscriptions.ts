// Subscriptions: which user is on which plan.

import { z } from "zod";
import { defineCall } from "./definition.ts";
import { amount, cutAt, endUserId, moment, nameOf, SHOWN_AS } from "./fields.ts";
import { subscription, time } from "./records.ts";
import { REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const rowIds = {
  provider: nameOf(REQUEST_LIMITS.idLengthMax).nullish(),
  externalId: nameOf(REQUEST_LIMITS.idLengthMax).nullish(),
};

/** A record schema drops `__proto__`, which names no group of any plan. */
const customLimits = z.unknown().refine(
  (value) => typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__"),
  'names a group that the plan lacks: "__proto__"',
).refine(
  (value) =>
    typeof value !== "object" || value === null ||
    Object.keys(value).length <= REQUEST_LIMITS.customLimitsMax,
  `must name at most ${REQUEST_LIMITS.customLimitsMax} groups`,
).pipe(z.record(z.string(), z.object({ quota: amount }))).register(SHOWN_AS, {
  type: "object",
  description: "Quotas by group id",
  additionalProperties: {
    type: "object",
    properties: { quota: { type: "number", minimum: 0 } },
    required: ["quota"],
  },
});

/** Refuses one of provider and externalId without the other, by the name of the one that is missing. */
function checkRowIds(
  input: { readonly provider?: string | null | undefined; readonly externalId?: string | null | undefined },
  context: z.RefinementCtx,
): void {
  if ((input.provider == null) === (input.externalId == null)) return;
  const [missing, given] = input.provider == null ? ["provider", "externalId"] : ["externalId", "provider"];
  context.addIssue({ code: "custom", path: [missing], message: `is required together with ${given}` });
}

/** `POST /v1/subscriptions`: write the row of (user, provider, externalId), or the default row. */
export const upsertSubscription = defineCall({
  id: "upsertSubscription",
  method: "POST",
  path: "/v1/subscriptions",
  access: "secret",
  input: z.object({
    userId: endUserId,
    planId: nameOf(REQUEST_LIMITS.idLengthMax),
    ...rowIds,
    customLimits: customLimits.nullish(),
    startsAt: moment.nullish(),
    endsAt: moment.nullish(),
    cycleStart: moment.nullish(),
  }).superRefine(checkRowIds),
  tag: "Subscriptions",
  summary: "Write a user's subscription",
  description:
    "Writes the row of (userId, provider, externalId), or the user's default row without both ids. " +
    "planId is a plan's id or its name. startsAt counts at creation only; leaving endsAt out clears it;" +
    " customLimits replaces quotas by group id; cycleStart null goes back to the plan's anchor.",
  answer: subscription,
  errors: ["not_found"],
});

/** `DELETE /v1/subscriptions`: end a row now or later. */
export const cancelSubscription = defineCall({
  id: "cancelSubscription",
  method: "DELETE",
  path: "/v1/subscriptions",
  access: "secret",
  input: z.object({
    userId: endUserId,
    ...rowIds,
    endsAt: moment.nullish(),
    reason: cutAt(REASON_LENGTH_MAX).nullish(),
  }).superRefine(checkRowIds),
  tag: "Subscriptions",
  summary: "End a subscription now or later",
  description:
    "The members may come in the query, as shown, or as a JSON body. Without provider and externalId: " +
    "the default row, else the only active one.",
  answer: z.strictObject({
    subscriptionId: z.string(),
    userId: z.string(),
    planId: z.string(),
    endsAt: time,
  }),
  errors: ["not_found", "already_canceled"],
});
