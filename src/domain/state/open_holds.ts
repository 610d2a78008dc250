// The open holds of a user, and which of them a change rewrites: a plan change, a merge and a reinstatement of credits point
// open holds at other counters or balances. What a turn writes becomes durable together, and all other calls wait for it,
// so a turn rewrites a bounded number.

import type { Draft } from "./draft.ts";
import { type Refusal, refusal } from "../values/refusal.ts";
import type { Reservation } from "./reservation.ts";

export const REWRITE_LIMITS = {
  /**
   * Open holds of one user that one turn rewrites: a fifth of a second, or half of one where each has metadata of its own, and
   * twice that in a merge.
   */
  holdsMax: 25_000,
};

/** The open reservations in memory, with a draft's changes. */
export function* openHolds(draft: Draft): Iterable<Reservation> {
  for (const row of draft.reservations()) {
    if (row.status === "held") yield row;
  }
}

/** Thrown in a decision that would rewrite more open holds than a turn may: the call is refused, and nothing has happened. */
export class TooManyHolds extends Error {
  override readonly name = "TooManyHolds";
  readonly refusal: Refusal = refusal(
    "unavailable",
    `More than ${REWRITE_LIMITS.holdsMax} open holds would move: retry when they are settled or have lapsed`,
  );
}

/** Whether too many holds are open to move, in what falls due. */
export function holdsStay(draft: Draft): boolean {
  return draft.isSettlingDue && draft.state.openHolds > REWRITE_LIMITS.holdsMax;
}

/**
 * Lists the open holds that move to other counters or balances. With more than a turn may rewrite, a call is refused. What
 * falls due can't be refused: then the holds stay where they took. They count as used in the plan that the user enters, as
 * its counters include those left, and what they give back comes back to the plan left alone. Only holds at concurrency
 * limits move even then, because these count nothing but holds.
 *
 * @throws TooManyHolds
 */
export function holdsToMove(draft: Draft): readonly Reservation[] {
  if (draft.state.openHolds <= REWRITE_LIMITS.holdsMax) return [...openHolds(draft)];
  if (!holdsStay(draft)) throw new TooManyHolds();
  const guarded = [...draft.guardedHolds()];
  return guarded.filter(({ lines }) => lines.some(({ window }) => window.kind === "concurrency"))
    .map(({ id }) => draft.reservation(id) as Reservation);
}

/** Lists the open holds that moved before, which alone can have left counters. They were bounded when they moved. */
export function movedHolds(draft: Draft): readonly Reservation[] {
  const changed = draft.changedReservations;
  const isChanged = new Set(changed.map(({ id }) => id));
  const others = [...draft.state.reservations.apart()].filter(({ id }) => !isChanged.has(id));
  return [...others, ...changed].filter(({ status }) => status === "held");
}
