// A store in memory behind the actors' port: tables, journal and lease, with hooks at which a test can wait or fail. Rows
// pass through the real encoding first, and a load leaves out what the SQL store leaves out.

import {
  type AiSpendRow,
  type AppendedBatch,
  type BalanceRef,
  type GatewaySpendRow,
  type IdempotencyRow,
  type IssuesRow,
  type JournalEntry,
  type LoadedUser,
  type OperationsRow,
  type RefusalStore,
  type StoredMerge,
  Unavailable,
  type UserRef,
  type UserStore,
} from "../../actors/port.ts";
import { MemoryLease } from "./memory_lease.ts";
import { childrenOf, heightBelow } from "./memory_tree.ts";
import type { Counter } from "../../src/domain/state/counter.ts";
import { addUp, kindOf, type RefusalRow } from "../../src/domain/state/refused_call.ts";
import type { CallerTexts } from "../../src/domain/state/text_room.ts";
import type { EndUserKey } from "../../src/domain/state/end_user_key.ts";
import { type CreditBalance, type LedgerEntry, NOTIFIED } from "../../src/domain/state/credit.ts";
import type { MeteringEvent } from "../../src/domain/state/event.ts";
import { ownerOf, type UserKey } from "../../src/domain/values/ids.ts";
import { type HistoryCounts, NO_HISTORY } from "../../src/domain/merging/merge_report.ts";
import type { Millis } from "../../src/domain/values/period.ts";
import { countersOf, type Reservation } from "../../src/domain/state/reservation.ts";
import type { Run } from "../../src/domain/state/run.ts";
import type { OverageWindow } from "../../src/domain/state/overage.ts";
import type { Share } from "../../src/domain/state/share.ts";
import type { Subscription, SubscriptionEvent } from "../../src/domain/state/subscription.ts";
import type { OlderRows, User } from "../../src/domain/state/user.ts";
import { COUNTERS, RESERVATIONS } from "../../src/storage/rows/metering_rows.ts";
import { APPENDED, CHANGE_HEAD, FIRST_TABLE, TABLES } from "../../src/storage/rows/tables.ts";
import { RUNS } from "../../src/storage/rows/run_rows.ts";
import { AI_SPEND, GATEWAY_SPEND } from "../../src/storage/rows/runtime_rows.ts";
import { OVERAGE_WINDOWS } from "../../src/storage/rows/overage_rows.ts";
import { SHARES } from "../../src/storage/rows/share_rows.ts";
import { SUBSCRIPTIONS } from "../../src/storage/rows/subscription_rows.ts";
import { isUnderWay } from "../../src/domain/state/top_up.ts";
import { readEvent, readOperations, readSubscriptionEvent, summaryRow, topUpRows } from "./memory_rows.ts";
import { TOP_UPS } from "../../src/storage/rows/top_up_rows.ts";
import { END_USER_KEYS } from "../../src/storage/rows/end_user_key_rows.ts";
import { USERS } from "../../src/storage/rows/user_rows.ts";
import { CREDIT_BALANCES, CREDIT_LEDGER } from "../../src/storage/rows/credit_rows.ts";
import type { ColumnValue } from "../../src/storage/database.ts";
import { valueOf } from "./copied_values.ts";
import { isLive, runRows, runsAround } from "./memory_runs.ts";
import { countMoved } from "./moved_counts.ts";

/** Points of a write at which a test can wait (answer a promise) or fail (throw). */
interface StoreHooks {
  /** Before a batch is in the journal. */
  append?: (changes: readonly JournalEntry[]) => Promise<void> | void;
  /** Before counts of refused calls are stored; false where the caller must not learn of it. */
  refusals?: (rows: readonly RefusalRow[]) => Promise<boolean | void> | boolean | void;
  /** After it is in the journal and before any caller is answered. */
  appended?: (changes: readonly JournalEntry[]) => Promise<void> | void;
  /** Before batches go from the journal into the tables. */
  drain?: (batches: readonly AppendedBatch[]) => Promise<void> | void;
  /** After a load has read and before it answers. */
  loaded?: (refs: readonly UserRef[]) => Promise<void> | void;
  /** Before a reservation is read. */
  loadReservation?: (reservationId: string) => Promise<void> | void;
  /** Before balances are read. */
  loadBalances?: (which: BalanceRef) => Promise<void> | void;
}

