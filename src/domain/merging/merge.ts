// Merge: one user becomes an alias of another. Usage, subscriptions, credits and open holds of both become one user's,
// and no quota is fresh afterwards. It is one decision over two states, between two turns of each user, and all of its
// changes become durable in one batch.

import type { Context } from "../state/context.ts";
import { Draft } from "../state/draft.ts";
import { settleDue } from "../metering/due.ts";
import { alertBase, fireAlerts } from "../metering/alerts.ts";
import { messagesOf } from "../messages/record.ts";
import { mergeOverage } from "../metering/overage.ts";
import { mergeShares } from "../accounts/shares.ts";
import { activePlanOf, duplicatesOf, entitlementOf, isRunning, leftPlanOf } from "../plans/entitlement.ts";
import { summarize } from "../plans/summary.ts";
import { REWRITE_LIMITS, TooManyHolds } from "../state/open_holds.ts";
import { emptySummary } from "../state/summary.ts";
import { answered, type Decision, refused } from "../state/result.ts";
import { type Change, type Entitlement, newUser, PATH_MAX, type UserState } from "../state/user.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import { lowerCaps } from "../state/overage.ts";
import { moveEndUserKeys } from "../accounts/end_user_keys.ts";
import { joinedTopUp } from "../state/top_up.ts";
import { mergeCredits, type MergedCredits } from "./merge_credits.ts";
import { mergeIncluded } from "./merge_included.ts";
import type { HistoryCounts, MergeReport } from "./merge_report.ts";
import { type MergedSubscriptions, mergeSubscriptions } from "./merge_subscriptions.ts";
import { type MergedUsage, mergeUsage } from "./merge_usage.ts";

export interface MergeInput {
  readonly isDryRun: boolean;
  readonly mode: "live" | "test";
  /** Row counts of the alias's history; null if it has too many rows to move within the call. */
  readonly history: HistoryCounts | null;
  readonly analytics: MergeReport["analytics"];
  /** The places of both users in their tree; null where no user of the realm has a parent. */
  readonly tree: MergeTree | null;
}

/** The places of two users in their trees. */
export interface MergeTree {
  /** Whether one of them is above the other. */
  readonly isOnePath: boolean;
  /** The users above each. */
  readonly above: { readonly from: number; readonly to: number };
  /** The users on the longest way down from either, without itself. */
  readonly heightBelow: number;
  /** The direct children of the alias. They are children of the canonical user from then on. */
  readonly children: number;
}

interface MergeAnswer {
  readonly report: MergeReport;
}

/** Decides the merge of a user into another. The changes apply to the second user's state; the first one ends. */
export function merge(
  from: UserState,
  to: UserState,
  input: MergeInput,
  context: Context,
): Decision<MergeAnswer> {
  try {
    return decideMerge(from, to, input, context);
  } catch (error) {
    if (error instanceof TooManyHolds) return undecided(error.refusal);
    throw error;
  }
}

function decideMerge(
  fromState: UserState,
  toState: UserState,
  input: MergeInput,
  context: Context,
): Decision<MergeAnswer> {
  const misplaced = refusalInTree(fromState, toState, input.tree);
  if (misplaced !== null) return undecided(misplaced);
  const from = new Draft(fromState);
  const to = new Draft(toState);
  settleDue(from, context);
  settleDue(to, context);
  const settled = from.operations + to.operations;
  const messages = [from, to].flatMap((side) => messagesOf(side, context));
  const alerts = alertBase(to, context);
  const merged = joinRows(from, to, context);
  fireAlerts(to, alerts, context);
  mergeSummaries(from, to, context);

  const mergeId = input.isDryRun ? null : context.ids.next("merge");
  const billableOperations = from.operations + to.operations - settled;
  const report: MergeReport = {
    mergeId,
    mode: input.mode,
    dryRun: input.isDryRun,
    alreadyMerged: false,
    historyPending: input.history === null,
    billableOperations,
    ...movesAndConflicts(merged, fromState, to, input, context),
    analytics: input.analytics,
  };
  if (mergeId !== null) {
    writeMerge(from, to, report, mergeId, context);
    to.recordMessageFirst("user.merged", context.now, { from: from.user.id, to: to.user.id, mergeId });
  }
  return {
    result: answered({ report }),
    changes: [...from.changes(), ...asPuts(to.changes(), from), ...messages, ...messagesOf(to, context)],
    operations: from.operations + to.operations,
    issued: 0,
    refusedCall: null,
  };
}

