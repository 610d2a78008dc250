// Refund: revokes every balance of a paid grant, because the payment was refunded. Consumed amounts stay accounted for, and
// a second refund changes nothing.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { CreditBalance } from "../state/credit.ts";
import { answered, type Result } from "../state/result.ts";
import { endBalance } from "./revoke.ts";

/** The grants of one external reference. */
export interface RefundInput {
  /** The reference of the grants to revoke, of any pack. */
  readonly externalRef: string;
  /** Whether it is a reference of our own: that of a top-up. */
  readonly isOwn?: boolean;
  /** For the ledger rows. */
  readonly reason: string;
}

export interface RefundAnswer {
  /** Every balance of the grant, including those that had ended before. */
  readonly balanceIds: readonly string[];
}

/** The reference of a balance of a caller, or our own. */
export function refOf(row: CreditBalance, { isOwn = false }: Pick<RefundInput, "isOwn">): string | null {
  return isOwn ? row.ownRef : row.externalRef;
}

/** Decides the revokes of all balances of a reference. */
export function refund(draft: Draft, input: RefundInput, context: Context): Result<RefundAnswer> {
  const rows = [...draft.balancesInOrder()].filter((row) => refOf(row, input) === input.externalRef);
  for (const row of rows) {
    if (row.revokedAt === null) endBalance(draft, row, input.reason, context);
  }
  return answered({ balanceIds: rows.map(({ id }) => id).sort() });
}