/** A row as the tables have it. */
export type Fields = Record<string, ColumnValue>;

/** Every table as the columns and values that the journal carries. */
export class MemoryTables {
  readonly #movedLater = new Map<UserKey, HistoryCounts>();
  protected readonly tables = new Map(TABLES.map(({ name }) => [name, new Map<string, Fields>()]));

  /** Writes encoded changes, a line each; a row that is appended must be new. */
  write(payload: string): void {
    for (const line of payload.split("\n")) {
      const spec = TABLES[line.charCodeAt(0) - FIRST_TABLE];
      if (spec === undefined) throw new Error(`There is no table "${line[0]}"`);
      const values = line.slice(CHANGE_HEAD).split("\t");
      const rows = this.rows(spec.name, true);
      const key = values.slice(0, spec.keyColumns).join("\t");
      const before = rows.get(key);
      if (line[1] === APPENDED && before !== undefined) throw new Error(`${spec.name} already has ${key}`);
      const row: Fields = {};
      for (const [place, name] of spec.columns.entries()) {
        row[name] = valueOf(spec.name, name, values[place] as string);
      }
      // A put of a known row changes its mutable columns only, as the drain's SQL does.
      if (spec.name === "reservations" && before !== undefined) {
        // Texts are those of the appended row; a commit and a release remove the prompt.
        row.prompt = row.status === "held" || row.status === "expired" ? before.prompt as ColumnValue : null;
      }
      if (before === undefined) {
        rows.set(key, row);
        continue;
      }
      const changed = { ...before };
      for (const name of spec.mutable) changed[name] = row[name] as ColumnValue;
      rows.set(key, changed);
    }
  }

  /** The rows of a table by their key; a caller that changes them reports it. */
  protected rows(table: string, _isToChange = false): Map<string, Fields> {
    return this.tables.get(table) as Map<string, Fields>;
  }

  /** The rows of a table that pass a test, in the order in which they were first written. */
  list(table: string, isWanted: (row: Fields) => boolean = () => true): Fields[] {
    return this.rows(table).values().filter(isWanted).toArray();
  }

  users(): User[] {
    return this.list("users").map((row) => USERS.read(row));
  }

  readonly subscriptions = (user: UserKey): Subscription[] =>
    this.#of(user, "subscriptions").map((row) => SUBSCRIPTIONS.read(row));

  counters(user: UserKey): Counter[] {
    return this.#of(user, "counters").map((row) => COUNTERS.read(row));
  }

  reservations(user: UserKey): Reservation[] {
    return this.#of(user, "reservations").map((row) => RESERVATIONS.read(row));
  }

  readonly balances = (user: UserKey): CreditBalance[] =>
    this.#of(user, "credit_balances").map((row) => CREDIT_BALANCES.read(row));
  readonly runs = (user: UserKey): Run[] => this.#of(user, "runs").map((row) => RUNS.read(row));
  readonly shares = (user: UserKey): Share[] => this.#of(user, "shares").map((row) => SHARES.read(row));
  readonly overages = (user: UserKey): OverageWindow[] =>
    this.#of(user, "overage_windows").map((row) => OVERAGE_WINDOWS.read(row));
  readonly endUserKeys = (user: UserKey): EndUserKey[] =>
    this.#of(user, "end_user_keys").map((row) => END_USER_KEYS.read(row));

  readonly topUps = (user: UserKey) => this.#of(user, "top_ups").map((row) => TOP_UPS.read(row));

  /** Oldest first. */
  ledger(user: UserKey): LedgerEntry[] {
    return this.#of(user, "credit_ledger").map((row) => CREDIT_LEDGER.read(row));
  }

  issues(): IssuesRow[] {
    return this.list("credit_issues").map((row) => ({
      realm: row.realm as number,
      issued: row.issued as number,
    }));
  }

  aiSpend(): AiSpendRow[] {
    return this.list("ai_spend").map((row) => AI_SPEND.read(row));
  }

  gatewaySpend(): GatewaySpendRow[] {
    return this.list("gateway_spend").map((row) => GATEWAY_SPEND.read(row));
  }