/** Refuses to merge a user with one above it, and a merge after which a path would be too long. */
function refusalInTree(from: UserState, to: UserState, tree: MergeTree | null): Refusal | null {
  if (tree === null) return null;
  if (tree.isOnePath) {
    const message = "One of the users is above the other: set the parent of the lower one to null first";
    return refusal("alias_conflict", message);
  }
  const above = to.user.parentKey === null ? tree.above.from : tree.above.to;
  if (above + 1 + tree.heightBelow <= PATH_MAX || (from.user.parentKey === null && tree.children === 0)) {
    return null;
  }
  return refusal("path_too_long", `A path may have at most ${PATH_MAX} users`);
}

function undecided(refusal: Refusal): Decision<MergeAnswer> {
  return { result: refused(refusal), changes: [], operations: 0, issued: 0, refusedCall: null };
}

/** What a merge did to the rows of both users. */
interface JoinedRows {
  readonly subscriptions: MergedSubscriptions;
  readonly usage: MergedUsage;
  readonly credits: MergedCredits;
  /** Open holds of the alias. */
  readonly holds: number;
}

/** Joins all rows of two users under `to`, and decides the entitlement of both as one user. */
function joinRows(from: Draft, to: Draft, context: Context): JoinedRows {
  const sides = [from, to] as const;
  const before = sides.map(({ user }) => user.entitlement) as [Entitlement | null, Entitlement | null];
  const left = sides.map((side) => leftPlanOf(side, context));
  const runs = sides.map((side, place) => {
    const plan = left[place];
    return plan != null && isRunning(side, plan, context.now);
  });
  const subscriptions = mergeSubscriptions(from, to, context);
  const active = activePlanOf(to, context);
  const primary = active !== null && from.subscription(active.row.id) !== undefined ? from : to;
  const usage = mergeUsage(from, to, primary, active, context);
  const ofAlias = new Set([...from.balancesInOrder()].map(({ id }) => id));
  const credits = mergeCredits(from, to, context);
  const holds = moveHolds(from, to);
  const ofPrimary = primary === from ? "from" : "to";
  mergeIncluded(to, { aliasKey: from.user.key, ofAlias, ofPrimary }, context);
  for (const run of from.runs()) to.putRun({ ...run, userKey: to.user.key });
  mergeShares(from, to);
  mergeOverage(from, to);
  moveEndUserKeys(from, to);
  for (const intent of from.topUps()) to.putTopUp({ ...intent, userKey: to.user.key });
  // The usage of a plan that gives way is carried into the surviving one; a side on the surviving plan keeps its mark.
  const carried = sides.every((_, place) =>
    runs[place] !== true || left[place]?.plan.id !== active?.plan.id || (before[place]?.carried ?? true)
  );
  const entitlement = active === null ? lastEntered(before) : entitlementOf(to, active, context.now, carried);
  // Consent and erasure follow the person: an opt-out on either side holds for both.
  const optedOut = from.user.optedOut | to.user.optedOut;
  const isErasing = from.user.isErasing || to.user.isErasing;
  // A user without a parent takes the alias's, with its limits there.
  const topUp = joinedTopUp(from.user.topUp, to.user.topUp);
  const { parentKey, memberLimits } = to.user.parentKey === null ? from.user : to.user;
  const spendCaps = lowerCaps(from.user.spendCaps, to.user.spendCaps);
  to.putUser({
    entitlement,
    dueAt: to.nextDue(),
    optedOut,
    isErasing,
    parentKey,
    memberLimits,
    topUp,
    spendCaps,
  });
  return { subscriptions, usage, credits, holds };
}

