// Revoke: ends a balance. Its remaining amount becomes 0; consumed amounts stay accounted for.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { creditsData } from "../state/message.ts";
import type { CreditBalance } from "../state/credit.ts";
import { writeEntry } from "./ledger.ts";

/** The input of `POST /v1/credits/revoke`. */
export interface RevokeInput {
  readonly balanceId: string;
  /** For the ledger row. */
  readonly reason: string | null;
}

/** Decides a revoke of a balance of this user; a second revoke writes a ledger entry of 0. */
export function revoke(draft: Draft, input: RevokeInput, context: Context): Result<Record<never, never>> {
  const row = draft.balance(input.balanceId);
  if (row === undefined) return refused(unknownBalance());
  endBalance(draft, row, input.reason, context);
  return answered({});
}

/** Takes the remaining amount of a balance, and ends it. */
export function endBalance(draft: Draft, row: CreditBalance, reason: string | null, context: Context): void {
  const movement = { reason: "admin_adjust", eventId: null, reservationId: null, at: context.now } as const;
  writeEntry(draft, context, row, -row.remaining, movement, reason);
  const revoked = {
    ...row,
    remaining: 0n,
    revokedAmount: row.revokedAmount + row.remaining,
    revokedAt: row.revokedAt ?? context.now,
  };
  draft.putBalance(revoked);
  if (row.revokedAt === null) {
    draft.recordMessage("credits.revoked", context.now, creditsData(draft.user.id, revoked));
  }
}

/** Refuses an unknown balance. */
export function unknownBalance() {
  return refusal("credit_balance_not_found", "Credit balance not found");
}