  /** Oldest first. */
  subscriptionEvents(user: UserKey): SubscriptionEvent[] {
    return this.#of(user, "subscription_events").map(readSubscriptionEvent);
  }

  /** Oldest first. */
  events(): MeteringEvent[] {
    return this.list("events").map(readEvent);
  }

  operations(): OperationsRow[] {
    return this.list("operations").map(readOperations);
  }

  /** The live rows of a user, as a start of an actor needs them; null for a user without a row. */
  load(ref: UserRef, now: Millis): LoadedUser | null {
    const [asked] = this.list(
      "users",
      (row) => "key" in ref ? row.key === ref.key : row.realm === ref.realm && row.id === ref.id,
    );
    const [stored] = this.list("users", ({ key }) => key === (asked?.merged_into ?? asked?.key));
    if (stored === undefined) return null;
    const user = USERS.read(stored);
    const reservations = this.reservations(user.key).filter(({ status }) => status === "held");
    const from = Math.min(now, user.dueAt ?? now, ...reservations.map(({ createdAt }) => createdAt));
    const counters = this.counters(user.key).filter(({ windowEnd }) =>
      windowEnd === null || windowEnd > from
    );
    const balances = this.balances(user.key).filter(({ held, revokedAt, expiresAt, included, notified }) =>
      held > 0n || revokedAt === null && (expiresAt === null || expiresAt >= from) ||
      included !== null && ((included.windowEnd ?? Infinity) > from || (notified & NOTIFIED.expired) === 0)
    );
    const aliases = this.list("users", ({ merged_into: into }) => into === user.key)
      .map((row) => USERS.read(row))
      .map(({ key, id }) => ({ key, id }));
    const runs = this.runs(user.key).filter((run) => isLive(run, from));
    const shares = this.shares(user.key).filter(({ windowEnd }) => windowEnd === null || windowEnd > from);
    const subscriptions = this.subscriptions(user.key);
    const overages = this.overages(user.key).filter(({ windowEnd, dueAt }) =>
      windowEnd === null || windowEnd > from || dueAt !== null
    );
    const endUserKeys = this.endUserKeys(user.key).filter(({ revokedAt }) => revokedAt === null);
    const topUps = this.topUps(user.key).filter(isUnderWay);
    const endedUntil = Math.max(
      ...[...this.counters(user.key), ...this.shares(user.key)].map(({ windowEnd }) => windowEnd ?? Infinity)
        .filter((end) => end <= from),
    );
    const rows = { subscriptions, counters, reservations, balances, runs, shares, overages, endedUntil };
    return { user, aliases, ...rows, endUserKeys, topUps, ...summaryRow(this, user.key) };
  }

  /** A reservation that is not live, with the counters of its lines. */
  loadReservation(owners: readonly UserKey[], id: string): OlderRows {
    const [owner] = owners as [UserKey];
    const reservations = owners.flatMap((key) => this.reservations(key))
      .filter((row) => row.id === id && row.status !== "held")
      .map((row) => ({ ...row, userKey: owner }));
    const starts = new Set(reservations.flatMap((row) => countersOf(row).map(({ window }) => window.start)));
    const counters = this.counters(owner).filter((row) => starts.has(row.windowStart));
    const runs = reservations.flatMap(({ runId }) => runsAround(this, owners, runId));
    const taken = new Set(reservations.flatMap((row) => row.shares ?? []).map(({ window }) => window.start));
    const shares = this.shares(owner).filter((row) => taken.has(row.windowStart));
    const overages = this.overages(owner).filter((row) => starts.has(row.windowStart));
    return { reservations, counters, balances: [], runs, shares, overages };
  }

  /** All counters, balances, shares and windows of overage of a user. */
  loadWhole(owner: UserKey): OlderRows {
    const [counters, balances, shares] = [this.counters(owner), this.balances(owner), this.shares(owner)];
    return { reservations: [], counters, balances, shares, overages: this.overages(owner) };
  }

