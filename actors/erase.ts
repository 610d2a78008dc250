// Erasing a user from memory. No turn of the user runs while its rows are deleted, and its actor is unloaded with the
// last of them. A call that waited meanwhile is refused as retryable, and finds a new user when it is sent again.

import type { Realm } from "./actor.ts";
import type { Term } from "./term.ts";
import { standStill } from "./stand_still.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** Removes a user's rows; is told the numbers of the user and its aliases, answers all that it removed. */
export type ErasureStep = (keys: readonly UserKey[]) => Promise<readonly UserKey[]>;

/** Runs an erasure step while the user behind an id stands still and everything of it is in the tables. */
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
