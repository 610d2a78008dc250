// Issue: gives a user a new balance, with its ledger entry and message.

import { type Amount, amountOf, larger } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { Draft } from "../state/draft.ts";
import type { CreditBalance } from "../state/credit.ts";
import { creditsData } from "../state/message.ts";
import { writeEntry } from "./ledger.ts";

/** The largest amount of a balance that is granted; seats of a plan may give more. */
export const AMOUNT_MAX = amountOf(1e12);

/** The terms of a new balance. */
export type BalanceTerms = Pick<
  CreditBalance,
  | ("packId" | "packName" | "packItemId" | "kind" | "unit" | "matches" | "priority")
  | ("initial" | "expiresAt" | "externalRef" | "source" | "notes")
  | ("origin" | "ownRef" | "included")
>;

/**
 * Gives the user of a draft a new balance.
 *
 * @param used what was used of it before: of another plan's balance in the same window
 */
export function issueBalance(
  draft: Draft,
  terms: BalanceTerms,
  { now, ids }: Pick<Context, "now" | "ids">,
  used: Amount = 0n,
): CreditBalance {
  const { user } = draft;
  const { packId, packName, packItemId, kind, unit, matches, priority } = terms;
  const { initial, expiresAt, externalRef, source, notes, origin, ownRef, included } = terms;
  const remaining = larger(initial - used, 0n);
  const row: CreditBalance = {
    id: ids.nextOwned("creditBalance", user.key),
    userKey: user.key,
    realm: user.realm,
    ...{ packId, packName, packItemId, kind, unit, matches, priority, initial },
    grantedAt: now,
    ...{ expiresAt, externalRef, source, notes, remaining },
    held: 0n,
    revokedAmount: 0n,
    revokedAt: null,
    overage: larger(used - initial, 0n),
    notified: 0,
    ...{ origin, ownRef, included },
  };
  // What plans include is no grant of a caller, so the sandbox cap does not count it.
  if (included === null) draft.putBalance(row);
  else draft.adoptBalance(row);
  const movement = { reason: "grant", eventId: null, reservationId: null, at: now } as const;
  writeEntry(draft, { ids }, row, remaining, movement, notes);
  if (remaining > 0n) draft.recordMessage("credits.granted", now, creditsData(user.id, row));
  return row;
}
