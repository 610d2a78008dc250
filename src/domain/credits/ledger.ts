// The ledger: one entry for every movement of a balance, whose `remaining` is always their sum.

import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { CreditBalance, LedgerEntry } from "../state/credit.ts";

/** The reason of a movement, for its ledger entry. */
export type Movement = Pick<LedgerEntry, "reason" | "eventId" | "reservationId" | "at">;

/** Appends a movement of a balance to the ledger. */
export function writeEntry(
  draft: Draft,
  { ids }: Pick<Context, "ids">,
  row: CreditBalance,
  delta: Amount,
  movement: Movement,
  notes: string | null = null,
): void {
  draft.appendLedgerEntry({
    id: ids.next("ledgerEntry"),
    userKey: row.userKey,
    balanceId: row.id,
    packId: row.packId,
    delta,
    notes,
    ...movement,
  });
}
