// Commands of the domain as the requests that they are on the wire: the way back from `wire_input.ts`.

import { type Amount, numberOf } from "../../src/domain/values/amount.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import type { UserKey } from "../../src/domain/values/ids.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import type { Input, ModelRequest } from "../model/document.ts";

type Inputs = { readonly [Name in CommandName]: Commands[Name]["input"] };

/** The request of a command for a user; null where the model has no such request. */
export function requestOf<Name extends CommandName>(
  name: Name,
  input: Commands[Name]["input"],
  userId: string,
  nameOf: (key: UserKey) => string,
): ModelRequest | null {
  const request = REQUESTS[name]?.(input as never, nameOf) ?? null;
  if (request === null || "reservationId" in request.input || request.op === "endRun") return request;
  return { op: request.op, input: { userId, ...request.input } };
}

const REQUESTS: {
  readonly [Name in CommandName]?: (
    input: Inputs[Name],
    nameOf: (key: UserKey) => string,
  ) => ModelRequest | null;
} = {
  setParent: ({ parentKey, memberLimits }, nameOf) => ({
    op: "parent",
    input: {
      parentId: parentKey === null ? null : nameOf(parentKey),
      ...memberLimits === undefined ? {} : {
        memberLimits: memberLimits && Object.fromEntries(
          Object.entries(memberLimits).map(([id, quota]) => [id, { quota: numberOf(quota) }]),
        ),
      },
    },
  }),
  reserve: ({ ttlMs, model, ...call }) => {
    const ttlSeconds = ttlMs === null ? null : ttlMs / 1000;
    return model === undefined ? { op: "reserve", input: { ...callOf(call), ttlSeconds } } : null;
  },
  canUse: (call) => ({ op: "canUse", input: callOf(call) }),
  explain: (call) => ({ op: "explain", input: callOf(call) }),
  track: ({ costCents, usage, ...call }) => ({
    op: "track",
    input: { ...callOf(call), costCents: numberOrNull(costCents), usage: usage && numbersOf(usage) },
  }),
  commit: ({ reservationId, extra, actual, costCents, usage, isEstimate }) =>
    isEstimate === true ? null : {
      op: "commit",
      input: {
        reservationId,
        extra: numbersOf(extra),
        actual: numbersOf(actual),
        costCents: numberOrNull(costCents),
        usage: usage && numbersOf(usage),
      },
    },
  release: ({ reservationId, reason, errorCode }) => ({
    op: "release",
    input: { reservationId, reason, errorCode },
  }),
  subscribe: ({ plan, provider, externalId, customLimits, customFeatures, ...times }) => ({
    op: "subscribe",
    input: {
      planId: plan,
      provider,
      externalId,
      customLimits: customLimits && Object.fromEntries(
        Object.entries(customLimits).map(([id, quota]) => [id, { quota: numberOf(quota) }]),
      ),
      ...customFeatures === undefined ? {} : { customFeatures },
      startsAt: timeOf(times.startsAt),
      endsAt: timeOf(times.endsAt),
      cycleStart: timeOf(times.cycleStart),
    },
  }),
  cancel: ({ endsAt, ...rest }) => ({ op: "cancel", input: { ...rest, endsAt: timeOf(endsAt) } }),
  mirror: ({ provider, externalId, state }) => ({
    op: "mirror",
    input: {
      provider,
      externalId,
      ...("planId" in state
        ? {
          planId: state.planId,
          startsAt: timeOf(state.startsAt),
          endsAt: timeOf(state.endsAt),
        }
        : { endedAt: timeOf(state.endedAt), reason: state.reason }),
    },
  }),
  grant: ({ pack, quantity, paidPacks, expiresAt, ...rest }) => ({
    op: paidPacks === undefined ? "grant" : "paidGrant",
    input: {
      ...rest,
      packId: pack,
      quantity: typeof quantity === "bigint" ? numberOf(quantity) : quantity,
      expiresAt: timeOf(expiresAt),
      packs: paidPacks,
    },
  }),
  refund: (input) => ({ op: "refund", input: { ...input } }),
  reinstate: (input) => ({ op: "reinstate", input: { ...input } }),
  extend: ({ expiresAt, ...rest }) => ({ op: "extend", input: { ...rest, expiresAt: timeOf(expiresAt) } }),
  revoke: (input) => ({ op: "revoke", input: { ...input } }),
  credits: ({ event }) => ({ op: "credits", input: { event } }),
  usage: ({ event, withLevels }) => ({
    op: "usage",
    input: { event, ...withLevels === true ? { levels: true } : {} },
  }),
  openRun: ({ limits, name, ttlMs, parentRunId }) => ({
    op: "createRun",
    input: {
      limits: limits.map((limit) => ({ ...limit, quota: numberOf(limit.quota) })),
      name,
      ttlSeconds: ttlMs / 1000,
      parentRunId,
    },
  }),
  endRun: (input) => ({ op: "endRun", input: { ...input } }),
  features: ({ key }) => ({ op: "features", input: { key } }),
  user: () => ({ op: "users", input: {} }),
  consent: () => ({ op: "users", input: {} }),
  settle: () => ({ op: "users", input: {} }),
};

function callOf({ event, metadata, size, runId }: Commands["canUse"]["input"]): Input {
  return { event, metadata: metadata?.members, ...numbersOf(size), runId };
}

function numbersOf(amounts: object): Input {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) => amount == null ? [] : [[name, numberOf(amount)]]),
  );
}

function numberOrNull(amount: Amount | null): number | null {
  return amount === null ? null : numberOf(amount);
}

function timeOf(at: Millis | null | undefined): string | null | undefined {
  return typeof at === "number" ? new Date(at).toISOString() : at;
}
