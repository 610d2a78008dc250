// Merging two users: both actors stand still, in the order of their keys, from the first read to the decision; what it
// yields leaves in one batch, and the actor of the alias hands over to that of the canonical user.
//
// Why this is safe: a mailbox runs nothing while a prefetch is under way. The merge is the prefetch of the lower key's
// mailbox, and inside it a turn of the higher key's, so no other turn of either user runs until it has decided, and
// two merges that want the same users never wait for each other. The decision, its application, the batch and the
// handing over happen in one synchronous step. A call that waited meanwhile finds the successor and goes there.

import { merge, type MergeInput } from "../src/domain/merging/merge.ts";
import { type HistoryCounts, type MergeReport, repeatedReport } from "../src/domain/merging/merge_report.ts";
import { refusal } from "../src/domain/refusal.ts";
import { answered, refused, type Result } from "../src/domain/result.ts";
import { MERGE_LIMITS } from "../src/process/limits.ts";
import type { Actor, ActorWorld, Realm } from "./actor.ts";
import type { Directory } from "./directory.ts";
import type { Batch } from "./gate.ts";
import { type IdempotencyRow, Unavailable, type UserStore } from "./port.ts";
import { standStill } from "./stand_still.ts";

/** A merge as it is asked for. */
export interface MergeCall {
  readonly realm: Realm;
  readonly from: string;
  readonly to: string;
  readonly isDryRun: boolean;
  readonly analytics: MergeInput["analytics"];
  /** The first answer to keep with the merge; null to keep none. */
  readonly record: ((result: Result<MergeReport>, userKey: number) => IdempotencyRow | null) | null;
}

/** What merges need of a term. */
export interface MergeWorld
  extends Pick<ActorWorld, "gate" | "budget" | "ids" | "flush" | "remember" | "isValid"> {
  readonly directory: Directory;
  readonly store: UserStore;
}

/** What came of a call: its result, and the alias whose history is to move, if one is. */
export interface Merged {
  readonly result: Result<MergeReport>;
  readonly alias: number | null;
}

interface Outcome extends Merged {
  readonly batches: readonly (Batch | null)[];
}

/** Merges a user into another, or says what a merge would do. */
export async function mergeUsers(world: MergeWorld, call: MergeCall): Promise<Merged> {
  const { directory } = world;
  const { realm } = call.realm;
  if (call.from === call.to) return refuse("alias_cycle", "from and to are the same id");
  while (true) {
    const from = await directory.actorOf(realm, call.from);
    const to = await directory.actorOf(realm, call.to);
    const outcome = await outcomeOf(world, call, from, to);
    // One of them went meanwhile: merged, or let go.
    if (outcome === null) continue;
    for (const batch of outcome.batches) await batch?.durable;
    if (!world.isValid()) throw new Unavailable("This process may no longer be the writer");
    return outcome;
  }
}

/** What a pair comes to: a merge, a report that is kept, or a refusal; null when an actor went meanwhile. */
async function outcomeOf(
  world: MergeWorld,
  call: MergeCall,
  from: Actor,
  to: Actor,
): Promise<Outcome | null> {
  const fromIsAlias = from.state.user.id !== call.from;
  if (from === to) {
    if (!fromIsAlias) return refuse("alias_cycle", "to is already an alias of from", to);
    return await standStill(world.directory, to, () => repeat(world, call, to).catch(unavailable));
  }
  if (fromIsAlias) return refuse("alias_conflict", "from is already an alias of another user", from, to);
  return await mergeActors(world, call, from, to);
}

/** A refusal rests on a merge that may not be durable yet, and waits for it as any answer does. */
function refuse(
  code: "alias_cycle" | "alias_conflict",
  message: string,
  ...seen: readonly Actor[]
): Outcome {
  const batches = seen.map(({ unwritten }) => unwritten);
  return { result: refused(refusal(code, message)), alias: null, batches };
}

/** A read that failed: the call may be sent again. */
function unavailable(cause: unknown): never {
  throw cause instanceof Unavailable ? cause : new Unavailable("A load failed", { cause });
}

