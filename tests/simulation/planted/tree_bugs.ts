// Bugs of trees, shares, runs and keys of users to plant.

import { type Batch, Gate, type Stretch } from "../../../actors/gate.ts";
import { TreeChanges } from "../../../actors/tree.ts";
import { Visit } from "../../../actors/levels.ts";
import type { RowChange } from "../../../actors/port.ts";
import type { Reservation } from "../../../src/domain/state/reservation.ts";
import { ReservationBook } from "../../../src/domain/state/reservation_book.ts";
import { type Change, UserState } from "../../../src/domain/state/user.ts";
import { only } from "../troubles.ts";
import { type PlantedBug, replace } from "./plant.ts";

/** The parts of holds among changes, of one status. */
function partsIn(changes: readonly RowChange[], status: Reservation["status"]): Reservation[] {
  return changes.flatMap(({ table, row }) =>
    table === "reservations" && row.partOf !== undefined && row.status === status ? [row] : []
  );
}

const BUGS: readonly PlantedBug[] = [
  {
    name: "a level is skipped: what a reserve takes above is not in memory",
    plant: () =>
      replace(
        UserState.prototype,
        "apply",
        (apply) =>
          function (this: UserState, changes: readonly Change[]) {
            const isHeld = partsIn(changes, "held").some(({ userKey }) => userKey === this.user.key);
            apply.call(this, isHeld ? changes.filter(({ table }) => table !== "counters") : changes);
          },
      ),
  },
  {
    name: "a path changes under a hold: a user that moved settles nothing above",
    plant() {
      const moved = new WeakSet<ReservationBook>();
      const takes = [
        replace(
          UserState.prototype,
          "apply",
          (apply) =>
            function (this: UserState, changes: readonly Change[]) {
              const { parentKey } = this.user;
              apply.call(this, changes);
              if (parentKey !== this.user.parentKey) moved.add(this.reservations);
            },
        ),
        replace(ReservationBook.prototype, "partsOf", (partsOf) =>
          function (this: ReservationBook, id) {
            return moved.has(this) ? [] : partsOf.call(this, id);
          }),
      ];
      return () => takes.forEach((takeBack) => takeBack());
    },
  },
  {
    name: "a release gives back at the wrong level",
    plant: () =>
      replace(Gate.prototype, "add", (add) =>
        function (this: Gate, changes: readonly RowChange[]) {
          const [part] = partsIn(changes, "released");
          const caller = changes.find(({ table, row }) =>
            table === "reservations" && row.id === part?.partOf
          );
          if (part === undefined || caller?.table !== "reservations") return add.call(this, changes);
          const { userKey } = caller.row;
          return add.call(
            this,
            changes.map((change) =>
              change.table === "counters" && change.row.userKey === part.userKey
                ? { ...change, row: { ...change.row, userKey } }
                : change
            ),
          );
        }),
  },
  {
    name: "a lapsed part still counts",
    plant: () =>
      replace(UserState.prototype, "lapsesAt", (lapsesAt) =>
        function (this: UserState, id, at) {
          return this.reservations.get(id)?.partOf === undefined && lapsesAt.call(this, id, at);
        }),
  },
  {
    name: "two changes of a tree run at once",
    plant: () => replace(TreeChanges.prototype, "inTurn", () => (_realm, change) => change()),
  },
  {
    name: "a user leaves memory while its call waits for users above",
    troubles: only({ passivate: 1 }),
    plant: () => replace(Visit.prototype, "pin", () => () => {}),
  },
  {
    name: "a counter of an account is written over that of a member's turn",
    crew: true,
    plant: lookAmongTheChangesOfMembers,
  },
];

/**
 * Looks for a counter of an account among the changes of the member that calls, too, and else in the first turn of the account
 * in the batch, even if it has none there.
 */
function lookAmongTheChangesOfMembers(): () => void {
  const firsts = new WeakMap<Batch, Map<number, Stretch>>();
  return replace(Gate.prototype, "add", (add) =>
    function (this: Gate, changes, earlier = null, others = []) {
      const wrong = others.map((other): Stretch => {
        const { batch, userKey } = other;
        const first = firsts.get(batch)?.get(userKey) ?? other;
        firsts.set(batch, (firsts.get(batch) ?? new Map()).set(userKey, first));
        const ofCaller = earlier?.batch === batch ? batch.entries.slice(earlier.from, earlier.to) : [];
        const isThere = ofCaller.some((change) =>
          typeof change === "object" && change.table === "counters" && change.row.userKey === userKey
        );
        return isThere ? { ...earlier as Stretch, userKey } : first;
      });
      return add.call(this, changes, earlier, wrong);
    });
}

export const TREE_BUGS: readonly PlantedBug[] = [
  ...BUGS.map((bug) => ({ ...bug, trees: true })),
  {
    name: "a release gives nothing back to its run",
    plant: () =>
      withoutChanges((changes) => {
        const isReleased = changes.some(({ table, row }) =>
          table === "reservations" && row.status === "released"
        );
        return isReleased ? changes.filter(({ table }) => table !== "runs") : changes;
      }),
  },
  {
    name: "a revoked key of a user is still let in",
    userKeys: true,
    plant: () =>
      withoutChanges((changes) =>
        changes.filter(({ table, row }) => table !== "end_user_keys" || row.revokedAt === null)
      ),
  },
];

/** Lets a user's state apply only some of the changes of a decision. */
function withoutChanges(left: (changes: readonly Change[]) => readonly Change[]): () => void {
  return replace(
    UserState.prototype,
    "apply",
    (apply) =>
      function (this: UserState, changes: readonly Change[]) {
        apply.call(this, left(changes));
      },
  );
}
