// Reserve, commit, release, track and can-use: from the wire into commands and back. Specification,
// "Reservations"; section 5 of the decisions.

import { numberOf } from "domain/amount.ts";
import type {
  CanUseAnswer,
  CommitAnswer,
  Correction,
  GroupReading,
  ReserveAnswer,
  TrackAnswer,
} from "domain/command.ts";
import type { CallSize } from "domain/pricing.ts";
import { type Operation, operation, runTurn } from "routes/operation.ts";
import { amountOrNull, timeText, timeTextOrNull } from "routes/schemas/fields.ts";
import { canUseInput, commitInput, releaseInput, reserveInput, trackInput } from "routes/schemas/metering.ts";
import { showCounter } from "routes/wire.ts";

/** `POST /v1/reserve`: hold quota before the work. */
const reserve = operation({
  method: "POST",
  path: "/v1/reserve",
  access: "secret",
  input: reserveInput,
  hasOptions: true,
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
const commit = operation({
  method: "POST",
  path: "/v1/commit",
  access: "secret",
  input: commitInput,
  hasOptions: true,
  handle: (request) => {
    const { reservationId, extra, actual, costCents, response } = request.input;
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
      response: response ?? null,
    };
    return runTurn(request, { reservationId }, { name: "commit", input: command }, showCommit);
  },
});

/** `POST /v1/release`: give a hold back. */
const release = operation({
  method: "POST",
  path: "/v1/release",
  access: "secret",
  input: releaseInput,
  hasOptions: true,
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
const track = operation({
  method: "POST",
  path: "/v1/track",
  access: "secret",
  input: trackInput,
  hasOptions: true,
  handle: (request) => {
    const { input } = request;
    const { userId, event } = input;
    const costCents = amountOrNull(input.costCents);
    const command = {
      event,
      metadata: input.metadata ?? null,
      size: sizeOf(input),
      costCents,
      prompt: input.prompt ?? null,
      response: input.response ?? null,
    };
    return runTurn(request, { userId }, { name: "track", input: command, isCapped: true }, showTrack);
  },
});

/** `POST /v1/can-use`: what reserve would answer now. */
const canUse = operation({
  method: "POST",
  path: "/v1/can-use",
  access: "secret",
  input: canUseInput,
  hasOptions: true,
  handle: (request) => {
    const { input } = request;
    const command = { event: input.event, metadata: input.metadata ?? null, size: sizeOf(input) };
    return runTurn(request, { userId: input.userId }, { name: "canUse", input: command }, showCanUse);
  },
});

export const METERING: readonly Operation<unknown>[] = [reserve, commit, release, track, canUse];

type WireSize = Readonly<Partial<Record<keyof CallSize, number | null | undefined>>>;

function sizeOf(input: WireSize): CallSize {
  return {
    quantity: amountOrNull(input.quantity),
    count: amountOrNull(input.count),
    inputTokens: amountOrNull(input.inputTokens),
    inputCostCents: amountOrNull(input.inputCostCents),
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

function showCommit({ eventId, recharged, groups }: CommitAnswer) {
  return {
    eventId,
    groups: groups.map((group) => ({
      ...group,
      quota: numberOf(group.quota),
      current: numberOf(group.current),
    })),
    recharged,
  };
}

function showTrack({ eventId, matchStatus, counters }: TrackAnswer) {
  return {
    eventId,
    matchStatus,
    matchedGroupIds: matchStatus === "matched" ? counters.map(({ group }) => group.id) : [],
    counters: counters.map(showCounter),
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
