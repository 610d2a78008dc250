// Merging two users: both mailboxes are held, in the order of the users' keys, from the first read to the decision. Its
// changes leave in one batch, and the actor of the alias gets the canonical user's actor as its successor.
//
// Why this is safe: a mailbox runs no turn during a prefetch. The merge is the prefetch of the lower key's mailbox, and
// within it a prefetch of the higher key's, so no other turn of either user runs until it has decided, and two merges of
// the same users never wait for each other. Decision, application, batch and successor happen in one synchronous step. A
// waiting call then finds the successor and runs there.

import type { IdSource } from "../src/domain/values/ids.ts";
import { merge, type MergeInput, type MergeTree } from "../src/domain/merging/merge.ts";
import {
  type HistoryCounts,
  type MergeReport,
  NO_HISTORY,
  repeatedReport,
} from "../src/domain/merging/merge_report.ts";
import { refusal } from "../src/domain/values/refusal.ts";
import { answered, refused } from "../src/domain/state/result.ts";
import { MERGE_LIMITS } from "../src/process/limits.ts";
import type { Actor } from "./actor.ts";
import type { Keeping, Realm, TurnResult } from "./call.ts";
import type { Budget } from "./budget.ts";
import type { Directory } from "./directory.ts";
import type { Batch } from "./gate.ts";
import { MayNotAnswer, Unavailable, type UserStore } from "./port.ts";
import { caughtUp, stoppedAt } from "./catch_up.ts";
import { standStill } from "./stand_still.ts";
import { pathAbove, type TreeChanges } from "./tree.ts";

/** A call to merge two users. */
export interface MergeCall {
  readonly realm: Realm;
  readonly from: string;
  readonly to: string;
  readonly isDryRun: boolean;
  readonly analytics: MergeInput["analytics"];
  /** Keeps the first answer; null for a call without an idempotency key. */
  readonly keeping: Keeping<MergeReport> | null;
}

/** The parts of a term that merges use. */
export interface MergeTerm {
  readonly directory: Directory;
  readonly budget: Pick<Budget, "refusal">;
  readonly ids: IdSource;
  readonly store: Pick<
    UserStore,
    "loadWhole" | "countHistory" | "loadMerge" | "heightBelow" | "countChildren"
  >;
  readonly tree: Pick<TreeChanges, "mayHaveTree" | "isFlat" | "inTurn">;
  /** Resolves when the tables hold everything that was decided before the call. */
  readonly flush: () => Promise<void>;
  /** Whether this process may answer. */
  readonly isValid: () => boolean;
}

/** The result of a merge call, and the number of the new alias, whose history must move; null for none. */
export interface Merged {
  readonly result: TurnResult<MergeReport>;
  readonly alias: number | null;
}

interface Pending extends Merged {
  /** Batches that must be durable before the result is sent. */
  readonly batches: readonly (Batch | null)[];
}

/** Merges a user into another, or reports what a merge would do. In a realm with trees it is a change of the tree. */
export async function mergeUsers(term: MergeTerm, call: MergeCall): Promise<Merged> {
  const { realm } = call.realm;
  if (call.from === call.to) return refuse("alias_cycle", "from and to are the same id");
  if (!await term.tree.mayHaveTree(realm)) {
    const merged = await mergeNow(term, call, false);
    if (merged !== null) return merged;
  }
  return await term.tree.inTurn(realm, () => mergeNow(term, call, true)) as Merged;
}

/**
 * Merges a pair; null if the realm has got a tree meanwhile.
 *
 * @param isInTree whether no other change of the tree of the realm can run
 */
async function mergeNow(term: MergeTerm, call: MergeCall, isInTree: boolean): Promise<Merged | null> {
  const { directory } = term;
  const { realm } = call.realm;
  while (true) {
    const from = await directory.actorOf(realm, call.from);
    const to = await directory.actorOf(realm, call.to);
    for (const user of [from, to]) await caughtUp(user, call.realm);
    if (!isInTree && !term.tree.isFlat(realm)) return null;
    const places = isInTree && from !== to ? await placesOf(term, from, to).catch(unavailable) : null;
    const outcome = await outcomeOf(term, { ...call, places }, from, to);
    // One of the actors is gone: merged or unloaded.
    if (outcome === null) continue;
    for (const batch of outcome.batches) await batch?.durable;
    if (!term.isValid()) throw new MayNotAnswer();
    return outcome;
  }
}

/** A merge, with the places of both users in a realm with trees. */
interface PlacedCall extends MergeCall {
  readonly places: MergeTree | null;
}

/** Finds the places of two users in their trees, which nothing else changes now. */
async function placesOf(term: MergeTerm, from: Actor, to: Actor): Promise<MergeTree> {
  const { directory, store } = term;
  await term.flush();
  const aboveFrom = await pathAbove(directory, from);
  const aboveTo = await pathAbove(directory, to);
  const heights = await Promise.all([from, to].map(({ state }) => store.heightBelow(state.keys)));
  return {
    isOnePath: aboveFrom.includes(to) || aboveTo.includes(from),
    above: { from: aboveFrom.length, to: aboveTo.length },
    heightBelow: Math.max(...heights),
    children: await store.countChildren(from.state.keys),
  };
}

