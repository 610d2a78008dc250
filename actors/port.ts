// The interfaces between actors and storage: durable changes, rows to start from, and the lease of a writer. The actors
// know these alone, no SQL; src/storage implements them, and so does a store in memory for tests.

import type { Amount } from "../src/domain/values/amount.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { HistoryCounts } from "../src/domain/merging/merge_report.ts";
import type { RefusalRow } from "../src/domain/state/refused_call.ts";
import type { Millis } from "../src/domain/values/period.ts";
import type { CallerTexts } from "../src/domain/state/text_room.ts";
import type { Change, OlderRows, UserRows } from "../src/domain/state/user.ts";

export type Mode = "live" | "test";

/** A first answer, kept under an idempotency key. */
export interface IdempotencyRow {
  readonly realm: number;
  readonly key: string;
  readonly requestHash: string;
  readonly status: number;
  readonly body: string;
  readonly userKey: UserKey | null;
  /** Real time. */
  readonly at: Millis;
}

/** Metering operations of a workspace in a UTC month. Test mode counts apart. */
export interface OperationsRow {
  readonly workspaceId: string;
  readonly mode: Mode;
  /** "YYYY-MM". */
  readonly month: string;
  readonly used: number;
}

/** The AI spend of a workspace in a UTC month, in both modes: all usage that the model server reported. */
export interface AiSpendRow {
  readonly workspaceId: string;
  /** "YYYY-MM". */
  readonly month: string;
  readonly cents: Amount;
}

/** What calls of the gateway of an app cost in a UTC month, in both modes. */
export interface GatewaySpendRow {
  readonly workspaceId: string;
  readonly appId: string;
  /** "YYYY-MM". */
  readonly month: string;
  readonly cents: Amount;
}

/** Credit balances ever issued in a realm, which a cap limits in test mode. */
export interface IssuesRow {
  readonly realm: number;
  readonly issued: number;
}

/** The workspaces and realms of one cell. */
export interface CellParts {
  readonly workspaces: ReadonlySet<string>;
  readonly realms: ReadonlySet<number>;
}

/** The stored totals of workspaces and realms. */
export interface Totals {
  readonly operations: readonly OperationsRow[];
  readonly issues: readonly IssuesRow[];
  readonly aiSpend: readonly AiSpendRow[];
  readonly gatewaySpend: readonly GatewaySpendRow[];
}

/** Every change that the journal takes: those that decisions yield and those of the runtime itself. */
export type RowChange =
  | Change
  | { readonly verb: "append" | "put"; readonly table: "idempotency"; readonly row: IdempotencyRow }
  | { readonly verb: "put"; readonly table: "operations"; readonly row: OperationsRow }
  | { readonly verb: "put"; readonly table: "credit_issues"; readonly row: IssuesRow }
  | { readonly verb: "put"; readonly table: "ai_spend"; readonly row: AiSpendRow }
  | { readonly verb: "put"; readonly table: "gateway_spend"; readonly row: GatewaySpendRow };

/** A change that waits for the journal: a row while a later turn may replace it, else the line that the journal will have. */
export type JournalEntry = RowChange | string;

/**
 * The user of a command: by end-user id, or by the key within a reservation id. Only the caller's realm is searched: a user
 * of another realm may be on another node.
 */
export type UserRef =
  | { readonly realm: number; readonly id: string }
  | { readonly realm: number; readonly key: UserKey };

/** Balances that a command names. */
export type BalanceRef = { readonly balanceId: string } | {
  readonly externalRefs: readonly string[];
  /** Whether they are references of our own. */
  readonly isOwn?: boolean;
};

/** A stored report of a merge, and the progress since. */
export interface StoredMerge {
  /** A MergeReport as JSON. */
  readonly report: string;
  readonly historyPending: boolean;
  /** Rows that moved in the background. */
  readonly movedLater: HistoryCounts;
}

/** Rows to start an actor from. */
export type LoadedUser = Omit<UserRows, "recorded">;

