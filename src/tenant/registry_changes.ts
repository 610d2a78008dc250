// Changes of the registry. Each is one transaction that locks the registry's row, decides from a fresh read, and raises the
// version. It is answered when every process that may answer calls has the new version in force, so that a revoked key or
// a lowered cap holds everywhere from then on. A process that does not confirm within 10 s makes the change fail as
// "applied, not yet confirmed", which is safe to repeat.

import { Unavailable } from "../../actors/port.ts";
import type { Clock } from "../process/clock.ts";
import { REGISTRY_LIMITS } from "../process/limits.ts";
import type { Database, Session } from "../storage/database.ts";
import { holdCell } from "../storage/nodes/cell_store.ts";
import {
  countUnconfirmed,
  lockRegistry,
  readRegistry,
  readVersion,
  saveRegistry,
} from "../storage/stores/registry_store.ts";
import type { Registry } from "./registry.ts";
import type { RegistryRows } from "../storage/rows/registry_rows.ts";
import { rest } from "../process/rest.ts";

/** The change is in force here and perhaps not in every other process; repeating it is safe. */
export class Unconfirmed extends Unavailable {}

/** The rows that a change writes, and its answer. */
interface RegistryChange<T> {
  readonly rows: Partial<RegistryRows>;
  readonly answer: T;
}

/** What changes use. */
interface ChangesOptions {
  readonly registry: Registry;
  /** Reads the registry. */
  readonly database: Pick<Database, "query" | "transaction">;
  /** Makes changes, which may wait for each other; by default the same connections. */
  readonly writes?: Pick<Database, "query" | "transaction">;
  readonly term: number;
  readonly clock: Clock;
  /** Notifies the other processes of a new version, and confirms it in the own row. */
  readonly announce: (version: number) => Promise<void>;
}

/** Reads and changes the registry of a process. */
export class RegistryChanges {
  readonly #options: ChangesOptions;
  /** The read in flight; null without one. */
  #reading: Promise<void> | null = null;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  get #writes(): Pick<Database, "query" | "transaction"> {
    return this.#options.writes ?? this.#options.database;
  }

  /**
   * Puts at least a version in force that was committed before the call. Concurrent calls share a read; a read that began
   * too early to see the version is followed by another.
   */
  async reach(version: number): Promise<void> {
    const { registry } = this.#options;
    while (registry.version < version) {
      await (this.#reading ??= this.catchUp().finally(() => this.#reading = null));
    }
  }

  /** Puts all changes of the tables in force. */
  async catchUp(): Promise<void> {
    const { registry, database } = this.#options;
    const { rows, version } = await database.transaction(async (session) => {
      await session.query("set transaction isolation level repeatable read");
      const version = await readVersion(session);
      return {
        version,
        rows: version > registry.version ? await readRegistry(session, registry.version) : {},
      };
    });
    registry.admit(rows, version);
  }

  /**
   * Makes a change and puts it in force in every process.
   *
   * @param cell the cell of the workspace to change, which this process owns; null for none
   * @param decide sees the current registry; when it returns no rows there is no new version
   * @throws Unconfirmed when a process does not confirm in time
   */
  async change<T>(
    cell: number | null,
    decide: (session: Session) => Promise<RegistryChange<T>> | RegistryChange<T>,
  ): Promise<T> {
    const { registry, term, clock, announce } = this.#options;
    const { rows, answer, version } = await this.#writes.transaction(async (session) => {
      const before = await lockRegistry(session);
      if (cell !== null) await holdCell(session, term, cell);
      if (before > registry.version) registry.admit(await readRegistry(session, registry.version), before);
      const { rows, answer } = await decide(session);
      const isChanged = Object.values(rows).some((each) => each.length > 0);
      if (!isChanged) return { rows, answer, version: before };
      await saveRegistry(session, rows, before + 1, clock.now());
      return { rows, answer, version: before + 1 };
    });
    registry.admit(rows, version);
    await announce(version);
    await this.#confirmed(version);
    return answer;
  }

  /**
   * Waits until every process has the version in force here: a repeated call that changes nothing may follow one with a
   * lost answer.
   *
   * @throws Unconfirmed when a process does not confirm in time
   */
  confirm(): Promise<void> {
    return this.#confirmed(this.#options.registry.version);
  }

  /** Resolves when every process that may answer has a version. */
  async #confirmed(version: number): Promise<void> {
    const until = performance.now() + REGISTRY_LIMITS.confirmMs;
    while (await countUnconfirmed(this.#writes, version) > 0) {
      if (performance.now() > until) {
        throw new Unconfirmed(
          "Applied, not yet confirmed by every process; repeating the call is safe",
        );
      }
      await rest(REGISTRY_LIMITS.lookEveryMs);
    }
  }
}
