// Subscriptions: create, change and cancel.

import { quotasOf, timeText } from "../contract/fields.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { cancelSubscription, unscheduleSubscription, upsertSubscription } from "../contract/subscriptions.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showScheduled, showSubscription } from "./shown_records.ts";

const endpoint = endpointsOn<TurnWorld>();

export const SUBSCRIPTIONS: readonly Endpoint<TurnWorld>[] = [
  endpoint(upsertSubscription, (request) => {
    const { input, caller: { realm: { catalog } } } = request;
    if (input.at != null) {
      const change = { plan: input.planId, at: input.at };
      return runTurn(
        request,
        { userId: input.userId },
        { name: "schedule", input: { ...rowIdsOf(input), change } },
        (answer) => showSubscription(answer.userId, answer.row, catalog),
      );
    }
    const command = {
      plan: input.planId,
      ...rowIdsOf(input),
      customLimits: quotasOf(input.customLimits),
      customFeatures: input.customFeatures,
      startsAt: input.startsAt ?? null,
      endsAt: input.endsAt ?? null,
      cycleStart: input.cycleStart,
      quantity: input.quantity ?? undefined,
      trial: input.trial ?? undefined,
    };
    return runTurn(request, { userId: input.userId }, { name: "subscribe", input: command }, (answer) => {
      return showSubscription(answer.userId, answer.row, catalog);
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
      const { id, planId, endsAt } = answer.row;
      // A canceled subscription has an end.
      return { subscriptionId: id, userId: answer.userId, planId, endsAt: timeText(endsAt as number) };
    });
  }),
  endpoint(unscheduleSubscription, (request) => {
    const { input, caller: { realm: { catalog } } } = request;
    return runTurn(
      request,
      { userId: input.userId },
      { name: "schedule", input: { ...rowIdsOf(input), change: null } },
      (answer) => showScheduled(answer.userId, answer.row, catalog),
    );
  }),
];

/** The ids that name a row; both are null for the default one. */
function rowIdsOf(
  input: { readonly provider?: string | null | undefined; readonly externalId?: string | null | undefined },
) {
  return { provider: input.provider ?? null, externalId: input.externalId ?? null };
}