/** Reads of users' rows. Results include everything that was drained before the call. */
export interface UserStore {
  /**
   * Loads the live rows of many users, each result in its place; null for a user without a row. For an alias it loads the
   * canonical user.
   */
  load(refs: readonly UserRef[], now: Millis): Promise<(LoadedUser | null)[]>;
  /**
   * Loads a reservation that is not live, with the counters of its lines and its runs.
   *
   * @param owners the canonical user first, then its aliases: the row may still have the number of one
   */
  loadReservation(owners: readonly UserKey[], reservationId: string): Promise<OlderRows>;
  /**
   * Loads the texts of a reservation that is open or expired; null for none.
   *
   * @param owners as above
   * @param createdAt when it was made
   */
  loadTexts(
    owners: readonly UserKey[],
    reservationId: string,
    createdAt: Millis,
  ): Promise<CallerTexts | null>;
  /**
   * Loads a run in any state, with the runs around it.
   *
   * @param owners as above
   */
  loadRuns(owners: readonly UserKey[], runId: string): Promise<OlderRows>;
  /**
   * Loads a top-up in any state.
   *
   * @param owners as above
   */
  loadTopUp(owners: readonly UserKey[], topUpId: string): Promise<OlderRows>;
  /** Loads balances of a user in any state, by id or by the external reference of their grant. */
  loadBalances(owner: UserKey, which: BalanceRef): Promise<OlderRows>;
  /** Loads all counters, balances and shares of a user, for a merge. */
  loadWhole(owner: UserKey): Promise<OlderRows>;
  /** Counts the history rows of a user and its aliases; null for more than a limit. */
  countHistory(owners: readonly UserKey[], limit: number): Promise<HistoryCounts | null>;
  /** Whether any user of a realm has a parent. */
  hasTree(realm: number): Promise<boolean>;
  /** Counts the users on the longest way down from a user, without itself, by the numbers of the user and its aliases. */
  heightBelow(owners: readonly UserKey[]): Promise<number>;
  /** Lists the ids of some users directly below a user, by the numbers of the user and its aliases. */
  someChildren(owners: readonly UserKey[], limit: number): Promise<string[]>;
  /** Counts the users directly below a user, by the numbers of the user and its aliases. */
  countChildren(owners: readonly UserKey[]): Promise<number>;
  /** Loads the report of the merge that made a user an alias; null for none. */
  loadMerge(fromKey: UserKey): Promise<StoredMerge | null>;
  /** Lists the keys of users of a realm that are due, earliest first. */
  listDue(realm: number, now: Millis, limit: number): Promise<UserKey[]>;
  /** Reserves a block of keys for new users: `count` of them, from `first` on. No other node gets them. */
  nextKeys(): Promise<{ readonly first: UserKey; readonly count: number }>;
  /** Loads first answers by idempotency key, each in its place. */
  loadIdempotency(keys: readonly { realm: number; key: string }[]): Promise<(IdempotencyRow | null)[]>;
}

/** Storage of the counts of refused calls. */
export interface RefusalStore {
  /**
   * Adds rows to those that are stored, alike to alike, in one transaction that holds their cells.
   *
   * @returns false if it is unknown whether they were written
   * @throws if they were not written
   */
  add(cells: readonly number[], rows: readonly RefusalRow[]): Promise<boolean>;
}

/** A batch that is durable in the journal. */
export interface AppendedBatch {
  readonly seq: number;
  readonly changes: number;
  readonly bytes: number;
}

/** A node's range of the journal. Every call fails once its session is lost. */
export interface Journal {
  /**
   * Makes a batch durable, then resolves. Several may be in flight: they become durable in the order of the calls, and if
   * one fails, all later ones fail too.
   */
  append(entries: readonly JournalEntry[]): Promise<AppendedBatch>;
  /** Returns the line of a change. */
  lineOf(change: RowChange): string;
  /** Returns the row of a first answer by its line. */
  answerOf(line: string): IdempotencyRow;
  /** Says which value of these rows the tables would refuse; null for none. Such rows must not be appended. */
  misfitOf(changes: readonly RowChange[]): string | null;
  /**
   * Writes appended batches into the tables and removes them from the journal, as one transaction.
   *
   * @param spreadMs how long it may take, so that it does not delay appends; 0 or absent for as fast as possible
   */
  drain(batches: readonly AppendedBatch[], spreadMs?: number): Promise<void>;
  /** Makes the running drain finish without spreading its work, because a reader waits for it. */
  hurry(): void;
  /** The most changes of one drain, beside the runtime's own bound: an append waits for a whole drain. */
  readonly drainChangesMax: number;
  /** The same in characters; a batch alone may have more. */
  readonly drainBytesMax: number;
  /** Whether it works in the thread that answers calls. */
  readonly isInThread: boolean;
}

/** The right to write, held until `lost` resolves. */
export interface Lease {
  readonly journal: Journal;
  /** Resolves when the writing session is gone; changes that are not durable by then never will be. */
  readonly lost: Promise<Error>;
  /** Whether this node may answer: no other node can own its cells yet, and its registry is up to date. */
  isValid(): boolean;
  /** Releases the lease. */
  close(): Promise<void>;
}

/** The storage could not be reached, or the write's outcome is unknown: retryable, never an answer. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

/** The cell of a workspace has gone to another node, which must run the call. */
export class CellGone extends Unavailable {
  constructor() {
    super("The workspace has moved to another process");
  }
}

/** This process must not answer: its last beat is too old, or its term has ended. */
export class MayNotAnswer extends Unavailable {
  constructor() {
    super("This process cannot answer now; retry");
  }
}

/** The process is stopping: a retry needs another connection, since this one will be closed. */
export class Stopping extends Unavailable {}
