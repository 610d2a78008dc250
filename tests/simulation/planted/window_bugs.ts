// Bugs of rates, concurrency limits and sessions to plant.

import type { Counter } from "../../../src/domain/state/counter.ts";
import { InFlight } from "../../../src/domain/state/in_flight.ts";
import { type Change, UserState } from "../../../src/domain/state/user.ts";
import { COUNTERS } from "../../../src/storage/rows/metering_rows.ts";
import { SimTables } from "../database/tables.ts";
import { only } from "../troubles.ts";
import { type PlantedBug, replace } from "./plant.ts";

/** Loads counters of a kind as if they were of a calendar window. */
function forgetKind(kind: Counter["kind"]): () => void {
  return replace(COUNTERS, "read", (read) => (stored) => {
    const { kind: known, ...rest } = read(stored);
    return known === undefined || known === kind ? rest : { ...rest, kind: known };
  });
}

const ONE = 1_000_000n;

const BUGS: readonly PlantedBug[] = [
  { name: "a load forgets that a counter is the slot of a rate", plant: () => forgetKind("rate") },
  { name: "a load forgets that a session runs", plant: () => forgetKind("session") },
  {
    name: "a hold stays in flight after it lapsed",
    plant: () =>
      replace(InFlight.prototype, "set", (set) =>
        function (this: InFlight, row) {
          if (row.status !== "expired") set.call(this, row);
        }),
  },
  {
    name: "a refused call counts in a rate",
    plant: () =>
      replace(
        UserState.prototype,
        "apply",
        (apply) =>
          function (this: UserState, changes: readonly Change[]) {
            const isRefused = changes.some(({ table, row }) =>
              table === "events" && row.matchStatus === "blocked"
            );
            const slot = [...this.counters.values()].findLast(({ kind }) => kind === "rate");
            const more: readonly Change[] = !isRefused || slot === undefined
              ? []
              : [{ verb: "put", table: "counters", row: { ...slot, count: slot.count + ONE } }];
            apply.call(this, [...changes, ...more]);
          },
      ),
  },
  {
    name: "slots of rates are removed while they count",
    troubles: only({ sweep: 1, passivate: 1 }),
    plant: () =>
      replace(SimTables.prototype, "remove", (remove) =>
        function (this: SimTables, table, isWanted, limit) {
          return remove.call(
            this,
            table,
            table === "counters" ? (row) => isWanted({ ...row, window_end_ms: 0 }) : isWanted,
            limit,
          );
        }),
  },
];

export const WINDOW_BUGS: readonly PlantedBug[] = BUGS.map((bug) => ({ ...bug, windows: true }));
