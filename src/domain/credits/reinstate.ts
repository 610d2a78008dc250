// Reinstate: grants again what was revoked of a paid grant, because its payment came back. The new balances expire when the
// old ones would have. What was used meanwhile stays used, and a second reinstatement changes nothing. Open holds are moved
// from the old balances to the new ones: what a release gives back to a revoked balance can never be spent.

import type { Amount } from "../values/amount.ts";
import type { Context } from "../state/context.ts";
import type { CreditBalance } from "../state/credit.ts";
import type { Draft } from "../state/draft.ts";
import { refusal } from "../values/refusal.ts";
import { answered, refused, type Result } from "../state/result.ts";
import { issueBalance } from "./issue.ts";
import { refOf, type RefundAnswer } from "./refund.ts";
import { repointCredits } from "./wallet.ts";

/** The grants of one external reference. */
export interface ReinstateInput {
  /** The reference of the grants that were revoked, of any pack. */
  readonly externalRef: string;
  /** References of earlier reinstatements of them. */
  readonly earlierRefs: readonly string[];
  /** The reference of what is granted now. */
  readonly newRef: string;
  /** Whether they are references of our own: of a top-up. */
  readonly isOwn?: boolean;
}

/** Decides a reinstatement; answers every balance of the new reference. */
export function reinstate(draft: Draft, input: ReinstateInput, context: Context): Result<RefundAnswer> {
  const { externalRef, earlierRefs, newRef } = input;
  const all = [...draft.balancesInOrder()].sort((a, b) => (a.id < b.id ? -1 : 1));
  const known = all.filter((row) => refOf(row, input) === newRef);
  if (known.length > 0) return answered({ balanceIds: known.map(({ id }) => id) });
  const references = new Set<string | null>([externalRef, ...earlierRefs]);
  const given = all.filter((row) => references.has(refOf(row, input)));
  const byItem = Map.groupBy(given, ({ packId, packItemId }) => JSON.stringify([packId, packItemId]));
  const owed = [...byItem.values()].map((rows) => owedOf(rows, input))
    .filter(({ initial, expiresAt }) => initial > 0n && (expiresAt === null || expiresAt > context.now));
  if (context.balancesLeft !== null && owed.length > context.balancesLeft) {
    return refused(refusal("test_quota_exceeded", "Test-mode credit balance cap reached"));
  }
  const reference = input.isOwn === true ? { ownRef: newRef } : { externalRef: newRef };
  const rows = owed.map((row) => giveBack(draft, { ...row, ...reference }, context));
  return answered({ balanceIds: rows.map(({ id }) => id) });
}

/** The terms of what comes back of one item. */
interface Owed extends CreditBalance {
  /** The revoked balances with parts in open holds. */
  readonly heldOf: readonly CreditBalance[];
}

/**
 * The terms of one item's balances. The amount is all that was revoked of them, or will be when open holds give it back,
 * and was not granted again.
 */
function owedOf(rows: readonly CreditBalance[], input: ReinstateInput): Owed {
  const isFirst = (row: CreditBalance) => refOf(row, input) === input.externalRef;
  const first = rows.find(isFirst) ?? rows[0] as CreditBalance;
  const heldOf = rows.filter(({ revokedAt, held }) => revokedAt !== null && held > 0n);
  const revoked = rows.reduce((sum, row) => sum + row.revokedAmount, sumHeld(heldOf));
  const again = rows.reduce((sum, row) => isFirst(row) ? sum : sum + row.initial, 0n);
  return { ...first, initial: revoked - again, heldOf };
}

function sumHeld(rows: readonly CreditBalance[]): Amount {
  return rows.reduce((sum, { held }) => sum + held, 0n);
}

/** Issues a balance of what comes back; it has the parts of open holds that the revoked balances had. */
function giveBack(draft: Draft, { heldOf, ...terms }: Owed, context: Context): CreditBalance {
  const held = sumHeld(heldOf);
  const row = issueBalance(draft, terms, context, held);
  if (held === 0n) return row;
  draft.putBalance({ ...row, held });
  for (const old of heldOf) {
    draft.putBalance({ ...old, held: 0n, revokedAmount: old.revokedAmount + old.held });
  }
  repointCredits(draft, new Map(heldOf.map(({ id }) => [id, row.id])));
  return row;
}
