// Sweeps: settle what is due for users without calls, in bounded steps. They change no later answer, since every decision
// settles what is due first. They only make it visible in time: expiries, ends, promotions and their messages.

import type { SettleAnswer } from "../src/domain/metering/due.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import { SWEEP_LIMITS } from "../src/process/limits.ts";
import { visit, type VisitedTerm } from "./visit.ts";
import type { Realm } from "./call.ts";
import type { UserStore } from "./port.ts";
import type { Directory } from "./directory.ts";

/** The parts of a term that a sweep uses. */
export interface SweepTerm {
  readonly directory: Pick<Directory, "runByKey">;
  /** Resolves when the tables hold everything that was decided before the call. */
  flush(): Promise<void>;
}

/** Settles everything that is due in a realm. The caller is inside the realm's cell. */
export function sweepRealm(
  term: SweepTerm,
  store: Pick<UserStore, "listDue">,
  realm: Realm,
): Promise<SettleAnswer> {
  return inSteps(() => settleSome(term, store, realm));
}

/** Settles everything that is due in a realm while its cell is here; each step enters the cell. */
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

/** The result of one step. */
interface Step extends SettleAnswer {
  /** Whether everything was settled. */
  readonly isLast: boolean;
}

/** Adds up steps until the last one, or until the cell has gone. */
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
  // Wait for all turns, also if one fails: a turn after this step would load a user of a cell that may have gone.
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