  /** The history of a user and its aliases, or null where it is longer than a limit. */
  countHistory(owners: readonly UserKey[], limit: number): HistoryCounts | null {
    const count = (table: string, isWanted: (row: Fields) => boolean = () => true) =>
      this.list(table, (row) => owners.includes(row.user_key as UserKey) && isWanted(row)).length;
    const counts = {
      events: count("events"),
      eventLogs: 0,
      reservations: this.list(
        "reservations",
        ({ id, status }) => status !== "held" && owners.includes(ownerOf("reservation", id as string) ?? 0),
      ).length,
      subscriptionEvents: count("subscription_events"),
      creditLedger: count("credit_ledger"),
      composeGenerations: count("generations"),
    };
    return Object.values(counts).reduce((sum, rows) => sum + rows, 0) > limit ? null : counts;
  }

  /** The report of the merge that made a user an alias. */
  loadMerge(fromKey: UserKey): StoredMerge | null {
    const [row] = this.list("merges", (merge) => merge.from_key === fromKey);
    if (row === undefined) return null;
    const keys = JSON.parse(row.history_keys as string) as UserKey[];
    const pending = this.list("history_moves", ({ user_key: key }) => keys.includes(key as UserKey));
    const movedLater = this.#movedLater.get(fromKey) ?? NO_HISTORY;
    return { report: row.report as string, historyPending: pending.length > 0, movedLater };
  }

  /** Records that the merge which made a user an alias links people. */
  recordLink(fromKey: UserKey): void {
    const [row] = this.list("merges", (merge) => merge.from_key === fromKey) as [Fields];
    row.report = (row.report as string).replace(`"skipped_consent_required"`, `"linked"`);
  }

  /** Files the history of aliases under their canonical users, as the background does. */
  moveHistory(): void {
    for (const { user_key: alias } of this.list("history_moves")) {
      const into = this.users().find(({ key }) => key === alias)?.mergedInto;
      countMoved(this, this.#movedLater, alias as UserKey);
      for (const table of ["events", "subscription_events", "credit_ledger", "generations"]) {
        for (const row of this.#of(alias as UserKey, table)) row.user_key = into as UserKey;
      }
    }
    this.rows("history_moves", true).clear();
  }

  /** Balances of a user in any state. */
  loadBalances(owner: UserKey, which: BalanceRef): OlderRows {
    const balances = this.balances(owner).filter((row) =>
      "balanceId" in which
        ? row.id === which.balanceId
        : which.externalRefs.includes((which.isOwn === true ? row.ownRef : row.externalRef) ?? "")
    );
    return { reservations: [], counters: [], balances };
  }

  #of(user: UserKey, table: string): Fields[] {
    return this.list(table, (row) => row.user_key === user);
  }
}

/** Tables, journal and lease in memory. */
export class MemoryStore implements UserStore, RefusalStore {
  readonly tables = new MemoryTables();
  readonly journal = new Map<number, string>();
  readonly hooks: StoreHooks = {};
  /** Counts of refused calls by realm and kind. */
  readonly refusals = new Map<string, RefusalRow>();
  /** The sizes of the batches appended so far, in changes. */
  readonly appends: number[] = [];
  /** How many loads were asked for in one call. */
  readonly loads: number[] = [];
  #term = 0;
  #seq = 0;

