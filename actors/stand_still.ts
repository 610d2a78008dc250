// Holding a user's mailbox for work that takes longer than a turn. No turn of the user runs until the work is done.

import type { Actor } from "./actor.ts";
import type { Directory } from "./directory.ts";
import { Unavailable } from "./port.ts";

/** Runs work while no turn of a user can run; null if the actor is no longer the user's. */
export async function standStill<T>(
  directory: Directory,
  actor: Actor,
  work: () => Promise<T>,
): Promise<T | null> {
  let done: T | null = null;
  await actor.mailbox.run(() => {}, () => {
    if (actor.isBroken) throw new Unavailable("This user's state is being loaded again");
    if (!directory.has(actor)) return null;
    return work().then((value) => {
      done = value;
    });
  });
  return done;
}
