// Answers of the domain as the wire has them, where the routes keep their way of showing them to themselves.

import { numberOf } from "../../src/domain/values/amount.ts";
import { chargedAmounts, matchedGroupIds, type MeteringEvent } from "../../src/domain/state/event.ts";
import type { GroupReading } from "../../src/domain/metering/availability.ts";
import type { Cost } from "../../src/domain/pricing/cost.ts";
import type { WireData } from "../model/document.ts";

export function showCost({ cost, warnings }: { cost: Cost; warnings: readonly string[] }): WireData {
  return { cost: { ...cost, cents: numberOf(cost.cents) }, warnings };
}

export function showGroup({ group, quota, counter, gate }: GroupReading): WireData {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(counter.count),
    ...(gate === null ? {} : { headroomGate: numberOf(gate) }),
  };
}

/** An event as lists have it; no texts are logged here. */
export function showListed(event: MeteringEvent, endUserId: string | undefined): WireData {
  return {
    id: event.id,
    endUserId,
    eventType: event.type,
    quantity: numberOf(event.quantity),
    costCents: numberOf(event.costCents),
    matchStatus: event.matchStatus,
    createdAt: new Date(event.createdAt).toISOString(),
    hasLog: false,
    promptPreview: null,
  };
}

/** An event with its details. */
export function showEvent(event: MeteringEvent, endUserId: string | undefined, isLogged: boolean): WireData {
  return {
    ...showListed(event, endUserId),
    metadata: event.metadata === null ? null : JSON.parse(event.metadata),
    matchedGroupIds: matchedGroupIds(event),
    amounts: chargedAmounts(event).map((each) => ({ ...each, amount: numberOf(each.amount) })),
    prompt: null,
    response: null,
    errorCode: isLogged ? event.errorCode : null,
    reservationId: event.reservationId,
    reason: event.reason,
    uncovered: Object.fromEntries(
      Object.entries(event.uncovered).map(([unit, amount]) => [unit, numberOf(amount)]),
    ),
  };
}
