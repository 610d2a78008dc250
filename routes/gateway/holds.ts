// The hold of a call: taken before the model works, prolonged while it works, settled afterwards. Each is a call to the
// owner of the workspace's cell, which may move while the model works, so a settlement is tried again for a bounded
// time. A hold that nobody settles lapses. These calls go between members and have no HTTP route.

import { z } from "zod";
import type { Directory } from "../../actors/directory.ts";
import { Stopping, Unavailable } from "../../actors/port.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { ownerOf } from "../../src/domain/values/ids.ts";
import type { ReserveReason } from "../../src/domain/state/refused_call.ts";
import { unknownReservation } from "../../src/domain/state/reservation.ts";
import { refused, type Result } from "../../src/domain/state/result.ts";
import { GATEWAY_LIMITS, REQUEST_LIMITS } from "../../src/process/limits.ts";
import { log, messageOf } from "../../src/process/log.ts";
import type { Caller, Registry } from "../../src/tenant/registry.ts";
import { type Answer, answerOf, failure, readAnswer, type WrittenAnswer } from "../http/answer.ts";
import type { Members } from "../http/body.ts";
import { endpointsOn, keylessEndpointsOn } from "../http/endpoint.ts";
import type { Endpoint, KeylessEndpoint } from "../http/endpoint_types.ts";
import { Refused } from "../http/errors.ts";
import { checkInput } from "../http/input.ts";
import { type KeyedWorld, runAnywhere } from "../http/run_anywhere.ts";
import { type KeylessWorld, runKeylessAnywhere } from "../http/run_keyless.ts";
import { defineCall } from "../contract/definition.ts";
import { nothing, reasons } from "../contract/records.ts";
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
import { usage } from "../contract/model_usage.ts";
import { runTurn, type TurnWorld } from "../http/turn.ts";

/** What holds are kept in. */
export interface HoldWorld {
  readonly registry: Pick<Registry, "apps">;
  readonly term: { readonly directory: Pick<Directory, "runById" | "runByKey"> };
}

const reserveInput = z.object({
  userId: endUserId,
  event: eventName,
  metadata,
  model: nameOf(REQUEST_LIMITS.idLengthMax),
  inputTokens: amount,
  maxOutputTokens: amount.nullable(),
  prompt: loggedText.nullable(),
});

/** Holds what a call may use. */
export const reserveCall = endpointsOn<TurnWorld>()(
  defineCall({
    ...between("gatewayReserve", "Hold what a call may use"),
    method: "POST",
    path: "/gateway/reserve",
    access: "secret",
    input: reserveInput,
    answer: z.strictObject({
      hold: z.strictObject({ reservationId: z.string(), ttlMs: z.number() }).nullable(),
      reasons,
    }),
  }),
  (request) => {
    const { userId, event, metadata, model, inputTokens, maxOutputTokens, prompt } = request.input;
    const input = {
      event,
      metadata,
      model,
      size: {
        quantity: null,
        count: null,
        inputCostCents: null,
        inputTokens: amountOrNull(inputTokens),
        maxOutputTokens: amountOrNull(maxOutputTokens),
      },
      ttlMs: null,
      prompt,
    };
    const { reservationTtlMs: ttlMs } = request.caller.realm.catalog;
    return runTurn(request, { userId }, { name: "reserve", input, isCapped: true }, ({ hold, reasons }) => ({
      hold: hold === null ? null : { reservationId: hold.reservationId, ttlMs },
      reasons,
    }));
  },
);

const keyless = keylessEndpointsOn<HoldWorld>();

const heldBy = { appId: z.string(), mode: z.enum(["live", "test"]), reservationId: anyId(200) };

/** Charges what a call used. */
const commitHold = keyless(
  defineCall({
    ...between("gatewayCommit", "Charge what a call used"),
    method: "POST",
    path: "/gateway/commit",
    access: "open",
    about: "appId",
    input: z.object({ ...heldBy, usage, isEstimate: z.boolean(), response: loggedText.nullable() }),
    answer: nothing,
  }),
  ({ world, input: { usage, isEstimate, response, ...hold } }) => {
    const { reservationId } = hold;
    const input = { reservationId, extra: {}, actual: {}, costCents: null, usage, isEstimate, response };
    return runOnHold(world, hold, "commit", input);
  },
);

/** Gives the hold of a failed call back. */
const releaseHold = keyless(
  defineCall({
    ...between("gatewayRelease", "Give the hold of a failed call back"),
    method: "POST",
    path: "/gateway/release",
    access: "open",
    about: "appId",
    input: z.object({ ...heldBy, reason: z.string(), errorCode: z.string().nullable() }),
    answer: nothing,
  }),
  ({ world, input: { reason, errorCode, ...hold } }) =>
    runOnHold(world, hold, "release", { reservationId: hold.reservationId, reason, errorCode }),
);

