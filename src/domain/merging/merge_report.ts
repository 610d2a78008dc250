// The report of a merge: what moved, what met, and what it cost. Specification, "AliasReport".

import type { Duplicates, NamedSubscription } from "../plans/entitlement.ts";

/** Rows of a user's history, by kind. */
export interface HistoryCounts {
  readonly events: number;
  readonly eventLogs: number;
  /** Settled ones. */
  readonly reservations: number;
  readonly subscriptionEvents: number;
  readonly creditLedger: number;
  readonly composeGenerations: number;
}

/** A report that was kept, and what became of the merge since. */
export interface KeptReport {
  readonly report: MergeReport;
  /** Whether history is still to move. */
  readonly historyPending: boolean;
  /** What the background moved of history that was too much for the call; reservations are all that the user had. */
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

/** A report without the two ids, which are shown as they were sent. */
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

/** The report of an alias call for a pair that is merged already. */
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
