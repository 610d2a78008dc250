// The log of failed requests. Each process counts the requests that it answered in memory and writes them in bulk, so a
// successful request pays nothing and a flood of bad ones becomes few rows. A crash may lose the last seconds.
//
// Rows belong to no cell: the process that answers a request need not own its workspace.

import {
  addUpFailed,
  failedKindOf,
  type FailedRequest,
  type FailedRequestRow,
  failedRowOf,
} from "../domain/state/failed_request.ts";
import { CountedRows, countOf } from "../process/counts/counted_rows.ts";
import type { RuntimeCounts } from "../process/counts/runtime_counts.ts";
import { log, messageOf } from "../process/log.ts";
import { REQUEST_LOG_LIMITS } from "../process/sent_limits.ts";
import { isOfValues } from "../storage/database.ts";
import type { InCell } from "../storage/nodes/cell_store.ts";
import { addFailedRequests, trimFailedRequests } from "../storage/stores/failed_request_store.ts";
import { NO_CELLS } from "./audit.ts";

/** The failed requests of a process. */
export class RequestLog {
  readonly #world: () => { readonly inCell: InCell } | null;
  readonly #counts: Pick<RuntimeCounts, "failedRequestsLost">;
  /** By app. */
  readonly #rows: CountedRows<string, FailedRequestRow>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastWrite: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  /** @param world where rows are written; null while this process may not */
  constructor(
    world: () => { readonly inCell: InCell } | null,
    counts: Pick<RuntimeCounts, "failedRequestsLost">,
  ) {
    this.#world = world;
    this.#counts = counts;
    this.#rows = new CountedRows({
      kindOf: failedKindOf,
      addUp: addUpFailed,
      rowsMax: REQUEST_LOG_LIMITS.rowsMax,
      partRowsMax: REQUEST_LOG_LIMITS.appRowsMax,
      onLost: (count) => counts.failedRequestsLost += count,
    });
  }

  /** Rows in memory. */
  get size(): number {
    return this.#rows.size;
  }

  /** Counts a request, and writes it with others a little later. */
  add(failed: FailedRequest): void {
    if (this.#isClosed) return;
    this.#rows.add(failed.key.appId, failedRowOf(failed));
    this.#writeLater();
  }

  /** Writes what was counted before the call. */
  write(): Promise<void> {
    const turn = this.#lastWrite.then(() => this.#write());
    this.#lastWrite = turn.catch(() => {});
    return turn;
  }

  /** Writes what is left and counts nothing more. */
  async close(): Promise<void> {
    await this.write().catch(() => {});
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#rows.clear();
  }

  #writeLater(): void {
    if (this.#timer !== undefined || this.size === 0 || this.#isClosed) return;
    this.#timer = setTimeout(async () => {
      this.#timer = undefined;
      await this.write().catch((error) =>
        log("warn", "Failed requests were not written", { error: messageOf(error) })
      );
      this.#writeLater();
    }, REQUEST_LOG_LIMITS.writeEveryMs);
    Deno.unrefTimer(this.#timer);
  }

  async #write(): Promise<void> {
    const world = this.#world();
    if (world === null || this.#rows.size === 0) return;
    const taken = this.#rows.take();
    const rows = taken.flatMap((each) => each.rows);
    let isSent = false;
    try {
      await world.inCell(NO_CELLS, async (session) => {
        await addFailedRequests(session, rows);
        await trimFailedRequests(session, taken.map(({ part }) => part), REQUEST_LOG_LIMITS.storedMax);
        isSent = true;
      });
    } catch (error) {
      // After the last statement only the commit can fail, with an unknown outcome: a second write might count twice.
      // Rows that the database refuses would keep those after them from being written.
      if (isSent || isOfValues(error)) this.#counts.failedRequestsLost += countOf(rows);
      else for (const row of rows) this.#rows.add(row.appId, row);
      throw error;
    }
  }
}
