// Erasing a user from memory. No turn of the user runs while its rows are deleted; then its actor is unloaded. A waiting
// call is refused as retryable, and finds a new user when it is sent again.

import type { Realm } from "./actor.ts";
import type { Term } from "./term.ts";
import { standStill } from "./stand_still.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** Deletes the rows of a user and its aliases, given by their numbers; returns the numbers of all deleted users. */
export type ErasureStep = (keys: readonly UserKey[]) => Promise<readonly UserKey[]>;

/** Runs an erasure step while no turn of the user can run and the tables have everything of the user. */
export async function eraseUser(
  term: Term,
  { realm }: Pick<Realm, "realm">,
  id: string,
  step: ErasureStep,
): Promise<void> {
  const { directory, refusedCalls } = term;
  while (true) {
    const actor = await directory.actorOf(realm, id);
    const isDone = await standStill(directory, actor, async () => {
      await directory.settleStarts(actor);
      await term.flush();
      await refusedCalls.write([realm]);
      const keys = await step(actor.state.keys);
      term.idempotency.forget(keys);
      directory.evict(actor);
      return true;
    });
    if (isDone !== null) return;
  }
}