/** Keeps the hold of a call under way from lapsing. */
const prolongHold = keyless(
  defineCall({
    ...between("gatewayProlong", "Keep the hold of a call under way from lapsing"),
    method: "POST",
    path: "/gateway/prolong",
    access: "open",
    about: "appId",
    input: z.object({ ...heldBy, ttlMs: z.number() }),
    answer: nothing,
  }),
  ({ world, input: { ttlMs, ...hold } }) =>
    runOnHold(world, hold, "prolong", { reservationId: hold.reservationId, ttlMs }),
);

/** What members ask each other with a key. */
export const HOLD_CALLS: readonly Endpoint<TurnWorld>[] = [reserveCall];

/** What members ask each other when the model has begun to work: a key that is revoked by then changes nothing. */
export const SETTLE_CALLS: readonly KeylessEndpoint<HoldWorld>[] = [commitHold, releaseHold, prolongHold];

function between(id: string, summary: string) {
  return { id, tag: "Gateway", summary, errors: [] } as const;
}

/** A hold, and whose it is. */
export interface Hold {
  readonly appId: string;
  readonly mode: "live" | "test";
  readonly reservationId: string;
}

async function runOnHold<Name extends CommandName>(
  { registry, term }: HoldWorld,
  { appId, mode, reservationId }: Hold,
  name: Name,
  input: Commands[Name]["input"],
): Promise<Answer<Record<string, never>>> {
  const realm = registry.apps.get(appId)?.realms[mode];
  const owner = ownerOf("reservation", reservationId);
  if (realm === undefined || owner === null) return failure(unknownReservation());
  const result: Result<unknown> | null = await term.directory.runByKey(owner, {
    realm,
    name,
    input,
    needs: { reservationId },
  });
  return answerOf(result ?? refused(unknownReservation()), () => ({}));
}

/** Where holds are settled: in the running term, or, while this process stops, in the one that is about to end. */
export interface HoldSource {
  world(): KeylessWorld & HoldWorld;
}

/** What a reserve comes to: a hold with its time to live, or the reasons why not. */
export interface Reserved {
  readonly hold: { readonly reservationId: string; readonly ttlMs: number } | null;
  readonly reasons: readonly ReserveReason[];
}

/**
 * Holds what a call may use, wherever the workspace is.
 *
 * @param isCounted whether the key's rate has paid for the call
 * @throws Refused where the answer is no data
 */
export async function reserveAnywhere(
  world: KeyedWorld & TurnWorld,
  caller: Caller,
  { members, input, isCounted }: {
    readonly members: Members;
    readonly input: unknown;
    readonly isCounted: boolean;
  },
  request: Request,
): Promise<Reserved> {
  const call = { endpoint: reserveCall, caller, endUser: null, members, input, url: "", idempotent: null };
  const answer = readAnswer(await runAnywhere(world, { ...call, isCounted }, request));
  if (answer.ok) return answer.data as Reserved;
  const { code, message, details } = answer.error;
  throw new Refused(code, message, details);
}

/** How a call under way is settled: members of the calls above beside those of the hold. */
export type Settlement =
  | {
    readonly by: "commit";
    readonly usage: Members;
    readonly isEstimate: boolean;
    readonly response: string | null;
  }
  | { readonly by: "release"; readonly reason: string; readonly errorCode: string | null };

/** Prolongs a hold; whatever goes wrong, the next time comes soon. */
export async function prolongAnywhere(source: HoldSource, hold: Hold, ttlMs: number): Promise<void> {
  await ask(source, prolongHold, { ...hold, ttlMs }).catch(() => {});
}

/** Settles a hold, trying again for a bounded time; answers whether it could. */
export async function settleAnywhere(
  source: HoldSource,
  hold: Hold,
  settlement: Settlement,
): Promise<boolean> {
  const { by, ...members } = settlement;
  const endpoint = by === "commit" ? commitHold : releaseHold;
  const until = performance.now() + GATEWAY_LIMITS.settleForMs;
  let pauseMs = 20;
  let fault = "";
  while (performance.now() < until) {
    try {
      const { status, body } = await ask(source, endpoint, { ...hold, ...members });
      // Any other refusal is the last word: the hold is settled already, has lapsed, or was erased with its user.
      if (status !== 503) return status === 200 || status === 409 || status === 404;
      fault = body;
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

/** Nobody's request: what is done for a call may go on after its request has ended. */
const NO_REQUEST = new Request("http://holdfast.invalid/");

async function ask(
  source: HoldSource,
  endpoint: KeylessEndpoint<HoldWorld>,
  members: Members,
): Promise<WrittenAnswer> {
  const world = source.world();
  const input = checkInput(endpoint, members);
  return await runKeylessAnywhere(world, { endpoint, members, input }, NO_REQUEST) as WrittenAnswer;
}
