// Runs a call in this process: inside the cell of its workspace, or outside of all cells where it is about none.

import type { IdempotentCall } from "../../actors/idempotency.ts";
import { MayNotAnswer } from "../../actors/port.ts";
import { keepFirst, readKept, write, type WrittenAnswer } from "./answer.ts";
import {
  type CheckedCall,
  type DispatchWorld,
  idOf,
  type KeyedCall,
  type KeyedTarget,
  type Origin,
  type Outcome,
} from "./call.ts";
import { checkUserKey } from "./user_keys.ts";
import type { EndpointRequest } from "./endpoint_types.ts";
import { Refused } from "./errors.ts";
import { countCall } from "./rate_limit.ts";
import { worldOf } from "./app_world.ts";

/**
 * Runs a call that has entered its cell, and leaves the cell. Promises are chained by hand: nearly every call comes through
 * here, and an async function costs each of them more.
 */
export function runInside<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  cell: number,
  origin: Origin,
): Promise<Outcome> {
  const { target } = call;
  const { doors } = world.term;
  const isLong = target.isLong === true;
  if (isLong) doors.pin(cell);
  let isInside = true;
  const leave = () => {
    if (!isInside) return;
    isInside = false;
    if (isLong) doors.unpin(cell);
    doors.leave(cell);
  };
  const finish = (outcome: Outcome) => {
    // A document that is still being sent reads the tables alone: it keeps no cell from moving.
    leave();
    // Checked after the last wait: what is durable by then is true, but a key may have been revoked elsewhere since.
    if (world.term.isServing) return outcome;
    if (outcome instanceof Response) void outcome.body?.cancel();
    throw new MayNotAnswer();
  };
  const fail = (error: unknown) => {
    leave();
    throw error;
  };
  let outcome: Promise<Outcome> | Outcome;
  try {
    outcome = begin(world, call, origin);
  } catch (error) {
    outcome = Promise.reject(error);
  }
  if (target.waitsOutside === true) leave();
  return (outcome instanceof Promise ? outcome : Promise.resolve(outcome)).then(finish, fail);
}

/** Runs a call that needs no cell. */
export async function runOutside<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  origin: Origin,
): Promise<Outcome> {
  const outcome = await begin(world, call, origin);
  if (!world.term.isServing) throw new MayNotAnswer();
  return outcome;
}

function begin<World extends DispatchWorld>(
  world: World,
  call: CheckedCall<World>,
  origin: Origin,
): Promise<Outcome> | Outcome {
  if (call.caller === null) {
    return call.target.handle({ world, input: call.input, requestId: idOf(origin), who: call.who ?? "api" });
  }
  const { target, caller } = call;
  // A call that waits outside of its cell checks the key itself, at each read.
  if (caller.ofUser !== null && target.waitsOutside !== true) {
    return checkUserKey(world, caller, caller.ofUser).then((holder) =>
      run(world, { ...call, endUser: holder })
    );
  }
  return run(world, call);
}

function run<World extends DispatchWorld>(
  world: World,
  { target, caller, endUser, input, url, idempotent, isCounted }: KeyedCall<World>,
): Promise<Outcome> | Outcome {
  if (!isCounted) countCall(world, caller);
  const request = { world: worldOf(world, caller.app), caller, endUser, input, url, idempotent };
  return idempotent === null ? target.handle(request) : runOnce(target, request, idempotent);
}

/** Runs a call unless the first answer under its idempotency key is known. */
async function runOnce<World extends DispatchWorld>(
  target: KeyedTarget<World>,
  request: EndpointRequest<World, unknown>,
  idempotent: IdempotentCall,
): Promise<WrittenAnswer> {
  const { term } = request.world;
  const outcome = await term.idempotency.run(idempotent, async () => {
    const handled = await target.handle(request);
    // An answer that is text was kept in its turn.
    const isKeptHere = "ok" in handled && target.answersToken !== true;
    return isKeptHere ? await keepFirst(term, idempotent, handled, null) : write(handled);
  });
  if (outcome.kind === "conflict") {
    throw new Refused("idempotency_conflict", "The Idempotency-Key was used for another call");
  }
  if (outcome.kind === "replayed") return readKept(outcome.answer);
  // Only keys of secret API keys are stored as sent, so no other caller can use a prefix.
  const canBegin = outcome.wasLookedUp && request.caller.key.class === "secret";
  return canBegin
    ? { ...outcome.answer, keyPrefix: term.idempotency.keyPrefixOf(idempotent.realm) }
    : outcome.answer;
}
