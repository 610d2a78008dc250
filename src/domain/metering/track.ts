// Track: count work that was done without a reservation. The decision is that of reserve with the quota as the limit, in
// place of the gate. The event is recorded in any case: at a limit as `blocked`, with the refusal `limit_reached`; without
// a matching group or a subscription as `unmatched` or `no_subscription`, with an answer.

import type { Metadata } from "../values/match.ts";
import { type Amount, decimalOf, numberOf } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import { takeCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { type CounterReading, shownCount } from "../state/counter.ts";
import { isCounted, type MatchStatus } from "../state/event.ts";
import { type Amounts, type CallSize, priceRowOf, trackAmounts } from "../pricing/amounts.ts";
import { type Cost, costOf, type Warning, warningsOf } from "../pricing/cost.ts";
import type { Usage } from "../pricing/usage.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import { refusedCall } from "../state/refused_call.ts";
import { assess, type Assessment, countsCents, type GroupReading } from "./availability.ts";
import { chargeLine } from "./settle_lines.ts";
import { cutText } from "../values/texts.ts";

/** The input of `POST /v1/track`. */
export interface TrackInput {
  readonly event: string;
  readonly metadata: Metadata | null;
  readonly size: CallSize;
  /** The event's cost; null derives it from the model's price. */
  readonly costCents: Amount | null;
  /** What the model server reported, in place of `inputTokens`, `inputCostCents` and `costCents`. */
  readonly usage?: Usage | null;
  /** Prompt and response are uncut, and kept only if texts are logged. */
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

/** Decides a track: records the event, and counts it if the plan or credits cover it. */
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
    return refused(limitReached(eventId, assessment, amounts));
  }
  if (isCounted(matchStatus)) draft.operations += 1;
  const warnings = warningsOf(priceRow, { countsCents: countsCents(assessment.groups), toldCents, usage });
  const counters = readCounters(draft, assessment);
  return answered({ eventId, matchStatus, counters, cost: costOf(costCents, priceRow), warnings });
}

/** Refuses a blocked event, with the groups that have too little left; amounts as on the wire. */
function limitReached(eventId: string, { blocking, reasons }: Assessment, needs: Amounts): Refusal {
  const groups = blocking.map(({ group, quota, counter }) => ({
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(shownCount(counter)),
  }));
  if (reasons.includes("unpriced_model")) {
    const message =
      "metadata.model: must name a model with a price, because a limit of the plan counts cents";
    return refusal("limit_reached", message, { eventId, groups, reasons });
  }
  return refusal("limit_reached", limitsText(blocking, needs), { eventId, groups });
}

/** Names the limits: `Limit "Images a month" reached (98 of 100 used, 5 needed)`. */
function limitsText(blocking: readonly GroupReading[], needs: Amounts): string {
  const texts = blocking.map(({ group: { label, unit }, quota, counter }) => {
    const used = decimalOf(shownCount(counter));
    return `"${label}" reached (${used} of ${decimalOf(quota)} used, ${decimalOf(needs[unit])} needed)`;
  });
  return `Limit ${texts.join(", limit ")}`;
}

function statusOf({ matched, groups, reasons }: Assessment): Exclude<MatchStatus, "released"> {
  if (groups.length > 0) return reasons.length === 0 ? "matched" : "blocked";
  if (matched) return "matched_credits_only";
  return reasons.includes("no_subscription") ? "no_subscription" : "unmatched";
}

function readCounters(draft: Draft, { groups, active }: Assessment): CounterReading[] {
  if (active === null) return [];
  return groups.map(({ group, quota, window }) => ({
    group,
    quota,
    counter: draft.counter({ planId: active.plan.id, groupId: group.id, window }),
  }));
}
