// The hold of a call: taken before the model works, prolonged while it works, settled afterwards. Each is an internal call to
// the owner of the workspace's cell. The cell may move while the model works, so a settlement is retried for a bounded time.
// A hold that is not settled lapses.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import type { Term } from "../../actors/term.ts";
import { refusedAtCap } from "../../src/domain/state/refused_call.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import type { EndpointRequest } from "../http/endpoint_types.ts";
import { amountOf, numberOf } from "../../src/domain/values/amount.ts";
import { NO_USAGE } from "../../src/domain/pricing/usage.ts";
import type { ReserveAnswer } from "../../src/domain/metering/reserve.ts";
import type { Retry } from "../../src/domain/metering/guards.ts";
import { endOf } from "../calls/shown_records.ts";
import type { ReserveReason } from "../../src/domain/state/refused_call.ts";
import { unknownReservation } from "../../src/domain/state/reservation.ts";
import { GATEWAY_LIMITS } from "../../src/process/gateway_limits.ts";
import { REQUEST_LIMITS } from "../../src/process/limits.ts";
import { log, messageOf } from "../../src/process/log.ts";
import type { Registry } from "../../src/tenant/registry.ts";
import { type Answer, failure, statusOf } from "../http/answer.ts";
import { askOwner } from "../http/ask_owner.ts";
import { requireSameUser } from "../http/auth.ts";
import type { DispatchWorld, InternalCall } from "../http/call.ts";
import {
  amount,
  amountOrNull,
  anyId,
  endUserId,
  eventName,
  loggedText,
  metadata,
  nameOf,
} from "../contract/fields.ts";
import { fit, fitOf } from "../contract/fit.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";
import { rest } from "../../src/process/rest.ts";

/** The input of a hold: the user and the amounts. */
export const holdInput = z.object({
  userId: endUserId,
  event: eventName,
  metadata,
  model: nameOf(REQUEST_LIMITS.idLengthMax),
  /** Images; null for a call of text. */
  count: amount.nullable(),
  inputTokens: amount,
  maxOutputTokens: amount.nullable(),
  cacheWriteTokens: amount,
  cacheWrite1hTokens: amount,
  prompt: loggedText.nullable(),
  runId: anyId(REQUEST_LIMITS.idLengthMax).nullable(),
  /** In tokens of all answers together. */
  fit: fit.nullable(),
});

/** What a call was made to fit to: the model, and the tokens of all answers that are held. */
export interface Fitted {
  readonly model: string;
  readonly maxOutputTokens: number;
}

/** A hold with its time to live, or the reasons for a refusal. */
export interface Reserved extends Retry {
  readonly hold: { readonly reservationId: string; readonly ttlMs: number } | null;
  readonly reasons: readonly ReserveReason[];
  /** The first limit group without room, and when its window ends; null for any other reason. */
  readonly limit: { readonly label: string; readonly resetsAt: string | null } | null;
  /** How the refusal calls the user above that refuses; null where the user of the call itself does. */
  readonly account: string | null;
  /** Present for a call that asked for it and has its hold. */
  readonly fitted?: Fitted;
}

/** Where holds are taken: by a turn, unless the app has spent its budget. */
interface HoldWorld extends TurnWorld {
  readonly term: TurnWorld["term"] & Pick<Term, "budget" | "gate"> & {
    readonly directory: Pick<Directory, "countRefused" | "isSameUser">;
  };
}

/** Holds what a call may use. */
export const reserveHold: InternalCall<HoldWorld, z.output<typeof holdInput>, Reserved> = {
  id: "gatewayReserve",
  handle: async (request) => {
    const { world, caller, endUser, input } = request;
    await requireSameUser(world.term.directory, caller.realm, endUser, input.userId);
    const limit = await refuseSpent(request);
    if (limit !== null) return failure(limit);
    const {
      userId,
      count,
      inputTokens,
      maxOutputTokens,
      cacheWriteTokens,
      cacheWrite1hTokens,
      fit,
      ...rest
    } = input;
    const size = {
      quantity: null,
      count: amountOrNull(count),
      inputCostCents: null,
      inputTokens: amountOrNull(inputTokens),
      maxOutputTokens: amountOrNull(maxOutputTokens),
      cacheWriteTokens: amountOrNull(cacheWriteTokens),
      cacheWrite1hTokens: amountOrNull(cacheWrite1hTokens),
    };
    const call = {
      name: "reserve",
      input: { ...rest, size, ttlMs: null, fit: fit === null ? null : fitOf(fit) },
      isCapped: true,
      needs: rest.runId === null ? undefined : { runId: rest.runId },
    } as const;
    const { reservationTtlMs: ttlMs } = request.caller.realm.catalog;
    return await runTurn(request, { userId }, call, (answer): Reserved => ({
      hold: answer.hold === null ? null : { reservationId: answer.hold.reservationId, ttlMs },
      ...refusalIn(answer, endUser === null),
      ...fittedIn(answer, rest.model),
    }));
  },
};

/** @param asked the model that the call names */
function fittedIn({ fitted }: ReserveAnswer, asked: string): Pick<Reserved, "fitted"> {
  if (fitted === undefined) return {};
  const { model, maxOutputTokens } = fitted;
  return { fitted: { model: model ?? asked, maxOutputTokens: numberOf(maxOutputTokens) } };
}

/**
 * Why a reserve is refused: by the first limit without room on the path, or by a plan that has ended.
 *
 * @param isTrusted whether the caller may read the ids of users above: a user's own key may not
 */
