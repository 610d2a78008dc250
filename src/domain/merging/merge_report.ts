// The report of a merge: what moved, what met, and what it cost. Specification, "AliasReport".

import type { Duplicates, NamedSubscription } from "../plans/standing.ts";

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