  /** Becomes the writer: what is left in the journal is replayed, and every earlier lease is void. */
  takeLease(): MemoryLease {
    const term = ++this.#term;
    for (const seq of [...this.journal.keys()].sort((a, b) => a - b)) {
      this.tables.write(this.journal.get(seq) as string);
      this.journal.delete(seq);
    }
    return new MemoryLease(this, () => term === this.#term);
  }

  async append(
    changes: readonly JournalEntry[],
    payload: string,
    isValid: () => boolean,
  ): Promise<AppendedBatch> {
    await this.hooks.append?.(changes);
    if (!isValid()) throw new Unavailable("Another process is the writer");
    const seq = this.#seq++;
    this.journal.set(seq, payload);
    this.appends.push(changes.length);
    await this.hooks.appended?.(changes);
    return { seq, changes: changes.length, bytes: payload.length };
  }

  async add(_: readonly number[], rows: readonly RefusalRow[]): Promise<boolean> {
    const isKnown = await this.hooks.refusals?.(rows) ?? true;
    for (const row of rows) {
      const kind = `${row.realm} ${kindOf(row)}`;
      const known = this.refusals.get(kind);
      this.refusals.set(kind, known === undefined ? row : addUp(known, row));
    }
    return isKnown;
  }

  async drain(batches: readonly AppendedBatch[]): Promise<void> {
    await this.hooks.drain?.(batches);
    const left = batches.filter(({ seq }) => this.journal.has(seq));
    if (left.length !== batches.length) throw new Error("Journal rows are gone");
    for (const { seq } of batches) {
      this.tables.write(this.journal.get(seq) as string);
      this.journal.delete(seq);
    }
  }

  async load(refs: readonly UserRef[], now: Millis): Promise<(LoadedUser | null)[]> {
    this.loads.push(refs.length);
    const found = refs.map((ref) => this.tables.load(ref, now));
    await this.hooks.loaded?.(refs);
    return found;
  }

  async loadBalances(owner: UserKey, which: BalanceRef): Promise<OlderRows> {
    await this.hooks.loadBalances?.(which);
    return this.tables.loadBalances(owner, which);
  }

  async loadReservation(owners: readonly UserKey[], id: string): Promise<OlderRows> {
    await this.hooks.loadReservation?.(id);
    return this.tables.loadReservation(owners, id);
  }

  loadRuns(owners: readonly UserKey[], runId: string): Promise<OlderRows> {
    return Promise.resolve(runRows(this.tables, owners, runId));
  }

  loadTopUp(owners: readonly UserKey[], id: string): Promise<OlderRows> {
    return Promise.resolve(topUpRows(this.tables, owners, id));
  }

  async loadTexts(owners: readonly UserKey[], id: string): Promise<CallerTexts | null> {
    await this.hooks.loadReservation?.(id);
    const found = owners.flatMap((owner) => this.tables.reservations(owner)).find((row) => row.id === id);
    return found === undefined ? null : { metadata: found.metadata, prompt: found.prompt };
  }

  loadWhole(owner: UserKey): Promise<OlderRows> {
    return Promise.resolve(this.tables.loadWhole(owner));
  }

  countHistory(owners: readonly UserKey[], limit: number): Promise<HistoryCounts | null> {
    return Promise.resolve(this.tables.countHistory(owners, limit));
  }

  loadMerge(fromKey: UserKey): Promise<StoredMerge | null> {
    return Promise.resolve(this.tables.loadMerge(fromKey));
  }

  hasTree(realm: number): Promise<boolean> {
    return Promise.resolve(this.tables.users().some((row) => row.realm === realm && row.parentKey !== null));
  }

  heightBelow(owners: readonly UserKey[]): Promise<number> {
    return Promise.resolve(heightBelow(this.tables, owners));
  }

  someChildren(owners: readonly UserKey[], limit: number): Promise<string[]> {
    return Promise.resolve(childrenOf(this.tables, owners).slice(0, limit).map(({ id }) => id));
  }

  countChildren(owners: readonly UserKey[]): Promise<number> {
    return Promise.resolve(childrenOf(this.tables, owners).length);
  }

  listDue(realm: number, now: Millis, limit: number): Promise<UserKey[]> {
    const due = this.tables.users().filter((row) =>
      row.realm === realm && row.dueAt !== null && row.dueAt <= now
    );
    due.sort((a, b) => (a.dueAt as number) - (b.dueAt as number));
    return Promise.resolve(due.slice(0, limit).map(({ key }) => key));
  }

  nextKeys(): Promise<{ readonly first: UserKey; readonly count: number }> {
    const last = Math.max(0, ...this.tables.users().map(({ key }) => key));
    return Promise.resolve({ first: last + 1, count: 1_000_000 });
  }

  loadIdempotency(keys: readonly { realm: number; key: string }[]): Promise<(IdempotencyRow | null)[]> {
    return Promise.resolve(keys.map(({ realm, key }) => {
      const [row] = this.tables.list("idempotency", (each) => each.realm === realm && each.key === key);
      return row === undefined ? null : {
        realm,
        key,
        requestHash: row.request_hash as string,
        status: row.status as number,
        body: row.body as string,
        userKey: row.user_key as number | null,
        at: row.at_ms as number,
      };
    }));
  }
}
