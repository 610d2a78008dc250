// Track: count work that was done without a reservation. The same decision as reserve with the quota in place of
// the gate; what happened is recorded whatever the answer. Section 5 of the decisions, "Track".

import type { Metadata } from "../values/match.ts";
import { type Amount, numberOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import { takeCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import type { CounterReading } from "../state/counter.ts";
import { isCounted, type MatchStatus } from "../state/event.ts";
import { type CallSize, priceRowOf, trackAmounts } from "../pricing/amounts.ts";
import { type Cost, costOf, type Warning, warningsOf } from "../pricing/cost.ts";
import type { Usage } from "../pricing/usage.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import { refusedCall } from "../state/refused_call.ts";
import { assess, type Assessment, countsCents } from "./availability.ts";
import { chargeLine } from "./settle_lines.ts";
import { cutText } from "../values/texts.ts";

/** Section 5 of the decisions, "Track". */
export interface TrackInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  /** The event's cost; null derives it from the model's price. */
  readonly costCents: Amount | null;
  /** What the model server reported; in place of `inputTokens`, `inputCostCents` and `costCents`. */
  readonly usage?: Usage | null;
  /** Texts come uncut and are kept only where they are logged. */
  readonly prompt?: string | null;
  readonly response?: string | null;
}

export interface TrackAnswer {
  readonly eventId: string;
  readonly matchStatus: Exclude<MatchStatus, "blocked" | "released">;
  /** The counters of the matched groups, after the event. */
  readonly counters: readonly CounterReading[];
  readonly cost: Cost;
  readonly warnings: readonly Warning[];
}

/** Decides a track: an event, counted where a group has room, else recorded as blocked, unmatched or without plan. */
export function track(draft: Draft, input: TrackInput, context: Context): Result<TrackAnswer> {
  const { event, metadata, size, usage = null } = input;
  const priceRow = priceRowOf(context.catalog, event, metadata);
  const amounts = trackAmounts(size, { costCents: input.costCents, usage }, priceRow);
  const toldCents = input.costCents !== null || size.inputCostCents !== null;
  const isUnpriced = priceRow === null && !toldCents;
  const assessment = assess(draft, context, { event, metadata, amounts, isUnpriced }, "quota");
  const matchStatus = statusOf(assessment);
  const costCents = input.costCents ?? amounts.cents;
  const eventId = context.ids.next("event");
  const movement = {
    reason: "event_committed",
    eventId,
    reservationId: null,
    at: context.now,
  } as const;
  for (const line of assessment.lines) chargeLine(draft, line, line.taken, costCents);
  takeCredits(draft, context, assessment.credits, movement);
  const { quantity, count } = size;
  const perUnit = priceRow?.amountMode === "per_unit";
  recordEvent(
    draft,
    {
      id: eventId,
      userKey: draft.user.key,
      realm: draft.user.realm,
      type: event,
      quantity: eventQuantity({ perUnit, quantity, count }, amounts.seconds),
      costCents,
      matchStatus,
      createdAt: context.now,
      metadata: metadata?.text ?? null,
      reservationId: null,
      reason: null,
      errorCode: null,
      lines: assessment.lines,
      credits: assessment.credits,
      uncovered: {},
    },
    { prompt: cutText(input.prompt), response: cutText(input.response) },
    context,
  );
  if (matchStatus === "blocked") {
    draft.refusedCall = refusedCall(event, assessment, context.now);
    return refused(limitReached(eventId, assessment));
  }
  if (isCounted(matchStatus)) draft.operations += 1;
  const warnings = warningsOf(priceRow, { countsCents: countsCents(assessment.groups), toldCents });
  const counters = readCounters(draft, assessment);
  return answered({ eventId, matchStatus, counters, cost: costOf(costCents, priceRow), warnings });
}

/** The refusal of a blocked event; amounts as on the wire. Section 13 of the decisions. */
function limitReached(eventId: string, { blocking, reasons }: Assessment): Refusal {
  const groups = blocking.map(({ group, quota, counter }) => ({
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(counter.count),
  }));
  if (reasons.includes("unpriced_model")) {
    const message =
      "metadata.model: names no model with a price, and a limit of the user's plan counts cents";
    return refusal("limit_reached", message, { eventId, groups, reasons });
  }
  return refusal("limit_reached", "A limit of the user's plan is reached", { eventId, groups });
}

function statusOf({ matched, groups, reasons }: Assessment): Exclude<MatchStatus, "released"> {
  if (groups.length > 0) return reasons.length === 0 ? "matched" : "blocked";
  if (matched) return "matched_credits_only";
  return reasons.includes("no_subscription") ? "no_subscription" : "unmatched";
}

function readCounters(draft: Draft, { groups, standing }: Assessment): CounterReading[] {
  if (standing === null) return [];
  return groups.map(({ group, quota, window }) => ({
    group,
    quota,
    counter: draft.counter({ planId: standing.plan.id, groupId: group.id, window }),
  }));
}
