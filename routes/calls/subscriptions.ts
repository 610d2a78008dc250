// Subscriptions: create, change and cancel.

import { quotasOf } from "../contract/fields.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { cancelSubscription, unscheduleSubscription, upsertSubscription } from "../contract/subscriptions.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showScheduled, showSubscription } from "./shown_records.ts";

const endpoint = endpointsOn<TurnWorld>();

export const SUBSCRIPTIONS: readonly Endpoint<TurnWorld>[] = [
  endpoint(upsertSubscription, (request) => {
    const { input } = request;
    if (input.at != null) {
      const change = { plan: input.planId, at: input.at };
      return runTurn(
        request,
        { userId: input.userId },
        { name: "schedule", input: { ...rowIdsOf(input), change } },
        (answer) => showSubscription(answer.userId, answer.row, answer.hasTrials),
      );
    }
    const command = {
      plan: input.planId,
      ...rowIdsOf(input),
      customLimits: quotasOf(input.customLimits),
      startsAt: input.startsAt ?? null,
      endsAt: input.endsAt ?? null,
      cycleStart: input.cycleStart,
      quantity: input.quantity ?? undefined,
      trial: input.trial ?? undefined,
    };
    return runTurn(request, { userId: input.userId }, { name: "subscribe", input: command }, (answer) => {
      return showSubscription(answer.userId, answer.row, answer.hasTrials);
    });
  }),
  endpoint(cancelSubscription, (request) => {
    const { input } = request;
    const command = {
      ...rowIdsOf(input),
      endsAt: input.endsAt ?? null,
      reason: input.reason ?? null,
    };
    return runTurn(request, { userId: input.userId }, { name: "cancel", input: command }, (answer) => {
      const { subscriptionId, userId, planId, endsAt } = showSubscription(
        answer.userId,
        answer.row,
        answer.hasTrials,
      );
      // A canceled subscription has an end.
      return { subscriptionId, userId, planId, endsAt: endsAt as string };
    });
  }),
  endpoint(unscheduleSubscription, (request) => {
    const { input } = request;
    return runTurn(
      request,
      { userId: input.userId },
      { name: "schedule", input: { ...rowIdsOf(input), change: null } },
      (answer) => showScheduled(answer.userId, answer.row, answer.hasTrials),
    );
  }),
];

/** The ids that name a row; both are null for the default one. */
function rowIdsOf(
  input: { readonly provider?: string | null | undefined; readonly externalId?: string | null | undefined },
) {
  return { provider: input.provider ?? null, externalId: input.externalId ?? null };
}
