// Signs of life from a thread beside the one that answers. When work holds the answering thread, its heartbeats stop, and
// other nodes would end its sessions and take its cells. So this thread pings the other, and while a ping is not answered
// it updates `seen_at` itself, for a bounded time: a thread that is stuck for ever must not keep its cells.
//
// This is safe: it only makes other nodes wait longer. It never entitles a node to answer; only a heartbeat of the answering
// thread does, which proves its session and its version of the registry.

import { LEASE_LIMITS } from "../../process/limits.ts";
import type { Database } from "../database.ts";

/** Writes signs of life of one node while its answering thread is held. */
export class SignOfLife {
  readonly #database: Pick<Database, "query">;
  readonly #term: number;
  readonly #timer: ReturnType<typeof setInterval>;
  #heardAt = performance.now();
  #isWriting = false;

  /** @param ping asks the answering thread for a sign, which is given by `hear` */
  constructor(database: Pick<Database, "query">, term: number, ping: () => void) {
    this.#database = database;
    this.#term = term;
    this.#timer = setInterval(() => {
      ping();
      void this.look();
    }, LEASE_LIMITS.beatEveryMs);
  }

  /** The answering thread runs. */
  hear(): void {
    this.#heardAt = performance.now();
  }

  /** Writes a sign of life if the answering thread has been held for more than a ping, and not for too long. */
  async look(): Promise<void> {
    const heldMs = performance.now() - this.#heardAt;
    const { beatEveryMs, heldMsMax } = LEASE_LIMITS;
    if (this.#isWriting || heldMs < 1.5 * beatEveryMs || heldMs > heldMsMax) return;
    this.#isWriting = true;
    try {
      await this.#database.query(
        "update members set seen_at = clock_timestamp() where term = $1::bigint and ended_at is null",
        [this.#term],
      );
    } catch {
      // The next look writes again; without the database there is no sign.
    } finally {
      this.#isWriting = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
