// Merging pairs of users: first the users, then the people of both ids, then the history that is short enough to move
// within the call. Longer history moves in the background; a repeated pair answers the stored report.

import type { Keeping, Realm, TurnResult } from "../../actors/call.ts";
import type { Term } from "../../actors/term.ts";
import type { MergeReport } from "../domain/merging/merge_report.ts";
import { refusal, type RefusalCode } from "../domain/values/refusal.ts";
import { refused, type Result } from "../domain/state/result.ts";
import { moveAlias } from "./history_move.ts";
import { linkPeople } from "./link.ts";
import { MERGE_LIMITS } from "../process/limits.ts";
import { inTurn } from "../process/in_turn.ts";
import { log, messageOf } from "../process/log.ts";
import { rest } from "../process/rest.ts";

/** What a merge of a pair uses. */
export type MergingWorld =
  & { readonly term: Pick<Term, "merge" | "flush" | "isServing"> }
  & Parameters<typeof linkPeople>[0]
  & Parameters<typeof moveAlias>[0];

/** The id that becomes an alias, and the user that it becomes an alias of. */
export interface Pair {
  readonly from: string;
  readonly to: string;
}

/** How pairs are merged. */
export interface MergeOptions {
  /** Reports what a merge would do, and writes nothing. */
  readonly isDryRun: boolean;
  /** Whether people may be linked where an id is an anonymous session. */
  readonly consentGiven: boolean;
}

/**
 * Merges a pair, or reports what a merge would do.
 *
 * @param keeping null for a call without an idempotency key
 */
export async function mergePair(
  world: MergingWorld,
  realm: Realm,
  { from, to }: Pair,
  { isDryRun, consentGiven }: MergeOptions,
  keeping: Keeping<MergeReport> | null,
): Promise<TurnResult<MergeReport>> {
  const needsConsent = from.startsWith("anon_") || to.startsWith("anon_");
  const analytics = needsConsent && !consentGiven ? "skipped_consent_required" : "linked";
  const { result, alias } = await world.term.merge({ realm, from, to, isDryRun, analytics, keeping });
  if (!result.ok || isDryRun) return result;
  // The tables must have the opt-outs of both sides before the answer.
  if (result.answer.analytics === "skipped_consent_required") await world.term.flush();
  // A repeated call links too: the process may have ended between the merge and the link.
  else await linkPeople(world, realm, from, to, result.answer.alreadyMerged);
  if (alias !== null && !result.answer.historyPending) await moveAlias(world, realm, alias);
  return result;
}

/**
 * Merges many pairs, one after another. A pair that fails does not stop the others. A cap of the workspace, or the end of
 * the time of a batch, refuses all remaining pairs.
 *
 * @param pairs a refusal in the place of a pair that is invalid
 * @param merge merges the pair at a place
 * @returns a result for each pair, in its place
 */
export async function mergePairs(
  { term, database }: MergingWorld,
  pairs: readonly Result<Pair>[],
  merge: (pair: Pair, place: number) => Promise<Result<MergeReport>>,
): Promise<Result<MergeReport>[]> {
  const start = performance.now();
  const results: Result<MergeReport>[] = [];
  let stop: Result<MergeReport> | null = null;
  for (const [place, pair] of pairs.entries()) {
    if (performance.now() - start > MERGE_LIMITS.batchMs) stop ??= NOT_PROCESSED;
    const result: Result<MergeReport> = pair.ok
      ? stop ?? await leavingRoom(database, () => mergeSafely(term, () => merge(pair.answer, place)))
      : pair;
    if (!result.ok && CAPS.has(result.refusal.code)) stop = result;
    results.push(result);
  }
  return results;
}

const NOT_PROCESSED = refused(refusal("not_processed", "The batch ran out of time: send this pair again"));
const CAPS: ReadonlySet<RefusalCode> = new Set(["workspace_limit_reached", "test_quota_exceeded"]);

/**
 * Runs one pair of a batch. On a store with one connection the pairs of all batches run one after another, each followed by a
 * rest as long as it took, so that batches of one tenant take at most half of the time of the others.
 */
async function leavingRoom<T>(database: MergingWorld["database"], merge: () => Promise<T>): Promise<T> {
  if (database.kind !== "embedded") return await merge();
  return await inTurn(database, async () => {
    const startedAt = performance.now();
    try {
      return await merge();
    } finally {
      await rest(Math.min(performance.now() - startedAt, MERGE_LIMITS.historyRestMsMax));
    }
  });
}

/** A bug fails its pair alone, unless this process no longer serves. */
async function mergeSafely(
  term: Pick<Term, "isServing">,
  merge: () => Promise<Result<MergeReport>>,
): Promise<Result<MergeReport>> {
  try {
    return await merge();
  } catch (error) {
    if (!term.isServing) throw error;
    log("error", "A pair of a batch could not be merged", { error: messageOf(error) });
    return refused(refusal("internal_error", "This pair could not be merged: send it again"));
  }
}
