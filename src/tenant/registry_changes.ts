// Changes of the registry. Each is one transaction that holds the registry's row, decides from a fresh read, and raises
// the version (rule 9 of the cluster's design). It is answered when every member that may answer anything has the new
// version in force, so that a revoked key or a lowered cap holds everywhere from then on (rule 10).

import { Unavailable } from "../../actors/port.ts";
import type { Clock } from "../process/clock.ts";
import { REGISTRY_LIMITS } from "../process/limits.ts";
import type { Database, Session } from "../storage/database.ts";
import { holdCell } from "../storage/members/cell_store.ts";
import {
  countUnconfirmed,
  lockRegistry,
  readRegistry,
  readVersion,
  saveRegistry,
} from "../storage/stores/registry_store.ts";
import type { Registry } from "./registry.ts";
import type { RegistryRows } from "../storage/rows/registry_rows.ts";

/** The change is in force here and may not be in other members: to be sent again, which is safe. */
export class Unconfirmed extends Unavailable {}

/** What a change writes, and what it is answered with. */
export interface RegistryChange<T> {
  readonly rows: Partial<RegistryRows>;
  readonly answer: T;
}

/** What changes work on. */
export interface ChangesOptions {
  readonly registry: Registry;
  readonly database: Pick<Database, "query" | "transaction">;
  readonly term: number;
  readonly clock: Clock;
  /** Tells the other members that there is a new version, and says in the own row that it is in force here. */
  readonly announce: (version: number) => Promise<void>;
}

/** Reads and changes the registry of a member. */
export class RegistryChanges {
  readonly #options: ChangesOptions;
  /** The read under way; null while there is none. */
  #reading: Promise<void> | null = null;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /**
   * Puts at least a version in force that was committed before the call. Calls at the same time share a read; one that
   * began too early to see the version is followed by another.
   */
  async reach(version: number): Promise<void> {
    const { registry } = this.#options;
    while (registry.version < version) {
      await (this.#reading ??= this.catchUp().finally(() => this.#reading = null));
    }
  }

  /** Puts everything in force that has changed in the tables. */
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
   * Makes a change and puts it in force in every member.
   *
   * @param cell of the workspace that it is about, which this member owns; null for none
   * @param decide sees the registry as it is now; where it answers no rows there is no new version
   * @throws Unconfirmed when some member does not confirm in time
   */
  async change<T>(
    cell: number | null,
    decide: (session: Session) => Promise<RegistryChange<T>> | RegistryChange<T>,
  ): Promise<T> {
    const { registry, database, term, clock, announce } = this.#options;
    const { rows, answer, version } = await database.transaction(async (session) => {
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
   * Waits until every member has what is in force here: a repeated call that changes nothing may follow one whose answer
   * was lost.
   *
   * @throws Unconfirmed when some member does not confirm in time
   */
  confirm(): Promise<void> {
    return this.#confirmed(this.#options.registry.version);
  }

  /** Resolves when no member that may answer lacks a version. */
  async #confirmed(version: number): Promise<void> {
    const { database } = this.#options;
    const until = performance.now() + REGISTRY_LIMITS.confirmMs;
    while (await countUnconfirmed(database, version) > 0) {
      if (performance.now() > until) {
        throw new Unconfirmed(
          "The change is applied and not yet confirmed everywhere: it is safe to repeat it",
        );
      }
      await new Promise((resolve) => setTimeout(resolve, REGISTRY_LIMITS.lookEveryMs));
    }
  }
}
