// Reserve, commit, release, track, can-use and explain: from the wire into commands and back. Specification,
// "Reservations"; section 5 of the decisions.

import type { z } from "zod";
import type { Call } from "../../actors/actor.ts";
import { numberOf } from "../../src/domain/values/amount.ts";
import type { CommitAnswer, Correction } from "../../src/domain/metering/commit.ts";
import type { Cost } from "../../src/domain/pricing/cost.ts";
import type { CallSize } from "../../src/domain/pricing/amounts.ts";
import type { CanUseAnswer, ReserveAnswer } from "../../src/domain/metering/reserve.ts";
import type { GroupReading } from "../../src/domain/metering/availability.ts";
import type { TrackAnswer } from "../../src/domain/metering/track.ts";
import { endpointsOn } from "../http/endpoint.ts";
import type { Endpoint } from "../http/endpoint_types.ts";
import { showExplain } from "./explain.ts";
import {
  canUseAnswer,
  commitAnswer,
  explainAnswer,
  nothing,
  reserveAnswer,
  trackAnswer,
} from "../contract/schemas/answers.ts";
import { amountOrNull, timeText, timeTextOrNull } from "../contract/schemas/fields.ts";
import {
  canUseInput,
  commitInput,
  plainCanUse,
  plainCommit,
  plainRelease,
  plainReserve,
  plainTrack,
  releaseInput,
  reserveInput,
  trackInput,
} from "../contract/schemas/metering.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { showCounter } from "./wire.ts";

const endpoint = endpointsOn<TurnWorld>();

const HOLD_SLIPS = {
  outputTokens: "maxOutputTokens for the longest answer",
  tokens: "inputTokens, and maxOutputTokens for the longest answer",
  cost: "inputCostCents",
};
const COMMIT_SLIPS = {
  outputTokens: "usage.outputTokens, or extra.outputTokens",
  tokens: "usage, or actual.tokens",
  cost: "costCents",
};
const TRACK_SLIPS = {
  outputTokens: "usage.outputTokens",
  tokens: "inputTokens, or usage",
  cost: "costCents",
};

/** `POST /v1/reserve`: hold quota before the work. */
const reserve = endpoint({
  method: "POST",
  path: "/v1/reserve",
  access: "secret",
  input: reserveInput,
  plain: plainReserve,
  slips: HOLD_SLIPS,
  hasOptions: true,
  doc: {
    id: "reserve",
    tag: "Metering",
    summary: "Hold quota before the work",
    description:
      "Holds what the call will use in every limit group that covers the event; credits take what the " +
      "plan has no room for. maxOutputTokens holds the longest answer too, in tokens and in cents by the " +
      "model's prices. At the limit the answer is data and nothing is held. A hold lapses after " +
      "ttlSeconds, by default the app's reservationTtlSeconds.",
    answer: reserveAnswer,
    errors: ["workspace_limit_reached", "test_quota_exceeded"],
  },
  handle: (request) => {
    const { input } = request;
    const { userId, event } = input;
    const ttlMs = input.ttlSeconds == null ? null : Math.round(input.ttlSeconds * 1000);
    const command = {
      event,
      metadata: input.metadata ?? null,
      size: sizeOf(input),
      ttlMs,
      prompt: input.prompt ?? null,
    };
    return runTurn(request, { userId }, { name: "reserve", input: command, isCapped: true }, showReserve);
  },
});

