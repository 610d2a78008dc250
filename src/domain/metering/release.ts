// Release and expiry: both give back what a hold took, in the window where it was taken. A release also records a feed row
// of status `released`, which counts nowhere and costs nothing; an expiry records no event.

import type { Context } from "../state/context.ts";
import { refundCredits } from "../credits/wallet.ts";
import type { Draft } from "../state/draft.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import {
  notPending,
  requireTexts,
  type Reservation,
  TRANSITIONS,
  unknownReservation,
} from "../state/reservation.ts";
import { refundLines } from "./settle_lines.ts";
import { cutCharacters, cutText, ERROR_CODE_LENGTH_MAX, REASON_LENGTH_MAX } from "../values/texts.ts";

/** The input of `POST /v1/release`, with uncut texts. */
export interface ReleaseInput {
  readonly reservationId: string;
  readonly reason: string | null;
  /** Kept only if texts are logged. */
  readonly errorCode: string | null;
  /** A partial response; kept only if texts are logged. */
  readonly response?: string | null;
}

/** Decides a release of a reservation of this user. */
export function release(
  draft: Draft,
  input: ReleaseInput,
  context: Context,
): Result<Record<never, never>> {
  const row = draft.reservation(input.reservationId);
  if (row === undefined) return refused(unknownReservation());
  const transition = TRANSITIONS[row.status].release;
  if (typeof transition === "string") return refused(notPending(row));

  requireTexts(row);
  refundLines(draft, row);
  refundCredits(draft, context, row.credits, {
    reason: "reservation_released",
    eventId: null,
    reservationId: row.id,
    at: context.now,
  });
  recordEvent(
    draft,
    {
      id: context.ids.next("event"),
      userKey: row.userKey,
      realm: draft.user.realm,
      type: row.event,
      quantity: eventQuantity(row, row.amounts.seconds),
      costCents: 0n,
      matchStatus: "released",
      createdAt: context.now,
      metadata: row.metadata,
      reservationId: row.id,
      reason: cutCharacters(input.reason, REASON_LENGTH_MAX),
      errorCode: cutCharacters(input.errorCode, ERROR_CODE_LENGTH_MAX),
      lines: [],
      credits: [],
      uncovered: {},
    },
    { prompt: row.prompt, response: cutText(input.response) },
    context,
  );
  draft.putReservation({ ...row, prompt: null, status: transition.next, settledAt: context.now });
  return answered({});
}

/** Lapses an open hold at its expiry. Its amounts stay on the row, for a late commit. */
export function expire(draft: Draft, row: Reservation, context: Context): void {
  const transition = TRANSITIONS[row.status].expire;
  if (typeof transition === "string") return;
  refundLines(draft, row);
  refundCredits(draft, context, row.credits, {
    reason: "reservation_expired",
    eventId: null,
    reservationId: row.id,
    at: row.expiresAt,
  });
  draft.putReservation({ ...row, status: transition.next, settledAt: row.expiresAt });
  const expired = { userId: draft.user.id, reservationId: row.id, event: row.event };
  draft.tell("reservation.expired", row.expiresAt, expired);
}
