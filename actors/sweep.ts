// Sweeps: settle what is due of users that nobody calls for, in bounded steps. They change no later answer, since
// every decision settles what is due first; they only make it visible, and promote and end on time.

import type { SettleAnswer } from "../src/domain/metering/due.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import { SWEEP_LIMITS } from "../src/process/limits.ts";
import { visit, type VisitedTerm } from "./visit.ts";
import type { Realm } from "./actor.ts";
import type { UserStore } from "./port.ts";
import type { Directory } from "./directory.ts";

/** What a sweep works on. */
export interface SweepTerm {
  readonly directory: Pick<Directory, "runByKey">;
  /** Resolves when the tables hold everything that was decided before the call. */
  flush(): Promise<void>;
}

/** Settles what is due in a realm, to its end. The caller is inside the realm's cell. */
export function sweepRealm(
  term: SweepTerm,
  store: Pick<UserStore, "listDue">,
  realm: Realm,
): Promise<SettleAnswer> {
  return inSteps(() => settleSome(term, store, realm));
}

/** The same beside the calls, for as long as the realm's cell is here: each step enters it. */
export function sweepRealmBeside(
  term: SweepTerm & VisitedTerm,
  store: Pick<UserStore, "listDue">,
  realm: Realm,
): Promise<SettleAnswer> {
  return inSteps(async () =>
    term.isServing ? await visit(term, realm.cell, () => settleSome(term, store, realm)) : null
  );
}

type Settled = Awaited<ReturnType<typeof settleOne>>;

/** What one step came to. */
interface Step extends SettleAnswer {
  /** Whether there was no more. */
  readonly isLast: boolean;
}

/** Adds up steps until one is the last, or none can be made. */
async function inSteps(step: () => Promise<Step | null>): Promise<SettleAnswer> {
  let holds = 0;
  let subscriptions = 0;
  while (true) {
    const settled = await step();
    holds += settled?.holds ?? 0;
    subscriptions += settled?.subscriptions ?? 0;
    if (settled === null || settled.isLast) return { holds, subscriptions };
  }
}

/** Settles a bounded number of users. */
async function settleSome(
  term: SweepTerm,
  store: Pick<UserStore, "listDue">,
  realm: Realm,
): Promise<Step> {
  await term.flush();
  const due = await store.listDue(realm.realm, realm.now(), SWEEP_LIMITS.stepRowsMax);
  // Every turn ends before the cell is left, also where one fails: a later one would load a user whose cell has gone.
  const ended = await Promise.allSettled(
    due.map((key) => settleOne(term, realm, key)),
  );
  const failed = ended.find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
  if (failed !== undefined) throw failed.reason;
  const settled = ended.map((end) => (end as PromiseFulfilledResult<Settled>).value);
  let holds = 0;
  let subscriptions = 0;
  for (const result of settled) {
    if (result === null || !result.ok) continue;
    holds += result.answer.holds;
    subscriptions += result.answer.subscriptions;
  }
  return { holds, subscriptions, isLast: due.length < SWEEP_LIMITS.stepRowsMax };
}

function settleOne({ directory }: SweepTerm, realm: Realm, key: UserKey) {
  return directory.runByKey(key, { realm, name: "settle", input: {} });
}
