// Catching up: a user with more lapsed holds than one turn may settle has them settled in steps. Each step is a turn as of
// the moment up to which it settles, and calls wait until all are made. They get the same answers: a sweep anywhere changes
// no later answer. One turn for all would hold the thread for longer than a lease is valid, and its changes could be more
// than the journal takes at once. Every turn of the user would fail for ever, and so would the process that tries.

import type { UserState } from "../src/domain/state/user.ts";
import type { Millis } from "../src/domain/values/period.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { Call, Realm } from "./call.ts";
import { allDurable, type Batch } from "./gate.ts";
import { Wait } from "./levels.ts";

/** The part of an actor that catching up uses. */
interface Late {
  readonly state: Pick<UserState, "openHolds" | "holds">;
  run(call: Call<"settle">): Promise<unknown>;
  runNow(call: Call<"settle">, awaited: Set<Batch>): unknown;
}

/** Realms whose clocks stand still. */
const stopped = new WeakSet<Realm>();
/** The users that catch up now: all their calls wait for the same steps. */
const underWay = new WeakMap<Late, Promise<void>>();

/** Returns a realm with its clock stopped at a moment. A turn in it settles everything that is due by then. */
export function stoppedAt({ realm, cell, mode, catalog, caps, outbox }: Realm, at: Millis): Realm {
  const still = { realm, cell, mode, catalog, caps, outbox, now: () => at };
  stopped.add(still);
  return still;
}

/** Returns the users above of a turn, or what it waits for if one of its users has to catch up first. */
export function afterCatchUp<User extends Late>(
  own: User,
  above: readonly User[] | Wait,
  realm: Realm,
): readonly User[] | Wait {
  if (above instanceof Wait) return above;
  if (isLate(own, realm)) return new Wait(() => caughtUp(own, realm));
  for (const level of above) if (isLate(level, realm)) return new Wait(() => caughtUp(level, realm));
  return above;
}

/** Resolves when a user has no more lapsed holds than a turn may settle. */
export function caughtUp(user: Late, realm: Realm): Promise<void> {
  const known = underWay.get(user);
  if (known !== undefined) return known;
  if (!isLate(user, realm)) return CAUGHT_UP;
  const steps = settleInSteps(user, realm).finally(() => underWay.delete(user));
  underWay.set(user, steps);
  return steps;
}

const CAUGHT_UP = Promise.resolve();

function isLate({ state: { openHolds, holds } }: Late, realm: Realm): boolean {
  const { turnHoldsMax } = RUNTIME_LIMITS;
  return openHolds > turnHoldsMax && !stopped.has(realm) && holds.hasMore(realm.now(), turnHoldsMax);
}

/** Steps that are made before the journal has those before them: more could fill it, and then all users are refused. */
const STEPS_AHEAD = 4;

async function settleInSteps(user: Late, realm: Realm): Promise<void> {
  const times = user.state.holds.timesUpTo(realm.now());
  const { turnHoldsMax } = RUNTIME_LIMITS;
  const awaited = new Set<Batch>();
  let steps = 0;
  for (let last = turnHoldsMax - 1; last < times.length; last += turnHoldsMax) {
    const step = { realm: stoppedAt(realm, times[last] as Millis), name: "settle", input: {} } as const;
    if (user.runNow(step, awaited) === null) await user.run(step);
    // Others have the thread in between.
    await new Promise((resolve) => setImmediate(resolve));
    if (++steps % STEPS_AHEAD > 0) continue;
    await allDurable(awaited);
    awaited.clear();
  }
  await allDurable(awaited);
}
