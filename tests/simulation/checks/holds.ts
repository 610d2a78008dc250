// Each hold ends once: the states of a reservation follow their table, and at most one event settles it.

import type { ReservationStatus } from "../../../src/domain/state/reservation.ts";
import type { Checker } from "../watch.ts";

const NEXT: Readonly<Record<string, readonly string[]>> = {
  none: ["held"],
  held: ["held", "committed", "released", "expired"],
  expired: ["expired", "committed"],
  // A merge files them under the canonical user.
  committed: ["committed"],
  released: ["released"],
};

/** Follows every reservation. */
export function holdsChecker(): Checker {
  const states = new Map<string, ReservationStatus>();
  const events = new Map<string, string>();
  return {
    name: "holds",
    onTurn({ changes }) {
      for (const change of changes) {
        if (change.table === "reservations") {
          const { id, status } = change.row;
          const before = states.get(id) ?? "none";
          if (!NEXT[before]?.includes(status)) throw new Error(`${id} went from ${before} to ${status}`);
          states.set(id, status);
        }
        if (change.table === "events" && change.row.reservationId !== null) {
          const { id, reservationId } = change.row;
          const other = events.get(reservationId);
          if (other !== undefined) throw new Error(`${reservationId} was settled by ${other} and ${id}`);
          events.set(reservationId, id);
        }
      }
    },
  };
}
