// Runs a command of an endpoint on a user's actor, and makes the answer. The answer is shaped apart from the turn: with an idempotency key after
// the decision and before anything is applied, without one after the changes are durable. So a fault in shaping fails
// that one call and never the actor.

import type { Call, Keeping, TurnResult } from "../../actors/call.ts";
import type { Directory } from "../../actors/directory.ts";
import type { IdempotentCall } from "../../actors/idempotency.ts";
import type { CommandName, Commands } from "../../src/domain/command.ts";
import { unknownRun } from "../../src/domain/accounts/run.ts";
import { unknownBalance } from "../../src/domain/credits/revoke.ts";
import { ownerOf, type UserKey } from "../../src/domain/values/ids.ts";
import { unknownReservation } from "../../src/domain/state/reservation.ts";
import type { Refusal } from "../../src/domain/values/refusal.ts";
import { refused, type Result } from "../../src/domain/state/result.ts";
import type { AnswerCode } from "../../src/process/counts/request_counts.ts";
import { answerOf, type Handled, isKept, write } from "./answer.ts";
import type { EndpointRequest } from "./endpoint_types.ts";

/** Where turns run. */
export interface TurnWorld {
  readonly term: { readonly directory: Pick<Directory, "runById" | "runByKey"> };
}

/** Who a command is for. */
export type Target =
  | { readonly userId: string }
  | { readonly reservationId: string }
  | { readonly balanceId: string }
  | { readonly runId: string };

/** Puts a command to a user; `show` makes the data of the answer. */
export function runTurn<Name extends CommandName, Data>(
  { world, caller, idempotent }: EndpointRequest<TurnWorld, unknown>,
  target: Target,
  { name, input, isCapped, needs, aiCents, gatewayApp }: Pick<
    Call<Name>,
    "name" | "input" | "isCapped" | "needs" | "aiCents" | "gatewayApp"
  >,
  show: (answer: Commands[Name]["answer"]) => NoInfer<Data>,
): Promise<Handled<Data>> {
  const keeping = idempotent === null ? null : keepingOf(idempotent, show);
  const { directory } = world.term;
  const { realm } = caller;
  const result = "userId" in target
    ? directory.runById(target.userId, { realm, name, input, isCapped, needs, aiCents, gatewayApp, keeping })
    : runOnOwned(directory, target, {
      realm,
      name,
      input,
      isCapped,
      needs: target,
      aiCents,
      gatewayApp,
      keeping,
    });
  return result.then((outcome) => handledOf(outcome, show));
}

/** How the answer to a call with an idempotency key is kept. */
export function keepingOf<Of>(
  call: IdempotentCall,
  show: (answer: Of) => unknown,
  isNew = false,
): Keeping<Of> {
  return { call, isNew, shape: (result) => isKept(codeOf(result)) ? write(answerOf(result, show)) : null };
}

/** What a handler gives back for the outcome of a turn. */
export function handledOf<Of, Data>(
  outcome: TurnResult<Of>,
  show: (answer: Of) => NoInfer<Data>,
): Handled<Data> {
  if (outcome.kept === undefined) return answerOf(outcome, show);
  return { ...outcome.kept, code: codeOf(outcome) };
}

function codeOf(result: Result<unknown>): AnswerCode {
  return result.ok ? "ok" : result.refusal.code;
}

/** Runs a command on the owner of a reservation, balance or run, which its id names; refuses ids of other realms as unknown. */
async function runOnOwned<Name extends CommandName>(
  directory: TurnWorld["term"]["directory"],
  target: Exclude<Target, { readonly userId: string }>,
  call: Call<Name>,
): Promise<TurnResult<Commands[Name]["answer"]>> {
  const { owner, unknown } = ownedBy(target);
  const result = owner === null ? null : await directory.runByKey(owner, call);
  return result ?? refused(unknown());
}

/** The owner that an id names, null for an invalid id, and the refusal of an unknown one. */
function ownedBy(
  target: Exclude<Target, { readonly userId: string }>,
): { readonly owner: UserKey | null; readonly unknown: () => Refusal } {
  if ("balanceId" in target) {
    return { owner: ownerOf("creditBalance", target.balanceId), unknown: unknownBalance };
  }
  if ("runId" in target) return { owner: ownerOf("run", target.runId), unknown: unknownRun };
  return { owner: ownerOf("reservation", target.reservationId), unknown: unknownReservation };
}
