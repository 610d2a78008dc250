// Sweeps: settle what is due of users that nobody calls for, in bounded steps. They change no later answer, since
// every decision settles what is due first; they only make it visible, and promote and end on time.

import type { SettleAnswer } from "../src/domain/due.ts";
import { SWEEP_LIMITS } from "../src/process/limits.ts";
import type { Realm } from "./actor.ts";
import type { UserStore } from "./port.ts";
import type { Directory } from "./directory.ts";

/** What a sweep works on. */
export interface SweepTerm {
  readonly directory: Pick<Directory, "runByKey">;
  /** Resolves when the tables hold everything that was decided before the call. */
  flush(): Promise<void>;
}

/**
 * Settles what is due in a realm, to its end, a bounded step at a time.
 *
 * @param mayGoOn asked before each step, so that a stopping service is not held up
 */
export async function sweepRealm(
  term: SweepTerm,
  store: Pick<UserStore, "listDue">,
  realm: Realm,
  mayGoOn: () => boolean = () => true,
): Promise<SettleAnswer> {
  let holds = 0;
  let subscriptions = 0;
  while (mayGoOn()) {
    await term.flush();
    const due = await store.listDue(realm.realm, realm.now(), SWEEP_LIMITS.stepRowsMax);
    const settled = await Promise.all(
      due.map((key) => term.directory.runByKey(key, { realm, name: "settle", input: {} })),
    );
    for (const result of settled) {
      if (result === null || !result.ok) continue;
      holds += result.answer.holds;
      subscriptions += result.answer.subscriptions;
    }
    if (due.length < SWEEP_LIMITS.stepRowsMax) break;
  }
  return { holds, subscriptions };
}