/** `POST /v1/commit`: settle a reservation with the work done. */
const commit = endpoint({
  method: "POST",
  path: "/v1/commit",
  access: "secret",
  input: commitInput,
  plain: plainCommit,
  slips: COMMIT_SLIPS,
  hasOptions: true,
  doc: {
    id: "commit",
    tag: "Metering",
    summary: "Settle a reservation with the work done",
    description:
      "Records the event. usage, or the model server's own usage object as providerUsage, makes tokens and " +
      "cents final, by the prices at the time of the reserve. Otherwise extra adds to what was held, actual " +
      "replaces it, each by unit, and without any of them the cost stays what was held. A commit of more " +
      "than was held succeeds, since the work is done; one of an expired hold charges it again.",
    answer: commitAnswer,
    errors: ["not_found", "reservation_not_pending"],
  },
  handle: (request) => {
    const { reservationId, extra, actual, costCents, usage, providerUsage, response } = request.input;
    const command = {
      reservationId,
      costCents: amountOrNull(costCents),
      extra: correctionOf({
        count: extra?.count,
        tokens: extra?.tokens ?? extra?.outputTokens,
        cents: extra?.cents ?? extra?.outputCostCents,
        seconds: extra?.seconds,
      }),
      actual: correctionOf(actual ?? {}),
      usage: usage ?? providerUsage ?? null,
      response: response ?? null,
    };
    return runTurn(request, { reservationId }, { name: "commit", input: command }, showCommit);
  },
});

/** `POST /v1/release`: give a hold back. */
const release = endpoint({
  method: "POST",
  path: "/v1/release",
  access: "secret",
  input: releaseInput,
  plain: plainRelease,
  hasOptions: true,
  doc: {
    id: "release",
    tag: "Metering",
    summary: "Give a hold back",
    description:
      "Returns quota and credits. Nothing is counted; reason, errorCode and response are kept for the feed.",
    answer: nothing,
    errors: ["not_found", "reservation_not_pending"],
  },
  handle: (request) => {
    const { reservationId, reason, errorCode, response } = request.input;
    const command = {
      reservationId,
      reason: reason ?? null,
      errorCode: errorCode ?? null,
      response: response ?? null,
    };
    return runTurn(request, { reservationId }, { name: "release", input: command }, () => ({}));
  },
});

/** `POST /v1/track`: count work done without a reservation. */
export const track = endpoint({
  method: "POST",
  path: "/v1/track",
  mayBeInBatch: true,
  access: "secret",
  input: trackInput,
  plain: plainTrack,
  slips: TRACK_SLIPS,
  hasOptions: true,
  doc: {
    id: "track",
    tag: "Metering",
    summary: "Count work done without a reservation",
    description:
      "The same decision as reserve and commit in one. usage, or the model server's own usage object as " +
      "providerUsage, is what was used, priced by the catalog. At the limit a blocked event is recorded, " +
      "nothing is counted; details.eventId names it, and details.groups the groups without room, with quota " +
      "and current.",
    answer: trackAnswer,
    errors: ["limit_reached", "workspace_limit_reached", "test_quota_exceeded"],
  },
  handle: (request) => runTurn(request, request.input, trackCommand(request.input), showTrack),
});

/** `POST /v1/can-use`: what reserve would answer now. */
const canUse = endpoint({
  method: "POST",
  path: "/v1/can-use",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: HOLD_SLIPS,
  hasOptions: true,
  doc: {
    id: "canUse",
    tag: "Metering",
    summary: "Ask what reserve would answer now",
    description: "Holds nothing, counts nothing and is free; the workspace's cap is left out.",
    answer: canUseAnswer,
    errors: [],
  },
  handle: (request) => {
    const { input } = request;
    const command = { event: input.event, metadata: input.metadata ?? null, size: sizeOf(input) };
    return runTurn(request, { userId: input.userId }, { name: "canUse", input: command }, showCanUse);
  },
});

/** `POST /v1/explain`: what can-use says, and why. */
const explain = endpoint({
  method: "POST",
  path: "/v1/explain",
  access: "secret",
  input: canUseInput,
  plain: plainCanUse,
  slips: HOLD_SLIPS,
  hasOptions: true,
  doc: {
    id: "explain",
    tag: "Metering",
    summary: "Ask why a call is allowed or refused",
    description:
      "What can-use says, with every limit group of the plan, every balance that has something left, and " +
      "a text for whoever must tell a customer. Like can-use it holds nothing, counts nothing and is free.",
    answer: explainAnswer,
    errors: [],
  },
  handle: (request) => {
    const { input } = request;
    const command = { event: input.event, metadata: input.metadata ?? null, size: sizeOf(input) };
    return runTurn(request, { userId: input.userId }, { name: "explain", input: command }, showExplain);
  },
});

