// The hold of a call: taken before the model works, prolonged while it works, settled afterwards. Each is an internal call to
// the owner of the workspace's cell. The cell may move while the model works, so a settlement is retried for a bounded time.
// A hold that is not settled lapses.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import { NO_USAGE } from "../../src/domain/pricing/usage.ts";
import type { ReserveReason } from "../../src/domain/state/refused_call.ts";
import { unknownReservation } from "../../src/domain/state/reservation.ts";
import type { Result } from "../../src/domain/state/result.ts";
import { GATEWAY_LIMITS, REQUEST_LIMITS } from "../../src/process/limits.ts";
import { log, messageOf } from "../../src/process/log.ts";
import type { AppRealm, Registry } from "../../src/tenant/registry.ts";
import { answerOf, failure, statusOf } from "../http/answer.ts";
import { askOwnerOfApp } from "../http/ask_owner.ts";
import type { DispatchWorld, InternalCall, InternalKeylessCall } from "../http/call.ts";
import {
  amount,
  amountOrNull,
  endUserId,
  eventName,
  loggedText,
  metadata,
  nameOf,
} from "../contract/fields.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";

/** Where holds are kept. */
export interface HoldWorld {
  readonly registry: Pick<Registry, "apps">;
  readonly term: { readonly directory: Pick<Directory, "runByKey"> };
}

/** What is held for whom. */
export const holdInput = z.object({
  userId: endUserId,
  event: eventName,
  metadata,
  model: nameOf(REQUEST_LIMITS.idLengthMax),
  inputTokens: amount,
  maxOutputTokens: amount.nullable(),
  prompt: loggedText.nullable(),
});

/** A hold with its time to live, or the reasons for a refusal. */
export interface Reserved {
  readonly hold: { readonly reservationId: string; readonly ttlMs: number } | null;
  readonly reasons: readonly ReserveReason[];
}

/** Holds what a call may use. */
export const reserveHold: InternalCall<TurnWorld, z.output<typeof holdInput>, Reserved> = {
  id: "gatewayReserve",
  handle: (request) => {
    const { userId, inputTokens, maxOutputTokens, ...rest } = request.input;
    const size = {
      quantity: null,
      count: null,
      inputCostCents: null,
      inputTokens: amountOrNull(inputTokens),
      maxOutputTokens: amountOrNull(maxOutputTokens),
    };
    const call = { name: "reserve", input: { ...rest, size, ttlMs: null }, isCapped: true } as const;
    const { reservationTtlMs: ttlMs } = request.caller.realm.catalog;
    return runTurn(request, { userId }, call, ({ hold, reasons }): Reserved => ({
      hold: hold === null ? null : { reservationId: hold.reservationId, ttlMs },
      reasons,
    }));
  },
};

/** A hold and its app. */
export interface Hold {
  readonly appId: string;
  readonly mode: "live" | "test";
  readonly reservationId: string;
}

/** Tokens that a call used, by their names in a usage. */
export type UsedTokens = Readonly<
  Partial<
    Record<
      "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "outputTokens" | "reasoningTokens",
      number
    >
  >
>;

/** How a hold is settled. */
export type Settlement =
  | {
    readonly by: "commit";
    readonly usage: UsedTokens;
    readonly isEstimate: boolean;
    readonly response: string | null;
  }
  | { readonly by: "release"; readonly reason: string; readonly errorCode: string | null };

type HoldChange = Settlement | { readonly by: "prolong"; readonly ttlMs: number };

type ChangedHold = Hold & { readonly change: HoldChange };

/** Settles or prolongs a hold. A key that was revoked since the model began to work changes nothing. */
export const changeHold: InternalKeylessCall<HoldWorld, ChangedHold, null> = {
  id: "gatewayChangeHold",
  about: ({ input: { appId } }) => ({ appId }),
  handle: async ({ world, input }) => {
    const realm = world.registry.apps.get(input.appId)?.realms[input.mode];
    const result = realm === undefined ? null : await runChange(world.term.directory, realm, input);
    return result === null ? failure(unknownReservation()) : answerOf(result, () => null);
  },
};

async function runChange(
  directory: HoldWorld["term"]["directory"],
  realm: AppRealm,
  { reservationId, change }: ChangedHold,
): Promise<Result<unknown> | null> {
  const owner = ownerOf("reservation", reservationId);
  if (owner === null) return null;
  const needs = { reservationId };
  switch (change.by) {
    case "commit": {
      const { isEstimate, response } = change;
      const used = Object.entries(change.usage).map(([name, tokens]) => [name, amountOrNull(tokens)]);
      const usage = { ...NO_USAGE, ...Object.fromEntries(used) };
      const settled = { reservationId, extra: {}, actual: {}, costCents: null, usage, isEstimate, response };
      return await directory.runByKey(owner, { realm, needs, name: "commit", input: settled });
    }
    case "release": {
      const { reason, errorCode } = change;
      const input = { reservationId, reason, errorCode };
      return await directory.runByKey(owner, { realm, needs, name: "release", input });
    }
    case "prolong": {
      const input = { reservationId, ttlMs: change.ttlMs };
      return await directory.runByKey(owner, { realm, needs, name: "prolong", input });
    }
  }
}

/** Where holds are settled: in the running term, or, while this process stops, in the term that is about to end. */
export interface HoldSource {
  world(): DispatchWorld & HoldWorld;
}

/** Prolongs a hold. A failure changes nothing: the next time comes soon. */
export async function prolongAnywhere(source: HoldSource, hold: Hold, ttlMs: number): Promise<void> {
  await change(source, hold, { by: "prolong", ttlMs }).catch(() => {});
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
      const answer = await change(source, hold, settlement);
      const status = statusOf(answer);
      // Any other refusal is final: the hold is settled already, has lapsed, or was erased with its user.
      if (status !== 503) return status === 200 || status === 409 || status === 404;
      fault = answer.ok ? "" : answer.error.message;
    } catch (error) {
      fault = messageOf(error);
      if (error instanceof Stopping || !(error instanceof Unavailable)) break;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(pauseMs * 2, GATEWAY_LIMITS.settlePauseMsMax);
  }
  log("warn", "A hold could not be settled and will lapse", { reservationId: hold.reservationId, fault });
  return false;
}

async function change(source: HoldSource, hold: Hold, change: HoldChange) {
  // What is done for a hold may go on after its request has ended, so logs name the hold.
  return await askOwnerOfApp(source.world(), changeHold, { ...hold, change }, hold.reservationId);
}
