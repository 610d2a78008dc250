// The runs of an actor that the tables may lack. A run that has ended leaves memory once its batch is drained and it has no
// open hold: a call that names it then reads it from the tables. Each new run makes the actor look for such runs, so memory
// does not grow with the tasks of a busy user.

import type { CommandName } from "../src/domain/command.ts";
import { hasEnded } from "../src/domain/state/run.ts";
import type { Change, UserState } from "../src/domain/state/user.ts";
import { RUNTIME_LIMITS } from "../src/process/limits.ts";
import type { Call } from "./call.ts";
import type { Batch } from "./gate.ts";
import { Unavailable } from "./port.ts";
import type { SettledRows } from "./settled.ts";

/** The last batch of each run of one actor. */
export class RunBatches {
  readonly #batches = new Map<string, Batch>();

  /** Notes the runs of a user among changes that left in a batch. */
  note(changes: readonly Change[], batch: Batch, { user: { key } }: UserState): void {
    for (const { table, row } of changes) {
      if (table === "runs" && row.userKey === key) this.#batches.set(row.id, batch);
    }
  }

  /**
   * Makes room for a new run: forgets the runs that have ended and are in the tables.
   *
   * @param call a run that it names stays: it may have been loaded for this turn
   * @param settled settled reservations, which name runs and leave before them
   * @throws Unavailable if there are too many open runs
   */
  makeRoom(
    state: UserState,
    { realm, needs }: Pick<Call<CommandName>, "realm" | "needs">,
    settled: SettledRows | null,
  ): void {
    settled?.forgetDrained(state);
    const now = realm.now();
    const named = needs !== undefined && "runId" in needs ? needs.runId : null;
    for (const [id, batch] of this.#batches) {
      if (batch.isDrained) this.#batches.delete(id);
    }
    for (const run of [...state.runs.values()]) {
      const isOver = hasEnded(run, now) && run.openHolds === 0;
      if (isOver && run.id !== named && !this.#batches.has(run.id)) state.forgetRun(run.id);
    }
    if (state.runs.size >= RUNTIME_LIMITS.openRunsMax) {
      throw new Unavailable("This user has too many open runs");
    }
  }
}
