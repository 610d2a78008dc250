// The report of a merge: what moved, which conflicts were resolved, and what it cost.

import type { Duplicates, NamedSubscription } from "../plans/entitlement.ts";

/** Rows of a user's history, by kind. */
export interface HistoryCounts {
  readonly events: number;
  readonly eventLogs: number;
  /** Settled reservations. */
  readonly reservations: number;
  readonly subscriptionEvents: number;
  readonly creditLedger: number;
  readonly composeGenerations: number;
}

/** The counts of a user without history. */
export const NO_HISTORY: HistoryCounts = {
  events: 0,
  eventLogs: 0,
  reservations: 0,
  subscriptionEvents: 0,
  creditLedger: 0,
  composeGenerations: 0,
};

/** A stored report, and the progress of the merge since. */
interface KeptReport {
  readonly report: MergeReport;
  /** Whether history still moves in the background. */
  readonly historyPending: boolean;
  /** Rows that moved in the background; `reservations` counts all that the alias had. */
  readonly movedLater: HistoryCounts;
}

/** Two balances of one grant that became one. Amounts as on the wire. */
export interface CreditConflict {
  readonly externalRef: string;
  readonly survivorId: string;
  readonly droppedId: string;
  readonly remaining: number;
  readonly overage: number;
}

export interface CarriedGroup {
  readonly fromGroupId: string;
  readonly toGroupId: string;
}

/** A report without the two ids, which answers show as the caller sent them. */
export interface MergeReport {
  /** null on a dry run. */
  readonly mergeId: string | null;
  readonly mode: "live" | "test";
  readonly dryRun: boolean;
  readonly alreadyMerged: boolean;
  readonly historyPending: boolean;
  readonly billableOperations: number;
  readonly moved: HistoryCounts & {
    readonly counters: number;
    readonly subscriptions: number;
    readonly creditBalances: number;
    readonly mediaAssets: number;
    readonly aliasesRepointed: number;
    /** Present if one of the users has a parent or children: the direct children of the alias. */
    readonly movedChildren?: number;
  };
  readonly conflicts: {
    readonly counters: {
      readonly summed: number;
      readonly carried: readonly CarriedGroup[];
      readonly unpaired: readonly string[];
    };
    readonly subscriptions: Duplicates | null;
    readonly endedSubscriptions: readonly NamedSubscription[];
    readonly credits: readonly CreditConflict[];
  };
  readonly analytics: "linked" | "already_linked" | "skipped_consent_required";
}

/** Makes the report of a repeated alias call. */
export function repeatedReport(
  { report, historyPending, movedLater }: KeptReport,
  call: { readonly isDryRun: boolean; readonly analytics: MergeReport["analytics"] },
): MergeReport {
  const hasMovedLater = report.historyPending && !historyPending;
  return {
    ...report,
    mergeId: call.isDryRun ? null : report.mergeId,
    dryRun: call.isDryRun,
    alreadyMerged: true,
    historyPending,
    billableOperations: 0,
    moved: hasMovedLater ? withHistory(report.moved, movedLater) : report.moved,
    analytics: report.analytics === "linked" ? "already_linked" : call.analytics,
  };
}

/** What moved in all, once the history has moved. */
function withHistory(moved: MergeReport["moved"], later: HistoryCounts): MergeReport["moved"] {
  return {
    ...moved,
    events: moved.events + later.events,
    eventLogs: moved.eventLogs + later.eventLogs,
    // Open holds moved within the call and are counted among all reservations.
    reservations: Math.max(moved.reservations, later.reservations),
    subscriptionEvents: moved.subscriptionEvents + later.subscriptionEvents,
    creditLedger: moved.creditLedger + later.creditLedger,
    composeGenerations: moved.composeGenerations + later.composeGenerations,
  };
}
