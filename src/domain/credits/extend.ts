// Extend: a later expiry for a balance, or none. An expired balance can then be spent again, and sends another message when
// the new expiry is reached. The expiry never moves earlier: a user keeps a grant for the time it was promised for.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { Millis } from "../values/period.ts";
import { invalidField, type Refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { type CreditBalance, NOTIFIED } from "../state/credit.ts";
import { unknownBalance } from "./revoke.ts";
import { writeEntry } from "./ledger.ts";

/** A balance with its new expiry. */
export interface ExtendInput {
  readonly balanceId: string;
  /** null for evergreen. */
  readonly expiresAt: Millis | null;
  /** For the ledger row. */
  readonly reason: string | null;
}

export interface ExtendAnswer {
  readonly row: CreditBalance;
}

/** Decides a new expiry of a balance of this user; the present expiry again changes nothing. */
export function extend(draft: Draft, input: ExtendInput, context: Context): Result<ExtendAnswer> {
  const row = draft.balance(input.balanceId);
  if (row === undefined) return refused(unknownBalance());
  const fault = faultOf(input, row, context.now);
  if (fault !== null) return refused(fault);
  if (input.expiresAt === row.expiresAt) return answered({ row });
  const movement = { reason: "admin_adjust", eventId: null, reservationId: null, at: context.now } as const;
  writeEntry(draft, context, row, 0n, movement, input.reason);
  const extended = { ...row, expiresAt: input.expiresAt, notified: row.notified & ~NOTIFIED.expired };
  draft.putBalance(extended);
  return answered({ row: extended });
}

function faultOf({ expiresAt }: ExtendInput, row: CreditBalance, now: Millis): Refusal | null {
  if (row.revokedAt !== null) return invalidField("balanceId", "the balance was revoked");
  if (row.included !== null) return invalidField("balanceId", "credits of a plan end with its windows");
  if (expiresAt === row.expiresAt || expiresAt === null) return null;
  if (row.expiresAt === null) return invalidField("expiresAt", "must not be set: the balance never expires");
  if (expiresAt <= now) return invalidField("expiresAt", "must be in the future");
  return expiresAt < row.expiresAt
    ? invalidField("expiresAt", "must not be before the present expiry of the balance")
    : null;
}
