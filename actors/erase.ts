// Erasing a user from memory: the actor stands still while the tables forget the user, and is let go in the same moment.
// A call that waited for it is refused as one that may be sent again; it then finds a new user.

import type { Term } from "actors/term.ts";
import { Unavailable } from "actors/port.ts";
import type { UserKey } from "domain/ids.ts";

/** Removes a user's rows; is told the numbers of the user and its aliases, answers all that it removed. */
export type ErasureStep = (keys: readonly UserKey[]) => Promise<readonly UserKey[]>;

/** Runs an erasure step while the user behind an id stands still and everything of it is in the tables. */
export async function eraseUser(term: Term, realm: number, id: string, step: ErasureStep): Promise<void> {
  const { directory } = term;
  while (true) {
    const actor = await directory.actorOf(realm, id);
    let isDone = false;
    await actor.mailbox.run(() => {}, () => {
      if (actor.isBroken) throw new Unavailable("This user's state is being loaded again");
      if (!directory.has(actor)) return null;
      return (async () => {
        await directory.settleStarts(actor);
        await term.flush();
        const { user, aliases } = actor.state;
        const keys = await step([user.key, ...aliases.map(({ key }) => key)]);
        term.idempotency.forget(keys);
        directory.release(actor);
        isDone = true;
      })();
    });
    if (isDone) return;
  }
}