export const METERING: readonly Endpoint<TurnWorld>[] = [reserve, commit, release, track, canUse, explain];

/** What a track asks of its user. */
export function trackCommand(
  input: z.infer<typeof trackInput>,
): Pick<Call<"track">, "name" | "input" | "isCapped"> {
  const command = {
    event: input.event,
    metadata: input.metadata ?? null,
    size: sizeOf(input),
    costCents: amountOrNull(input.costCents),
    usage: input.usage ?? input.providerUsage ?? null,
    prompt: input.prompt ?? null,
    response: input.response ?? null,
  };
  return { name: "track", input: command, isCapped: true };
}

type WireSize = Readonly<Partial<Record<keyof CallSize, number | null | undefined>>>;

function sizeOf(input: WireSize): CallSize {
  return {
    quantity: amountOrNull(input.quantity),
    count: amountOrNull(input.count),
    inputTokens: amountOrNull(input.inputTokens),
    inputCostCents: amountOrNull(input.inputCostCents),
    maxOutputTokens: amountOrNull(input.maxOutputTokens),
  };
}

function correctionOf(members: Readonly<Partial<Record<keyof Correction, number | null | undefined>>>) {
  const correction: { -readonly [Unit in keyof Correction]: Correction[Unit] } = {};
  for (const unit of ["count", "tokens", "cents", "seconds"] as const) {
    const amount = amountOrNull(members[unit]);
    if (amount !== null) correction[unit] = amount;
  }
  return correction;
}

function showReserve({ allowed, matched, reasons, groups, hold }: ReserveAnswer) {
  return {
    allowed,
    matched,
    reservationId: hold?.reservationId,
    expiresAt: hold === null ? undefined : timeText(hold.expiresAt),
    reasons: reasons.length === 0 ? undefined : reasons,
    groups: groups.length === 0 ? undefined : groups.map(showGroup),
  };
}

function showGroup({ group, quota, counter, gate }: GroupReading) {
  return {
    groupId: group.id,
    unit: group.unit,
    quota: numberOf(quota),
    current: numberOf(counter.count),
    headroomGate: gate === null ? undefined : numberOf(gate),
  };
}

function showCommit({ eventId, recharged, groups, cost, warnings }: CommitAnswer) {
  return {
    eventId,
    groups: groups.map((group) => ({
      ...group,
      quota: numberOf(group.quota),
      current: numberOf(group.current),
    })),
    recharged,
    cost: showCost(cost),
    warnings: warnings.length === 0 ? undefined : warnings,
  };
}

function showCost({ cents, priced, model }: Cost) {
  return { cents: numberOf(cents), priced, model };
}

/** The data of a track's answer. */
export function showTrack({ eventId, matchStatus, counters, cost, warnings }: TrackAnswer) {
  return {
    eventId,
    matchStatus,
    matchedGroupIds: matchStatus === "matched" ? counters.map(({ group }) => group.id) : [],
    counters: counters.map(showCounter),
    cost: showCost(cost),
    warnings: warnings.length === 0 ? undefined : warnings,
  };
}

function showCanUse({ allowed, matched, reasons, groups }: CanUseAnswer) {
  return {
    allowed,
    matched,
    reasons,
    details: groups.map(({ group, quota, counter, window, offers }) => ({
      groupId: group.id,
      current: numberOf(counter.count),
      quota: numberOf(quota),
      resetsAt: timeTextOrNull(window.end),
      creditAvailable: numberOf(offers.reduce((sum, { available }) => sum + available, 0n)),
      creditPacks: offers.map((offer) => ({ ...offer, available: numberOf(offer.available) })),
    })),
  };
}
