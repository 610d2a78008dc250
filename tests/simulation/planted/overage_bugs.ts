// Bugs of overage to plant.

import { type Change, UserState } from "../../../src/domain/state/user.ts";
import { COUNTERS } from "../../../src/storage/rows/metering_rows.ts";
import { OVERAGE_WINDOWS } from "../../../src/storage/rows/overage_rows.ts";
import { type PlantedBug, replace } from "./plant.ts";

const BUGS: readonly PlantedBug[] = [
  {
    name: "a load forgets what a counter sold",
    plant: () =>
      replace(COUNTERS, "read", (read) => (stored) => {
        const { overage: _, ...rest } = read(stored);
        return rest;
      }),
  },
  {
    name: "a load forgets overage that is pending",
    plant: () =>
      replace(OVERAGE_WINDOWS, "read", (read) => (stored) => ({ ...read(stored), pending: 0n, dueAt: null })),
  },
  {
    name: "overage is reported by every turn after its hour",
    plant: () =>
      replace(
        UserState.prototype,
        "apply",
        (apply) =>
          function (this: UserState, changes: readonly Change[]) {
            apply.call(
              this,
              changes.filter(({ table, row }) => table !== "overage_windows" || row.dueAt !== null),
            );
          },
      ),
  },
];

export const OVERAGE_BUGS: readonly PlantedBug[] = BUGS.map((bug) => ({ ...bug, overage: true }));
