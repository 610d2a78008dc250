// Prolong: keep an open hold from lapsing while its work goes on. Only its expiry moves, and never to an earlier time.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Millis } from "../values/period.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { callersReservation, partsOf } from "./settle_lines.ts";
import { notPending, unknownReservation } from "../state/reservation.ts";

export interface ProlongInput {
  readonly reservationId: string;
  /** How long the hold lasts from now. */
  readonly ttlMs: number;
}

export interface ProlongAnswer {
  readonly expiresAt: Millis;
}

/** Decides a later expiry of an open hold of this user. */
export function prolong(draft: Draft, input: ProlongInput, context: Context): Result<ProlongAnswer> {
  const row = callersReservation(draft, input.reservationId);
  if (row === undefined) return refused(unknownReservation());
  if (row.status !== "held") return refused(notPending(row));
  const expiresAt = context.now + input.ttlMs;
  if (expiresAt <= row.expiresAt) return answered({ expiresAt: row.expiresAt });
  draft.putReservation({ ...row, expiresAt });
  for (const part of partsOf(draft, row)) part.draft.putReservation({ ...part.row, expiresAt });
  return answered({ expiresAt });
}
