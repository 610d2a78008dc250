// Counts of refused calls, until they are written. They are not changes of a turn: no decision depends on them, so a
// refusal never waits for them, and a crash may lose the last seconds of counts.
//
// Writes run one after another. After a write everything counted before it is in the table, including rows that an earlier
// write had taken from memory. So a read, a merge, an erasure and a hand-over all begin with one.

import { addUp, kindOf, type RefusalRow, type RefusedCall, rowOf } from "../src/domain/state/refused_call.ts";
import { CountedRows, countOf } from "../src/process/counts/counted_rows.ts";
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

/** The counts of a term that are not written yet. */
export class RefusedCalls {
  readonly #options: RefusedCallsOptions;
  /** By realm. */
  readonly #rows: CountedRows<number, RefusalRow>;
  readonly #cells = new Map<number, number>();
  readonly #timer: ReturnType<typeof setInterval>;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #isWritingBeside = false;
  #isClosed = false;

  constructor(options: RefusedCallsOptions) {
    this.#options = options;
    this.#rows = new CountedRows({
      kindOf,
      addUp,
      rowsMax: REFUSAL_LIMITS.rowsMax,
      onLost: (count) => options.counts.refusedCallsLost += count,
    });
    this.#timer = setInterval(() => void this.writeBeside(), REFUSAL_LIMITS.writeEveryMs);
  }

  /** Rows in memory. */
  get size(): number {
    return this.#rows.size;
  }

  /** Rows in memory of a realm. */
  sizeOf(realm: number): number {
    return this.#rows.sizeOf(realm);
  }

  /** Counts a refused call of a user, named by its canonical id. */
  count(realm: Pick<Realm, "realm" | "cell">, userId: string, call: RefusedCall): void {
    if (this.#isClosed) return;
    const before = this.size;
    this.#cells.set(realm.realm, realm.cell);
    this.#rows.add(realm.realm, rowOf(realm.realm, userId, call));
    const { writeFromRows } = REFUSAL_LIMITS;
    if (before < writeFromRows && this.size >= writeFromRows) void this.writeBeside();
  }

  /**
   * Writes all earlier counts. The caller is inside the cells of the realms, or has shut their doors.
   *
   * @param realms null for all
   */
  write(realms: readonly number[] | null = null): Promise<void> {
    return this.#inTurn(() => this.#writeRows(realms ?? this.#rows.parts));
  }

  /** Writes the counts of cells with an open door; the others are written later, or at the hand-over of their cell. */
  async writeBeside(): Promise<void> {
    if (this.#isWritingBeside || this.size === 0) return;
    this.#isWritingBeside = true;
    try {
      await this.#inTurn(() => {
        const cells = new Set(this.#rows.parts.map((realm) => this.#cellOf(realm)));
        return visitAll(
          this.#options.term,
          cells,
          (inside) =>
            this.#writeRows(this.#rows.parts.filter((realm) => inside.includes(this.#cellOf(realm)))),
        );
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
    this.#rows.clear();
  }

  #cellOf(realm: number): number {
    return this.#cells.get(realm) as number;
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
    const taken = this.#rows.take(realms);
    if (taken.length === 0) return;
    const cells = [...new Set(taken.map(({ part }) => this.#cellOf(part)))];
    const rows = taken.flatMap(({ rows }) => rows);
    try {
      const isWritten = await store.add(cells, rows);
      if (isWritten) counts.refusalRowsWritten += rows.length;
      // A second write might count them twice; a crash also leaves too few.
      else counts.refusedCallsLost += countOf(rows);
    } catch (error) {
      if (!this.#isClosed) { for (const row of rows) this.#rows.add(row.realm, row); }
      throw error;
    }
  }
}
