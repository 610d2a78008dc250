// What the actors need of the world: durable storage of changes, rows to start from, and a lease that says who
// may write. The actors know these shapes and nothing of SQL; src/storage implements them, and so does a store
// in memory that tests use.

import type { Amount } from "../src/domain/values/amount.ts";
import type { UserKey } from "../src/domain/values/ids.ts";
import type { HistoryCounts } from "../src/domain/merging/merge_report.ts";
import type { RefusalRow } from "../src/domain/state/refused_call.ts";
import type { Millis } from "../src/domain/values/period.ts";
import type { Change, OlderRows, UserRows } from "../src/domain/state/user.ts";

export type Mode = "live" | "test";

/** A first answer kept under an idempotency key. Section 1 of the decisions. */
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

/** Metering operations of a workspace in a UTC month. Section 7 of the decisions. */
export interface OperationsRow {
  readonly workspaceId: string;
  readonly mode: Mode;
  /** "YYYY-MM". */
  readonly month: string;
  readonly used: number;
}

/** What a workspace spent on models in a UTC month, both modes. Section 10 of the decisions, "AI budget". */
export interface AiSpendRow {
  readonly workspaceId: string;
  /** "YYYY-MM". */
  readonly month: string;
  readonly cents: Amount;
}

/** Credit balances ever issued in a realm. Section 6 of the decisions, "Sandbox". */
export interface IssuesRow {
  readonly realm: number;
  readonly issued: number;
}

/** Workspaces with their realms, which one cell holds. */
export interface CellParts {
  readonly workspaces: ReadonlySet<string>;
  readonly realms: ReadonlySet<number>;
}

/** What is counted for workspaces and realms, as the tables have it. */
export interface Totals {
  readonly operations: readonly OperationsRow[];
  readonly issues: readonly IssuesRow[];
  readonly aiSpend: readonly AiSpendRow[];
}

/** Every change that the journal takes: those that decisions yield and those of the runtime itself. */
export type RowChange =
  | Change
  | { readonly verb: "put"; readonly table: "idempotency"; readonly row: IdempotencyRow }
  | { readonly verb: "put"; readonly table: "operations"; readonly row: OperationsRow }
  | { readonly verb: "put"; readonly table: "credit_issues"; readonly row: IssuesRow }
  | { readonly verb: "put"; readonly table: "ai_spend"; readonly row: AiSpendRow };

/**
 * Who a command is for: an end-user id in a realm, or the key that a reservation id names. Both are looked for in the
 * caller's realm alone: a key of another realm may belong to another member.
 */
export type UserRef =
  | { readonly realm: number; readonly id: string }
  | { readonly realm: number; readonly key: UserKey };

/** Balances that a command names. */
export type BalanceRef = { readonly balanceId: string } | { readonly externalRef: string };

/** A merge as its report tells it. */
export interface StoredMerge {
  /** A MergeReport as JSON. */
  readonly report: string;
  readonly historyPending: boolean;
  /** What the background has moved. */
  readonly movedLater: HistoryCounts;
}

/** Rows to start an actor from. */
export type LoadedUser = Omit<UserRows, "recorded">;

/** Reads of users' rows. Answers reflect everything that was drained before the call. */
export interface UserStore {
  /**
   * Live rows of many users, each answer in its place; null for a user that has no row. An alias answers with its
   * canonical user.
   */
  load(refs: readonly UserRef[], now: Millis): Promise<(LoadedUser | null)[]>;
  /**
   * A reservation that is not live, with the counters of its lines.
   *
   * @param owners the canonical user first, then its aliases, under whose number it may still be filed
   */
  loadReservation(owners: readonly UserKey[], reservationId: string): Promise<OlderRows>;
  /** Balances of a user in any state, by id or by the external reference of their grant. */
  loadBalances(owner: UserKey, which: BalanceRef): Promise<OlderRows>;
  /** What a merge needs beside live rows: all counters and balances of a user. */
  loadWhole(owner: UserKey): Promise<OlderRows>;
  /** The history of a user and its aliases, or null where it has more rows than a limit. */
  countHistory(owners: readonly UserKey[], limit: number): Promise<HistoryCounts | null>;
  /** The report of the merge that made a user an alias, with whether history is still on its way; null for none. */
  loadMerge(fromKey: UserKey): Promise<StoredMerge | null>;
  /** The keys of users of a realm that are due, earliest first. */
  listDue(realm: number, now: Millis, limit: number): Promise<UserKey[]>;
  /** Keys for new users, which nobody else gets: `count` of them from `first` on. */
  nextKeys(): Promise<{ readonly first: UserKey; readonly count: number }>;
  /** First answers by idempotency key, each in its place. */
  loadIdempotency(keys: readonly { realm: number; key: string }[]): Promise<(IdempotencyRow | null)[]>;
}

/** Where counts of refused calls are written. */
export interface RefusalStore {
  /**
   * Adds rows to those that are stored, alike to alike, in one transaction that holds their cells.
   *
   * @returns false when nobody knows whether they were written
   * @throws when they were not
   */
  add(cells: readonly number[], rows: readonly RefusalRow[]): Promise<boolean>;
}

/** A batch that is durable in the journal. */
export interface AppendedBatch {
  readonly seq: number;
  readonly changes: number;
  readonly bytes: number;
}

/** A member's range of the journal. Every call fails once its session is lost. */
export interface Journal {
  /**
   * Makes a batch durable; resolves only when it is. Several may be in flight: they become durable in the order of
   * the calls, and one that fails takes all later ones with it.
   */
  append(changes: readonly RowChange[]): Promise<AppendedBatch>;
  /**
   * Writes appended batches into the tables and removes them from the journal, as one transaction.
   *
   * @param spreadMs how long that may take, so that it does not hold up appends; 0, or left out, for as fast as it can
   */
  drain(batches: readonly AppendedBatch[], spreadMs?: number): Promise<void>;
  /** The drain under way does not spread its work any more: somebody waits for it. */
  hurry(): void;
  /** The most changes of one drain beside the runtime's own bound: no append gets in between. */
  readonly drainChangesMax: number;
}

/** The right to write, held until `lost` resolves. */
export interface Lease {
  readonly journal: Journal;
  /** Resolves when the session that writes is gone; what is not durable by then never will be. */
  readonly lost: Promise<Error>;
  /** Whether no other member can have taken over by now, and nothing that changed for all members is missing here. */
  isValid(): boolean;
  /** Lets it go. */
  close(): Promise<void>;
}

/** The storage could not be reached, or the write's outcome is unknown: retryable, never an answer. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
}

/** The cell of a workspace is not here any more: its owner is to be asked. */
export class CellGone extends Unavailable {
  constructor() {
    super("The workspace has moved to another process");
  }
}

/** This process may not answer: its last beat is too old, or its term has ended. */
export class MayNotAnswer extends Unavailable {
  constructor() {
    super("This process may answer nothing at the moment");
  }
}

/** The process is about to end: another try should not come on the same connection, which ends with it. */
export class Stopping extends Unavailable {}