function mergeActors(world: MergeWorld, call: MergeCall, from: Actor, to: Actor): Promise<Outcome | null> {
  const [first, second] = from.state.user.key < to.state.user.key ? [from, to] : [to, from];
  return standStill(world.directory, first, () =>
    standStill(world.directory, second, async () => {
      const isCapped = call.isDryRun ? null : world.budget.refusal(call.realm.caps, call.realm.mode);
      if (isCapped !== null) {
        return { result: refused(isCapped), alias: null, batches: [from.unwritten, to.unwritten] };
      }
      // One moment for all of it: what lapsed between the count of the history and the decision would be in no count.
      const still = { ...call, realm: standingStill(call.realm) };
      from.settle(still.realm);
      to.settle(still.realm);
      const history = await prefetch(world, from, to).catch(unavailable);
      return decideMerge(world, still, from, to, history);
    }));
}

/** A realm whose clock stands where it is now. */
function standingStill(realm: Realm): Realm {
  const now = realm.now();
  return { realm: realm.realm, mode: realm.mode, catalog: realm.catalog, caps: realm.caps, now: () => now };
}

/** Makes both states whole: every counter and balance, once the tables have what was decided. */
async function prefetch(world: MergeWorld, from: Actor, to: Actor): Promise<HistoryCounts | null> {
  const { store } = world;
  if (!from.state.recorded) return NO_HISTORY;
  if (!from.isDrained || !to.isDrained) await world.flush();
  const [ofFrom, ofTo, history] = await Promise.all([
    store.loadWhole(from.state.user.key),
    to.state.recorded ? store.loadWhole(to.state.user.key) : null,
    store.countHistory(from.state.keys, MERGE_LIMITS.historyRowsMax),
  ]);
  from.state.admit(ofFrom);
  if (ofTo !== null) to.state.admit(ofTo);
  return history;
}

const NO_HISTORY: HistoryCounts = {
  events: 0,
  eventLogs: 0,
  reservations: 0,
  subscriptionEvents: 0,
  creditLedger: 0,
  composeGenerations: 0,
};

function decideMerge(
  world: MergeWorld,
  call: MergeCall,
  from: Actor,
  to: Actor,
  history: HistoryCounts | null,
): Outcome {
  const { gate, budget, ids } = world;
  const { realm, isDryRun, analytics } = call;
  const seen = [from.unwritten, to.unwritten];
  const context = { now: realm.now(), catalog: realm.catalog, ids, balancesLeft: null };
  const input = { isDryRun, mode: realm.mode, history, analytics };
  const { result, changes, operations } = merge(from.state, to.state, input, context);
  if (!result.ok) return { result, alias: null, batches: seen };
  const { report } = result.answer;
  if (isDryRun) return { result: answered(report), alias: null, batches: seen };
  try {
    to.state.apply(changes);
    const { key } = to.state.user;
    const record = call.record?.(answered(report), key) ?? null;
    const batch = gate.add(
      record === null ? changes : [...changes, { verb: "put", table: "idempotency", row: record }],
    );
    if (record !== null) world.remember(record, batch);
    to.accept(changes, batch);
    if (operations > 0) budget.takeInto(batch, realm.caps.workspaceId, realm.mode, operations);
    world.directory.retire(from, to);
    const alias = from.state.recorded ? from.state.user.key : null;
    return { result: answered(report), alias, batches: [batch] };
  } catch (error) {
    from.breakDown();
    to.breakDown();
    throw error;
  }
}

/** The stored report of a pair that is merged already. Nothing is written, and no cap asked. */
async function repeat(world: MergeWorld, call: MergeCall, to: Actor): Promise<Outcome> {
  const alias = to.state.aliases.find(({ id }) => id === call.from);
  if (!to.isDrained) await world.flush();
  const stored = alias === undefined ? null : await world.store.loadMerge(alias.key);
  if (stored === null) throw new Error("An alias has no report of its merge");
  const repeated = repeatedReport({ ...stored, report: JSON.parse(stored.report) as MergeReport }, call);
  return { result: answered(repeated), alias: null, batches: [to.unwritten] };
}
