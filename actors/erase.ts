// Erasing a user from memory. No turn of the user runs while its rows are deleted; then its actor is unloaded. A waiting
// call is refused as retryable, and finds a new user when it is sent again.

import type { Realm } from "./call.ts";
import type { Term } from "./term.ts";
import { standStill } from "./stand_still.ts";
import { heldAbove } from "./tree.ts";
import type { UserKey } from "../src/domain/values/ids.ts";

/** Deletes the rows of a user and its aliases, given by their numbers; returns the numbers of all deleted users. */
export type ErasureStep = (keys: readonly UserKey[]) => Promise<readonly UserKey[]>;

/**
 * Runs an erasure step while no turn of the user can run and the tables have everything of the user. In a realm with trees
 * it is a change of the tree: the user leaves its tree first.
 */
export async function eraseUser(term: Term, realm: Realm, id: string, step: ErasureStep): Promise<void> {
  const { tree } = term;
  if (!await tree.mayHaveTree(realm.realm) && await eraseNow(term, realm, id, step, false)) return;
  await tree.inTurn(realm.realm, () => eraseNow(term, realm, id, step, true));
}

/** False if the realm has got a tree meanwhile, and the erasure is to be a change of it. */
async function eraseNow(
  term: Term,
  realm: Realm,
  id: string,
  step: ErasureStep,
  isInTree: boolean,
): Promise<boolean> {
  const { directory, refusedCalls, tree } = term;
  while (true) {
    const actor = await directory.actorOf(realm.realm, id);
    if (isInTree) await tree.leave(realm, actor);
    const isDone = await standStill(directory, actor, async () => {
      if (!isInTree && !tree.isFlat(realm.realm)) return false;
      // A hold that was taken since has a part above again.
      if (isInTree && heldAbove(actor.state).length > 0) return null;
      await directory.settleStarts(actor);
      await term.flush();
      await refusedCalls.write([realm.realm]);
      const keys = await step(actor.state.keys);
      term.idempotency.forget(keys);
      directory.evict(actor);
      return true;
    });
    if (isDone !== null) return isDone;
  }
}
