// Refund: revokes every balance of a paid grant, because the payment was refunded. Consumed amounts stay accounted for, and
// a second refund changes nothing.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { answered, type Result } from "../state/result.ts";
import { endBalance } from "./revoke.ts";

/** The grants of one external reference. */
export interface RefundInput {
  /** The reference of the grants to revoke, of any pack. */
  readonly externalRef: string;
  /** For the ledger rows. */
  readonly reason: string;
}

export interface RefundAnswer {
  /** Every balance of the grant, including those that had ended before. */
  readonly balanceIds: readonly string[];
}

/** Decides the revokes of all balances of a reference. */
export function refund(draft: Draft, input: RefundInput, context: Context): Result<RefundAnswer> {
  const rows = [...draft.balancesInOrder()].filter(({ externalRef }) => externalRef === input.externalRef);
  for (const row of rows) {
    if (row.revokedAt === null) endBalance(draft, row, input.reason, context);
  }
  return answered({ balanceIds: rows.map(({ id }) => id).sort() });
}