/** Answers a pair: by a merge, a stored report or a refusal; null if an actor was unloaded meanwhile. */
async function outcomeOf(
  term: MergeTerm,
  call: PlacedCall,
  from: Actor,
  to: Actor,
): Promise<Pending | null> {
  const fromIsAlias = from.state.user.id !== call.from;
  if (from === to) {
    if (!fromIsAlias) return refuse("alias_cycle", "to is already an alias of from", to);
    return await standStill(term.directory, to, () => repeat(term, call, to).catch(unavailable));
  }
  if (fromIsAlias) return refuse("alias_conflict", "from is already an alias of another user", from, to);
  return await mergeActors(term, call, from, to);
}

/** Refuses a pair. The refusal depends on a merge that may not be durable yet, and waits for it like any answer. */
function refuse(
  code: "alias_cycle" | "alias_conflict",
  message: string,
  ...seen: readonly Actor[]
): Pending {
  const batches = seen.map(({ unwritten }) => unwritten);
  return { result: refused(refusal(code, message)), alias: null, batches };
}

/** Turns a failed read into a retryable fault. */
function unavailable(cause: unknown): never {
  throw cause instanceof Unavailable ? cause : new Unavailable("A load failed", { cause });
}

function mergeActors(term: MergeTerm, call: PlacedCall, from: Actor, to: Actor): Promise<Pending | null> {
  const [first, second] = from.state.user.key < to.state.user.key ? [from, to] : [to, from];
  return standStill(term.directory, first, () =>
    standStill(term.directory, second, async () => {
      const isCapped = call.isDryRun ? null : term.budget.refusal(call.realm.caps, call.realm.mode);
      if (isCapped !== null) {
        return { result: refused(isCapped), alias: null, batches: [from.unwritten, to.unwritten] };
      }
      await admitWhole(term, from, to).catch(unavailable);
      // One time for all of it: a hold that lapsed between the count of the history and the decision would be in no count.
      const still = { ...call, realm: stoppedAt(call.realm, call.realm.now()) };
      from.settle(still.realm);
      to.settle(still.realm);
      const history = await countHistory(term, from, to).catch(unavailable);
      return decideMerge(term, still, from, to, history);
    }));
}

/** Loads every counter, balance and share of both users, once the tables have their last changes. */
async function admitWhole(term: MergeTerm, from: Actor, to: Actor): Promise<void> {
  if (!from.state.recorded) return;
  await flushed(term, from, to);
  await Promise.all(
    [from, to].filter(({ state }) => state.recorded).map(async ({ state }) => {
      state.admitEnded(await term.store.loadWhole(state.user.key));
    }),
  );
}

/** Counts the history of the user that ends, once the tables have the last changes of both. */
async function countHistory(term: MergeTerm, from: Actor, to: Actor): Promise<HistoryCounts | null> {
  if (!from.state.recorded) return NO_HISTORY;
  await flushed(term, from, to);
  return await term.store.countHistory(from.state.keys, MERGE_LIMITS.historyRowsMax);
}

async function flushed(term: MergeTerm, from: Actor, to: Actor): Promise<void> {
  if (!from.isDrained || !to.isDrained) await term.flush();
}

function decideMerge(
  term: MergeTerm,
  call: PlacedCall,
  from: Actor,
  to: Actor,
  history: HistoryCounts | null,
): Pending | null {
  const { realm, isDryRun, analytics, keeping, places } = call;
  // A user was put under another one since: the merge is a change of that tree.
  if (places === null && !term.tree.isFlat(realm.realm)) return null;
  const seen = [from.unwritten, to.unwritten];
  const { catalog, outbox } = realm;
  const context = { now: realm.now(), catalog, ids: term.ids, balancesLeft: null, outbox };
  const input = { isDryRun, mode: realm.mode, history, analytics, tree: places };
  const decision = merge(from.state, to.state, input, context);
  if (!decision.result.ok) return { result: decision.result, alias: null, batches: seen };
  const result = answered(decision.result.answer.report);
  if (isDryRun) return { result, alias: null, batches: seen };
  const kept = keeping?.shape(result) ?? null;
  try {
    to.finish(realm, decision, keeping === null || kept === null ? null : { ...keeping.call, ...kept });
    term.directory.retire(from, to);
  } catch (error) {
    from.breakDown();
    to.breakDown();
    throw error;
  }
  const alias = from.state.user.key;
  return { result: kept === null ? result : { ...result, kept }, alias, batches: [to.unwritten] };
}

/** Answers a pair that is already merged by its stored report. Writes nothing, and works at the cap too. */
async function repeat(term: MergeTerm, call: MergeCall, to: Actor): Promise<Pending> {
  const alias = to.state.aliases.find(({ id }) => id === call.from);
  if (!to.isDrained) await term.flush();
  const stored = alias === undefined ? null : await term.store.loadMerge(alias.key);
  if (stored === null) throw new Error("An alias has no report of its merge");
  const repeated = repeatedReport({ ...stored, report: JSON.parse(stored.report) as MergeReport }, call);
  return { result: answered(repeated), alias: null, batches: [to.unwritten] };
}
