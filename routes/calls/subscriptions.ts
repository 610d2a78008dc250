// Subscriptions: create, change and cancel.

import { quotasOf, timeText } from "../contract/fields.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { cancelSubscription, upsertSubscription } from "../contract/subscriptions.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showSubscription } from "./shown_records.ts";

const endpoint = endpointsOn<TurnWorld>();

export const SUBSCRIPTIONS: readonly Endpoint<TurnWorld>[] = [
  endpoint(upsertSubscription, (request) => {
    const { input, caller: { realm: { catalog } } } = request;
    const command = {
      plan: input.planId,
      provider: input.provider ?? null,
      externalId: input.externalId ?? null,
      customLimits: quotasOf(input.customLimits),
      customFeatures: input.customFeatures,
      startsAt: input.startsAt ?? null,
      endsAt: input.endsAt ?? null,
      cycleStart: input.cycleStart,
    };
    return runTurn(request, { userId: input.userId }, { name: "subscribe", input: command }, (answer) => {
      return showSubscription(answer.userId, answer.row, catalog);
    });
  }),
  endpoint(cancelSubscription, (request) => {
    const { input } = request;
    const command = {
      provider: input.provider ?? null,
      externalId: input.externalId ?? null,
      endsAt: input.endsAt ?? null,
      reason: input.reason ?? null,
    };
    return runTurn(request, { userId: input.userId }, { name: "cancel", input: command }, (answer) => {
      const { id, planId, endsAt } = answer.row;
      // A canceled subscription has an end.
      return { subscriptionId: id, userId: answer.userId, planId, endsAt: timeText(endsAt as number) };
    });
  }),
];
