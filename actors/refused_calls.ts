// Counts of refused calls, until they are written. They are not changes of a turn: no decision depends on them, so a
// refusal never waits for them, and a crash may lose the last seconds of counts.
//
// Writes run one after another. After a write everything counted before it is in the table, including rows that an earlier
// write had taken from memory. So a read, a merge, an erasure and a hand-over all begin with one.

import { addUp, kindOf, type RefusalRow, type RefusedCall, rowOf } from "../src/domain/state/refused_call.ts";
import type { RuntimeCounts } from "../src/process/counts/runtime_counts.ts";
import { REFUSAL_LIMITS } from "../src/process/limits.ts";
import { log, messageOf } from "../src/process/log.ts";
import type { Realm } from "./call.ts";
import { MayNotAnswer, type RefusalStore } from "./port.ts";
import { visitAll, type VisitedTerm } from "./visit.ts";

/** The parts of a term that the counts use. */
export interface RefusedCallsOptions {
  readonly term: VisitedTerm;
  readonly store: RefusalStore;
  readonly counts: Pick<RuntimeCounts, "refusalRowsWritten" | "refusedCallsLost">;
}

interface RealmRows {
  readonly cell: number;
  readonly byKind: Map<string, RefusalRow>;
}

/** The counts of a term that are not written yet. */
export class RefusedCalls {
  readonly #options: RefusedCallsOptions;
  readonly #byRealm = new Map<number, RealmRows>();
  readonly #timer: ReturnType<typeof setInterval>;
  #size = 0;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #isWritingBeside = false;
  #isClosed = false;

  constructor(options: RefusedCallsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.writeBeside(), REFUSAL_LIMITS.writeEveryMs);
  }

  /** Rows in memory. */
  get size(): number {
    return this.#size;
  }

  /** Rows in memory of a realm. */
  sizeOf(realm: number): number {
    return this.#byRealm.get(realm)?.byKind.size ?? 0;
  }

  /** Counts a refused call of a user, named by its canonical id. */
  count(realm: Pick<Realm, "realm" | "cell">, userId: string, call: RefusedCall): void {
    const before = this.#size;
    this.#add(realm.cell, rowOf(realm.realm, userId, call));
    const { writeFromRows } = REFUSAL_LIMITS;
    if (before < writeFromRows && this.#size >= writeFromRows) void this.writeBeside();
  }

  /**
   * Writes all earlier counts. The caller is inside the cells of the realms, or has shut their doors.
   *
   * @param realms null for all
   */
  write(realms: readonly number[] | null = null): Promise<void> {
    return this.#inTurn(() => this.#writeRows(realms ?? [...this.#byRealm.keys()]));
  }

  /** Writes the counts of cells with an open door; the others are written later, or at the hand-over of their cell. */
  async writeBeside(): Promise<void> {
    if (this.#isWritingBeside || this.#size === 0) return;
    this.#isWritingBeside = true;
    try {
      await this.#inTurn(() => {
        const cells = new Set([...this.#byRealm.values()].map(({ cell }) => cell));
        return visitAll(this.#options.term, cells, (inside) => {
          const isInside = ([, { cell }]: readonly [number, RealmRows]) => inside.includes(cell);
          return this.#writeRows([...this.#byRealm].filter(isInside).map(([realm]) => realm));
        });
      });
    } catch (error) {
      if (!this.#isClosed) {
        log("warn", "Counts of refused calls were not written", { error: messageOf(error) });
      }
    } finally {
      this.#isWritingBeside = false;
    }
  }

  /** Drops everything with the term. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#byRealm.clear();
    this.#size = 0;
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    const turn = this.#lastWrite.then(() => {
      if (this.#isClosed) throw new MayNotAnswer();
      return write();
    });
    this.#lastWrite = turn.catch(() => {});
    return turn;
  }

  async #writeRows(realms: readonly number[]): Promise<void> {
    const { store, counts } = this.#options;
    const taken = this.#take(realms);
    if (taken.length === 0) return;
    const cells = [...new Set(taken.map(({ cell }) => cell))];
    const rows = taken.flatMap(({ byKind }) => [...byKind.values()]);
    try {
      const isWritten = await store.add(cells, rows);
      if (isWritten) counts.refusalRowsWritten += rows.length;
      // A second write might count them twice; a crash also leaves too few.
      else counts.refusedCallsLost += callsOf(rows);
    } catch (error) {
      for (const { cell, byKind } of taken) for (const row of byKind.values()) this.#add(cell, row);
      throw error;
    }
  }

  #take(realms: readonly number[]): RealmRows[] {
    return realms.flatMap((realm) => {
      const rows = this.#byRealm.get(realm);
      if (rows === undefined) return [];
      this.#byRealm.delete(realm);
      this.#size -= rows.byKind.size;
      return [rows];
    });
  }

  #add(cell: number, row: RefusalRow): void {
    if (this.#isClosed) return;
    let rows = this.#byRealm.get(row.realm);
    if (rows === undefined) this.#byRealm.set(row.realm, rows = { cell, byKind: new Map() });
    const kind = kindOf(row);
    const known = rows.byKind.get(kind);
    if (known !== undefined) rows.byKind.set(kind, addUp(known, row));
    else if (this.#size >= REFUSAL_LIMITS.rowsMax) this.#options.counts.refusedCallsLost += row.count;
    else {
      rows.byKind.set(kind, row);
      this.#size += 1;
    }
  }
}

function callsOf(rows: readonly RefusalRow[]): number {
  return rows.reduce((sum, { count }) => sum + count, 0);
}
