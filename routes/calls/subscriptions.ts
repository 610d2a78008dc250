// Subscriptions: upsert and cancel. Section 4 of the decisions.

import { z } from "zod";
import { amountOf } from "../../src/domain/values/amount.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { cancelAnswer } from "../contract/schemas/answers.ts";
import { amount, cutAt, endUserId, moment, nameOf, SHOWN_AS } from "../contract/schemas/fields.ts";
import { subscription } from "../contract/schemas/records.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showSubscription } from "./wire.ts";
import { REASON_LENGTH_MAX } from "../../src/domain/values/texts.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";

const endpoint = endpointsOn<TurnWorld>();

const rowIds = {
  provider: nameOf(REQUEST_LIMITS.idLengthMax).nullish(),
  externalId: nameOf(REQUEST_LIMITS.idLengthMax).nullish(),
};

/** A record schema drops `__proto__`, which names no group of any plan. */
const customLimits = z.unknown().refine(
  (value) => typeof value !== "object" || value === null || !Object.hasOwn(value, "__proto__"),
  'not a limit group of the plan: "__proto__"',
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
const subscribe = endpoint({
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
  doc: {
    id: "upsertSubscription",
    tag: "Subscriptions",
    summary: "Write a user's subscription",
    description:
      "Writes the row of (userId, provider, externalId), or the user's default row without both ids. " +
      "planId is a plan's id or its name. startsAt counts at creation only; leaving endsAt out clears it;" +
      " customLimits replaces quotas by group id; cycleStart null goes back to the plan's anchor.",
    answer: subscription,
    errors: ["not_found"],
  },
  handle: (request) => {
    const { input } = request;
    const command = {
      plan: input.planId,
      provider: input.provider ?? null,
      externalId: input.externalId ?? null,
      customLimits: customLimitsOf(input.customLimits),
      startsAt: input.startsAt ?? null,
      endsAt: input.endsAt ?? null,
      cycleStart: input.cycleStart,
    };
    return runTurn(request, { userId: input.userId }, { name: "subscribe", input: command }, (answer) => {
      return showSubscription(answer.userId, answer.row);
    });
  },
});

/** `DELETE /v1/subscriptions`: end a row now or later. */
const cancel = endpoint({
  method: "DELETE",
  path: "/v1/subscriptions",
  access: "secret",
  input: z.object({
    userId: endUserId,
    ...rowIds,
    endsAt: moment.nullish(),
    reason: cutAt(REASON_LENGTH_MAX).nullish(),
  }).superRefine(checkRowIds),
  doc: {
    id: "cancelSubscription",
    tag: "Subscriptions",
    summary: "End a subscription now or later",
    description:
      "The members may come in the query, as shown, or as a JSON body. Without provider and externalId: " +
      "the default row, else the only active one.",
    answer: cancelAnswer,
    errors: ["not_found", "already_canceled"],
  },
  handle: (request) => {
    const { input } = request;
    const command = {
      provider: input.provider ?? null,
      externalId: input.externalId ?? null,
      endsAt: input.endsAt ?? null,
      reason: input.reason ?? null,
    };
    return runTurn(request, { userId: input.userId }, { name: "cancel", input: command }, (answer) => {
      const { subscriptionId, userId, planId, endsAt } = showSubscription(answer.userId, answer.row);
      return { subscriptionId, userId, planId, endsAt };
    });
  },
});

export const SUBSCRIPTIONS: readonly Endpoint<TurnWorld>[] = [subscribe, cancel];

function customLimitsOf(limits: Record<string, { quota: number }> | null | undefined) {
  if (limits === undefined || limits === null) return limits;
  return Object.fromEntries(Object.entries(limits).map(([id, { quota }]) => [id, amountOf(quota)]));
}