function refusalIn(
  { reasons, blocking, levels, refusedBy, retryAfterMs }: ReserveAnswer,
  isTrusted: boolean,
): Omit<Reserved, "hold"> {
  const isByPlan = reasons[0] === "no_subscription";
  const above = isByPlan
    ? levels?.find(({ userId, blocking: full }) => full.length === 0 && refusedBy.includes(userId))
    : blocking.length > 0
    ? undefined
    : levels?.find(({ blocking: full }) => full.length > 0);
  const [full] = isByPlan ? [] : above?.blocking ?? blocking;
  return {
    reasons,
    limit: full === undefined ? null : { label: full.group.label, resetsAt: endOf(full.window) },
    ...retryAfterMs === undefined ? {} : { retryAfterMs },
    account: above === undefined ? null : isTrusted ? `"${above.userId}"` : "an account above the user",
  };
}

/** Returns the refusal of an app that has spent its budget; null for none. The call is counted as refused. */
async function refuseSpent(
  { world, caller, input }: EndpointRequest<HoldWorld, z.output<typeof holdInput>>,
): Promise<Refusal | null> {
  const { app: { record: { appId } }, realm } = caller;
  const { budget, directory, gate } = world.term;
  const limit = budget.gatewayRefusal(realm.caps.workspaceId, appId, realm.catalog.gateway.budgetCents);
  if (limit === null) return null;
  const call = refusedAtCap(input.event, limit.code, realm.now());
  // A call that can't be counted is refused all the same. The commits that spent the budget must be durable first.
  await Promise.all([gate.tip?.durable, directory.countRefused(realm, input.userId, call).catch(() => {})]);
  return limit;
}

/** How a hold is settled. */
export type Settlement =
  | {
    readonly by: "commit";
    /** Amounts by their names in a usage. */
    readonly usage: Readonly<Record<string, number>>;
    /** The images that came; null for a call of text. */
    readonly images: number | null;
    readonly isEstimate: boolean;
    readonly response: string | null;
  }
  | { readonly by: "release"; readonly reason: string; readonly errorCode: string | null };

interface HoldChange {
  readonly reservationId: string;
  readonly change: Settlement | { readonly by: "prolong"; readonly ttlMs: number };
}

/** Settles or prolongs a hold. */
export const changeHold: InternalCall<TurnWorld, HoldChange, null> = {
  id: "gatewayChangeHold",
  handle: (request) => {
    const { reservationId, change: { by: name, ...change } } = request.input;
    const command = "usage" in change ? commitOf(change) : change;
    const gatewayApp = request.caller.app.record.appId;
    const call = { name, input: { reservationId, ...command }, gatewayApp } as Parameters<typeof runTurn>[2];
    return runTurn(request, { reservationId }, call, () => null);
  },
};

function commitOf({ images, usage, ...change }: Omit<Extract<Settlement, { by: "commit" }>, "by">) {
  const actual = images === null ? {} : { count: amountOf(images) };
  return { ...change, extra: {}, actual, costCents: null, usage: usageOf(usage) };
}

function usageOf(amounts: Readonly<Record<string, number>>) {
  const entries = Object.entries(amounts).map(([name, number]) => [name, amountOf(number)]);
  return { ...NO_USAGE, ...Object.fromEntries(entries) };
}

/** A hold and its app. */
export interface Hold {
  readonly appId: string;
  readonly mode: "live" | "test";
  readonly reservationId: string;
}

/** Where holds are settled: in the running term, or, while this process stops, in the term that is about to end. */
export interface HoldSource {
  world(appId: string): DispatchWorld & HoldWorld & { readonly registry: Pick<Registry, "operatorOf"> };
}

/** Prolongs a hold. A failure changes nothing: the next time comes soon. */
export async function prolongAnywhere(source: HoldSource, hold: Hold, ttlMs: number): Promise<void> {
  await ask(source, hold, { by: "prolong", ttlMs }).catch(() => {});
}

/** Settles a hold, retrying for a bounded time; returns whether it is settled. */
export async function settleAnywhere(
  source: HoldSource,
  hold: Hold,
  settlement: Settlement,
): Promise<boolean> {
  const until = performance.now() + GATEWAY_LIMITS.settleForMs;
  let pauseMs = 20;
  let fault = "";
  while (performance.now() < until) {
    try {
      const answer = await ask(source, hold, settlement);
      const status = statusOf(answer);
      // Any other refusal is final: the hold is settled already, has lapsed, or was erased with its user.
      if (status !== 503) return status === 200 || status === 409 || status === 404;
      fault = answer.ok ? "" : answer.error.message;
    } catch (error) {
      fault = messageOf(error);
      if (error instanceof Stopping || !(error instanceof Unavailable)) break;
    }
    await rest(pauseMs);
    pauseMs = Math.min(pauseMs * 2, GATEWAY_LIMITS.settlePauseMsMax);
  }
  log("warn", "A hold could not be settled and will lapse", { reservationId: hold.reservationId, fault });
  return false;
}

/** The service asks in its own name: a key that was revoked since the model began to work changes nothing. */
async function ask(
  source: HoldSource,
  { appId, mode, reservationId }: Hold,
  change: HoldChange["change"],
): Promise<Answer<null>> {
  const world = source.world(appId);
  const caller = world.registry.operatorOf(appId, mode);
  if (caller === null) return failure(unknownReservation());
  // Logs name the hold, since its request may have ended.
  return await askOwner(world, changeHold, { caller }, { reservationId, change }, reservationId);
}
