// Release and expiry: both give back what a hold took, in the window where it was taken. A release also records a feed row
// of status `released`, which counts nowhere and costs nothing; an expiry records no event.

import { moveRuns, runOfCall } from "../accounts/run.ts";
import type { Context } from "../state/context.ts";
import type { Movement } from "../credits/ledger.ts";
import { refundCredits } from "../credits/wallet.ts";
import { refundShares } from "../accounts/shares.ts";
import type { Draft } from "../state/draft.ts";
import { workOfReleased } from "../state/work.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { eventQuantity, recordEvent } from "./record_event.ts";
import {
  notPending,
  requireTexts,
  type Reservation,
  TRANSITIONS,
  unknownReservation,
} from "../state/reservation.ts";
import { settleStep } from "../state/run.ts";
import { callersReservation, partsOf, refundLines } from "./settle_lines.ts";
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
  const row = callersReservation(draft, input.reservationId);
  if (row === undefined) return refused(unknownReservation());
  const transition = TRANSITIONS[row.status].release;
  if (typeof transition === "string") return refused(notPending(row));

  requireTexts(row);
  const refund = { status: transition.next, reason: "reservation_released", at: context.now } as const;
  for (const part of partsOf(draft, row)) giveBack(part.draft, part.row, refund, context);
  giveBack(draft, row, refund, context);
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
      work: workOfReleased(row.amounts, context.now - row.createdAt),
      lines: [],
      credits: [],
      uncovered: {},
      ...runOfCall(row.runId),
    },
    { prompt: row.prompt, response: cutText(input.response) },
    context,
  );
  return answered({});
}

/** Gives back what an open hold took from users above, because its own user is erased. */
export function detach(
  draft: Draft,
  { reservationId }: Pick<ReleaseInput, "reservationId">,
  context: Context,
): Result<Record<never, never>> {
  const row = callersReservation(draft, reservationId);
  const refund = { status: "released", reason: "reservation_released", at: context.now } as const;
  if (row?.status !== "held") return answered({});
  for (const part of partsOf(draft, row)) giveBack(part.draft, part.row, refund, context);
  const { parts: _, ...own } = row;
  draft.putReservation(own);
  return answered({});
}

/** Gives back what a hold took from one user, and settles it. */
function giveBack(
  draft: Draft,
  row: Reservation,
  { status, reason, at }: Pick<Reservation, "status"> & Pick<Movement, "reason" | "at">,
  context: Context,
): void {
  refundLines(draft, row, at);
  refundCredits(draft, context, row.credits, {
    reason,
    eventId: null,
    reservationId: row.partOf ?? row.id,
    at,
  });
  if (row.runId !== undefined) moveRuns(draft, row.runId, settleStep(row.event, row.amounts));
  refundShares(draft, row.shares);
  const texts = status === "expired" ? {} : { prompt: null };
  draft.putReservation({ ...row, ...texts, status, settledAt: at });
}

/** Lapses an open hold at its expiry. Its amounts stay on the row, for a late commit. */
export function expire(draft: Draft, row: Reservation, context: Context): void {
  const transition = TRANSITIONS[row.status].expire;
  if (typeof transition === "string") return;
  const { expiresAt: at } = row;
  giveBack(draft, row, { status: transition.next, reason: "reservation_expired", at }, context);
  // The message is about the caller's own hold.
  if (row.partOf !== undefined) return;
  const expired = { userId: draft.user.id, reservationId: row.id, event: row.event };
  draft.recordMessage("reservation.expired", row.expiresAt, expired);
}
