// Refund: the end of every balance that a paid grant made, since the money for it went back. What was consumed stays
// accounted for, and a second refund changes nothing. Section 7 of beyond.md.

import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import { answered, type Result } from "../state/result.ts";
import { endBalance } from "./revoke.ts";

/** Section 7 of beyond.md, "charge.refunded". */
export interface RefundInput {
  /** Of the grants that go, whatever pack they are of. */
  readonly externalRef: string;
  /** For the ledger rows. */
  readonly reason: string;
}

export interface RefundAnswer {
  /** Every balance of the grant, those that had ended before among them. */
  readonly balanceIds: readonly string[];
}

/** Decides the revoke of every balance of a reference. */
export function refund(draft: Draft, input: RefundInput, context: Context): Result<RefundAnswer> {
  const rows = [...draft.balancesInOrder()].filter(({ externalRef }) => externalRef === input.externalRef);
  for (const row of rows) {
    if (row.revokedAt === null) endBalance(draft, row, input.reason, context);
  }
  return answered({ balanceIds: rows.map(({ id }) => id).sort() });
}