function movesAndConflicts(
  { subscriptions, usage, credits, holds }: JoinedRows,
  fromState: UserState,
  to: Draft,
  { history, tree }: MergeInput,
  context: Context,
): Pick<MergeReport, "moved" | "conflicts"> {
  return {
    moved: {
      events: history?.events ?? 0,
      eventLogs: history?.eventLogs ?? 0,
      counters: usage.counters,
      reservations: holds + (history?.reservations ?? 0),
      subscriptions: subscriptions.moved,
      subscriptionEvents: history?.subscriptionEvents ?? 0,
      creditBalances: credits.moved,
      creditLedger: history?.creditLedger ?? 0,
      mediaAssets: 0,
      composeGenerations: history?.composeGenerations ?? 0,
      aliasesRepointed: fromState.aliases.length,
      ...hasPlace(fromState, to, tree) ? { movedChildren: tree?.children ?? 0 } : {},
    },
    conflicts: {
      counters: { summed: usage.summed, carried: usage.carried, unpaired: usage.unpaired },
      subscriptions: duplicatesOf(to, context),
      endedSubscriptions: subscriptions.ended,
      credits: credits.conflicts,
    },
  };
}

/** Whether one of the users has a parent or children: then the report says how many children moved. */
function hasPlace({ user: from }: UserState, { user: to }: Draft, tree: MergeTree | null): boolean {
  return tree !== null && (from.parentKey !== null || to.parentKey !== null || tree.heightBelow > 0);
}

/** Points the alias and its own aliases at the canonical user, and keeps the report. */
function writeMerge(from: Draft, to: Draft, report: MergeReport, id: string, { now }: Context): void {
  const { key, realm } = to.user;
  // The row of an alias keeps nothing but consent and erasure.
  const { optedOut, isErasing } = to.user;
  const ofAlias = { mergedInto: key, optedOut, isErasing };
  from.putUser({ ...newUser(from.user.key, realm, from.user.id), ...ofAlias });
  for (const alias of from.state.aliases) {
    const row = { ...newUser(alias.key, realm, alias.id), ...ofAlias };
    from.appendRecord({ verb: "put", table: "users", row });
  }
  const historyKeys = from.state.keys;
  // Also for a user without a row: its refused calls may have been counted, and these counts move too.
  const move = { userKey: from.user.key, at: now };
  from.appendRecord({ verb: "append", table: "history_moves", row: move });
  to.appendRecord({
    verb: "append",
    table: "merges",
    row: {
      id,
      realm,
      fromKey: from.user.key,
      toKey: key,
      report: JSON.stringify(report),
      historyKeys,
      at: now,
    },
  });
}

/** Sums up both users as one: it was seen when either was. The alias's summary is emptied. */
function mergeSummaries(from: Draft, to: Draft, context: Context): void {
  const { summary } = from.state;
  const seenAt = Math.max(summary?.seenAt ?? 0, to.state.summary?.seenAt ?? 0) || null;
  summarize(to, { seenAt, refusing: [] }, context);
  if (summary === null) return;
  const row = emptySummary(from.user.key, from.user.realm);
  from.appendRecord({ verb: "put", table: "user_summaries", row });
}

/**
 * Moves open holds, and settled reservations that are not in the tables yet. Returns the number of open holds.
 *
 * @throws TooManyHolds
 */
function moveHolds(from: Draft, to: Draft): number {
  if (from.state.openHolds > REWRITE_LIMITS.holdsMax) throw new TooManyHolds();
  let open = 0;
  for (const row of from.reservations()) {
    if (row.status === "held") open += 1;
    to.putReservation({ ...row, userKey: to.user.key });
  }
  return open;
}

/** The entitlement to keep if neither user has an active plan: the later end wins, then `to`'s. */
function lastEntered([from, to]: readonly [Entitlement | null, Entitlement | null]): Entitlement | null {
  if (from === null || to === null) return to ?? from;
  return (from.until ?? 0) > (to.until ?? 0) ? from : to;
}

/**
 * Turns appends into puts for rows of the alias: they are new to the other state, but not to the tables, or its own
 * changes append them.
 */
function asPuts(changes: readonly Change[], from: Draft): Change[] {
  return changes.map((change) => {
    if (change.verb === "put") return change;
    switch (change.table) {
      case "subscriptions":
        return from.state.subscriptions.has(change.row.id) ? { ...change, verb: "put" } : change;
      case "reservations":
        return from.state.reservations.has(change.row.id) ? { ...change, verb: "put" } : change;
      case "top_ups":
        return from.state.topUps.has(change.row.id) ? { ...change, verb: "put" } : change;
      case "runs":
        return from.state.runs.has(change.row.id) ? { ...change, verb: "put" } : change;
      case "credit_balances":
        return from.balance(change.row.id) !== undefined ? { ...change, verb: "put" } : change;
      default:
        return change;
    }
  });
}
